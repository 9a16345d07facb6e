"""Negative weights: the plans whose rows may have them, and the places where they are rejected.

repeat_row with a negative count and, in Python, `minus` and functions that return weights produce rows of negative weights, which cancel
others. Linear nodes add such weights like any others: projections, filters, table functions, UNION ALL, inner joins, recursions, relations
over ticks, and the counts and sums of groups. Nodes that test whether a row exists (DISTINCT, set operations, semi joins, outer joins,
COUNT(DISTINCT …)) test whether its weights add up to more than 0. Both are exact for any weights.

MIN, MAX and all other aggregates, top-k, window functions and user functions of groups are undefined for rows of negative weight, and so
are views. This holds for VAR_POP or BOOL_AND too, though sums are their state: a variance could be negative, and a condition hold in more
rows than there are. They read a Multiset, which fails if the total weight of a row is negative. So do the relations that recursive
relations are joined with: with a negative factor, more rows would make the result smaller, and the iteration might not end. Relations that
are added to recursive ones are not restricted: `distinct(e + step(p) - blocked)` grows with p.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deltic.aggregates import aggregate_functions
from deltic.errors import Span
from deltic.expr.nodes import Literal
from deltic.plan.collations import by_keys
from deltic.plan.columns import choose_columns, columns_of_all, remap
from deltic.plan.map_keys import by_sorted_maps
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Accumulate,
    Aggregate,
    ByWatermark,
    Expand,
    Filter,
    FlatMap,
    Generate,
    Inspect,
    Join,
    Multiset,
    MultiwayJoin,
    OverTicks,
    Plan,
    Project,
    Recursion,
    Reduce,
    Reference,
    TemporalFilter,
    TickRecursion,
    TopK,
    Union,
    Window,
    inputs,
    references,
)
from deltic.plan.walk import expressions, map_expressions, map_inputs

NONE: Final[frozenset[str]] = frozenset()


def makes_negative(plan: FlatMap) -> bool:
    """Whether the node may change the sign of a weight."""
    if plan.function != "repeat_row":
        return False
    (count,) = plan.arguments
    return not (isinstance(count, Literal) and (count.value is None or (isinstance(count.value, int) and count.value >= 0)))


@once_per_node
def may_be_negative(plan: Plan, negative: frozenset[str] | None = NONE) -> bool:
    """Whether a row may have a negative weight. negative: the relations of enclosing recursions that may have some; None if any may."""
    match plan:
        case FlatMap():
            return makes_negative(plan) or may_be_negative(plan.input, negative)
        case Generate():
            return plan.weighted or may_be_negative(plan.input, negative)
        case Project() | Filter() | Union() | Expand() | TemporalFilter() | ByWatermark() | OverTicks() | Inspect() | MultiwayJoin():
            return any(may_be_negative(part, negative) for part in inputs(plan))
        case Join(kind="semi" | "anti" | "not_in"):
            return may_be_negative(plan.left, negative)
        case Join():
            return any(may_be_negative(part, negative) for part in inputs(plan))
        case Reference():
            return negative is None or plan.name in negative
        case Recursion():
            inner = _negative_relations(plan, negative)
            return inner is None or plan.result in inner
        case _:
            return False


def as_view(plan: Plan, place: str = "the view") -> Plan:
    """The plan with a Multiset wherever negative weights are rejected, its root included, and with keys in place of collations and MAPs.

    place: names the root in errors.
    """
    return _multiset(_checked(by_keys(by_sorted_maps(plan)), NONE, NONE), place, NONE)


@once_per_node
def _negative_relations(plan: Recursion, around: frozenset[str] | None) -> frozenset[str] | None:
    """The relations that may have negative weights in the bodies of the recursion; None if any may."""
    if around is None:
        return None
    negative = around - {name for name, _ in plan.relations}
    while more := {name for name, body in plan.relations if name not in negative and may_be_negative(body, negative)}:
        negative |= more
    return negative


@once_per_node
def _checked(plan: Plan, negative: frozenset[str], fed: frozenset[str]) -> Plan:
    """fed: the relations of feedbacks over ticks around it, which a join may read as any others: nothing has to converge."""
    if isinstance(plan, Recursion):
        inner = _negative_relations(plan, negative)
        assert inner is not None
        names = frozenset(name for name, _ in plan.relations)
        fed = fed | names if isinstance(plan, TickRecursion) else fed - names
        return map_inputs(plan, lambda body: _checked(body, inner, fed))
    plan = map_inputs(plan, lambda below: _checked(below, negative, fed))
    match plan:
        case Aggregate():
            refusing = [call.function.upper() for _, call in plan.aggregates if not call.definition.takes_negative]
            return _narrowed(plan, refusing[0], negative) if refusing and may_be_negative(plan.input, negative) else plan
        case TopK():
            return replace(plan, input=_multiset(plan.input, "the rows that ORDER BY … LIMIT reads", negative))
        case Window():
            return replace(plan, input=_multiset(plan.input, "the rows that window functions read", negative))
        case Accumulate():
            return plan
        case Reduce():
            return replace(plan, input=_multiset(plan.input, f"the rows that {plan.function.name} reads", negative))
        case Join() | MultiwayJoin() if any(name not in fed for name, _ in references(plan)):
            return _growing(plan, negative)
        case _:
            return plan


def _narrowed(plan: Aggregate, function: str, negative: frozenset[str]) -> Plan:
    """Checks only the columns that are read, so that the result is the same with a subquery that selects them."""
    kept = sorted(columns_of_all(expressions(plan)))
    below = choose_columns(plan.input, kept)
    places = {old: new for new, old in enumerate(kept)}
    over = map_expressions(plan, lambda expr: remap(expr, places, below.schema))
    counted = _multiset(below, f"the rows that {function} reads", negative)
    if isinstance(counted, Multiset):
        counted = replace(counted, reason=f"of the aggregates only {accepting()} accept others")
    return map_inputs(over, lambda _: counted)


def accepting() -> str:
    """The aggregates that accept rows of negative weight, for errors."""
    *names, last = sorted(function.name.upper() for function in aggregate_functions() if function.takes_negative)
    return f"{', '.join(names)} and {last}"


def _growing(plan: Join | MultiwayJoin, negative: frozenset[str]) -> Plan:
    """A join that reads recursive relations: its other inputs are not negative, nor any input if it is not inner and has a residual."""
    parts = inputs(plan)
    reading = [bool(references(part)) for part in parts]
    paired = isinstance(plan, Join) and plan.kind != "inner" and plan.residual is not None
    free = [paired is False and reads and sum(reading) == 1 for reads in reading]
    if isinstance(plan, Join) and plan.kind in ("semi", "anti", "not_in"):
        free[1] = True  # only the existence of right rows matters
    checked = iter(
        [
            part if each else _multiset(part, "the relations that a recursion joins", negative)
            for part, each in zip(parts, free, strict=True)
        ]
    )
    return map_inputs(plan, lambda _: next(checked))


@once_per_node
def _multiset(plan: Plan, place: str, negative: frozenset[str]) -> Plan:
    return Multiset(plan, _span(plan), place) if may_be_negative(plan, negative) else plan


@once_per_node
def _span(plan: Plan) -> Span | None:
    """The place of the first repeat_row that is written in SQL."""
    if isinstance(plan, FlatMap) and makes_negative(plan) and plan.span is not None:
        return plan.span
    return next((span for below in inputs(plan) if (span := _span(below)) is not None), None)
