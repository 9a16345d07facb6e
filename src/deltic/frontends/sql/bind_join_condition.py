"""Binds the condition of JOIN … ON with subqueries in it.

Of an inner join it is a condition on its rows. Of another join, each subquery is evaluated for the rows of the side whose columns it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.errors import Unsupported
from deltic.expr import Column, Expr
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_condition import apply, bind_conjuncts
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_subquery import Subqueries
from deltic.frontends.sql.scope import SUBQUERY
from deltic.plan.columns import choose_columns, map_columns, shift
from deltic.plan.equalities import split
from deltic.plan.nodes import Join, JoinKind, Plan


def join_with_subqueries(left: Plan, right: Plan, kind: JoinKind, node: tree.Expression, binder: ExpressionBinder) -> Plan:
    """The join. binder: of conditions over the columns of both sides, with Subqueries."""
    subqueries = binder.subqueries
    assert subqueries is not None
    width = len(left.schema)
    if kind == "inner":
        joined = Join(left, right, "inner")
        plan = apply(joined, bind_conjuncts(node, binder), subqueries)
        return _first(plan, range(len(joined.schema)))
    condition = binder.condition(node)
    sides = _sides(condition, width, subqueries)
    wide_left = subqueries.joined(left, sides[0])
    wide_right = subqueries.joined(right, sides[1], lambda expr: shift(expr, -width))
    more = len(wide_left.schema) - width
    own = {column.index for column in sides[0]}

    def placed(column: Column) -> Expr:
        if column.index >= SUBQUERY:
            return subqueries.places[column.index] if column.index in own else shift(subqueries.places[column.index], width + more)
        return column if column.index < width else replace(column, index=column.index + more)

    keys, residual = split(map_columns(condition, placed), width + more)
    plan = Join(wide_left, wide_right, kind, keys, residual)
    kept = [*range(width), *(range(width + more, width + more + len(right.schema)) if kind not in ("semi", "anti") else ())]
    return _first(plan, kept)


def _sides(condition: Expr, width: int, subqueries: Subqueries) -> tuple[list[Column], list[Column]]:
    """The columns of the subqueries that are evaluated for left rows, and for right rows. Raises Unsupported for those of both."""
    left: list[Column] = []
    right: list[Column] = []

    def visit(column: Column) -> Expr:
        if column.index >= SUBQUERY:
            read = subqueries.reads(column.index)
            if read and min(read) < width <= max(read):
                remedy = "select the value of the subquery in FROM first"
                what = "a subquery that reads both sides of an outer join is not supported in its ON"
                raise Unsupported(what, span=column.span or condition.span, remedy=remedy)
            (left if read and max(read) < width else right).append(column)
        return column

    map_columns(condition, visit)
    return left, right


def _first(plan: Plan, columns: Sequence[int]) -> Plan:
    """These columns."""
    if len(plan.schema) == len(columns):
        return plan
    return choose_columns(plan, columns)
