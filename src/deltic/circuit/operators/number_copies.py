"""number_copies: each copy of a row on its own, with its number from 0. A change of a row's weight changes its last copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.trace.probe import lookup
from deltic.trace.rows import Rows


@dataclass(frozen=True, slots=True)
class NumberCopies:
    """The rows of `arrangement`, of `width` words, once for each copy, with its number."""

    arrangement: str
    width: int

    @property
    def name(self) -> str:
        return "number_copies"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        before = lookup(context.old(self.arrangement, self.width, 1), delta.columns, context.counters)[0]
        after = before + delta.weights[0]
        first, last = np.minimum(before, after), np.maximum(before, after)
        copies = last - first
        rows = np.repeat(np.arange(len(delta)), copies)
        number = np.arange(len(rows)) - (np.cumsum(copies) - copies)[rows] + first[rows]
        return Rows((*(column[rows] for column in delta.columns), number), (np.sign(delta.weights[0])[rows],))
