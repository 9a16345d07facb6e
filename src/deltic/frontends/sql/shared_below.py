"""Subexpressions that a clause has many times, computed once for each row in projections below it.

SQL has forms that read an operand several times: BETWEEN, CASE x WHEN, NULLIF, and parameters of functions in SQL. Nested in one another,
their expressions are small as a DAG, and exponentially large as a tree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final, cast

from deltic.expr.nodes import Call, Case, Expr, Lambda, children, free_variables
from deltic.expr.registry import FUNCTIONS, Nulls
from deltic.plan.columns import extended, is_mostly_shared, map_children, reference
from deltic.plan.nodes import Aggregate, AggregateCall, Filter, Plan, Project, Window
from deltic.plan.traits import is_cheap
from deltic.plan.walk import expressions, map_expressions
from deltic.stacks import unbounded

_FIRST: Final = frozenset(("and", "or", "coalesce"))
"""Functions that evaluate their arguments themselves, the first one always."""


def with_shared_below(plan: Plan, exprs: Sequence[Expr], certain: Sequence[Expr] | None = None) -> tuple[Plan, list[Expr]]:
    """The rows with shared subexpressions as columns, and the expressions over them; both unchanged unless sharing makes them much smaller.

    certain: those that every row evaluates; by default all. A subexpression is computed below only if every row evaluates it at one of its
    places, so that nothing fails that did not fail there.
    """
    if not is_mostly_shared(exprs):
        return plan, list(exprs)
    shared = _shared(exprs, exprs if certain is None else certain)
    levels: dict[Expr, int] = {}
    for expr in exprs:
        _level(expr, shared, levels)
    over: dict[Expr, Expr] = {}
    for level in sorted({levels[expr] for expr in shared}):
        own = [expr for expr in shared if levels[expr] == level]
        width = len(plan.schema)
        plan = extended(plan, [(f"shared{i}", _parts_over(expr, over)) for i, expr in enumerate(own, width)])
        over |= {expr: reference(plan.schema, i) for i, expr in enumerate(own, width)}
    return plan, [_over(expr, over) for expr in exprs]


def over_shared(node: Filter | Aggregate | Window) -> Plan:
    """The node with what its expressions share computed below it; the rows are the same."""
    exprs = expressions(node)
    below, over = with_shared_below(node.input, exprs, _certain(node))
    if below is node.input:
        return node
    replaced = iter(over)
    computed = replace(cast("Filter | Aggregate | Window", map_expressions(node, lambda _: next(replaced))), input=below)
    if isinstance(node, Aggregate):
        return computed
    width, more = len(node.input.schema), len(below.schema) - len(node.input.schema)
    places = [i if i < width else i + more for i in range(len(node.schema))]
    return Project(computed, tuple((computed.schema.names[i], reference(computed.schema, i)) for i in places))


def _certain(node: Filter | Aggregate | Window) -> Sequence[Expr]:
    """Its expressions but for the arguments of aggregates with FILTER, which other rows do not evaluate."""
    match node:
        case Filter():
            return expressions(node)
        case Aggregate():
            return expressions(replace(node, aggregates=tuple((name, _without_filtered(call)) for name, call in node.aggregates)))
        case Window():
            parts = [replace(call, aggregate=call.aggregate and _without_filtered(call.aggregate)) for _, call in node.calls]
            return expressions(replace(node, calls=tuple(("", part) for part in parts)))


def _without_filtered(call: AggregateCall) -> AggregateCall:
    return call if call.filter is None else replace(call, arguments=())


def _shared(exprs: Iterable[Expr], evaluated: Iterable[Expr]) -> dict[Expr, None]:
    """The subexpressions with several places, one of which every row evaluates. evaluated: the expressions that every row evaluates."""
    places: dict[Expr, int] = {}
    waiting = list(exprs)
    while waiting:
        expr = waiting.pop()
        places[expr] = places.get(expr, 0) + 1
        if places[expr] == 1:
            waiting += children(expr)
    certain: dict[Expr, None] = {}
    waiting = list(evaluated)
    while waiting:
        expr = waiting.pop()
        if expr not in certain:
            certain[expr] = None
            waiting += _evaluated(expr)
    return {expr: None for expr in certain if places[expr] > 1 and not is_cheap(expr) and not free_variables(expr)}


def _evaluated(expr: Expr) -> tuple[Expr, ...]:
    """The parts that are evaluated wherever the expression is."""
    match expr:
        case Lambda():
            return ()
        case Case():
            return children(expr)[:1]
        case Call():
            return _arguments_evaluated(expr)
        case _:
            return children(expr)


def _arguments_evaluated(call: Call) -> tuple[Expr, ...]:
    function = FUNCTIONS.get(call.function)
    if function is None or function.catches:
        return ()
    match function.nulls:
        case Nulls.SEEN:
            return call.arguments
        case Nulls.STRICT if not call.arguments[:1] or call.arguments[0].nullable:
            return call.arguments[:1]
        case Nulls.STRICT:
            return call.arguments[:2]
        case Nulls.STRICT_BACKWARDS:
            return call.arguments[-1:]
        case Nulls.FOLDED:
            return call.arguments[:1]
        case Nulls.LAZY:
            return call.arguments[:1] if call.function in _FIRST else ()


@unbounded
def _level(expr: Expr, shared: Collection[Expr], levels: dict[Expr, int]) -> int:
    """The number of projections that an expression's column stands above."""
    if expr not in levels:
        levels[expr] = max((_level(part, shared, levels) + (part in shared) for part in children(expr)), default=0)
    return levels[expr]


@unbounded
def _over(expr: Expr, over: dict[Expr, Expr]) -> Expr:
    """The expression with columns for what is computed below."""
    if expr not in over:
        over[expr] = _parts_over(expr, over)
    return over[expr]


def _parts_over(expr: Expr, over: dict[Expr, Expr]) -> Expr:
    return map_children(expr, lambda part: _over(part, over))
