"""What is kept of a relation that only grows: of each group the sums, the first row for an aggregate, or the first rows; not the others.

They cost O(rows of the tick · log state), whatever has gone by. A backfill is not a tick for those whose state exists: they emit what they
hold, and others are filled from what their input has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.extremes import Extreme, settled
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.operators.arrange import check_sums
from deltic.circuit.operators.linear import negated
from deltic.circuit.operators.top_k import TopKOperator
from deltic.circuit.scopes import distinct_rows
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import first, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine


@dataclass(frozen=True, slots=True)
class FoldSums:
    """The weights of each group, or its digits, added up over all ticks.

    memory: the arrangement of what is kept, whose change is the output. width: the words of a row. keyed: whether there may be several
    groups.
    """

    memory: str
    width: int
    keyed: bool

    @property
    def name(self) -> str:
        return "fold_sums"

    @property
    def eager(self) -> bool:
        return True

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        fresh = context.tick.fresh
        if fresh is not None and self.memory not in fresh:
            return context.state[self.memory].scan(context.counters)
        delta = as_batch(inputs[0])
        context.counters.touched += len(delta)
        change = self._change(delta, context) if len(delta) else delta
        context.append(self.memory, change)
        return change

    def _change(self, delta: Batch, context: Context) -> Batch:
        """The change of what is kept."""
        check_sums(delta, self.memory, context)
        return delta


@dataclass(frozen=True, slots=True)
class FoldExtremes(FoldSums):
    """The first row of each group in an order, of all ticks. extreme: the order, over the arrangement `memory`."""

    extreme: Extreme

    @property
    def name(self) -> str:
        return "fold_extremes"

    def _change(self, delta: Batch, context: Context) -> Batch:
        key = self.extreme.key
        groups = distinct_rows([delta], key)
        _, columns, weights = probe(context.old(self.memory, self.width, 1), groups, range(self.width), context.counters)
        old = consolidate(Rows(columns, (weights[0],)))
        rows = Spine.over(self.width, 1, (old, delta))
        _, words, _ = first(rows, groups, None, 1, context.counters)
        best = settled(self.extreme, rows, groups, words[key:], context)
        new = Rows((*groups, *best), (np.ones(len(groups[0]), np.int64),))
        return consolidate(Rows.concat([new, negated(old)]))


@dataclass(frozen=True, slots=True)
class FoldTopK(FoldSums):
    """The first rows of each group in an order, of all ticks. first: the order, over the arrangement `memory`."""

    first: TopKOperator

    @property
    def name(self) -> str:
        return "fold_top_k"

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        change = FoldSums.step(self, inputs, context)
        return Rows(tuple(change.columns[i] for i in self.first.output), change.weights)

    def _change(self, delta: Batch, context: Context) -> Batch:
        groups = distinct_rows([delta], self.first.key)
        _, columns, weights = probe(context.old(self.memory, self.width, 1), groups, range(self.width), context.counters)
        old = consolidate(Rows(columns, (weights[0],)))
        new = self.first.first_of(Spine.over(self.width, 1, (old, delta)), groups, None, context)
        return consolidate(Rows.concat([new, negated(old)]))
