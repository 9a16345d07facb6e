"""interval_rows: lays rows out for a join by ranges: intervals in cells, and values whose computation failed as unbounded ones.

A cell is a range of 2^(d+1) words that begins at a multiple of its length, for d from 0 to 63; the word in its middle is its number.
An interval belongs to the least cell that contains both of its ends, so it contains the middle (or is one of the two words of a cell of
d = 0). It is stored twice in the cell, in order of its low end and in order of its high end: before the middle a point is in the intervals
of the cell that begin at it or before it, from the middle on in those that end at it or after it. So a point is in the intervals of 64
cells, in each a range: a fixed form of Edelsbrunner's interval tree (1980), without a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.trace.encoding import MARKER
from deltic.trace.ranges import Cuts
from deltic.trace.rows import Rows

Words = tuple[np.ndarray, ...]
LOW, HIGH = 0, 1
"""By which end the entry of an interval is sorted."""
LEAST: Final = int(np.iinfo(np.int64).min)
MOST: Final = int(np.iinfo(np.int64).max)
LEVELS: Final = 64
_SIGN: Final = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class Value:
    """The words of a value, after its flag if it has one. unbounded: the word in place of NULL; None if it is not NULL."""

    start: int
    words: int
    flagged: bool
    unbounded: int | None

    def of(self, columns: Words) -> Words:
        first = self.start + self.flagged
        words = columns[first : first + self.words]
        if self.unbounded is None:
            return words
        null = columns[self.start] == (0 if self.flagged else MARKER)
        return tuple(np.where(null, self.unbounded, word) for word in words)


@dataclass(frozen=True, slots=True)
class RangeRows:
    """The words of the result, part by part: an input word, or those of a value."""

    parts: tuple[int | Value, ...]

    @property
    def name(self) -> str:
        return "range_rows"

    @property
    def moves(self) -> tuple[int, ...]:
        """For each word of the result the word that it was; -1 if it is one of a value."""
        return tuple(word for part in self.parts for word in ((part,) if isinstance(part, int) else (-1,) * part.words))

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        (rows,) = inputs
        words: list[np.ndarray] = []
        for part in self.parts:
            words += (rows.columns[part],) if isinstance(part, int) else part.of(rows.columns)
        return Rows(words, rows.weights)


@dataclass(frozen=True, slots=True)
class IntervalRows:
    """Each row whose interval is not empty twice: its key, the cell, LOW or HIGH, that end, the other end, then its payload.

    key: the number of words of the key, which come first. low, high: the ends, each one word; strict: whether they are outside.
    payload: positions.
    """

    key: int
    low: Value
    high: Value
    strict: tuple[bool, bool]
    payload: tuple[int, ...]

    @property
    def name(self) -> str:
        return "interval_rows"

    @property
    def moves(self) -> tuple[int, ...]:
        """For each word of the result the word that it was; -1 for the cell and the ends."""
        return (*range(self.key), -1, -1, -1, -1, *self.payload)

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        (rows,) = inputs
        (low,), (high,) = self.low.of(rows.columns), self.high.of(rows.columns)
        inside = (low < MOST if self.strict[0] else True) & (high > LEAST if self.strict[1] else True) & (low <= high)
        kept = np.flatnonzero(inside)
        low, high = low[kept] + self.strict[0], high[kept] - self.strict[1]
        full = np.flatnonzero(low <= high)
        kept, low, high = kept[full], low[full], high[full]
        cell = _cells(low, high)
        parts = []
        for end, ends in ((LOW, (low, high)), (HIGH, (high, low))):
            columns = [word[kept] for word in rows.columns[: self.key]]
            columns += [cell, np.full(len(kept), end, np.int64), *ends, *(rows.columns[word][kept] for word in self.payload)]
            parts.append(Rows(columns, [weight[kept] for weight in rows.weights]))
        return Rows.concat(parts)


def _cells(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The number of the least cell that contains both words. low ≤ high."""
    first, last = low.view(np.uint64) ^ _SIGN, high.view(np.uint64) ^ _SIGN
    differs = first ^ last
    for shift in (1, 2, 4, 8, 16, 32):
        differs |= differs >> np.uint64(shift)
    return _middle(last, np.maximum(differs ^ (differs >> np.uint64(1)), np.uint64(1)))


def _middle(word: np.ndarray, half: np.ndarray | np.uint64) -> np.ndarray:
    """The middle of the cell of 2 * half words that contains a word."""
    middle: np.ndarray = ((word & ~(half - np.uint64(1))) | half).view(np.int64)
    return middle


def cells_of(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Cuts, Cuts]:
    """Where the intervals are that contain points: (the number of the point, its cell, LOW or HIGH, between which cuts), 64 of each."""
    n = len(points)
    source = np.tile(np.arange(n), LEVELS)
    words = np.tile(points.view(np.uint64) ^ _SIGN, LEVELS)
    half = np.repeat(np.uint64(1) << np.arange(LEVELS, dtype=np.uint64), n)
    ends = ((words & half) != 0).astype(np.int64)
    point = points[source]
    first, last = Cuts.first(1, len(source)), Cuts.last(1, len(source))
    before, after = Cuts.before((point,)), Cuts.after((point,))
    starts = Cuts((point,), np.where(ends == HIGH, before.kinds, first.kinds))
    stops = Cuts((point,), np.where(ends == HIGH, last.kinds, after.kinds))
    return source, _middle(words, half), ends, starts, stops


def entry_of(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """LOW or HIGH: by which of its two entries in a cell a point finds an interval that contains it."""
    entry: np.ndarray = ((points.view(np.uint64) ^ _SIGN) >= cells.view(np.uint64)).astype(np.int64)
    return entry
