"""Moves temporal filters towards the tables, so that rows that are due later wait before joins, not after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from deltic.expr.failing import can_fail
from deltic.expr.nodes import Expr, columns_of
from deltic.optimizer.push_filters_down import FROM_ABOVE
from deltic.plan.columns import remap, substitute
from deltic.plan.nodes import Bound, Filter, FlatMap, Join, Plan, Project, TemporalFilter
from deltic.plan.traits import is_cheap
from deltic.plan.walk import transform
from deltic.stacks import unbounded

Bounds = tuple[tuple[Bound, ...], tuple[Bound, ...]]
"""The lower and the upper bounds of a temporal filter."""


def push_time_down(plan: Plan) -> Plan:
    """Moves every bound as far down as possible: through cheap projections and table functions, and to a side of a join.

    A bound that can fail does not move. Consecutive temporal filters are merged.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import TIMESTAMP, Field, Schema, TableSchema
    >>> t, u = (Table(TableSchema(n, Schema((Field("at", TIMESTAMP),)))) for n in "tu")
    >>> at, other = Column(0, TIMESTAMP, True, "at"), Column(1, TIMESTAMP, True, "at")
    >>> print(show(push_time_down(TemporalFilter(Join(t, u, "inner"), (Bound(at),), (Bound(other, 5),)))))
    Join inner
      TemporalFilter at#0 <= now
        Table t (at)
      TemporalFilter now < at#0 + 5 µs
        Table u (at)
    """
    return transform(plan, _pushed, TemporalFilter)


def _pushed(node: Plan) -> Plan:
    return _sink(node) if isinstance(node, TemporalFilter) else node


@unbounded
def _sink(plan: TemporalFilter) -> Plan:
    below = plan.input
    match below:
        case TemporalFilter():
            return replace(below, lower=below.lower + plan.lower, upper=below.upper + plan.upper)
        case Filter(input=Join() | FlatMap() as under):
            inner = _sink(replace(plan, input=under))
            staying = (inner.lower, inner.upper) if isinstance(inner, TemporalFilter) else ((), ())
            rest = inner.input if isinstance(inner, TemporalFilter) else inner
            return plan if rest == under else with_bounds(replace(below, input=rest), staying)
        case Join():
            filtered = _sink_join(plan, below)
            return plan if filtered is None else with_bounds(*filtered)
        case Project():
            exprs = [expr for _, expr in below.columns]
            moving, staying = _split(plan, lambda moment: all(is_cheap(exprs[i]) for i in columns_of(moment)))
            moved = map_bounds(moving, lambda moment: substitute(moment, exprs))
        case FlatMap():
            width = len(below.input.schema)
            moving, staying = _split(plan, lambda moment: all(i < width for i in columns_of(moment)))
            moved = moving
        case _:
            return plan
    return with_bounds(replace(below, input=with_bounds(below.input, moved)), staying) if any(moving) else plan


def _sink_join(plan: TemporalFilter, join: Join) -> tuple[Join, Bounds] | None:
    """(the join with filtered sides, the bounds that stay above); None if none moves."""
    width, sides = len(join.left.schema), FROM_ABOVE[join.kind]
    same = {i: i for i in range(width)}
    back = {width + i: i for i in range(len(join.right.schema))}
    to_left, rest = _split(plan, lambda moment: "left" in sides and all(i < width for i in columns_of(moment)))
    above = replace(plan, lower=rest[0], upper=rest[1])
    to_right, rest = _split(above, lambda moment: "right" in sides and all(i >= width for i in columns_of(moment)))
    if not any((*to_left, *to_right)):
        return None
    left = with_bounds(join.left, map_bounds(to_left, lambda moment: remap(moment, same, join.left.schema)))
    right = with_bounds(join.right, map_bounds(to_right, lambda moment: remap(moment, back, join.right.schema)))
    return replace(join, left=left, right=right), rest


def _split(plan: TemporalFilter, may_move: Callable[[Expr], bool]) -> tuple[Bounds, Bounds]:
    """(the bounds that may move and cannot fail, the others)."""

    def moves(bound: Bound) -> bool:
        return may_move(bound.moment) and not can_fail(bound.moment)

    both = (plan.lower, plan.upper)
    moving, staying = (tuple(tuple(b for b in bounds if moves(b) is chosen) for bounds in both) for chosen in (True, False))
    return (moving[0], moving[1]), (staying[0], staying[1])


def map_bounds(bounds: Bounds, change: Callable[[Expr], Expr]) -> Bounds:
    """The same with `change` applied to each moment."""
    lower, upper = (tuple(replace(bound, moment=change(bound.moment)) for bound in side) for side in bounds)
    return lower, upper


def with_bounds(plan: Plan, bounds: Bounds) -> Plan:
    """The rows of the plan within the bounds; the plan itself if there are none."""
    return TemporalFilter(plan, *bounds) if any(bounds) else plan
