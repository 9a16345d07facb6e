"""weighted: each row once, followed by its weight as a word: out = (row, new weight) − (row, old weight)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.trace.probe import lookup
from deltic.trace.rows import Rows
from deltic.trace.weights import sums


@dataclass(frozen=True, slots=True)
class WeightedOperator:
    """Its input is the change of `arrangement`, whose rows have `width` words."""

    arrangement: str
    width: int

    @property
    def name(self) -> str:
        return "weighted"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = inputs[0]
        old = lookup(context.old(self.arrangement, self.width, 1), delta.columns, context.counters)
        (before,), (after,) = old, sums(old, delta.weights)
        retracted, emitted = np.flatnonzero(before), np.flatnonzero(after)
        positions = np.concatenate((retracted, emitted))
        columns = (*(word[positions] for word in delta.columns), np.concatenate((before[retracted], after[emitted])))
        return Rows(columns, (np.repeat(np.array([-1, 1], np.int64), (len(retracted), len(emitted))),))
