"""flat_map: each row once for each element that a table function makes of it, and explode: a row's weight times a count. Linear.

What can fail runs on consolidated rows, as in a Map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deltic.circuit.operator import Context, Delta
from deltic.expr.arrays.elements import elements_of
from deltic.expr.columns import evaluate_columns
from deltic.expr.nodes import Expr, columns_of
from deltic.schema import INT, Field, Schema
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, Words, decode, encode
from deltic.trace.rows import Rows
from deltic.trace.weights import multiply


@dataclass(frozen=True, slots=True)
class FlatMap:
    """Rows of `source` to the fields `carried` of each, then those of `made`: the element, the position before it if `position`.

    function, arguments, outer: as of the plan node.
    """

    source: Schema
    function: str
    arguments: tuple[Expr, ...]
    carried: tuple[int, ...]
    made: tuple[Field, ...]
    position: bool = False
    outer: bool = False
    fallible: bool = False

    @property
    def name(self) -> str:
        return "flat_map" if self.made else "explode"

    @property
    def eager(self) -> bool:
        return False

    @property
    def target(self) -> Schema:
        return Schema((*(self.source[i] for i in self.carried), *self.made))

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows: Rows = consolidate(inputs[0]) if self.fallible else inputs[0]
        context.counters.touched += len(rows)
        there, values = self._arguments(rows, context)
        if not self.made:
            return self._repeated(rows.take(there), values[0])
        counts = np.zeros(len(rows), np.int64)
        counts[there], found = elements_of(self.function, values, self.made[-1].type, len(there))
        copies = np.maximum(counts, 1) if self.outer else counts
        source = np.repeat(np.arange(len(rows)), copies)
        within = np.arange(len(source)) - np.repeat(np.cumsum(copies) - copies, copies)
        if self.outer:
            missing = (counts == 0)[source]
            place = np.repeat(np.cumsum(counts) - counts, copies) + within
            found = found.take(pa.array(place, mask=missing))
            positions = pa.array(within.astype(np.int32), mask=missing)
        else:
            positions = pa.array(within.astype(np.int32))
        return self._laid_out(rows, source, positions, found, context)

    def _arguments(self, rows: Rows, context: Context) -> tuple[np.ndarray, list[pa.Array]]:
        """The rows on which no argument is NULL (all, for array), and the arguments there, each evaluated where those before it are not."""
        there = np.arange(len(rows))
        values: list[pa.Array] = []
        for argument in self.arguments:
            part = rows if len(there) == len(rows) else rows.take(there)
            value = self._value(argument, part, context)
            values.append(value)
            if value.null_count and self.function != "array":
                kept = np.flatnonzero(~value.is_null().to_numpy(zero_copy_only=False))
                there, values = there[kept], [v.take(pa.array(kept)) for v in values]
        return there, values

    def _value(self, expr: Expr, rows: Rows, context: Context) -> pa.Array:
        layout = Layout.of(self.source)
        columns: list[pa.Array | None] = [None] * len(self.source)
        for i in columns_of(expr):
            columns[i] = decode(rows.columns[layout.slices[i]], self.source[i], context.strings)
        return evaluate_columns(expr, columns, len(rows))

    def _repeated(self, rows: Rows, count: pa.Array) -> Rows:
        times = count.to_numpy(zero_copy_only=False)
        kept = np.flatnonzero(times)
        rows = rows.take(kept)
        return Rows(self._carried(rows.columns), [multiply(weight, times[kept]) for weight in rows.weights])

    def _laid_out(self, rows: Rows, source: np.ndarray, positions: pa.Array, found: pa.Array, context: Context) -> Rows:
        words = [column[source] for column in self._carried(rows.columns)]
        if self.position:
            assert self.made[0].type == INT
            words += encode(positions, self.made[0], context.strings)
        words += encode(found, self.made[-1], context.strings)
        return Rows(tuple(words), tuple(weight[source] for weight in rows.weights))

    def _carried(self, words: Words) -> Words:
        slices = Layout.of(self.source).slices
        return tuple(word for i in self.carried for word in words[slices[i]])
