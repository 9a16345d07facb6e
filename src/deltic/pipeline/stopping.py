"""A request to stop that a signal handler may make."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue


class StopRequest:
    """As threading.Event, for one thread that waits.

    An Event holds a lock while it is set and while a wait begins: a handler that runs just then on the same thread waits for ever.
    """

    def __init__(self) -> None:
        self._made = False
        self._wake: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        return self._made

    def set(self) -> None:
        self._made = True
        self._wake.put(None)

    def clear(self) -> None:
        self._made, self._wake = False, SimpleQueue()

    def wait(self, seconds: float) -> None:
        """Returns after `seconds`, or earlier if it is set."""
        if not self._made:
            with suppress(Empty):
                self._wake.get(timeout=seconds)
