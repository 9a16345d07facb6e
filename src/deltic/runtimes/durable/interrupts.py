"""Ctrl-C deferred while memory and disk are about to differ."""

from __future__ import annotations

import threading
from _signal import SIGINT, getsignal, signal  # type: ignore[import-not-found]  # `signal` makes enums of handlers, in 15 µs a block
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C takes effect after the block. Only the main thread is ever interrupted by it."""
    if threading.current_thread() is not threading.main_thread() or not callable(before := getsignal(SIGINT)):
        yield
        return
    pending: list[tuple[int, FrameType | None]] = []
    try:
        signal(SIGINT, lambda number, frame: pending.append((number, frame)))
        yield
    finally:
        signal(SIGINT, before)
        if pending:
            before(*pending[0])
