"""flat_map: each row once for each element that a table function returns for it; explode: a row's weight times a count. Linear.

Expressions that can fail run on consolidated rows, as in a Map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.selection_vector import SelectionVector
from deltic.errors import Span
from deltic.expr.arrays.elements import elements_of, places_within
from deltic.expr.nodes import Expr
from deltic.schema import INT, Field, Schema
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, encode
from deltic.trace.rows import Rows
from deltic.trace.weights import multiply


@dataclass(frozen=True, slots=True)
class FlatMapOperator:
    """Maps rows of `source` to their fields `carried` and then those of `returned`: the element, preceded by its position if `position`.

    function, arguments, outer, span: as in the plan node.
    """

    source: Schema
    function: str
    arguments: tuple[Expr, ...]
    carried: tuple[int, ...]
    returned: tuple[Field, ...]
    position: bool = False
    outer: bool = False
    fallible: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return "flat_map" if self.returned else "explode"

    @property
    def eager(self) -> bool:
        return False

    @property
    def target(self) -> Schema:
        return Schema((*(self.source[i] for i in self.carried), *self.returned))

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows: Rows = consolidate(inputs[0]) if self.fallible else inputs[0]
        context.counters.touched += len(rows)
        whole = SelectionVector.of(rows, self.source, Layout.of(self.source), context.decoded.get(id(rows)))
        return self.passed(whole, context).rows()

    def passed(self, rows: SelectionVector, context: Context) -> SelectionVector:
        """The rows after this operator, as a part of a pass. If an argument can fail, the pass started with consolidated rows."""
        applicable, values = self._arguments(rows, context)
        if not self.returned:
            return self._repeated(rows if len(applicable) == rows.length else rows.take(applicable), values[0])
        counts = np.zeros(rows.length, np.int64)
        counts[applicable], elements = elements_of(self.function, values, self.returned[-1].type, len(applicable), self.span)
        copies = np.maximum(counts, 1) if self.outer else counts
        source = np.repeat(np.arange(rows.length), copies)
        within = places_within(copies) if self.outer or self.position else None
        missing = None
        if self.outer:
            missing = (counts == 0)[source]
            numbers = np.repeat(np.cumsum(counts) - counts, copies) + within
            elements = elements.take(pa.array(numbers, mask=missing))
        positions = pa.array(within.astype(np.int32), mask=missing) if within is not None else None
        return self._laid_out(rows.take(source), positions, elements, context)

    def _arguments(self, rows: SelectionVector, context: Context) -> tuple[np.ndarray, list[pa.Array]]:
        """(positions of the rows on which no argument is NULL (all, for array), the arguments on them), evaluated from left to right."""
        applicable = np.arange(rows.length)
        values: list[pa.Array] = []
        for argument in self.arguments:
            part = rows if len(applicable) == rows.length else rows.take(applicable)
            value = part.array(argument, context.strings)
            values.append(value)
            if value.null_count and self.function != "array":
                kept = np.flatnonzero(~value.is_null().to_numpy(zero_copy_only=False))
                applicable, values = applicable[kept], [v.take(pa.array(kept)) for v in values]
        return applicable, values

    def _repeated(self, rows: SelectionVector, count: pa.Array) -> SelectionVector:
        times = count.to_numpy(zero_copy_only=False)
        kept = np.flatnonzero(times)
        rows = rows.take(kept)
        weights = tuple(multiply(weight, times[kept]) for weight in rows.all_weights())
        return rows.with_fields(self.target, [rows.fields[i] for i in self.carried], (weights, rows.here()))

    def _laid_out(self, rows: SelectionVector, positions: pa.Array | None, elements: pa.Array, context: Context) -> SelectionVector:
        here = rows.here()
        fields = [rows.fields[i] for i in self.carried]
        if self.position:
            assert self.returned[0].type == INT
            fields.append((encode(positions, self.returned[0], context.strings), here))
        fields.append((encode(elements, self.returned[-1], context.strings), here))
        return rows.with_fields(self.target, fields)
