"""aggregate: GROUP BY over changes. Reads only the sums, digits and extremes of the groups that changed.

The inputs are arranged by group: the sums (count first, then each measure's words), the digits of wide sums, and the values of each
extreme. A group exists if its count is not 0. If its row changes, the old row is retracted and the new one emitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deltic.circuit.accumulations import Accumulation, new_accumulation
from deltic.circuit.extremes import Extreme, new_extremes
from deltic.circuit.listings import Listing, new_listing
from deltic.circuit.merges import UserMerge, new_merge
from deltic.circuit.operator import HOME, Context, Delta, as_batch
from deltic.circuit.rankings import Ranking, new_ranking
from deltic.circuit.results import Result, SlotDigits, result_words, slot_digits
from deltic.schema import Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout
from deltic.trace.probe import lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.weights import sums

Words = tuple[np.ndarray, ...]
Selection = Extreme | Ranking | Listing | Accumulation | UserMerge
"""What is read from the rows of a group, where sums are not enough."""

ONE_GROUP, REPLACED = np.zeros(2, np.int64), np.array([-1, 1], np.int64)
"""The words of the only group, before and after, and the weights of a retracted and a new row."""


@dataclass(frozen=True, slots=True)
class AggregateOperator:
    """One row per group: its `key` words, then the words of `results`.

    sums: the arrangement group → weights, of `weights` words. digits: the arrangement (group, slot, position) → digit, if any sum is kept
    as digits. extremes: the first rows of a group, values at ranks, or all rows, one for each order or function. memory: the arrangement
    of the rows that this node has emitted, kept if the old row cannot be computed from the sums. always: an empty group has a row too,
    since there are no GROUP BY columns.
    Inputs: the changes of the sums, of the digits if there are any, then of the extremes.
    """

    key: int
    target: Schema
    results: tuple[Result, ...]
    sums: str
    weights: int
    digits: str | None = None
    slots: int = 0
    extremes: tuple[Selection, ...] = ()
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
        existed, filled = before[0] != 0, after[0] != 0
        exists = filled
        if self.always:
            exists = np.ones(len(exists), bool)
            existed = np.full(len(exists), not context.starts_empty(self.sums))
        else:
            before, after = _of_groups(before, existed), _of_groups(after, exists)
        if self.memory is None:
            both = self._rendered(tuple(np.concatenate(pair) for pair in zip(before, after, strict=True)), (), (), context)
        else:
            old = self._remembered(groups, context)
            digits = self._slot_digits(groups, inputs, context)
            extremes = [
                self._selected(i, groups, old, existed, filled, after, as_batch(delta), context)
                for i, delta in enumerate(inputs[len(inputs) - len(self.extremes) :])
            ]
            new = self._rendered(after, digits, extremes, context)
            both = tuple(np.concatenate(pair) for pair in zip(old, new, strict=True))
        return self._emit(groups, both, existed, exists, context)

    @property
    def _width(self) -> int:
        return sum(s.stop - s.start for s in self.offsets)

    def _groups(self, inputs: Sequence[Delta], context: Context) -> Words | None:
        """The words of the changed groups, each once; None if there are none."""
        if self.always:
            if context.shard != HOME or (not context.starts_empty(self.sums) and not any(len(d) for d in inputs)):
                return None
            return (np.zeros(1, np.int64),)
        nonempty = [d for d in inputs if len(d)]
        if len(inputs) == 1 and isinstance(inputs[0], Batch):
            return inputs[0].columns if nonempty else None
        if not nonempty:
            return None
        keys = tuple(np.concatenate([d.columns[i] for d in nonempty]) for i in range(self.key))
        return consolidate(Rows(keys, (np.ones(len(keys[0]), np.int64),))).columns

    def _rendered(self, sums: Words, digits: Sequence[SlotDigits], extremes: Sequence[Sequence[Words]], context: Context) -> Words:
        return tuple(w for r in self.results for w in result_words(r, sums, digits, extremes, context.strings))

    def _remembered(self, groups: Words, context: Context) -> Words:
        """The result words emitted for each group; zeros if it has none."""
        assert self.memory is not None
        n, width = len(groups[0]), self._width
        spine = context.old(self.memory, self.key + width, 1)
        source, columns, weights = probe(spine, groups, range(self.key, self.key + width), context.counters)
        rows = consolidate(Rows((source, *columns), (weights[0],)))
        words = tuple(np.zeros(n, np.int64) for _ in range(width))
        for word, column in zip(words, rows.columns[1:], strict=True):
            word[rows.columns[0]] = column
        return words

    def _slot_digits(self, groups: Words, inputs: Sequence[Delta], context: Context) -> Sequence[SlotDigits]:
        if self.digits is None:
            return ()
        old = context.old(self.digits, self.key + 2, 1)
        delta = inputs[1]
        spine = old.with_batch(as_batch(delta))
        source, columns, weights = probe(spine, groups, (self.key, self.key + 1), context.counters)
        return slot_digits(source, columns, weights[0], len(groups[0]), self.slots)

    def _selected(
        self,
        i: int,
        groups: Words,
        old: Words,
        existed: np.ndarray,
        filled: np.ndarray,
        after: Words,
        delta: Batch,
        context: Context,
    ) -> Sequence[Words]:
        """The words of the fields of extreme i, after the change of its arrangement."""
        remembered = self._remembered_extreme(i, old)
        match self.extremes[i]:
            case Extreme() as extreme:
                return new_extremes(extreme, groups, remembered, existed, filled, delta, context)
            case Ranking() as ranking:
                return new_ranking(ranking, groups, remembered, existed, after, delta, context)
            case Listing() as listing:
                return new_listing(listing, groups, remembered, existed, delta, context)
            case Accumulation() as accumulation:
                return new_accumulation(accumulation, groups, remembered, existed, delta, context)
            case UserMerge() as merge:
                return new_merge(merge, groups, remembered, existed, delta, context)

    def _remembered_extreme(self, extreme: int, old: Words) -> list[Words]:
        """The words of each field of the extreme in the groups' old rows."""
        first = self.offsets[0].start
        slices = {r.part: s for r, s in zip(self.results, self.offsets, strict=True) if r.kind == "extreme" and r.extreme == extreme}
        return [old[s.start - first : s.stop - first] for _, s in sorted(slices.items())]

    def _emit(self, groups: Words, both: Words, existed: np.ndarray, exists: np.ndarray, context: Context) -> Delta:
        """The retracted and the new rows. both: the result words of all groups before, then of all groups after."""
        replaced = self.always and not context.starts_empty(self.sums)
        rows = self._replaced(both) if replaced else _differing(groups, both, existed, exists)
        if self.memory is None:
            return rows
        batch = consolidate(rows)
        context.append(self.memory, batch)
        return batch

    def _replaced(self, both: Words) -> Rows:
        """The change of the row that always exists."""
        if all(words[0] == words[1] for words in both):
            return Rows.empty(self.key + self._width, 1)
        return Rows((ONE_GROUP, *both), (REPLACED,))


def _of_groups(sums: Words, present: np.ndarray) -> Words:
    """The sums, with zeros where no group exists: rows whose weights cancel may leave sums that must be ignored."""
    return sums if present.all() else tuple(np.where(present, word, 0) for word in sums)


def _differing(groups: Words, both: Words, existed: np.ndarray, exists: np.ndarray) -> Rows:
    """The old rows that changed, with weight -1, then the new ones. both: as in `_emit`."""
    n = len(existed)
    differs = existed != exists
    for words in both:
        differs |= words[:n] != words[n:]
    retracted, emitted = (differs & existed).nonzero()[0], (differs & exists).nonzero()[0]
    positions = np.concatenate((retracted, emitted + n))
    columns = tuple(words[positions] for words in (*(np.concatenate((g, g)) for g in groups), *both))
    weights = np.ones(len(positions), np.int64)
    weights[: len(retracted)] = -1
    return Rows(columns, (weights,))
