"""digits: splits values into rows of (position, digit), whose sums are exact. Linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from deltic.aggregates.definition import DigitKind
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.schema import Field, Schema
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, decode
from deltic.trace.rows import Rows
from deltic.trace.sums import MOST_ROWS, bit_counts, float_limbs, normalise_limbs, product_limbs


@dataclass(frozen=True, slots=True)
class TakeApart:
    """Maps (group words, values) to (group words, slot, position) with digits as weights. values: the fields, none nullable."""

    key: int
    slot: int
    kind: DigitKind
    values: tuple[Field, ...]

    @property
    def name(self) -> str:
        return "digits"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = inputs[0]
        n = len(rows)
        if n <= MOST_ROWS:
            return self._added(rows, context)
        parts = [self._added(rows.take(np.arange(i, min(i + MOST_ROWS, n))), context) for i in range(0, n, MOST_ROWS)]
        return self._carried(Rows.concat(parts))

    def _added(self, rows: Delta, context: Context) -> Delta:
        words = rows.columns[self.key :]
        layout = Layout.of(Schema(self.values))
        values = [decode(words[s], f, context.strings).to_numpy() for s, f in zip(layout.slices, self.values, strict=True)]
        row, position, digit = self._digits(values, rows.weights[0])
        group = tuple(c[row] for c in rows.columns[: self.key])
        return self._carried(Rows((*group, np.full(len(row), self.slot, np.int64), position), (digit,)))

    def _digits(self, values: Sequence[np.ndarray], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(row, position, digit) of each value · weight."""
        match self.kind:
            case "real":
                return float_limbs(values[0], weights)
            case "product":
                return product_limbs(values, weights)
            case "bits":
                return bit_counts(values[0], weights)
            case _:
                assert_never(self.kind)

    def _carried(self, rows: Rows) -> Delta:
        """The rows consolidated, with large limbs carried into the next position, so that sums of batches do not overflow."""
        batch = as_batch(rows)
        if self.kind == "bits":
            return batch
        row, position, limb = normalise_limbs(batch.columns[-1], batch.weights[0])
        if not len(row):
            return batch
        more = (*(c[row] for c in batch.columns[:-1]), position)
        columns = tuple(np.concatenate([a, b]) for a, b in zip(batch.columns, more, strict=True))
        return consolidate(Rows(columns, (np.concatenate([batch.weights[0], limb]),)))
