"""Signals of `deltic run`: what SIGINT and SIGTERM do while it starts, while it runs, and when it is done."""

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
    """SIGTERM ends the process with 0 while `Signals` are not open: the command is loading, or done, and there is nothing to lose."""
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

    The second ends the process as if it were killed, which a state may be at any moment. Neither raises: an exception might come in the
    midst of anything, and be lost where a library passes over exceptions. caught: those that came.
    """

    def __init__(self) -> None:
        self.caught: list[int] = []
        self._stop: Callable[[], None] | None = None
        self._before: dict[int, Any] = {}

    def listen(self) -> None:
        """Takes the signals over from whoever has them."""
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.signal(number, self._heard)
            self._before.setdefault(number, before)

    def stop_by(self, stop: Callable[[], None]) -> None:
        """`stop` is what stops the pipeline; called at once if a signal came before."""
        self._stop = stop
        if self.caught:
            stop()

    def _heard(self, number: int, _: FrameType | None) -> None:
        self.caught.append(number)
        if len(self.caught) > 1:
            os.write(2, b"deltic: interrupted\n")
            os._exit(Exit.INTERRUPTED)
        os.write(2, b"deltic: ending after this tick; once more ends it at once\n")
        if self._stop is not None:
            self._stop()

    def __enter__(self) -> Self:
        _enable_arrow_handlers(False)  # they would break off the read of a file
        self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        _enable_arrow_handlers(True)
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _enable_arrow_handlers(enable: bool) -> None:
    """Arrow is loaded here, since the command line is not to wait for it."""
    import pyarrow as pa  # noqa: PLC0415  see above

    pa.enable_signal_handlers(enable)
