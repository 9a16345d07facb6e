"""Traversal of plans: all nodes, the expressions of a node, and the same node over other inputs or expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import is_
from typing import Final, assert_never

from deltic.expr.nodes import Expr
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    ByWatermark,
    DependentJoin,
    Distinct,
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
    SetOperation,
    Table,
    TemporalFilter,
    TopK,
    Union,
    Values,
    Weighted,
    Window,
    inputs,
)
from deltic.plan.sort_terms import Order
from deltic.plan.window_nodes import Edge, WindowCall

FEW: Final = 200
"""Nodes that a plan may have as a tree, however often they are shared."""


def nodes(plan: Plan) -> Iterator[Plan]:
    """All nodes of the plan, inputs before their readers, each object once."""
    seen: set[int] = set()
    waiting = [(plan, False)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            waiting.append((node, True))
            waiting += ((below, False) for below in reversed(inputs(node)))


@once_per_node
def tables(plan: Plan) -> frozenset[str]:
    """The names of the base tables that the plan reads."""
    return frozenset(node.table.name for node in nodes(plan) if isinstance(node, Table))


def map_inputs(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The node with `change` applied to each of its inputs; the same object if nothing changes."""
    old = inputs(plan)
    new = tuple(map(change, old))
    if all(map(is_, old, new)):
        return plan
    match plan:
        case Table() | Values() | Reference():
            return plan
        case Join() | SetOperation() | DependentJoin():
            return replace(plan, left=new[0], right=new[1])
        case Union():
            return Union(new)
        case MultiwayJoin():
            return replace(plan, inputs=new)
        case Recursion():
            return replace(plan, relations=tuple((name, body) for (name, _), body in zip(plan.relations, new, strict=True)))
        case _:
            return replace(plan, input=new[0])


@once_per_node
def occurrences(plan: Plan) -> int:
    """The nodes of the plan as a tree, in which a shared one is as often as it is read; may be astronomical."""
    return 1 + sum(map(occurrences, inputs(plan)))


@once_per_node
def is_much_shared(plan: Plan) -> bool:
    """Whether a rule that tells the readers of shared nodes apart would make a much larger plan of it.

    Of relations that read one another, each the two before it, the tree grows exponentially with their number.
    """
    return occurrences(plan) > FEW and occurrences(plan) > 4 * sum(1 for _ in nodes(plan))


@once_per_node
def kinds(plan: Plan) -> frozenset[type[Plan]]:
    """The classes of the plan's nodes."""
    return frozenset({type(plan)}).union(*map(kinds, inputs(plan)))


@once_per_node
def transform(plan: Plan, change: Callable[[Plan], Plan], kind: type[Plan] | None = None) -> Plan:
    """The plan with `change` applied once to every node, inputs first: a shared node stays shared, and an unchanged one the same object.

    change: a function of a module, so that the result is kept with each node. O(new nodes) if inputs have been transformed before.
    kind: a class of nodes; `change` does nothing to plans without one, which are not walked.
    """
    if kind is not None and kind not in kinds(plan):
        return plan
    before = map_inputs(plan, lambda below: transform(below, change, kind))
    after = change(before)
    return before if after == before else after


def map_expressions(plan: Plan, change: Callable[[Expr], Expr]) -> Plan:
    """The node with `change` applied to each of its expressions, not to those of its inputs; the same object if nothing changes."""
    is_same = True

    def changed(expr: Expr) -> Expr:
        nonlocal is_same
        after = change(expr)
        is_same = is_same and after is expr
        return after

    after = _with_expressions(plan, changed)
    return plan if is_same else after


def _with_expressions(plan: Plan, change: Callable[[Expr], Expr]) -> Plan:
    match plan:
        case Table() | Values() | Distinct() | Union() | SetOperation() | Multiset() | Reference() | Recursion():
            return plan
        case OverTicks() | Weighted() | Inspect() | Generate():
            return plan
        case Project():
            exprs = [change(expr) for _, expr in plan.columns]
            if all(map(is_, exprs, [expr for _, expr in plan.columns])):  # as of most rules
                return plan
            return replace(plan, columns=tuple((name, expr) for (name, _), expr in zip(plan.columns, exprs, strict=True)))
        case Filter():
            predicate = change(plan.predicate)
            return plan if predicate is plan.predicate else replace(plan, predicate=predicate)
        case Join():
            return replace(
                plan,
                keys=tuple((change(left), change(right)) for left, right in plan.keys),
                residual=None if plan.residual is None else change(plan.residual),
                value=None if plan.value is None else (change(plan.value[0]), change(plan.value[1])),
            )
        case MultiwayJoin():
            return replace(plan, condition=None if plan.condition is None else change(plan.condition))
        case DependentJoin():
            return replace(
                plan,
                outer=tuple((number, change(expr)) for number, expr in plan.outer),
                condition=None if plan.condition is None else change(plan.condition),
                value=None if plan.value is None else (change(plan.value[0]), change(plan.value[1])),
            )
        case Aggregate():
            calls = tuple((name, _aggregate(call, change)) for name, call in plan.aggregates)
            return replace(plan, keys=tuple((name, change(expr)) for name, expr in plan.keys), aggregates=calls)
        case Expand():
            return replace(plan, keys=tuple((name, change(expr)) for name, expr in plan.keys))
        case FlatMap():
            return replace(plan, arguments=tuple(change(argument) for argument in plan.arguments))
        case TemporalFilter():
            lower, upper = (tuple(replace(b, moment=change(b.moment)) for b in bounds) for bounds in (plan.lower, plan.upper))
            return replace(plan, lower=lower, upper=upper)
        case ByWatermark():
            return replace(plan, end=replace(plan.end, moment=change(plan.end.moment)))
        case TopK():
            return replace(plan, order=_changed(plan.order, change), keys=tuple(change(key) for key in plan.keys))
        case Window():
            keys = tuple(change(key) for key in plan.keys)
            return replace(plan, keys=keys, order=_changed(plan.order, change), calls=tuple((n, _of(c, change)) for n, c in plan.calls))
        case Reduce():
            return replace(plan, keys=tuple((name, change(expr)) for name, expr in plan.keys))
        case _:
            assert_never(plan)


def _changed(order: tuple[Order, ...], change: Callable[[Expr], Expr]) -> tuple[Order, ...]:
    return tuple(replace(term, expr=change(term.expr)) for term in order)


def _aggregate(call: AggregateCall, change: Callable[[Expr], Expr]) -> AggregateCall:
    arguments = tuple(change(argument) for argument in call.arguments)
    return replace(call, arguments=arguments, filter=None if call.filter is None else change(call.filter))


def _of(call: WindowCall, change: Callable[[Expr], Expr]) -> WindowCall:
    def edge(edge: Edge) -> Edge:
        return edge if edge.limit is None else replace(edge, limit=change(edge.limit))

    return replace(
        call,
        arguments=tuple(change(argument) for argument in call.arguments),
        frame=replace(call.frame, start=edge(call.frame.start), end=edge(call.frame.end)),
        aggregate=None if call.aggregate is None else _aggregate(call.aggregate, change),
    )


def expressions(plan: Plan) -> tuple[Expr, ...]:
    """The expressions of the node, in the order of `map_expressions`."""
    visited: list[Expr] = []

    def visit(expr: Expr) -> Expr:
        visited.append(expr)
        return expr

    map_expressions(plan, visit)
    return tuple(visited)
