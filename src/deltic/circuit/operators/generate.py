"""flat_map by a user's table function: the rows that it returns for each row, with weights multiplied. Linear.

The function is called once for each consolidated row of the change, so nothing is fused before this operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.selection_vector import SelectionVector
from deltic.expr.nodes import UserFunction
from deltic.expr.table_functions import arrays_of_table_function
from deltic.schema import Schema
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, decode, encode
from deltic.trace.weights import multiply


@dataclass(frozen=True, slots=True)
class GenerateOperator:
    """Maps rows of `source` to rows of `target`. function, returned, weighted: as in the plan node."""

    source: Schema
    function: UserFunction
    returned: Schema
    weighted: bool = False

    @property
    def name(self) -> str:
        return "generate"

    @property
    def eager(self) -> bool:
        return False

    @property
    def fallible(self) -> bool:
        return True

    @property
    def target(self) -> Schema:
        return Schema(self.returned.fields[:-1]) if self.weighted else self.returned

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = consolidate(inputs[0])
        context.counters.touched += len(rows)
        return self.passed(SelectionVector.of(rows, self.source, Layout.of(self.source)), context).rows()

    def passed(self, rows: SelectionVector, context: Context) -> SelectionVector:
        """The rows after this operator, as a part of a pass over consolidated rows."""
        arguments = [decode(rows.words(i), field, context.strings) for i, field in enumerate(self.source)]
        positions, columns = arrays_of_table_function(self.function, self.returned, arguments, rows.length)
        repeated = rows.take(positions.to_numpy())
        weights = None
        if self.weighted:
            times = columns.pop().to_numpy()
            weights = (tuple(multiply(weight, times) for weight in repeated.all_weights()), repeated.here())
        here = repeated.here()
        fields = [(encode(column, field, context.strings), here) for column, field in zip(columns, self.target, strict=True)]
        generated = repeated.with_fields(self.target, fields, weights)
        return generated if weights is None else generated.take(np.flatnonzero(weights[0][0]))
