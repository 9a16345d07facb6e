"""Spine: a trace as levels of immutable batches, merged little by little.

Small batches (below BASE rows) are kept apart, up to a number of them; then half of them or more become one, so that most appends merge
nothing. Each small batch costs every key that is sought, so there are fewer where readers seek many keys between appends. When together
they reach BASE they become one run of level 1. Level i holds at most one run, of at most BASE · RATIO^i rows, or one running merge into
it. A run that comes to a level with another starts a merge of both, into the first level that has room. Each append works on the running
merges, smallest first, in proportion to its rows; a merge's inputs are read until it is done.

Always: the sum of `batches` is the sum of all that was appended. The tuple is replaced atomically, so that any thread may take a
snapshot while another appends; two threads must not append.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from deltic.kernels.memory import Words
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.guard import Guard
from deltic.trace.merge import EVERYTHING, Merge, merge
from deltic.trace.share import Share

BASE = 1 << 14
RATIO = 4
SMALL_BATCHES = 8
SMALL_BATCHES_UNSOUGHT = 24
SOUGHT_KEYS = 256
"""From so many keys sought between two appends on there are at most SMALL_BATCHES small ones, below at most SMALL_BATCHES_UNSOUGHT."""

FUEL = 8
"""Rows of merging per appended row and level. 2 would just do; more lets merges end sooner, so that most
appends have none to work on and there are fewer batches to read."""

LEAST_FUEL = 64


class Spine:
    """A trace of rows of `columns` columns and `weights` weights."""

    __slots__ = ("_merges", "_runs", "_small", "columns", "guards", "read_only", "share", "sought", "view", "weights")

    view: tuple[tuple[Batch, ...], Words]
    sought: list[int]
    """[how many keys readers have sought since the last append], shared with snapshots."""
    guards: tuple[Guard, ...]
    """Those of its mapped batches."""
    share: Share | None
    """Of a shard's trace that may hold rows of other shards as well: which are its own. Scans leave the others out. Who looks up keys of
    this shard does not find them; who looks up any key must leave them out."""

    def __init__(self, columns: int, weights: int, batches: Iterable[Batch] = ()) -> None:
        self.columns, self.weights = columns, weights
        self.read_only = False
        self.sought = [0]
        self.guards = ()
        self.share = None
        self._small: list[Batch] = []
        self._runs: dict[int, Batch] = {}
        self._merges: dict[int, Merge] = {}
        for batch in batches:
            self._add(batch)
        self._publish()

    @staticmethod
    def over(columns: int, weights: int, batches: Iterable[Batch], share: Share | None = None) -> Spine:
        """These batches as they are, read-only: nothing is merged."""
        spine = Spine(columns, weights)
        spine.share = share
        spine._small = [batch for batch in batches if batch.length]
        spine.guards = tuple(batch.guard for batch in spine._small if batch.guard is not None)
        spine.read_only = True
        spine._publish()
        return spine

    @staticmethod
    def of(batch: Batch) -> Spine:
        """One batch as a read-only spine."""
        return Spine.over(len(batch.columns), len(batch.weights), (batch,))

    @property
    def batches(self) -> tuple[Batch, ...]:
        """All batches, the settled ones first; their sum is the trace."""
        return self.view[0]

    @property
    def rows(self) -> int:
        """Stored rows; more than there are different ones if a row is in several batches."""
        return sum(batch.length for batch in self.batches)

    @property
    def nbytes(self) -> int:
        """Bytes of all batches, indexes included."""
        return sum(batch.nbytes for batch in self.batches)

    @property
    def unverified(self) -> int:
        """Bytes of mapped batches that have not been verified as a whole."""
        if not self.guards:
            return 0
        return sum(batch.nbytes for batch in self.batches if batch.guard is not None and not batch.guard.done)

    def snapshot(self) -> Spine:
        """The trace as it is now, read-only; shares the batches and costs O(1)."""
        spine = Spine.__new__(Spine)
        spine.columns, spine.weights, spine.read_only = self.columns, self.weights, True
        spine._small, spine._runs, spine._merges = [], {}, {}
        spine.view, spine.sought, spine.guards, spine.share = self.view, self.sought, self.guards, self.share
        return spine

    def with_batch(self, batch: Batch) -> Spine:
        """The trace as it is now and one batch more, read-only; shares the batches."""
        spine = self.snapshot()
        if batch.length:
            spine.view = ((*self.batches, batch), np.concatenate((self.view[1], batch.entry)))
        return spine

    def beside(self, other: Spine) -> Spine:
        """The sum of both traces as they are now, read-only; shares the batches."""
        spine = self.snapshot()
        spine.view = ((*self.batches, *other.batches), np.concatenate((self.view[1], other.view[1])))
        spine.guards = (*self.guards, *other.guards)
        return spine

    def expect(self, keys: Sequence[Words]) -> None:
        """Has verified what a reader of these keys (see `trace/probe.py`) will look at; costs nothing where all is in memory."""
        for guard in self.guards:
            if keys:
                guard.sought(keys[0])
            else:
                guard.everything()

    def scan(self, counters: Counters) -> Batch:
        """The whole trace as one batch. O(rows), and counted so."""
        batches = self.batches
        counters.touched += self.rows
        counters.batches += len(batches)
        if not batches:
            return Batch.empty(self.columns, self.weights)
        return merge(batches if self.share is None else [self.share.of_batch(batch) for batch in batches])

    def append(self, batch: Batch) -> None:
        """Adds a batch, and works on the running merges in proportion to its rows.

        If it raises WeightOverflow (a merge met one), the batch is not added and the trace is as before.
        """
        assert not self.read_only, "a snapshot cannot be appended to"
        assert len(batch.columns) == self.columns and len(batch.weights) == self.weights
        if self._only_adds(batch):
            self._small.append(batch)
            self.view = ((*self.batches, batch), np.concatenate((self.view[1], batch.entry)))
            self.sought[0] = 0
            return
        before = [*self._small], {**self._runs}, {**self._merges}
        try:
            if self._merges:
                self._work(max(batch.length, LEAST_FUEL) * FUEL * (1 + max(self._merges)))
            if batch.length:
                self._add(batch)
        except BaseException:
            self._small, self._runs, self._merges = before
            raise
        self.sought[0] = 0
        self._publish()

    @property
    def _allowed(self) -> int:
        """How many small batches there may be now."""
        return SMALL_BATCHES if self.sought[0] >= SOUGHT_KEYS else SMALL_BATCHES_UNSOUGHT

    def _only_adds(self, batch: Batch) -> bool:
        """Whether appending the batch merges nothing, as most appends of small batches do."""
        if self._merges or not batch.length or len(self._small) >= self._allowed:
            return False
        return batch.length + sum(small.length for small in self._small) < BASE

    def _publish(self) -> None:
        batches: list[Batch] = []
        for level in sorted({*self._runs, *self._merges}, reverse=True):
            batches += self._merges[level].inputs if level in self._merges else ()
            batches += (self._runs[level],) if level in self._runs else ()
        batches += self._small
        directory = np.concatenate([batch.entry for batch in batches]) if batches else np.empty(0, np.int64)
        self.view = (tuple(batches), directory)

    def _add(self, batch: Batch) -> None:
        if batch.length >= BASE:
            self._arrive([batch], _level(batch.length))
            return
        self._small.append(batch)
        if sum(small.length for small in self._small) >= BASE:
            small, self._small = merge(self._small), []
            if small.length:
                self._arrive([small], 1)
        elif len(self._small) > self._allowed:
            self._merge_small()

    def _merge_small(self) -> None:
        """Merges the newest small batches: half of those allowed, and as many as keep each left over no smaller than all after it."""
        keep = len(self._small) - self._allowed // 2
        rows = sum(small.length for small in self._small[keep:])
        while keep > 0 and self._small[keep - 1].length < rows:
            keep -= 1
            rows += self._small[keep].length
        merged = merge(self._small[keep:])
        self._small[keep:] = [merged] if merged.length else []

    def _arrive(self, runs: list[Batch], level: int) -> None:
        """Brings runs to a level: merges them with what is there, or takes all of it further where there is room."""
        while True:
            if level in self._merges:
                self._finish(level)
            if level in self._runs:
                runs.append(self._runs.pop(level))
            if len(runs) == 1 or sum(run.length for run in runs) <= BASE * RATIO**level:
                break
            level += 1
        if len(runs) == 1:
            self._runs[level] = runs[0]
        else:
            self._merges[level] = Merge(runs)

    def _finish(self, level: int) -> None:
        self._merges[level].work(EVERYTHING)
        self._settle(level)

    def _settle(self, level: int) -> None:
        result = self._merges.pop(level).result()
        if result.length:
            self._runs[level] = result

    def _work(self, fuel: int) -> None:
        for level in sorted(self._merges):
            fuel = self._merges[level].work(fuel)
            if fuel == 0:
                return
            self._settle(level)


def _level(rows: int) -> int:
    """The first level with room for a run of so many rows."""
    level = 1
    while BASE * RATIO**level < rows:
        level += 1
    return level
