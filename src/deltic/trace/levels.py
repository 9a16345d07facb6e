"""Levels: how the batches of a spine are kept, and merged in small steps.

Small batches (below BASE rows) are kept separately, up to a number of them; then half of them or more become one, so that most appends
merge nothing. Each small batch costs every key that is sought, so fewer are allowed if readers seek many keys between appends. When
together they reach BASE rows they become one run of level 1. Level i holds at most one run, of at most BASE · RATIO^i rows, or one running
merge into it. A run that reaches a level with another run starts a merge of both, into the first level that has room. Each append continues
the running merges, smallest first, in proportion to its rows; a merge's inputs are read until it is done.

Levels are a value: `appended` returns others and does not change these, even if it raises. Only the progress of a running merge is shared
between versions. It depends on the merge's inputs alone, so the work of an abandoned version is not lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from deltic.trace.batch import Batch
from deltic.trace.merge import EVERYTHING, Merge, merge

BASE = 1 << 14
RATIO = 4
SMALL_BATCHES = 8
SMALL_BATCHES_UNSOUGHT = 24
SOUGHT_KEYS = 256
"""If at least so many keys are sought between two appends, at most SMALL_BATCHES small batches are kept, else SMALL_BATCHES_UNSOUGHT."""

FUEL = 8
"""Rows merged per appended row and level. 2 would suffice; with more, merges end sooner, so that most appends have none to continue and
readers have fewer batches."""

LEAST_FUEL = 64


NONE: Final[Mapping[int, Any]] = MappingProxyType({})


class Levels(NamedTuple):
    """small: the newest batches, oldest first. small_rows: of all of these. runs, merges: by level."""

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

    def only_adds(self, batch: Batch, sought: int) -> bool:
        """Whether appending the batch merges nothing, as most appends of small batches do. sought: keys, since the last append."""
        if self.merges or not batch.length or len(self.small) >= _allowed(sought):
            return False
        return batch.length + self.small_rows < BASE

    def with_small(self, batch: Batch) -> Levels:
        """With one more batch, for which `only_adds` is true."""
        return Levels((*self.small, batch), self.small_rows + batch.length, self.runs, self.merges)

    def appended(self, batch: Batch, sought: int) -> Levels:
        """With one more batch; continues the running merges in proportion to its rows. Raises WeightOverflow if a merge does."""
        working = _Working(self)
        if working.merges:
            working.work(max(batch.length, LEAST_FUEL) * FUEL * (1 + max(working.merges)))
        if batch.length:
            working.add(batch, _allowed(sought))
        return Levels(tuple(working.small), _rows(working.small), working.runs, working.merges)


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
        if _rows(self.small) >= BASE:
            run, self.small = merge(self.small), []
            if run.length:
                self._arrive([run], 1)
        elif len(self.small) > allowed:
            self.small = _fewer(self.small, allowed)

    def work(self, fuel: int) -> None:
        for level in sorted(self.merges):
            fuel = self.merges[level].work(fuel)
            if fuel == 0:
                return
            self._settle(level)

    def _arrive(self, runs: list[Batch], level: int) -> None:
        """Adds runs to a level: merges them with the run there, at the first level that has room for the result."""
        while True:
            if level in self.merges:
                self.merges[level].work(EVERYTHING)
                self._settle(level)
            if level in self.runs:
                runs.append(self.runs.pop(level))
            if len(runs) == 1 or sum(run.length for run in runs) <= BASE * RATIO**level:
                break
            level += 1
        if len(runs) == 1:
            self.runs[level] = runs[0]
        else:
            self.merges[level] = Merge(runs)

    def _settle(self, level: int) -> None:
        result = self.merges.pop(level).result()
        if result.length:
            self.runs[level] = result


def _rows(batches: Sequence[Batch]) -> int:
    return sum(batch.length for batch in batches)


def _allowed(sought: int) -> int:
    """How many small batches are allowed."""
    return SMALL_BATCHES if sought >= SOUGHT_KEYS else SMALL_BATCHES_UNSOUGHT


def _fewer(small: Sequence[Batch], allowed: int) -> list[Batch]:
    """The newest small batches merged: half of those allowed, and more until each of the others has no fewer rows than all after it."""
    keep = len(small) - allowed // 2
    rows = _rows(small[keep:])
    while keep > 0 and small[keep - 1].length < rows:
        keep -= 1
        rows += small[keep].length
    merged = merge(small[keep:])
    return [*small[:keep], merged] if merged.length else [*small[:keep]]


def _level(rows: int) -> int:
    """The first level with room for a run of `rows` rows."""
    level = 1
    while BASE * RATIO**level < rows:
        level += 1
    return level
