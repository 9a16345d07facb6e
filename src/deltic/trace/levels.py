"""Levels: how the batches of a spine are kept, and merged in small steps.

Small batches (below BASE rows) are kept separately, up to a number of them; then half of them or more become one, so that most appends
merge nothing. Each small batch costs every key that is sought, so fewer are allowed if readers seek many keys between appends. When
together they reach BASE rows they become one run of level 1. Level i holds at most one run, of at most BASE · RATIO^i rows, or one running
merge into it. A run that reaches a level with another run starts a merge of both, into the first level that has room. Each append allows
the running merges, smallest first, to go on in proportion to its rows; a merge's inputs are read until it is done. The merge of small
batches (that of level 0) is done a few appends later, so that a thread of its own has time for it. A batch that removes at least half of
the rows is merged with all of them at once.

A sum over some batches may be beyond 64 bits though that over all is not. An append that needs such a sum makes all batches one.

Levels are a value: `appended` returns others and does not change these, even if it raises. Only the progress of a running merge is shared
between versions. It depends on the merge's inputs alone, so the work of an abandoned version is not lost, and a thread of its own
(`background.py`) may do it: which batches there are depends on the appends alone, those that were abandoned included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from deltic.errors import WeightOverflow
from deltic.trace.batch import Batch
from deltic.trace.merge import CANCELLING_ROWS, EVERYTHING, SORTED_ROWS, Merge, cancels, merge

BASE = 1 << 14
RATIO = 4
SMALL_BATCHES = 8
SMALL_BATCHES_UNSOUGHT = 24
SMALL_BATCHES_SOUGHT = 4
SOUGHT_KEYS, MANY_SOUGHT_KEYS = 256, 1 << 15
"""If at least so many keys are sought between two appends, at most SMALL_BATCHES small batches are kept, or SMALL_BATCHES_SOUGHT, else
SMALL_BATCHES_UNSOUGHT."""

FUEL = 8
"""Rows merged per appended row and level. 2 would suffice; with more, merges end sooner, so that most appends have none to continue and
readers have fewer batches."""

LEAST_FUEL = 64

GATHERING_APPENDS = 3
"""By how many appends the merge of small batches is done, at the latest: each of the batches costs the readers until then."""

GATHERING_FUEL = 2
"""Rows of that merge for each appended row, at least: with large batches, it is done sooner."""

NONE: Final[Mapping[int, Any]] = MappingProxyType({})


class Levels(NamedTuple):
    """small: the newest batches, but for those that level 0 merges. small_rows: of all of these. runs, merges: by level."""

    small: tuple[Batch, ...] = ()
    small_rows: int = 0
    runs: Mapping[int, Batch] = NONE
    merges: Mapping[int, Merge] = NONE

    def batches(self) -> tuple[Batch, ...]:
        """All batches, the settled ones first; their sum is the trace."""
        batches: list[Batch] = []
        for level in sorted({*self.runs, *self.merges}, reverse=True):
            batches += self.merges[level].inputs if level in self.merges else ()
            batches += (self.runs[level],) if level in self.runs else ()
        return (*batches, *self.small)

    def with_small(self, batch: Batch, sought: int) -> Levels | None:
        """With one more small batch if that merges nothing, as most appends do; else None. sought: keys, since the last append."""
        small, small_rows, runs, merges = self
        rows = batch.length
        if merges or not rows or small_rows + rows >= BASE:
            return None
        allowed = SMALL_BATCHES_UNSOUGHT if sought < SOUGHT_KEYS else _allowed(sought)
        if len(small) + 1 >= allowed or (rows >= CANCELLING_ROWS and self._cancelled_by(batch)):
            return None
        return tuple.__new__(Levels, ((*small, batch), small_rows + rows, runs, merges))  # at a third of the cost of a call of the class

    def appended(self, batch: Batch, sought: int) -> Levels:
        """With one more batch; the running merges go on in proportion to its rows. Raises WeightOverflow if the sum of all batches does."""
        if self._cancelled_by(batch):
            return self._as_one(batch)
        working = _Working(self)
        try:
            if working.merges:
                working.work(batch.length)
            if batch.length:
                working.add(batch, _allowed(sought))
        except WeightOverflow:
            return self._as_one(batch)
        return Levels(tuple(working.small), _rows(working.small), working.runs, working.merges)

    def _cancelled_by(self, batch: Batch) -> bool:
        """Whether the batch removes most rows of all others."""
        if batch.length < CANCELLING_ROWS:
            return False
        return cancels(batch, self.small_rows + _rows(self.runs.values()) + sum(_rows(each.inputs) for each in self.merges.values()))

    def _as_one(self, batch: Batch) -> Levels:
        """With one more batch, all of them merged."""
        working, total = _Working(Levels()), merge((*self.batches(), batch))
        if total.length:
            working.add(total, SMALL_BATCHES)
        return Levels(tuple(working.small), _rows(working.small), working.runs)


class _Working:
    """A mutable copy of levels, for one append."""

    __slots__ = ("merges", "runs", "small")

    def __init__(self, levels: Levels) -> None:
        self.small, self.runs, self.merges = [*levels.small], {**levels.runs}, {**levels.merges}

    def add(self, batch: Batch, allowed: int) -> None:
        if batch.length >= BASE:
            self._arrive([batch], _level(batch.length))
            return
        self.small.append(batch)
        if len(self.small) >= allowed or _rows(self.small) >= BASE:
            if 0 in self.merges:
                self._finish(0)
            self._gather(0 if _rows(self.small) >= BASE else _first_gathered(self.small, allowed))

    def work(self, rows: int) -> None:
        """Continues the running merges at an append of so many rows."""
        fuel = max(rows, LEAST_FUEL) * FUEL * (1 + max(self.merges))
        if 0 in self.merges:
            least = -(-self.merges[0].cost // GATHERING_APPENDS)
            if self.merges[0].allow(max(least, GATHERING_FUEL * rows)):
                self._settle(0)
        for level in sorted(self.merges.keys() - {0}):
            fuel = self.merges[level].allow(fuel)
            if fuel == 0:
                return
            self._settle(level)

    def _gather(self, first: int) -> None:
        """Merges the small batches from `first` on: at once if they have few rows."""
        gathered, self.small = self.small[first:], self.small[:first]
        if _rows(gathered) < SORTED_ROWS:
            self._gathered(gathered, merge(gathered))
        else:
            self.merges[0] = Merge(gathered)

    def _gathered(self, inputs: Sequence[Batch], result: Batch) -> None:
        if not result.length:
            return
        if _rows(inputs) < BASE:
            fewer = (i for i, batch in enumerate(self.small) if batch.length < result.length)
            self.small.insert(next(fewer, len(self.small)), result)
        else:
            self._arrive([result], 1)

    def _arrive(self, runs: list[Batch], level: int) -> None:
        """Adds runs to a level: merges them with the run there, at the first level that has room for the result."""
        while True:
            if level in self.merges:
                self._finish(level)
            if level in self.runs:
                runs.append(self.runs.pop(level))
            if len(runs) == 1 or sum(run.length for run in runs) <= BASE * RATIO**level:
                break
            level += 1
        if len(runs) == 1:
            self.runs[level] = runs[0]
        else:
            self.merges[level] = Merge(runs)

    def _finish(self, level: int) -> None:
        self.merges[level].work(EVERYTHING)
        self._settle(level)

    def _settle(self, level: int) -> None:
        done = self.merges.pop(level)
        if level == 0:
            self._gathered(done.inputs, done.result())
        elif (result := done.result()).length:
            self.runs[level] = result


def _rows(batches: Iterable[Batch]) -> int:
    return sum([batch.length for batch in batches])


def _allowed(sought: int) -> int:
    """How many small batches are allowed."""
    if sought >= MANY_SOUGHT_KEYS:
        return SMALL_BATCHES_SOUGHT
    return SMALL_BATCHES if sought >= SOUGHT_KEYS else SMALL_BATCHES_UNSOUGHT


def _first_gathered(small: Sequence[Batch], allowed: int) -> int:
    """Which small batches become one, so that they are fewer: half of those allowed, and more until each of the others has no fewer rows
    than all after it."""
    first = len(small) - allowed // 2
    rows = _rows(small[first:])
    while first > 0 and small[first - 1].length < rows:
        first -= 1
        rows += small[first].length
    return first


def _level(rows: int) -> int:
    """The first level with room for a run of `rows` rows."""
    level = 1
    while BASE * RATIO**level < rows:
        level += 1
    return level
