"""Queues of rows that are due later in a tick, at times in nested scopes, and the calendar of the iterations that they require.

A time is a tuple of iterations here, the outermost scope's first; the epoch is that of the tick. Queues live for one tick.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from deltic.trace.rows import Rows
from deltic.trace.time import Time

Path = tuple[int, ...]
"""The global id of a node; a scope has that of its child node."""
Words = tuple[np.ndarray, ...]


class Due:
    """Rows for nodes at later times. A put costs O(depth · log times)."""

    __slots__ = ("_calendar", "_rows")

    def __init__(self) -> None:
        self._rows: dict[tuple[Path, Time], list[Rows]] = {}
        self._calendar: dict[tuple[Path, Time], list[int]] = {}

    def put(self, node: Path, time: Time, rows: Rows) -> None:
        """Queues rows that the node, in a scope of depth len(time), must process at `time`."""
        waiting = self._rows.get((node, time))
        if waiting is not None:
            waiting.append(rows)
            return
        self._rows[node, time] = [rows]
        outermost = len(node) - len(time)
        for depth, coordinate in enumerate(time):
            heapq.heappush(self._calendar.setdefault((node[: outermost + depth], time[:depth]), []), coordinate)

    def has(self, node: Path, time: Time) -> bool:
        return (node, time) in self._rows

    def take(self, node: Path, time: Time) -> list[Rows]:
        """Removes and returns the rows that are due for the node at `time`."""
        return self._rows.pop((node, time), [])

    def next(self, scope: Path, prefix: Time, after: int) -> int | None:
        """The least iteration of the scope after `after` at which rows are due in it or in its inner scopes; None if there is none."""
        times = self._calendar.get((scope, prefix))
        while times:
            if times[0] > after:
                return times[0]
            heapq.heappop(times)
        self._calendar.pop((scope, prefix), None)
        return None

    @property
    def empty(self) -> bool:
        return not self._rows


def split_by_time(times: Sequence[np.ndarray], now: Time) -> tuple[np.ndarray | None, Iterator[tuple[Time, np.ndarray]]]:
    """Groups rows by the time when their product with a row at `now` is due: (positions due now, None for all; (time, positions) later).

    times: the rows' iterations, int64[n] for each scope; in deeper scopes they are 0.
    """
    later = np.zeros(len(times[0]), bool) if times else None
    for time, coordinate in zip(times, now, strict=False):
        assert later is not None
        later |= time > coordinate
    if later is None or not later.any():
        return None, iter(())
    return np.flatnonzero(~later), _grouped(times, now, np.flatnonzero(later))


def _grouped(times: Sequence[np.ndarray], now: Time, later: np.ndarray) -> Iterator[tuple[Time, np.ndarray]]:
    due = [np.maximum(time[later], coordinate) for time, coordinate in zip(times, now, strict=False)]
    order = np.lexsort(due[::-1]) if len(due) > 1 else np.argsort(due[0], kind="stable")
    due = [time[order] for time in due]
    later = later[order]
    differs = np.logical_or.reduce([time[1:] != time[:-1] for time in due])
    heads = [0, *(np.flatnonzero(differs) + 1).tolist(), len(later)]
    for start, end in pairwise(heads):
        yield (*(int(time[start]) for time in due), *now[len(due) :]), later[start:end]
