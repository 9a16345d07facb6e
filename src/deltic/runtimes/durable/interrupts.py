"""Ctrl-C deferred while memory and disk are about to differ."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C takes effect after the block. Only the main thread is ever interrupted by it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    pending: list[tuple[int, FrameType | None]] = []
    try:
        signal.signal(signal.SIGINT, lambda number, frame: pending.append((number, frame)))
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pending:
            before(*pending[0])
