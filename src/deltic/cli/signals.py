"""Signals of `deltic run`: what SIGINT and SIGTERM do while it starts, while it runs, and at its end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from deltic.cli.exits import Exit


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the process with 0 while `Signals` are not open: the command is loading, or finished, and nothing is lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: os._exit(Exit.OK))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Signals:
    """While it is open, the first SIGINT or SIGTERM stops the pipeline, before its first tick if it is being opened.

    The second ends the process like a kill, which a state survives at any moment. Neither raises: an exception could occur anywhere,
    and be lost in a library that ignores exceptions. caught: the signals received.
    """

    def __init__(self) -> None:
        self.caught: list[int] = []
        self._stop: Callable[[], None] | None = None
        self._before: dict[int, Any] = {}

    def listen(self) -> None:
        """Replaces the current handlers."""
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.signal(number, self._received)
            self._before.setdefault(number, before)

    def stop_by(self, stop: Callable[[], None]) -> None:
        """Sets the function that stops the pipeline; calls it at once if a signal has arrived before."""
        self._stop = stop
        if self.caught:
            stop()

    def _received(self, number: int, _: FrameType | None) -> None:
        self.caught.append(number)
        if len(self.caught) > 1:
            os.write(2, b"deltic: interrupted\n")
            os._exit(Exit.INTERRUPTED)
        os.write(2, b"deltic: stopping after this tick; a second signal stops at once\n")
        if self._stop is not None:
            self._stop()

    def __enter__(self) -> Self:
        _enable_arrow_handlers(False)  # they would interrupt the read of a file
        self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        _enable_arrow_handlers(True)
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _enable_arrow_handlers(enable: bool) -> None:
    """Imports Arrow here, so that the command line starts without it."""
    import pyarrow as pa  # noqa: PLC0415  see above

    pa.enable_signal_handlers(enable)
