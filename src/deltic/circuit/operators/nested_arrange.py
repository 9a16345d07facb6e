"""trace_append in nested scopes: sorts a change into a batch, which joins an arrangement at the current time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.nested import Nested
from deltic.circuit.scopes import scope_context
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate


@dataclass(frozen=True, slots=True)
class NestedArrange(Nested):
    """Sorts and consolidates its input and appends it to the arrangement with the `depth` current iterations. The output is the change."""

    flat: Arrange
    depth: int

    def step(self, inputs: Sequence[Delta], context: Context) -> Batch:
        scopes = scope_context(context)
        batch = consolidate(inputs[0])
        context.counters.touched += len(inputs[0])
        if len(batch):
            trace = scopes.trace(self.flat.arrangement, len(batch.columns) + self.depth, len(batch.weights), self.depth)
            trace.append(batch, scopes.time)
        return batch
