"""Unique keys of plans: the output columns that identify a row, by which views are looked up."""

from __future__ import annotations

from deltic.expr.nodes import Column
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Aggregate, Filter, Join, Plan, Project, Table, TemporalFilter, TopK, Window


@once_per_node
def unique_key(plan: Plan) -> tuple[int, ...] | None:
    """Positions of columns in which no two rows are equal; () for at most one row; None if no key is known."""
    match plan:
        case Table():
            return plan.table.key or None
        case Filter() | TemporalFilter() | TopK() | Window():
            return unique_key(plan.input)
        case Aggregate():
            return tuple(range(len(plan.keys)))
        case Join() if plan.kind in ("semi", "anti", "not_in"):
            return unique_key(plan.left)
        case Project():
            return _projected(plan, unique_key(plan.input))
        case _:
            return None


def _projected(plan: Project, key: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if key is None:
        return None
    places = {e.index: i for i, (_, e) in reversed(list(enumerate(plan.columns))) if isinstance(e, Column)}
    return tuple(places[k] for k in key) if all(k in places for k in key) else None
