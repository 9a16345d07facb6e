"""Ticks take precedence over reads that begin while they run.

Threads of a process take turns of `sys.getswitchinterval()` (5 ms), while a tick of few changes takes less than one: beside two busy
readers ticks took 1.6 to 2 times as long on average. So a read that begins during a tick waits for its end, one turn at most, however long
the tick takes: ticks of large changes and busy sessions delay readers by no more than threads do anyway.
"""

from __future__ import annotations

from threading import Event, get_ident
from time import monotonic
from typing import Final

LONGEST_S: Final = 0.005
"""How long a read waits, in seconds."""


class Precedence:
    """Ticks, one at a time, and reads on other threads."""

    def __init__(self) -> None:
        self._idle = Event()
        self._idle.set()
        self._ticking = 0
        """The thread of the current tick."""

    def begin(self) -> None:
        """Reads on other threads that begin now wait for `end`. To be called inside the `try` whose `finally` calls that."""
        self._ticking = get_ident()
        self._idle.clear()

    def end(self) -> None:
        self._idle.set()

    def give(self) -> None:
        """Waits while ticks run, at most LONGEST_S. A function that reads during a tick of its own thread does not wait."""
        if self._idle.is_set() or self._ticking == get_ident():
            return
        end = monotonic() + LONGEST_S
        while (left := end - monotonic()) > 0 and not (self._idle.wait(left) and self._idle.is_set()):
            pass
