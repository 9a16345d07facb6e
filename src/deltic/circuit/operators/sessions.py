"""sessions: the session that each interval of a partition is in, where intervals that overlap or touch are in one, under deletions.

Intervals (partition, start, end), each once, are kept in an arrangement, and the sessions, which are disjoint, in a memory. A change
reaches the sessions that its interval overlaps. One that only gains intervals is an interval itself. One that loses some is what is left of
it: if all intervals are of one length, the neighbours of those that it loses say where it ends or falls apart; else a neighbour that
reaches across does, or all its intervals are read. Then the intervals of those alone are read whose session begins elsewhere than before,
so that a change that moves no beginning costs O(log n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.preceding import preceding
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


class TouchedSessions(NamedTuple):
    """The sessions that overlap or touch a changed interval."""

    sessions: Intervals
    lost: Intervals
    """The intervals that are removed, in order."""
    of: np.ndarray
    """The session of each of these."""


@dataclass(frozen=True, slots=True)
class SessionsOperator:
    """Each interval of `arrangement` followed by the start of its session.

    key: the number of words of the partition. memory: the arrangement of the sessions, (partition, end, start). uniform: whether all
    intervals are of one length.
    """

    arrangement: str
    memory: str
    key: int
    uniform: bool

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
        reached = self._reached(delta, context)
        intervals = context.old(self.arrangement, self.key + 2, 1)
        staying = intervals.with_batch(as_batch(delta.take(delta.weights[0] < 0)))
        added = Intervals.of(delta.take(delta.weights[0] > 0).columns)
        left, of = self._left(reached, intervals, staying, context.counters)
        begins, sessions = sessions_of(Intervals.concat([left, added]))
        begins, own = np.split(begins, [len(of)])
        old = reached.sessions.starts[of]
        moved = np.flatnonzero(begins != old)
        piece, moving = self._members(staying, left.take(moved), context.counters)
        change = consolidate(
            Rows.concat(
                [
                    _rows((*added.words, own), 1),
                    _rows((*moving.words, begins[moved][piece]), 1),
                    _rows((*moving.words, old[moved][piece]), -1),
                    _rows((*reached.lost.words, reached.sessions.starts[reached.of]), -1),
                ]
            )
        )
        parts = [_rows((*part.prefixes, part.ends, part.starts), weight) for part, weight in ((sessions, 1), (reached.sessions, -1))]
        context.append(self.memory, consolidate(Rows.concat(parts)))
        return change

    def _reached(self, delta: Batch, context: Context) -> TouchedSessions:
        memory = context.old(self.memory, self.key + 2, 1)
        change = Intervals.of(delta.columns)
        source, words = _between(memory, change.prefixes, change.starts, change.ends, 1, context.counters)
        overlapped = (*words[: self.key], words[self.key + 1], words[self.key])
        sessions = distinct_rows([_rows(overlapped, 1)], self.key + 2)
        lost = np.flatnonzero(delta.weights[0] < 0)
        is_lost = np.isin(source, lost)  # each is in one session
        place = {row: number for number, row in enumerate(zip(*(word.tolist() for word in sessions), strict=True))}
        of = np.empty(len(lost), np.int64)
        of[np.searchsorted(lost, source[is_lost])] = [
            place[row] for row in zip(*(word[is_lost].tolist() for word in overlapped), strict=True)
        ]
        return TouchedSessions(Intervals.of(sessions), change.take(lost), of)

    def _left(self, reached: TouchedSessions, intervals: Spine, staying: Spine, counters: Counters) -> tuple[Intervals, np.ndarray]:
        """(what is left of the sessions, as intervals that do not touch, of which session each is)."""
        sessions = reached.sessions
        gaps = _gaps(reached, intervals, counters)
        changed = np.unique(gaps.of if self.uniform else gaps.of[~gaps.covered])
        kept = np.setdiff1d(np.arange(len(sessions.starts)), changed)
        if self.uniform:
            pieces = gaps.pieces(sessions, changed)
        else:
            number, members = self._members(staying, sessions.take(changed), counters)
            pieces = sessions_of(Intervals((changed[number],), members.starts, members.ends))[1]
        (number,), starts, ends = Intervals.concat([Intervals((kept,), sessions.starts[kept], sessions.ends[kept]), pieces])
        return Intervals(tuple(word[number] for word in sessions.prefixes), starts, ends), number

    @staticmethod
    def _members(spine: Spine, sessions: Intervals, counters: Counters) -> tuple[np.ndarray, Intervals]:
        """(the number of the session of each interval, the intervals)."""
        source, words = _between(spine, sessions.prefixes, sessions.starts, sessions.ends, 0, counters)
        return source, Intervals.of(words)


class Gaps(NamedTuple):
    """Runs of intervals that are removed, and follow one another in a session, between two that stay there."""

    of: np.ndarray
    """The session."""
    reach: np.ndarray
    """The greatest end of the run."""
    follows: np.ndarray
    """Whether an interval of the session is before the run."""
    left: np.ndarray
    """The end of that one."""
    precedes: np.ndarray
    """Whether one is after it."""
    right: np.ndarray
    """The start of that one."""

    @property
    def covered(self) -> np.ndarray:
        """Whether the one before reaches to its end, so that the session does not change."""
        return self.follows & (self.left >= self.reach)

    def pieces(self, sessions: Intervals, losing: np.ndarray) -> Intervals:
        """What is left of those that lose some, if all intervals are of one length; by the number of the session."""
        alive = np.setdiff1d(losing, self.of[~self.follows & ~self.precedes])
        gaps = Gaps(*(word[np.isin(self.of, alive)] for word in self))
        splits = gaps.follows & gaps.precedes & (gaps.left < gaps.right)
        first, last = ~gaps.follows, ~gaps.precedes
        starts = _in_order(alive, sessions.starts, gaps.of, gaps.right, splits, first)
        ends = _in_order(alive, sessions.ends, gaps.of, gaps.left, splits, last)
        return Intervals((starts[0],), starts[1], ends[1])


def _in_order(
    alive: np.ndarray, bounds: np.ndarray, of: np.ndarray, words: np.ndarray, splits: np.ndarray, outermost: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(the session, the word) of the bounds of the sessions, or of what replaces the outermost, and of those inside, in order."""
    kept, inside = np.setdiff1d(alive, of[outermost]), splits | outermost
    numbers, bounds = np.concatenate([kept, of[inside]]), np.concatenate([bounds[kept], words[inside]])
    order = np.lexsort((bounds, numbers))
    return numbers[order], bounds[order]


def _gaps(reached: TouchedSessions, intervals: Spine, counters: Counters) -> Gaps:
    """O(removed intervals · log state)."""
    sessions, lost, of = reached
    n = len(of)
    if not n:
        return Gaps(of, of, of > 0, of, of > 0, of)
    precedes, right, continues = np.zeros(n, bool), np.zeros(n, np.int64), np.zeros(n, bool)
    source, after, _ = first(intervals, lost.prefixes, (lost.starts, lost.ends + 1), 1, counters)
    right[source] = after[-2]
    precedes[source] = right[source] <= sessions.ends[of[source]]
    among = source < n - 1
    source = source[among]
    continues[source] = of[source] == of[source + 1]
    for word, column in zip(lost.words, after, strict=True):
        continues[source] &= word[source + 1] == column[among]
    tails = np.flatnonzero(~continues)
    heads = np.append(0, tails[:-1] + 1)
    follows, left = np.zeros(len(heads), bool), np.zeros(len(heads), np.int64)
    prefixes = tuple(word[heads] for word in lost.prefixes)
    some, (starts, ends), _ = preceding(intervals, prefixes, (lost.starts[heads], lost.ends[heads]), counters)
    follows[some], left[some] = starts >= sessions.starts[of[heads][some]], ends
    return Gaps(of[heads], np.maximum.reduceat(lost.ends, heads), follows, left, precedes[tails], right[tails])


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
