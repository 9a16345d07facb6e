"""inspect: calls a user's function with each change, on the shard where the operator runs. The output is the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltic.circuit.operator import Context, Delta
from deltic.expr.nodes import UserFunction
from deltic.expr.python import inspect_rows
from deltic.schema import Schema
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import decode_rows


@dataclass(frozen=True, slots=True)
class InspectOperator:
    """The function gets rows of `schema`, sorted, with their weights. It is not called in a backfill, which changes no view."""

    schema: Schema
    function: UserFunction

    @property
    def name(self) -> str:
        return "inspect"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        if not context.backfill and len(batch := consolidate(inputs[0])):
            rows = decode_rows(batch.columns, self.schema, context.strings, len(batch))
            inspect_rows(self.function, list(zip(rows, batch.weights[0].tolist(), strict=True)))
        return inputs[0]
