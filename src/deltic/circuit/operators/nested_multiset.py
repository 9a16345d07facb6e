"""multiset in nested scopes: passes a change on, and fails if the weight of a row would fall below 0 at any iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.corners import look
from deltic.circuit.operators.multiset import MultisetOperator
from deltic.circuit.operators.nested import Nested
from deltic.circuit.scopes import distinct_rows, scope_context
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout
from deltic.trace.rows import Rows


@dataclass(frozen=True, slots=True)
class NestedMultiset(Nested):
    """`flat` at times in `depth` scopes. A row is checked again at each later iteration at which it has changed before."""

    flat: MultisetOperator
    depth: int

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        scopes, width = scope_context(context), Layout.of(self.flat.schema).width
        parts = [part for part in (*scopes.awaited(), inputs[0]) if len(part)]
        if parts:
            rows = distinct_rows(parts, width)
            history = look(scopes.trace(self.flat.arrangement, width + self.depth, 1, self.depth), rows, (), scopes)
            present = consolidate(Rows((history.source,), history.weights))
            self.flat.check([word[present.columns[0]] for word in rows], present.weights[0], context)
        return inputs[0]
