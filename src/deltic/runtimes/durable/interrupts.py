"""Ctrl-C deferred while memory and disk are about to differ."""

from __future__ import annotations

import threading
from _signal import SIGINT, getsignal, signal  # type: ignore[import-not-found]  # `signal` makes enums of handlers, in 15 µs a block
from types import FrameType, TracebackType
from typing import Any


class uninterrupted:
    """Ctrl-C takes effect after the block. Only the main thread is ever interrupted by it."""

    __slots__ = ("_before", "_pending")

    def __init__(self) -> None:
        self._before: Any = None
        """The handler that is replaced; None unless one is."""
        self._pending: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread() and callable(before := getsignal(SIGINT)):
            pending = self._pending
            self._before = before
            signal(SIGINT, lambda number, frame: pending.append((number, frame)))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if (before := self._before) is not None:
            signal(SIGINT, before)
            self._before = None
            if self._pending:
                before(*self._pending[0])

    def __del__(self) -> None:  # of one that the handler of another signal has left by an exception, before the block or after it
        if self._before is not None:
            signal(SIGINT, self._before)
