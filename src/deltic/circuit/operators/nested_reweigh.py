"""distinct and the set operations in nested scopes: the change of each row's weight over the corners of the current time (corners.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.corners import KeyHistory, corners, look
from deltic.circuit.operators.nested import Nested
from deltic.circuit.operators.reweigh import Reweigh, weigh
from deltic.circuit.scopes import ScopeContext, distinct_rows, scope_context
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows
from deltic.trace.weights import sums


@dataclass(frozen=True, slots=True)
class NestedReweigh(Nested):
    """`flat` at times in `depth` scopes."""

    flat: Reweigh
    depth: int

    @property
    def name(self) -> str:
        return {"distinct_incremental": "distinct_trace"}.get(self.flat.name, self.flat.name)

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        scopes, flat = scope_context(context), self.flat
        parts = [part for part in (*scopes.awaited(), inputs[0]) if len(part)]
        if not parts:
            return Rows.empty(flat.width, 1)
        rows = distinct_rows(parts, flat.width)
        trace = scopes.trace(flat.arrangement, flat.width + self.depth, flat.weights, self.depth)
        count = len(rows[0]) if rows else 1
        change = self._change(look(trace, rows, (), scopes), count, scopes)
        changed = np.flatnonzero(change)
        return Rows([word[changed] for word in rows], (change[changed],))

    def _change(self, history: KeyHistory, count: int, scopes: ScopeContext) -> np.ndarray:
        """The change of each row's weight."""
        cells = consolidate(Rows((history.classes, history.source), history.weights))
        classes = 2 << self.depth
        by_class = [np.zeros((classes, count), np.int64) for _ in cells.weights]
        for table, weight in zip(by_class, cells.weights, strict=True):
            table[cells.columns[0], cells.columns[1]] = weight
        sum_over_subsets(by_class)
        change = np.zeros(count, np.int64)
        for corner, sign in corners(scopes):
            change += sign * weigh(self.flat.rule, [table[corner] for table in by_class])
        return change


def sum_over_subsets(tables: Sequence[np.ndarray]) -> None:
    """table[c] becomes the sum of all table[b] with b ⊆ c, in place. Raises WeightOverflow."""
    classes = len(tables[0])
    bit = 1
    while bit < classes:
        for corner in range(classes):
            if corner & bit:
                totals = sums([table[corner] for table in tables], [table[corner ^ bit] for table in tables])
                for table, total in zip(tables, totals, strict=True):
                    table[corner] = total
        bit <<= 1
