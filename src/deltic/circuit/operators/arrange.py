"""trace_append: sorts a change into a batch, which joins an arrangement when the tick commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltic.circuit.operator import Context, Delta
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import lookup
from deltic.trace.weights import add_checked, heaviest

LARGE = 1 << 40
"""Weights below this cannot overflow within eight million ticks; larger ones are checked against the old version."""


@dataclass(frozen=True, slots=True)
class Arrange:
    """Sorts and consolidates its input and appends it to `arrangement`. The output is the same change, as a Batch."""

    arrangement: str

    @property
    def name(self) -> str:
        return "trace_append"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Batch:
        batch = consolidate(inputs[0])
        context.counters.touched += len(inputs[0])
        check_sums(batch, self.arrangement, context)
        context.append(self.arrangement, batch)
        return batch


def check_sums(batch: Batch, arrangement: str, context: Context) -> None:
    """Raises WeightOverflow if appending the batch would take a weight out of 64 bits, so that no later merge does."""
    if heaviest(batch) >= LARGE:
        old = lookup(context.old(arrangement, len(batch.columns), len(batch.weights)), batch.columns, context.counters)
        for old_weight, weight in zip(old, batch.weights, strict=True):
            add_checked(old_weight, weight)
