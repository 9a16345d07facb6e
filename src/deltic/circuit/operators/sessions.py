"""sessions: the session that each interval of a partition is in, where intervals that overlap or touch are in one, under deletions.

Intervals (partition, start, end), each once, are kept in an arrangement, and the sessions, which are disjoint, in a memory. A change
reaches the sessions that its interval overlaps. One that only gains intervals is an interval itself: if it stays the first of its session,
none of its own are read, so that a row that comes at the end of a session costs O(log n). Of others all intervals are read, and put
together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.scopes import distinct_rows
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.probe import first
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
LEAST: Final = int(np.iinfo(np.int64).min)
_AT_ONCE: Final = 2
_MORE: Final = 4
"""How many rows of a range are read at first, and how many times as many next."""


class Intervals(NamedTuple):
    """Intervals of partitions: their words, their starts and ends."""

    prefixes: Words
    starts: np.ndarray
    ends: np.ndarray

    @property
    def words(self) -> Words:
        return (*self.prefixes, self.starts, self.ends)

    def take(self, rows: np.ndarray) -> Intervals:
        return Intervals(tuple(word[rows] for word in self.prefixes), self.starts[rows], self.ends[rows])

    @staticmethod
    def of(words: Words) -> Intervals:
        return Intervals(words[:-2], words[-2], words[-1])

    @staticmethod
    def concat(parts: Sequence[Intervals]) -> Intervals:
        return Intervals.of(tuple(np.concatenate(words) for words in zip(*(part.words for part in parts), strict=True)))


@dataclass(frozen=True, slots=True)
class SessionsOperator:
    """Each interval of `arrangement` followed by the start of its session.

    key: the number of words of the partition. memory: the arrangement of the sessions, (partition, end, start).
    """

    arrangement: str
    memory: str
    key: int

    @property
    def name(self) -> str:
        return "sessions"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        if not len(delta):
            return Rows.empty(self.key + 3, 1)
        intervals = context.old(self.arrangement, self.key + 2, 1)
        reached, loses = self._reached(delta, context)
        gone, kept = reached.take(np.flatnonzero(loses)), reached.take(np.flatnonzero(~loses))
        added = Intervals.of(delta.take(delta.weights[0] > 0).columns)
        left = self._members(intervals.with_batch(delta), gone, context.counters)[1]
        own = Intervals.of(distinct_rows([_rows(added.words, 1), _rows(left.words, 1)], self.key + 2))
        items = Intervals.concat([kept, own])
        begins, sessions = sessions_of(items)
        moved = np.flatnonzero(begins[: len(kept.starts)] != kept.starts)
        before, moving = self._members(intervals, kept.take(moved), context.counters)
        ended, leaving = self._members(intervals, gone, context.counters)
        change = consolidate(
            Rows.concat(
                [
                    _rows((*own.words, begins[len(kept.starts) :]), 1),
                    _rows((*moving.words, begins[moved][before]), 1),
                    _rows((*moving.words, kept.starts[moved][before]), -1),
                    _rows((*leaving.words, gone.starts[ended]), -1),
                ]
            )
        )
        after = _rows((*sessions.prefixes, sessions.ends, sessions.starts), 1)
        context.append(self.memory, consolidate(Rows.concat([after, _rows((*reached.prefixes, reached.ends, reached.starts), -1)])))
        return change

    def _reached(self, delta: Batch, context: Context) -> tuple[Intervals, np.ndarray]:
        """(the sessions that overlap or touch a changed interval, whether they lose one)."""
        memory = context.old(self.memory, self.key + 2, 1)
        change = Intervals.of(delta.columns)
        source, words = _between(memory, change.prefixes, change.starts, change.ends, 1, context.counters)
        overlapped = (*words[: self.key], words[self.key + 1], words[self.key])
        lost = delta.weights[0][source] < 0
        every = distinct_rows([_rows(overlapped, 1)], self.key + 2)
        losing = distinct_rows([_rows(tuple(word[lost] for word in overlapped), 1)], self.key + 2)
        among = set(zip(*(word.tolist() for word in losing), strict=True))
        loses = np.array([row in among for row in zip(*(word.tolist() for word in every), strict=True)], bool)
        return Intervals.of(every), loses

    @staticmethod
    def _members(spine: Spine, sessions: Intervals, counters: Counters) -> tuple[np.ndarray, Intervals]:
        """(the number of the session of each interval, the intervals)."""
        source, words = _between(spine, sessions.prefixes, sessions.starts, sessions.ends, 0, counters)
        return source, Intervals.of(words)


def sessions_of(items: Intervals) -> tuple[np.ndarray, Intervals]:
    """(the start of the session of each interval, the sessions).

    >>> words = [np.array(values) for values in ([0, 0, 0, 1], [5, 1, 20, 1], [9, 5, 21, 2])]
    >>> begins, sessions = sessions_of(Intervals.of(tuple(words)))
    >>> begins.tolist(), sessions.starts.tolist(), sessions.ends.tolist()
    ([1, 1, 20, 1], [1, 20, 1], [9, 21, 2])
    """
    n = len(items.starts)
    if not n:
        return np.zeros(0, np.int64), items
    order = np.lexsort((items.starts, *reversed(items.prefixes)))
    ordered = items.take(order)
    fresh = np.ones(n, bool)
    fresh[1:] = False
    for word in ordered.prefixes:
        fresh[1:] |= word[1:] != word[:-1]
    partition = np.cumsum(fresh)
    by_end = np.lexsort((ordered.ends, partition))
    rank = np.empty(n, np.int64)
    rank[by_end] = np.arange(n)
    reach = ordered.ends[by_end][np.maximum.accumulate(rank)]  # ranks of later partitions are greater
    fresh[1:] |= ordered.starts[1:] > reach[:-1]
    heads = np.flatnonzero(fresh)
    tails = np.append(heads[1:], n) - 1
    begins = np.empty(n, np.int64)
    begins[order] = ordered.starts[heads][np.cumsum(fresh) - 1]
    return begins, Intervals(tuple(word[heads] for word in ordered.prefixes), ordered.starts[heads], reach[tails])


def _between(spine: Spine, prefixes: Words, low: np.ndarray, high: np.ndarray, tested: int, counters: Counters) -> tuple[np.ndarray, Words]:
    """(i, words) of the rows of each prefix i whose first word after it is at least `low`, while the word `tested` is at most `high`.

    That word must not descend from row to row. O(n · log state + rows).
    """
    key, active, limit = len(prefixes), np.arange(len(low)), _AT_ONCE
    starts = (low, np.full(len(low), LEAST))
    sources, parts = [active[:0]], [tuple(active[:0] for _ in range(key + 2))]
    while active.size:
        run, columns, _ = first(spine, [word[active] for word in prefixes], starts, limit, counters)
        within = columns[key + tested] <= high[active][run]
        sources.append(active[run[within]])
        parts.append(tuple(column[within] for column in columns))
        counts = np.bincount(run[within], minlength=len(active))
        more = np.flatnonzero(counts == limit)
        last = np.searchsorted(run, more, side="right") - 1
        starts = (columns[key][last], columns[key + 1][last] + 1)
        active, limit = active[more], limit * _MORE
    return np.concatenate(sources), tuple(np.concatenate(words) for words in zip(*parts, strict=True))


def _rows(words: Words, weight: int) -> Rows:
    return Rows(words, (np.full(len(words[0]), weight, np.int64),))
