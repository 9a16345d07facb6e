"""map, filter and explode into weights: one pass over the rows of a change. Linear.

A Map first keeps the rows on which `predicate` is TRUE, then computes its columns, then its weights. Columns that are passed
on as they are cost nothing: their arrays are shared. Expressions over one string column run once per distinct string.
A change may hold rows that cancel and were never there (a join of two changes makes such), so what can fail runs on consolidated rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from deltic.circuit.measures import Measure, measure_weights
from deltic.circuit.operator import Context, Delta
from deltic.expr.columns import evaluate_columns
from deltic.expr.failing import can_fail
from deltic.expr.nodes import Column, Expr, Literal, columns_of
from deltic.schema import BIGINT, STRING, Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, Words, decode, encode, words_of
from deltic.trace.rows import Rows


@dataclass(frozen=True, slots=True)
class Map:
    """(predicate, columns, measures) over rows of `source`; the result's fields are `target`'s, in type and nullability.

    measures: () keeps the weights as they are; otherwise the input has one weight w, and the output has
    (w, w·measure for each word of each measure).
    """

    source: Schema
    target: Schema
    columns: tuple[Expr, ...]
    predicate: Expr | None = None
    measures: tuple[Measure, ...] = ()
    moves: tuple[slice | None, ...] = field(init=False, compare=False, repr=False)
    width: int = field(init=False, compare=False, repr=False)
    fallible: bool = field(init=False, compare=False, repr=False)
    layout: Layout = field(init=False, compare=False, repr=False)
    identity: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert len(self.columns) == len(self.target)
        layout = Layout.of(self.source)
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "identity", self._is_identity())
        object.__setattr__(self, "moves", tuple(_move(e, self.source, f, layout) for e, f in zip(self.columns, self.target, strict=True)))
        object.__setattr__(self, "width", Layout.of(self.target).width)
        exprs = (*self.columns, *(m.argument for m in self.measures), *((self.predicate,) if self.predicate is not None else ()))
        object.__setattr__(self, "fallible", any(map(can_fail, exprs)))

    @property
    def name(self) -> str:
        if self.measures:
            return "explode"
        return "filter" if self.predicate is not None and self.identity else "map"

    @property
    def eager(self) -> bool:
        return False

    def _is_identity(self) -> bool:
        """Whether the columns are the input's, unchanged."""
        return self.source == self.target and all(isinstance(e, Column) and e.index == i for i, e in enumerate(self.columns))

    @property
    def weights(self) -> int:
        return 1 + sum(m.width for m in self.measures)

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = inputs[0]
        context.counters.touched += len(rows)
        if self.fallible:
            rows = consolidate(rows)
        if self.predicate is not None:
            rows = self._filter(rows, self.predicate, context)
        if not len(rows):
            return Rows.empty(self.width, self.weights if self.measures else len(rows.weights))
        if self.identity and not self.measures:
            return rows
        columns: tuple[np.ndarray, ...] = tuple(rows.columns)
        if not self.identity:
            columns = tuple(word for i in range(len(self.columns)) for word in self._column(i, rows, context))
        weights = tuple(rows.weights)
        if self.measures:
            weights = (
                weights[0],
                *(w for m in self.measures for w in measure_weights(m, self._measured(m.argument, rows, context), weights[0])),
            )
        return Rows(columns, weights)

    def _filter(self, rows: Delta, predicate: Expr, context: Context) -> Delta:
        verdict = self._arrow(predicate, rows, context)
        if verdict.null_count:
            verdict = verdict.fill_null(False)
        if verdict.true_count == len(rows):
            return rows
        keep = np.flatnonzero(verdict.to_numpy(zero_copy_only=False))
        columns, weights = [c[keep] for c in rows.columns], [w[keep] for w in rows.weights]
        return Batch.trusted(columns, weights) if isinstance(rows, Batch) else Rows(columns, weights)

    def _column(self, i: int, rows: Delta, context: Context) -> Words:
        move, expr, target = self.moves[i], self.columns[i], self.target[i]
        if isinstance(expr, Literal) and expr.type is BIGINT and isinstance(expr.value, int) and not target.nullable:
            return (np.full(len(rows), expr.value, np.int64),)
        if move is None:
            array = self._arrow(expr, rows, context)
            return encode(array, target, context.strings)
        words = rows.columns[move]
        wanted = words_of(target.type, target.nullable)
        if len(words) < wanted:  # NOT NULL BIGINT becomes nullable: the flag says that there is a value
            return (np.ones(len(rows), np.int64), *words)
        return words[len(words) - wanted :]

    def _measured(self, expr: Expr, rows: Delta, context: Context) -> pa.Array | np.ndarray:
        """The values of a measure's argument; words as they are where they are the numbers."""
        if isinstance(expr, Column) and self.source[expr.index].type is BIGINT and not self.source[expr.index].nullable:
            return rows.columns[self.layout.slices[expr.index].start]
        return self._arrow(expr, rows, context)

    def _arrow(self, expr: Expr, rows: Delta, context: Context) -> pa.Array:
        """The expression's value on every row."""
        layout = self.layout
        if isinstance(expr, Column):
            return decode(rows.columns[layout.slices[expr.index]], self.source[expr.index], context.strings)
        used = columns_of(expr)
        columns: list[pa.Array | None] = [None] * len(self.source)
        if len(used) == 1 and self.source[only := next(iter(used))].type == STRING:
            ids, inverse = np.unique(rows.columns[layout.slices[only].start], return_inverse=True)
            columns[only] = decode((ids,), self.source[only], context.strings)
            return evaluate_columns(expr, columns, len(ids)).take(pa.array(inverse))
        for i in used:
            columns[i] = decode(rows.columns[layout.slices[i]], self.source[i], context.strings)
        return evaluate_columns(expr, columns, len(rows))


def _move(expr: Expr, source: Schema, target: Field, layout: Layout) -> slice | None:
    """Where the words of a bare column stand in the input; None for what must be computed."""
    if not isinstance(expr, Column) or source[expr.index].type != target.type:
        return None
    return layout.slices[expr.index]
