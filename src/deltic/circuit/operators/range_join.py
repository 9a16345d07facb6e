"""range_join: rows of two arrangements with equal keys of which a value of one lies between bounds of the other. Bilinear.

The rows of a side with points are sorted by them under their key, so that those between two bounds are found by two searches. Intervals
are sorted by the cells of `operators/interval_rows.py`, so that those that contain a point are found by two searches in each of its cells.
O(changes · log rows + matches).

A change of bounds alone, as of a threshold, touches only the rows between the old and the new ones: intervals of changes that are equal
in all that the result has of them are first added up, and only where their weights do not cancel are rows looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from deltic.circuit.framed import dense_ranks
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.operators.interval_rows import LOW, cells_of, entry_of
from deltic.trace.consolidate import overflow
from deltic.trace.counters import Counters
from deltic.trace.ranges import AFTER, BEFORE, Cuts, probe_few, probe_range
from deltic.trace.rows import Rows
from deltic.trace.share import Share
from deltic.trace.spine import Spine
from deltic.trace.weights import multiply

Words = tuple[np.ndarray, ...]
MANY: Final = 1 << 15
"""How many points are looked up among intervals at once."""
CHUNK: Final = 1 << 11
"""How many of them, if they are looked up in cells: each in 64."""
FEW: Final = 8
"""Entries for each point that are read at once: two for each interval of its key."""
_SAFE: Final = float(1 << 62)


class _Found(NamedTuple):
    """Rows of a side: for each the number of the lookup or point, its output words, other words that are asked for, and its weight."""

    source: np.ndarray
    shown: Words
    more: Words
    weights: np.ndarray


@dataclass(frozen=True, slots=True)
class Thresholds:
    """One side's values are less than the other's: lesser is that side. strict: not equal. words: of a value, which follows the key."""

    lesser: int
    strict: bool
    words: int


@dataclass(frozen=True, slots=True)
class Containment:
    """The points of side `point` lie in the intervals of the other, ends included. A point is one word, which follows the key."""

    point: int


@dataclass(frozen=True, slots=True)
class RangeJoin:
    """The rows of two arrangements whose first `key` words are equal and whose values are in range.

    widths: the number of words of a row of each. output: (side, word) for each word of a result; side 0 is left.
    spread: (side, words) if there is no key and the rows of that side are divided among the shards by these words, while every shard has
    all rows of the other side. It follows from the arrangements, so it is no part of ids.
    """

    left: str
    right: str
    key: int
    widths: tuple[int, int]
    by: Thresholds | Containment
    output: tuple[tuple[int, int], ...]
    spread: tuple[int, tuple[int, ...]] | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        return "range_join"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        """The change of the bounds is looked up in the new version of the points, that of the points in the old version of the bounds."""
        first = 1 - self.by.point if isinstance(self.by, Containment) else 0
        parts: list[Rows] = []
        if len(inputs[first]):
            with_change = self._old(1 - first, context).with_batch(as_batch(inputs[1 - first]))
            parts += self._matched(as_batch(inputs[first]), first, with_change, context)
        if len(inputs[1 - first]):
            parts += self._matched(as_batch(inputs[1 - first]), 1 - first, self._old(first, context), context)
        return Rows.concat(parts) if parts else Rows.empty(len(self.output), 1)

    def _old(self, side: int, context: Context) -> Spine:
        return context.old((self.left, self.right)[side], self.widths[side], 1)

    def _matched(self, change: Rows, side: int, other: Spine, context: Context) -> Iterator[Rows]:
        """The results of a side's change with the rows of the other side.

        A shard of a spread side may hold batches with rows of other shards, as after resharding; these find them themselves.
        """
        divided = self.spread is not None and self.spread[0] != side and context.shards > 1
        share = Share(context.shard, context.shards, self.spread[1]) if self.spread is not None and divided else None
        for rows, _ in self.matches(change, side, other, context.counters, share):
            yield rows

    def matches(
        self, change: Rows, side: int, other: Spine, counters: Counters, share: Share | None = None, more: Sequence[int] = ()
    ) -> Iterator[tuple[Rows, Words]]:
        """The results of a side's change with the rows of the other side, and for each of them the words `more` of the latter.

        share: which rows of the other side count; None: all.
        """
        if not other.batches:
            return
        if not isinstance(self.by, Containment) or side != self.by.point:
            keys, rows, starts, ends, weights = self._between(change, side)
            between = self._found(1 - side, other, keys, starts, ends, counters, share, more)
            yield self._result(rows, side, between.source, between.shown, multiply(weights[between.source], between.weights)), between.more
            return
        for points in _pieces(change, MANY):
            hits = self._few(1 - side, other, points, counters, share, more)
            for piece, here in [(points, hits)] if hits is not None else self._piecewise(1 - side, other, points, counters, share, more):
                rows = tuple(piece.columns[word] for of, word in self.output if of == side)
                weights = multiply(piece.weights[0][here.source], here.weights)
                yield self._result(rows, side, here.source, here.shown, weights), here.more

    def _piecewise(
        self, side: int, spine: Spine, points: Rows, counters: Counters, share: Share | None, more: Sequence[int]
    ) -> Iterator[tuple[Rows, _Found]]:
        """The intervals of a side that contain points, for CHUNK points at a time: from all of their keys if these are few, or by cells."""
        for piece in _pieces(points, CHUNK):
            hits = self._few(side, spine, piece, counters, share, more) if len(piece) < len(points) else None
            if hits is None:
                source, cells, halves, starts, ends = cells_of(piece.columns[self.key])
                keys = (*(word[source] for word in piece.columns[: self.key]), cells, halves)
                in_cells = self._found(side, spine, keys, starts, ends, counters, share, more)
                hits = in_cells._replace(source=source[in_cells.source])
            yield piece, hits

    def _between(self, change: Rows, side: int) -> tuple[Words, Words, Cuts, Cuts, np.ndarray]:
        """(keys, output words of the side, cuts, weights) of the change, without what cancels."""
        if isinstance(self.by, Containment):
            change = change.take(np.flatnonzero(change.columns[self.key + 1] == LOW))
            starts, ends = Cuts.before((change.columns[self.key + 2],)), Cuts.after((change.columns[self.key + 3],))
        else:
            value = change.columns[self.key : self.key + self.by.words]
            beside = Cuts.after(value) if self.by.strict == (side == self.by.lesser) else Cuts.before(value)
            open_end = (Cuts.last if side == self.by.lesser else Cuts.first)(self.by.words, len(change))
            starts, ends = (beside, open_end) if side == self.by.lesser else (open_end, beside)
        keys = tuple(change.columns[: self.key])
        rows = tuple(change.columns[word] for of, word in self.output if of == side)
        (weights,) = change.weights
        if len(weights) > 1 and (weights > 0).any() and (weights < 0).any():
            chosen, starts, ends, weights = without_cancelled((*keys, *rows), starts, ends, weights)
            keys, rows = tuple(word[chosen] for word in keys), tuple(word[chosen] for word in rows)
        return keys, rows, starts, ends, weights

    def _found(
        self, side: int, spine: Spine, keys: Words, starts: Cuts, ends: Cuts, counters: Counters, share: Share | None, more: Sequence[int]
    ) -> _Found:
        """The rows of a side that are between the cuts."""
        source, columns, (weights,) = probe_range(spine, keys, starts, ends, self._read(side, share, more), counters)
        return self._owned(side, source, columns, weights, share, len(more))

    def _few(self, side: int, spine: Spine, points: Rows, counters: Counters, share: Share | None, more: Sequence[int]) -> _Found | None:
        """The intervals of a side that contain points, from all intervals of their keys; None if these are many.

        By the entries that `cells_of` finds: of a spread side the two of an interval may be on two shards, which choose independently.
        """
        n, key = len(points), self.key
        wanted = (*range(key, key + 4), *self._read(side, share, more))
        hits = probe_few(spine, points.columns[:key], Cuts.first(1, n), Cuts.last(1, n), wanted, counters, FEW * n)
        if hits is None:
            return None
        source, (cell, end, first, last, *columns), (weights,) = hits
        point = points.columns[key][source]
        within = np.where(end == LOW, (first <= point) & (point <= last), (last <= point) & (point <= first))
        inside = np.flatnonzero((end == entry_of(point, cell)) & within)
        return self._owned(side, source[inside], tuple(word[inside] for word in columns), weights[inside], share, len(more))

    def _read(self, side: int, share: Share | None, more: Sequence[int]) -> Sequence[int]:
        """The words that are read of a side: those of the output, others, and those by which it is spread."""
        return (*(word for of, word in self.output if of == side), *more, *(() if share is None else share.key))

    def _owned(self, side: int, source: np.ndarray, columns: Words, weights: np.ndarray, share: Share | None, more: int) -> _Found:
        """The rows of the share. columns: the words `_read`."""
        shown = sum(of == side for of, _ in self.output)
        if share is not None and len(source):
            own = share.places(columns[shown + more :])
            source, columns, weights = source[own], tuple(word[own] for word in columns), weights[own]
        return _Found(source, columns[:shown], columns[shown : shown + more], weights)

    def _result(self, rows: Words, side: int, source: np.ndarray, columns: Words, weights: np.ndarray) -> Rows:
        own, others = iter(rows), iter(columns)
        return Rows(tuple(next(own)[source] if of == side else next(others) for of, _ in self.output), (weights,))


def _pieces(rows: Rows, most: int) -> Iterator[Rows]:
    """The rows, at most so many at a time."""
    if len(rows) <= most:
        yield rows
        return
    for begin in range(0, len(rows), most):
        yield rows.take(np.arange(begin, min(begin + most, len(rows))))


def without_cancelled(groups: Words, starts: Cuts, ends: Cuts, weights: np.ndarray) -> tuple[np.ndarray, Cuts, Cuts, np.ndarray]:
    """Intervals without common parts in a group, with the weights added up; those of weight 0 are dropped.

    groups: words that are equal within a group. Returns (for each interval a row of its group, cuts, weights). O(n · log n).
    """
    n = len(weights)
    if float(np.abs(weights.astype(np.float64)).sum()) >= _SAFE:
        raise overflow("adding the rows of a threshold")
    words = [np.concatenate(pair) for pair in zip(starts.words, ends.words, strict=True)]
    kinds = np.concatenate((starts.kinds, ends.kinds))
    ranked = _places(words, kinds)
    (group,) = dense_ranks([groups]) if groups else (np.zeros(n, np.int64),)
    kept = np.flatnonzero(ranked[:n] < ranked[n:])
    places, rows = np.concatenate((kept, kept + n)), np.concatenate((kept, kept))
    change = np.concatenate((weights[kept], -weights[kept]))
    order = np.lexsort((ranked[places], group[rows]))
    places, rows, total = places[order], rows[order], np.cumsum(change[order])
    same = np.zeros(len(places), bool)
    same[:-1] = (group[rows[1:]] == group[rows[:-1]]) & (ranked[places[1:]] > ranked[places[:-1]])
    begins = np.flatnonzero(same & (total != 0))
    cuts = Cuts(tuple(words), kinds)
    return rows[begins], cuts.take(places[begins]), cuts.take(places[begins + 1]), total[begins]


def _places(words: Sequence[np.ndarray], kinds: np.ndarray) -> np.ndarray:
    """The place of each cut in the order of all; equal cuts have equal places."""
    inside = (kinds == BEFORE) | (kinds == AFTER)
    values = [np.where(inside, word, 0) for word in words]
    (places,) = dense_ranks([(np.where(inside, BEFORE, kinds), *values, kinds)])
    return places
