"""The order of a join's keys, so that joins by the same columns share arrangements."""

from __future__ import annotations

from dataclasses import replace

from deltic.expr.nodes import Column, Expr
from deltic.plan.nodes import Filter, Join, Plan, Project, Table
from deltic.stacks import unbounded


def with_ordered_keys(plan: Join) -> Join:
    """The join with its keys in a canonical order, so that joins by the same columns share arrangements.

    That is the order in which a table stores them, the right one if both do, if they are its first columns; else that of the left columns.
    """
    stored = [[stored_position(below, pair[i]) for pair in plan.keys] for i, below in ((1, plan.right), (0, plan.left))]
    first = (places for places in stored if sorted(place for place in places if place is not None) == list(range(len(places))))
    columns = [expr.index if isinstance(expr, Column) else len(plan.left.schema) for expr, _ in plan.keys]
    places = next(first, columns)
    keys = tuple(plan.keys[i] for i in sorted(range(len(places)), key=lambda i: places[i] or 0))
    return plan if keys == plan.keys else replace(plan, keys=keys)


@unbounded
def stored_position(plan: Plan, expr: Expr) -> int | None:
    """The position of the column in a table's stored order, primary key first; None if it is not a column of a table."""
    if isinstance(expr, Column):
        match plan:
            case Table():
                key = plan.table.key
                return (*key, *(i for i in range(len(plan.schema)) if i not in key)).index(expr.index)
            case Project():
                return stored_position(plan.input, plan.columns[expr.index][1])
            case Filter():
                return stored_position(plan.input, expr)
    return None
