"""Workers: the threads among which the work of a large tick is divided. Kernels release the GIL; what runs in Python takes turns.

Always: the results are those of one thread, in order. When `map` returns or raises, no thread works for it any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from contextvars import copy_context
from heapq import heappop, heappush
from queue import SimpleQueue
from threading import Lock, Thread, get_ident
from typing import Final, Generic, TypeVar

from deltic.reentrant import ReentrantEvent, start

Item = TypeVar("Item")
Result = TypeVar("Result")

THREAD: Final = "deltic-shard"
DIVIDED_ROWS: Final = 1 << 16
"""Work on fewer rows is not divided: it takes less time than threads take to start."""


_NEVER: Final = ReentrantEvent()
"""Of work that nothing stops."""


class WorkStopped(BaseException):
    """Ends work whose result is not needed any more."""


class Workers:
    """threads: the most that work at the same time. Each `map` starts and ends its own, so none is left after a fork or an interrupt."""

    def __init__(self, threads: int = 1) -> None:
        assert threads >= 1
        self.threads = threads

    def divides(self, rows: int) -> bool:
        """Whether work on so many rows is divided."""
        return self.threads > 1 and rows >= DIVIDED_ROWS

    def ranges(self, rows: int) -> list[tuple[int, int]]:
        """The rows from 0 on as ranges of about the same size, one for each thread; one range if work on them is not divided.

        >>> Workers(3).ranges(300_000), Workers(3).ranges(10)
        ([(0, 100000), (100000, 200000), (200000, 300000)], [(0, 10)])
        """
        parts = self.threads if self.divides(rows) else 1
        return [(rows * i // parts, rows * (i + 1) // parts) for i in range(parts)]

    def map(
        self, work: Callable[[Item, ReentrantEvent], Result], items: Sequence[Item], after: Sequence[Collection[int]] = ()
    ) -> list[Result]:
        """The results for the items; the second argument is set when the result is not needed any more, as after Ctrl-C.

        after: for each item the numbers of the ones before it that must be done first. Raises what the first of the failed items raised.
        With one thread, or one item, all runs here.
        """
        if self.threads == 1 or len(items) <= 1:
            return [work(item, _NEVER) for item in items]
        division = _Division(work, items, after or [()] * len(items))
        try:
            for _ in range(min(self.threads, len(items))):
                try:
                    start(Thread(target=copy_context().run, args=(division.run,), name=THREAD, daemon=True))
                except RuntimeError:  # there may be no more threads: this one works, too
                    division.run()
            return division.results()
        finally:
            division.end()


class _Division(Generic[Item, Result]):
    """The items of one `map`, which threads take in turn.

    An interrupt may come at any line of the thread that waits, also in `start`. So that thread only calls what is atomic: of a Condition or
    an Event an interrupt could leave the lock held, for which those that work then wait.
    """

    def __init__(self, work: Callable[[Item, ReentrantEvent], Result], items: Sequence[Item], after: Sequence[Collection[int]]) -> None:
        self._work, self._items = work, items
        self._results: dict[int, Result] = {}
        self._errors: dict[int, BaseException] = {}
        self._unmet = [len(after[number]) for number in range(len(items))]
        self._dependents: list[list[int]] = [[] for _ in items]
        for number, others in enumerate(after):
            for other in others:
                assert other < number
                self._dependents[other].append(number)
        self._ready = [number for number, unmet in enumerate(self._unmet) if not unmet]
        """A heap of the items that may begin."""
        self._end = len(items)
        """Items from here on are not needed, since one before them has failed."""
        self._working = set[int]()
        """The threads that work."""
        self._stop, self._lock = ReentrantEvent(), Lock()
        self._idle = 0
        """How many threads wait for an item that `_changes` does not wake."""
        self._changes: SimpleQueue[None] = SimpleQueue()
        """Wakes one of the idle threads for each entry."""
        self._finished: SimpleQueue[None] = SimpleQueue()
        """Wakes the thread that waits for all: an entry for each item that is done."""

    def run(self) -> None:
        """Works until no item is left."""
        while (number := self._take()) is not None:
            try:
                self._results[number] = self._work(self._items[number], self._stop)
            except BaseException as error:  # `results` raises it
                self._errors[number] = error
            with self._lock:
                self._finish(number)

    def _take(self) -> int | None:
        """The next item; None if none is left. Waits for one that others make ready."""
        while True:
            with self._lock:
                if self._stop.is_set() or not (self._has_ready() or self._working):
                    return None
                if self._has_ready():
                    self._working.add(get_ident())
                    return heappop(self._ready)
                self._idle += 1
            self._changes.get()

    def _has_ready(self) -> bool:
        return bool(self._ready) and self._ready[0] < self._end

    def _finish(self, number: int) -> None:
        self._working.discard(get_ident())
        if number in self._errors:
            self._end = min(self._end, number)
        else:
            for dependent in self._dependents[number]:
                self._unmet[dependent] -= 1
                if not self._unmet[dependent]:
                    heappush(self._ready, dependent)
        self._wake()
        self._finished.put(None)

    def _wake(self) -> None:
        """Lets the idle threads look again. Under the lock."""
        idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._changes.put(None)

    def results(self) -> list[Result]:
        """Waits for all."""
        while not self._is_done():
            self._finished.get()
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._results[number] for number in range(len(self._items))]

    def _is_done(self) -> bool:
        with self._lock:
            return not self._has_ready() and not self._working

    def end(self) -> None:
        """Lets nobody begin another item, and waits for those that work, also if interrupts come meanwhile."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                if self._has_ended():
                    break
                self._finished.get()
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _has_ended(self) -> bool:
        """Stops all; whether no other thread works."""
        with self._lock:
            self._stop.set()
            self._wake()
            return self._working <= {get_ident()}  # this one has been interrupted at work


def processors() -> int:
    """How many processors this process may use: in a container possibly fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


ALONE: Final = Workers(1)
"""No threads but the caller's."""
