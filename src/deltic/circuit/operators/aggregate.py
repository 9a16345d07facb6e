"""aggregate: GROUP BY over changes. Reads the sums, limbs and extremes of the groups that changed, and nothing else.

The inputs are arranged by group before they come here: the sums (count first, then each measure's words), the limbs of float
sums, and for each MIN or MAX its values. A group's old row is retracted and its new one emitted where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deltic.circuit.extremes import Extreme, new_extremes
from deltic.circuit.operator import HOME, Context, Delta, as_batch
from deltic.circuit.results import Result, float_sums, result_words
from deltic.schema import Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout
from deltic.trace.probe import lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.weights import sums

Words = tuple[np.ndarray, ...]

ONE_GROUP, REPLACED = np.zeros(2, np.int64), np.array([-1, 1], np.int64)
"""The group of all rows, before and after, and the weights of a row that goes and one that comes."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row per group: its `key` words, then the words of `results`.

    sums: the arrangement group → weights, of `weights` words. floats: the arrangement (group, slot, position) → limb, if any
    result is a float sum. extremes: one per MIN or MAX. memory: this node's own arrangement of the rows it has emitted, kept where
    the old row cannot be read off the sums. always: a group without rows has a row too (there are no GROUP BY columns).
    Inputs: the changes of sums, of floats if there are any, then of the extremes.
    """

    key: int
    target: Schema
    results: tuple[Result, ...]
    sums: str
    weights: int
    floats: str | None = None
    float_slots: int = 0
    extremes: tuple[Extreme, ...] = ()
    memory: str | None = None
    always: bool = False
    offsets: tuple[slice, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        layout = Layout.of(self.target)
        slices = [layout.slices[len(self.target) - len(self.results) + i] for i in range(len(self.results))]
        object.__setattr__(self, "offsets", tuple(slices))

    @property
    def name(self) -> str:
        return "aggregate"

    @property
    def eager(self) -> bool:
        return self.always

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        groups = self._groups(inputs, context)
        if groups is None:
            return Rows.empty(self.key + self._width, 1)
        arranged = inputs[0]
        before = lookup(context.old(self.sums, self.key, self.weights), groups, context.counters)
        if len(inputs) == 1 and len(arranged) == len(groups[0]):
            change: Words = tuple(arranged.weights)
        else:
            change = lookup(Spine.of(as_batch(arranged)), groups, context.counters)
        after = sums(before, change)
        assert (after[0] >= 0).all(), "a group has fewer than no rows"
        there, filled = before[0] > 0, after[0] > 0
        here = filled
        if self.always:
            here = np.ones(len(here), bool)
            there = np.full(len(here), not context.backfill)
        if self.memory is None:
            both = self._rendered(tuple(np.concatenate(pair) for pair in zip(before, after, strict=True)), (), ())
        else:
            old = self._remembered(groups, context)
            floats = self._float_sums(groups, inputs, context)
            new = self._rendered(after, floats, self._extremes(groups, old, there, filled, inputs, context))
            both = tuple(np.concatenate(pair) for pair in zip(old, new, strict=True))
        return self._emit(groups, both, there, here, context)

    @property
    def _width(self) -> int:
        return sum(s.stop - s.start for s in self.offsets)

    def _groups(self, inputs: Sequence[Delta], context: Context) -> Words | None:
        """The words of the groups to look at again, each once; None if there are none."""
        if self.always:
            if context.shard != HOME or (not context.backfill and not any(len(d) for d in inputs)):
                return None
            return (np.zeros(1, np.int64),)
        some = [d for d in inputs if len(d)]
        if len(inputs) == 1 and isinstance(inputs[0], Batch):
            return inputs[0].columns if some else None
        if not some:
            return None
        keys = tuple(np.concatenate([d.columns[i] for d in some]) for i in range(self.key))
        return consolidate(Rows(keys, (np.ones(len(keys[0]), np.int64),))).columns

    def _rendered(self, sums: Words, floats: Sequence[np.ndarray], extremes: Sequence[Words]) -> Words:
        return tuple(w for r in self.results for w in result_words(r, sums, floats, extremes))

    def _remembered(self, groups: Words, context: Context) -> Words:
        """The result words that stand for each group now; zeros where it has none."""
        assert self.memory is not None
        n, width = len(groups[0]), self._width
        spine = context.old(self.memory, self.key + width, 1)
        source, columns, weights = probe(spine, groups, range(self.key, self.key + width), context.counters)
        rows = consolidate(Rows((source, *columns), (weights[0],)))
        words = tuple(np.zeros(n, np.int64) for _ in range(width))
        for word, column in zip(words, rows.columns[1:], strict=True):
            word[rows.columns[0]] = column
        return words

    def _float_sums(self, groups: Words, inputs: Sequence[Delta], context: Context) -> Sequence[np.ndarray]:
        if self.floats is None:
            return ()
        old = context.old(self.floats, self.key + 2, 1)
        delta = inputs[1]
        spine = old.with_batch(as_batch(delta))
        source, columns, weights = probe(spine, groups, (self.key, self.key + 1), context.counters)
        return float_sums(source, columns, weights[0], len(groups[0]), self.float_slots)

    def _extremes(
        self, groups: Words, old: Words, there: np.ndarray, filled: np.ndarray, inputs: Sequence[Delta], context: Context
    ) -> list[Words]:
        found = []
        first = len(inputs) - len(self.extremes)
        for i, extreme in enumerate(self.extremes):
            at = next(j for j, r in enumerate(self.results) if r.kind == "extreme" and r.slot == i)
            start = self.offsets[at].start - self.offsets[0].start
            words = old[start : start + self.offsets[at].stop - self.offsets[at].start]
            found.append(new_extremes(extreme, groups, words, there, filled, as_batch(inputs[first + i]), context))
        return found

    def _emit(self, groups: Words, both: Words, there: np.ndarray, here: np.ndarray, context: Context) -> Delta:
        """The retracted and the new rows. both: result words of all groups before, then of all groups after."""
        rows = self._replaced(both) if self.always and not context.backfill else _differing(groups, both, there, here)
        if self.memory is None:
            return rows
        batch = consolidate(rows)
        context.append(self.memory, batch)
        return batch

    def _replaced(self, both: Words) -> Rows:
        """The change of the one row that is always there."""
        if all(words[0] == words[1] for words in both):
            return Rows.empty(self.key + self._width, 1)
        return Rows((ONE_GROUP, *both), (REPLACED,))


def _differing(groups: Words, both: Words, there: np.ndarray, here: np.ndarray) -> Rows:
    """The rows that are no longer so, then those that are so now. both: as `_emit` has it."""
    n = len(there)
    differs = there != here
    for words in both:
        differs |= words[:n] != words[n:]
    gone, come = np.flatnonzero(differs & there), np.flatnonzero(differs & here)
    at = np.concatenate((gone, come + n))
    columns = tuple(words[at] for words in (*(np.concatenate((g, g)) for g in groups), *both))
    weights = np.ones(len(at), np.int64)
    weights[: len(gone)] = -1
    return Rows(columns, (weights,))
