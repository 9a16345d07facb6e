"""map, filter and explode into weights: one pass over the rows of a change. Linear.

A Map first keeps the rows on which `predicate` is TRUE, then computes its columns, then its weights. Columns that are passed on cost
nothing: their arrays are shared. Expressions over one string column run once per distinct string.
A change may contain rows that cancel and never existed (a join of two changes produces such rows), so expressions that can fail run on
consolidated rows. In a pass of several operators (`chain`) the input of the first is consolidated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from deltic.aggregates.definition import Measure
from deltic.circuit.measures import measure_weights
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.selection_vector import Part, SelectionVector
from deltic.circuit.operators.word_comparison import present, rows_where
from deltic.expr.failing import can_fail
from deltic.expr.nodes import Column, Expr, Literal
from deltic.schema import BIGINT, Field, Schema
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, encode, words_of
from deltic.trace.rows import Rows

Place = tuple[int | None, int]
"""A word of the result: (its position in the input, 0), or (None, its constant value)."""


def is_identity(source: Schema, columns: Sequence[Expr], target: Schema) -> bool:
    """Whether the columns are those of the source, except for their names."""
    same = [(f.type, f.nullable) for f in source] == [(f.type, f.nullable) for f in target]
    return same and all(isinstance(e, Column) and e.index == i for i, e in enumerate(columns))


@dataclass(frozen=True, slots=True)
class Map:
    """(predicate, columns, measures) over rows of `source`; the result has the types and nullability of `target`.

    measures: () keeps the weights as they are; otherwise the input has one weight w, and the output has
    (w, w·measure for each word of each measure).
    """

    source: Schema
    target: Schema
    columns: tuple[Expr, ...]
    predicate: Expr | None = None
    measures: tuple[Measure, ...] = ()
    moves: tuple[slice | None, ...] = field(init=False, compare=False, repr=False)
    fallible: bool = field(init=False, compare=False, repr=False)
    layout: Layout = field(init=False, compare=False, repr=False)
    target_layout: Layout = field(init=False, compare=False, repr=False)
    identity: bool = field(init=False, compare=False, repr=False)
    places: tuple[Place, ...] | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert len(self.columns) == len(self.target)
        layout = Layout.of(self.source)
        object.__setattr__(self, "identity", is_identity(self.source, self.columns, self.target))
        object.__setattr__(self, "moves", tuple(_move(e, self.source, f, layout) for e, f in zip(self.columns, self.target, strict=True)))
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "target_layout", Layout.of(self.target))
        exprs = (*self.columns, *(m.argument for m in self.measures), *((self.predicate,) if self.predicate is not None else ()))
        object.__setattr__(self, "fallible", any(map(can_fail, exprs)))
        object.__setattr__(self, "places", None if self.predicate is not None or self.measures else self.origins())

    @property
    def name(self) -> str:
        if self.measures:
            return "explode"
        return "filter" if self.predicate is not None and self.identity else "map"

    @property
    def eager(self) -> bool:
        return False

    @property
    def weights(self) -> int:
        return 1 + sum(m.width for m in self.measures)

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = inputs[0]
        context.counters.touched += len(rows)
        if self.places is not None:
            return rows if self.identity else Rows(placed(rows, self.places), rows.weights)
        rows = consolidate(rows) if self.fallible else rows
        if (passed := context.passed(self, rows)) is not None:
            return passed
        return self.passed(SelectionVector.of(rows, self.source, self.layout, context.decoded.get(id(rows))), context).rows()

    def passed(self, rows: SelectionVector, context: Context) -> SelectionVector:
        """The rows after this operator, as a part of a pass. If an expression can fail, the pass started with consolidated rows."""
        if self.predicate is not None and rows.length:
            rows = _filtered(rows, self.predicate, context)
        if not rows.length:
            return SelectionVector.of(
                Rows.empty(self.target_layout.width, self.weights if self.measures else len(rows.weights[0])),
                self.target,
                self.target_layout,
            )
        if self.identity and not self.measures:
            return rows
        arrays: dict[int, pa.Array] = {}
        fields = [*rows.fields] if self.identity else [self._column(i, rows, context, arrays) for i in range(len(self.columns))]
        computed = rows.with_fields(self.target, fields, self._weighed(rows, context) if self.measures else None)
        computed.arrays = arrays
        return computed

    def _column(self, i: int, rows: SelectionVector, context: Context, arrays: dict[int, pa.Array]) -> Part:
        """arrays: where the values are kept for the next operator, if they had to be computed."""
        expr, target = self.columns[i], self.target[i]
        if (value := _constant(expr, target)) is not None:
            return (np.full(rows.length, value, np.int64),), rows.here()
        if self.moves[i] is None or not isinstance(expr, Column):
            array = rows.array(expr, context.strings)
            if array.type == target.type.arrow:
                arrays[i] = array
            return encode(array, target, context.strings), rows.here()
        words, source = rows.fields[expr.index]
        width = words_of(target.type, target.nullable)
        if len(words) < width:  # NOT NULL BIGINT becomes nullable: the flag word is 1
            return (np.ones(rows.length, np.int64), *rows.words(expr.index)), rows.here()
        return words[len(words) - width :], source

    def origins(self) -> tuple[Place, ...] | None:
        """The origin of each word of the result of a Map without predicate; None if any must be computed."""
        places: list[Place] = []
        for i in range(len(self.columns)):
            origin = self.origin(i)
            if origin is None:
                return None
            places += origin
        return tuple(places)

    def origin(self, i: int) -> tuple[Place, ...] | None:
        """The origin of each word of column i; None if it must be computed."""
        target, move = self.target[i], self.moves[i]
        if (value := _constant(self.columns[i], target)) is not None:
            return ((None, value),)
        if move is None:
            return None
        width = words_of(target.type, target.nullable)
        flag: tuple[Place, ...] = ((None, 1),) * (width - (move.stop - move.start))  # as in `_column`
        return (*flag, *((word, 0) for word in range(max(move.start, move.stop - width), move.stop)))

    def _weighed(self, rows: SelectionVector, context: Context) -> Part:
        weight = rows.all_weights()[0]
        measured = (w for m in self.measures for w in measure_weights(m, self._measured(m.argument, rows, context), weight))
        return (weight, *measured), rows.here()

    def _measured(self, expr: Expr, rows: SelectionVector, context: Context) -> pa.Array | np.ndarray:
        """The values of a measure's argument; the words themselves for integers if none is NULL."""
        if isinstance(expr, Column) and (field := self.source[expr.index]).type.is_integer:
            words = rows.words(expr.index)
            if not field.nullable or present(words, field).all():
                return words[-1]
        return rows.array(expr, context.strings)


def _constant(expr: Expr, target: Field) -> int | None:
    """The word of a constant; None if the value must be computed."""
    if isinstance(expr, Literal) and expr.type is BIGINT and isinstance(expr.value, int) and not target.nullable:
        return expr.value
    return None


def placed(rows: Delta, places: Sequence[Place]) -> list[np.ndarray]:
    """Input words, whose arrays are shared, and constants."""
    return [np.full(rows.length, value, np.int64) if word is None else rows.columns[word] for word, value in places]


def _filtered(rows: SelectionVector, predicate: Expr, context: Context) -> SelectionVector:
    positions = rows_where(predicate, rows)
    if positions is not None:
        return rows if len(positions) == rows.length else rows.filtered(positions)
    verdict = rows.array(predicate, context.strings)
    if verdict.null_count:
        verdict = verdict.fill_null(False)
    if verdict.true_count == rows.length:
        return rows
    return rows.filtered(np.flatnonzero(verdict.to_numpy(zero_copy_only=False)))


def _move(expr: Expr, source: Schema, target: Field, layout: Layout) -> slice | None:
    """The words of a bare column in the input; None for an expression that must be computed."""
    if not isinstance(expr, Column) or source[expr.index].type != target.type:
        return None
    return layout.slices[expr.index]
