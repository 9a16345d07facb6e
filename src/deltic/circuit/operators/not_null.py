"""not_null: the rows of a change whose key has no NULL, to look up the key in an arrangement that may hold NULL keys. Linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.trace.batch import Batch


@dataclass(frozen=True, slots=True)
class NotNull:
    """Drops the rows in which one of the words is that of NULL. words: (position, the word of NULL). A batch stays a batch."""

    words: tuple[tuple[int, int], ...]

    @property
    def name(self) -> str:
        return "not_null"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        (rows,) = inputs
        if isinstance(rows, Batch):
            rows.verified()
        kept = np.logical_and.reduce([rows.columns[word] != null for word, null in self.words])
        if kept.all():
            return rows
        left = rows.take(np.flatnonzero(kept))
        return Batch.trusted(left.columns, left.weights) if isinstance(rows, Batch) else left
