"""Ticks and reads of one session take turns, and ticks take precedence.

Threads of a process take turns of `sys.getswitchinterval()` (5 ms) and hand over at each kernel and each call of Arrow, while a tick of few
changes takes less than one: beside two busy readers, ticks that follow one another took three times as long on average. So

- a read that begins during a tick, or between two that follow one another, waits for a turn of its own between two ticks;
- the next tick waits for this read, for at most TURN_S, and the next turn comes after ticks of SHARE times that.

Nothing waits beside ticks that come one at a time, and no read waits for longer than LONGEST_S.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from time import monotonic
from typing import Final

from deltic.reentrant import ReentrantEvent

TURN_S: Final = 0.005
"""In seconds, how long a read waits for a turn while ticks follow one another, and how long a tick waits for a read."""
SHARE: Final = 10
"""How many times the time of reads ticks have while they follow one another."""
LONGEST_S: Final = 0.02
"""In seconds. Then a read begins during a tick."""
GAP_S: Final = 0.001
"""Ticks follow one another if the time between them, in seconds, is shorter."""


class Precedence:
    """Ticks, one at a time, and reads on other threads."""

    def __init__(self) -> None:
        self._ticking: int | None = None
        """The thread of the current tick."""
        self._ended = float("-inf")
        """When the last tick ended."""
        self._following = False
        """Whether the last tick followed the one before it."""
        self._waiting: dict[int, tuple[float, ReentrantEvent]] = {}
        """By thread, since when a read waits, and what it waits for; the longest first."""
        self._reading = set[int]()
        """The threads of reads for which a tick still waits."""
        self._read = ReentrantEvent()
        self._next = float("-inf")
        """When the next turn of a read may come."""

    def begin(self) -> None:
        """Reads on other threads that begin now wait for `end`. To be called inside the `try` whose `finally` calls that."""
        self._following = monotonic() < self._ended + GAP_S
        self._ticking = get_ident()
        if self._reading:
            start = monotonic()
            self._read.clear()
            if self._reading and not self._read.wait(TURN_S):
                self._reading.clear()  # no tick waits for a read again
            end = monotonic()
            self._next = end + SHARE * (end - start)

    def end(self) -> None:
        self._ended = monotonic()
        self._ticking = None
        for thread, (since, turn) in list(self._waiting.items()) if self._waiting else ():
            if self._following and self._ended < max(since + TURN_S, self._next):
                break
            self._reading.add(thread)
            self._waiting.pop(thread, None)
            turn.set()
            if self._following:
                break

    @contextmanager
    def reading(self) -> Iterator[None]:
        """For a read, which waits for its turn. A function that reads during a tick of its own thread does not wait."""
        thread = get_ident()
        if self._ticking == thread:
            yield
            return
        if self._ticking is not None or (self._following and monotonic() < self._ended + GAP_S):
            turn = ReentrantEvent()
            self._waiting[thread] = monotonic(), turn
            turn.wait(LONGEST_S)
            self._waiting.pop(thread, None)
        self._reading.add(thread)
        try:
            yield
        finally:
            self._reading.discard(thread)
            if not self._reading:
                self._read.set()
