"""Binds VALUES: a constant relation, with a common type for each column."""

from __future__ import annotations

from deltic.errors import EvaluationError, TypeMismatch
from deltic.expr import Expr, Value, cast, columns_of
from deltic.expr.interpreter import evaluate
from deltic.expr.typing import common_type_of_values, type_names
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.scope import Scope
from deltic.plan.nodes import Values
from deltic.schema import STRING, Field, Schema


def bind_values(node: tree.ValuesQuery) -> Values:
    """The rows, evaluated at definition; the columns are col1, col2, …"""
    binder = ExpressionBinder(Scope((), Schema(())), "VALUES")
    rows = [[_constant(binder, part) for part in _parts(row)] for row in node.rows]
    for row, written in zip(rows, node.rows, strict=True):
        if len(row) != len(rows[0]):
            expected = f"{len(rows[0])}, found {len(row)}"
            raise TypeMismatch("the rows of VALUES have different lengths", span=written.span, expected=expected)
    columns = [_column(column) for column in zip(*rows, strict=True)]
    fields = (Field(f"col{i}", c[0].type, any(part.nullable for part in c)) for i, c in enumerate(columns, 1))
    return Values(tuple(tuple(_value(part) for part in row) for row in zip(*columns, strict=True)), Schema(tuple(fields)))


def _parts(row: tree.Expression) -> tuple[tree.Expression, ...]:
    """The values of a row: (a, b), a value alone, or, as in Spark, the fields of STRUCT(a, b)."""
    match row:
        case tree.RowValue():
            return row.items
        case tree.Parenthesised():
            return _parts(row.inner)
        case tree.FunctionCall(name="struct", arguments=(_, *_) as fields) if row.span.text[row.span.start] != "`":
            return tuple(field.value if isinstance(field, tree.NamedValue) else field for field in fields)
        case _:
            return (row,)


def _constant(binder: ExpressionBinder, node: tree.Expression) -> Expr:
    bound = binder.bind(node)
    assert not columns_of(bound)
    return bound


def _column(parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    type = common_type_of_values([part.type for part in parts])
    if type is None:
        remedy = "cast them" if any(part.type.plain == STRING for part in parts) else None
        raise TypeMismatch(
            "the values of a VALUES column have no common type",
            span=parts[0].span,
            expected=f"one type, found {type_names(parts)}",
            remedy=remedy,
        )
    return tuple(cast(part, type, part.span) for part in parts)


def _value(part: Expr) -> Value:
    try:
        return evaluate(part, ())
    except EvaluationError as error:
        raise TypeMismatch(error.message, span=part.span) from error
