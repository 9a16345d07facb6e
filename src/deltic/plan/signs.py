"""Where a row may have a negative weight, and where that ends.

repeat_row with a negative count makes rows that take others away. Such weights pass through what treats each row by itself: projections,
filters, table functions, UNION ALL, inner joins, and what a relation was in other ticks; Weighted makes a column of them. Everything else
(aggregates, DISTINCT, set operations, top-k, other joins, views) counts rows, and gets a Multiset: by then each row's weights must have
added up to 0 or more.
"""

from __future__ import annotations

from deltic.errors import Span
from deltic.expr.nodes import Literal
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Filter,
    FlatMap,
    Inspect,
    Join,
    Multiset,
    MultiwayJoin,
    OverTicks,
    Plan,
    Project,
    Recursion,
    Reference,
    TemporalFilter,
    Union,
    Weighted,
    inputs,
    references,
)
from deltic.plan.walk import map_inputs


def makes_negative(plan: FlatMap) -> bool:
    """Whether the node may change the sign of a weight."""
    if plan.function != "repeat_row":
        return False
    (count,) = plan.arguments
    return not (isinstance(count, Literal) and (count.value is None or (isinstance(count.value, int) and count.value >= 0)))


@once_per_node
def may_be_negative(plan: Plan) -> bool:
    """Whether a row of the relation may have a negative weight."""
    match plan:
        case FlatMap():
            return makes_negative(plan) or may_be_negative(plan.input)
        case Project() | Filter() | Union() | TemporalFilter() | OverTicks() | Inspect() | Join(kind="inner") | MultiwayJoin():
            return any(map(may_be_negative, inputs(plan)))
        case _:
            return False


def as_view(plan: Plan) -> Plan:
    """The plan, each relation in it that may have negative weights made a Multiset where rows are counted, and at the root.

    What a recursion rests on is counted before it: no Multiset reads a relation of a recursion.
    """
    return _steady(_checked(plan))


@once_per_node
def _checked(plan: Plan) -> Plan:
    plan = map_inputs(plan, _checked)
    match plan:
        case FlatMap() | Project() | Filter() | Union() | TemporalFilter() | Multiset() | Reference():
            return plan
        case Join(kind="inner") | MultiwayJoin():
            return plan
        case OverTicks() | Inspect() | Weighted():
            return plan
        case Recursion():
            return map_inputs(plan, _steady)
        case _:
            return map_inputs(plan, _steady)


@once_per_node
def _steady(plan: Plan) -> Plan:
    """The plan with the largest parts of it that read no relation of a recursion made multisets."""
    return map_inputs(plan, _steady) if references(plan) else _multiset(plan)


@once_per_node
def _multiset(plan: Plan) -> Plan:
    return Multiset(plan, _place(plan)) if may_be_negative(plan) else plan


@once_per_node
def _place(plan: Plan) -> Span | None:
    """That of the first repeat_row."""
    if isinstance(plan, FlatMap) and makes_negative(plan):
        return plan.span
    return next((span for below in inputs(plan) if (span := _place(below)) is not None), None)
