"""map, filter and explode into weights: one pass over the rows of a change. Linear.

A Map first keeps the rows on which `predicate` is TRUE, then computes its columns, then its weights. Columns that are passed
on as they are cost nothing: their arrays are shared. Expressions over one string column run once per distinct string.
A change may hold rows that cancel and were never there (a join of two changes makes such), so what can fail runs on consolidated rows;
in a pass of several operators (`chain`) it is what comes into the first that is consolidated.
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
from deltic.expr.failing import can_fail
from deltic.expr.nodes import Column, Expr, Literal
from deltic.schema import BIGINT, Field, Schema
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, encode, words_of
from deltic.trace.rows import Rows

Place = tuple[int | None, int]
"""A word of the result: where it stands in the input, or else (None, the constant that it is)."""


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
    fallible: bool = field(init=False, compare=False, repr=False)
    layout: Layout = field(init=False, compare=False, repr=False)
    made: Layout = field(init=False, compare=False, repr=False)
    identity: bool = field(init=False, compare=False, repr=False)
    places: tuple[Place, ...] | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert len(self.columns) == len(self.target)
        layout = Layout.of(self.source)
        object.__setattr__(self, "identity", self._is_identity())
        object.__setattr__(self, "moves", tuple(_move(e, self.source, f, layout) for e, f in zip(self.columns, self.target, strict=True)))
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "made", Layout.of(self.target))
        exprs = (*self.columns, *(m.argument for m in self.measures), *((self.predicate,) if self.predicate is not None else ()))
        object.__setattr__(self, "fallible", any(map(can_fail, exprs)))
        object.__setattr__(self, "places", None if self.predicate is not None or self.measures else self._places())

    @property
    def name(self) -> str:
        if self.measures:
            return "explode"
        return "filter" if self.predicate is not None and self.identity else "map"

    @property
    def eager(self) -> bool:
        return False

    def _is_identity(self) -> bool:
        """Whether the columns are the input's, unchanged but for their names."""
        same = [(f.type, f.nullable) for f in self.source] == [(f.type, f.nullable) for f in self.target]
        return same and all(isinstance(e, Column) and e.index == i for i, e in enumerate(self.columns))

    @property
    def weights(self) -> int:
        return 1 + sum(m.width for m in self.measures)

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = inputs[0]
        context.counters.touched += len(rows)
        if self.places is not None:
            return rows if self.identity else _placed(rows, self.places)
        rows = consolidate(rows) if self.fallible else rows
        return self.passed(SelectionVector.of(rows, self.source, self.layout, context.decoded.get(id(rows))), context).rows()

    def passed(self, rows: SelectionVector, context: Context) -> SelectionVector:
        """The rows behind this operator, as a part of a pass. What can fail is evaluated on them as they are."""
        if self.predicate is not None and rows.length:
            rows = _filtered(rows, self.predicate, context)
        if not rows.length:
            return SelectionVector.of(
                Rows.empty(self.made.width, self.weights if self.measures else len(rows.weights[0])), self.target, self.made
            )
        if self.identity and not self.measures:
            return rows
        fields = [*rows.fields] if self.identity else [self._column(i, rows, context) for i in range(len(self.columns))]
        return rows.with_fields(self.target, fields, self._weighed(rows, context) if self.measures else None)

    def _column(self, i: int, rows: SelectionVector, context: Context) -> Part:
        expr, target = self.columns[i], self.target[i]
        if (value := _constant(expr, target)) is not None:
            return (np.full(rows.length, value, np.int64),), rows.here()
        if self.moves[i] is None or not isinstance(expr, Column):
            return encode(rows.array(expr, context.strings), target, context.strings), rows.here()
        words, source = rows.fields[expr.index]
        wanted = words_of(target.type, target.nullable)
        if len(words) < wanted:  # NOT NULL BIGINT becomes nullable: the flag says that there is a value
            return (np.ones(rows.length, np.int64), *rows.words(expr.index)), rows.here()
        return words[len(words) - wanted :], source

    def _places(self) -> tuple[Place, ...] | None:
        """What each word of the result is; None if any must be computed."""
        found: list[Place] = []
        for expr, target, move in zip(self.columns, self.target, self.moves, strict=True):
            if (value := _constant(expr, target)) is not None:
                found.append((None, value))
            elif move is None:
                return None
            else:
                wanted = words_of(target.type, target.nullable)
                found += [(None, 1)] * (wanted - (move.stop - move.start))  # the flag, as in `_column`
                found += [(at, 0) for at in range(max(move.start, move.stop - wanted), move.stop)]
        return tuple(found)

    def _weighed(self, rows: SelectionVector, context: Context) -> Part:
        weight = rows.all_weights()[0]
        measured = (w for m in self.measures for w in measure_weights(m, self._measured(m.argument, rows, context), weight))
        return (weight, *measured), rows.here()

    def _measured(self, expr: Expr, rows: SelectionVector, context: Context) -> pa.Array | np.ndarray:
        """The values of a measure's argument; words as they are where they are the numbers."""
        if isinstance(expr, Column) and self.source[expr.index].type is BIGINT and not self.source[expr.index].nullable:
            return rows.words(expr.index)[0]
        return rows.array(expr, context.strings)


def _constant(expr: Expr, target: Field) -> int | None:
    """The word that the value always is; None if it must be computed."""
    if isinstance(expr, Literal) and expr.type is BIGINT and isinstance(expr.value, int) and not target.nullable:
        return expr.value
    return None


def _placed(rows: Delta, places: Sequence[Place]) -> Rows:
    """Rows of words that stand in the input, whose arrays are shared, and of constants."""
    return Rows([np.full(rows.length, value, np.int64) if at is None else rows.columns[at] for at, value in places], rows.weights)


def _filtered(rows: SelectionVector, predicate: Expr, context: Context) -> SelectionVector:
    verdict = rows.array(predicate, context.strings)
    if verdict.null_count:
        verdict = verdict.fill_null(False)
    if verdict.true_count == rows.length:
        return rows
    return rows.filtered(np.flatnonzero(verdict.to_numpy(zero_copy_only=False)))


def _move(expr: Expr, source: Schema, target: Field, layout: Layout) -> slice | None:
    """Where the words of a bare column stand in the input; None for what must be computed."""
    if not isinstance(expr, Column) or source[expr.index].type != target.type:
        return None
    return layout.slices[expr.index]
