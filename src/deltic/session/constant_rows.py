"""Rows that are constants, as of INSERT … VALUES: they are computed one by one, with no plan, circuit or table of strings."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from deltic.errors import EvaluationError
from deltic.expr import Expr
from deltic.expr.interpreter import Row, evaluate
from deltic.expr.nodes import Column, Literal, Value, calls_python
from deltic.plan.nodes import Plan, Project, Values
from deltic.schema import Schema
from deltic.stacks import roomy


@roomy
def constant_rows(plan: Plan) -> pa.Table | None:
    """The rows of projections of constants, in their order. O(rows).

    None for other plans. None also if an expression fails, since the plan as a query says on which row, or does not compute it; and if one
    calls a function in Python, which a query calls only where it needs its value.
    """
    projections: list[list[Expr]] = []
    below = plan
    while isinstance(below, Project):
        projections.append([expr for _, expr in below.columns])
        below = below.input
    if not isinstance(below, Values) or any(calls_python(expr) for exprs in projections for expr in exprs):
        return None
    rows: Sequence[Row] = below.rows
    try:
        for exprs in reversed(projections):
            rows = list(zip(*(_column(expr, rows) for expr in exprs), strict=True)) if exprs else [()] * len(rows)
    except EvaluationError:
        return None
    return table_of_rows(rows, plan.schema)


def table_of_rows(rows: Sequence[Row], schema: Schema) -> pa.Table:
    """Rows of values of a schema's types."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, field.type.arrow) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def _column(expr: Expr, rows: Sequence[Row]) -> Sequence[Value]:
    match expr:
        case Column():
            return [row[expr.index] for row in rows]
        case Literal():
            return [expr.value] * len(rows)
        case _:
            return [evaluate(expr, row) for row in rows]
