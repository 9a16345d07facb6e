"""The definition of dependent joins, for the oracle: the right side is evaluated again for each left row.

The values of the row take the places of its OuterColumns, as constants. Nothing here is shared with unnesting (plan/unnest.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import assert_never

from deltic.expr.interpreter import evaluate as value_of
from deltic.expr.nodes import Expr, Literal, OuterColumn, Value
from deltic.plan.columns import map_children
from deltic.plan.nodes import Plan
from deltic.plan.relation import Row, key_of
from deltic.plan.subquery_nodes import DependentJoin
from deltic.plan.walk import map_expressions, map_inputs

Pair = tuple[Row, int]
Evaluate = Callable[[Plan], Iterable[Pair]]


def joined_rows(plan: DependentJoin, left: Iterable[Pair], evaluate: Evaluate) -> Iterator[Pair]:
    """The rows of the join. evaluate: the rows of a plan without OuterColumns."""
    for row, weight in left:
        rows = evaluate(with_values(plan.right, {number: value_of(expr, row) for number, expr in plan.outer}))
        matches = [(other, w) for other, w in rows if plan.condition is None or value_of(plan.condition, row + other) is True]
        exists = sum(w for _, w in matches) > 0
        match plan.kind:
            case "inner" | "left":
                yield from ((row + other, weight * w) for other, w in matches)
                if plan.kind == "left" and not exists:
                    yield row + (None,) * len(plan.right.schema), weight
            case "semi" | "anti":
                if exists == (plan.kind == "semi"):
                    yield row, weight
            case "mark":
                yield (*row, exists), weight
            case "not_in":
                if _is_not_in(plan, row, matches):
                    yield row, weight
            case _:
                assert_never(plan.kind)


def _is_not_in(plan: DependentJoin, row: Row, matches: list[Pair]) -> bool:
    """`value NOT IN (right …)`: TRUE over no rows; else neither side may be NULL, and no value equal."""
    assert plan.value is not None
    others = [value_of(plan.value[1], other) for other, weight in matches if weight > 0]
    if not others:
        return True
    value = value_of(plan.value[0], row)
    return value is not None and None not in others and key_of([value]) not in [key_of([other]) for other in others]


def with_values(plan: Plan, values: Mapping[int, Value]) -> Plan:
    """The plan with the OuterColumns of these numbers as constants."""

    def change(expr: Expr) -> Expr:
        if isinstance(expr, OuterColumn):
            return Literal(values[expr.number], expr.type, expr.span, derived=True) if expr.number in values else expr
        return map_children(expr, change)

    return map_inputs(map_expressions(plan, change), lambda below: with_values(below, values))
