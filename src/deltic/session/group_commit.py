"""Ticks of several threads, which one of them commits together.

A thread that ticks while another one commits waits. The first of those that wait then computes the ticks of all, one after another, and
makes them durable with one sync. Threads that each computed their own tick would hand over at every kernel, which takes longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, RLock
from time import perf_counter
from typing import Any, Final

from deltic.reentrant import ReentrantEvent

LOST_S: Final = 0.05
"""A thread that waits looks again after so many seconds, since the one that should have woken it may have been interrupted."""
LONGEST_S: Final = 0.005
"""In seconds, the longest wait for the threads of the last group."""


class WaitingTick:
    """A tick that a thread waits for. check: raises what prevents it, in its turn. done: it is committed, or has failed with `error`.

    listed: see `circuit.operator.Tick`. left: its thread is interrupted, and commits nothing any more.
    """

    __slots__ = ("changes", "check", "done", "error", "left", "listed", "notes", "wake")

    def __init__(self, changes: Mapping[str, Any], notes: Mapping[str, Any], check: Callable[[], None], listed: int = 0) -> None:
        self.changes, self.notes, self.check, self.listed = changes, notes, check, listed
        self.error: Exception | None = None
        self.done = self.left = False
        self.wake = Lock()
        self.wake.acquire()


class TickQueue:
    """The ticks that threads wait for, in the order in which they are committed. lock: the session's.

    commit: computes ticks and makes them durable, under the lock. Of those that are not done when it raises, the first thread withdraws its
    own, and the next one commits the others.
    """

    def __init__(self, lock: RLock, commit: Callable[[Sequence[WaitingTick]], None]) -> None:
        self._lock, self._commit = lock, commit
        self._waiting: deque[WaitingTick] = deque()
        self._expected, self._patience_s = 1, 0.0
        """How many ticks the last group had, and how long its commit took: threads that tick again and again come back together."""
        self._enough = ReentrantEvent()

    def run(self, tick: WaitingTick) -> None:
        """Returns when the tick is committed, or raises its error."""
        try:
            self._waiting.append(tick)
            if len(self._waiting) >= self._expected:
                self._enough.set()
            while not tick.done:
                if self._is_first(tick):
                    self._lead(tick)
                else:
                    tick.wake.acquire(timeout=LOST_S)
        except BaseException:
            tick.left = True  # at once: another interrupt may end the wait for the lock
            with self._lock, suppress(ValueError):  # nobody commits it now; it is not there if it is done
                self._waiting.remove(tick)
            raise
        if tick.error is not None:
            raise tick.error

    def _is_first(self, tick: WaitingTick) -> bool:
        """Of those that are not done: an interrupted thread may have left some that are, and its own."""
        for each in list(self._waiting):
            if not (each.done or each.left):
                return each is tick
        return False

    def _lead(self, tick: WaitingTick) -> None:
        group: list[WaitingTick] = []
        first: list[WaitingTick] = []
        try:
            with self._lock:
                try:
                    if not tick.done:
                        self._gather()
                        group = [each for each in list(self._waiting) if not (each.done or each.left)]
                        start = perf_counter()
                        self._commit(group)
                        self._expected, self._patience_s = len(group), min(perf_counter() - start, LONGEST_S)
                finally:  # under the lock: two threads that look at the first tick would remove the second, too
                    while self._waiting and (self._waiting[0].done or self._waiting[0].left):
                        self._waiting.popleft()
                    first = list(self._waiting)[:1]
        finally:
            for each in (*group, *first):
                if each is not tick:
                    with suppress(RuntimeError):  # two threads wake it
                        each.wake.release()

    def _gather(self) -> None:
        """Waits for the threads of the last group."""
        if len(self._waiting) < self._expected:
            self._enough.clear()
            if len(self._waiting) < self._expected:
                self._enough.wait(self._patience_s)
