"""The rows on which an aggregate evaluates its arguments: those that FILTER keeps, and of which no earlier argument is NULL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.nodes import Case, Expr, Literal
from deltic.plan.aggregate_nodes import AggregateCall
from deltic.plan.window_nodes import Window, WindowCall


def guarded_arguments(call: AggregateCall) -> tuple[Expr, ...]:
    """The arguments; one that can fail is NULL on the rows on which it is not evaluated, which do not count.

    Nullable arguments come first: if one is NULL, the others are not evaluated.
    """
    reached = [] if call.filter is None else [call.filter]
    required = sorted(call.required, key=lambda argument: not argument.nullable)
    guarded: dict[Expr, Expr] = {}
    for argument in dict.fromkeys((*required, *call.arguments)):
        guarded[argument] = _where(reached, argument)
        if argument.nullable and argument in required:
            reached.append(resolve("is_not_null", (argument,)))
    return tuple(guarded[argument] for argument in call.arguments)


def with_guarded_arguments(plan: Window) -> Window:
    """The window over the guarded arguments of its aggregates. Rows that no frame has are no exception: there they are evaluated, too."""

    def guarded(call: WindowCall) -> WindowCall:
        aggregate = call.aggregate
        return call if aggregate is None else replace(call, aggregate=replace(aggregate, arguments=guarded_arguments(aggregate)))

    return replace(plan, calls=tuple((name, guarded(call)) for name, call in plan.calls))


def _where(conditions: Sequence[Expr], expr: Expr) -> Expr:
    """The expression where all conditions are TRUE, else NULL."""
    if not conditions or not can_fail(expr):
        return expr
    condition = conditions[0] if len(conditions) == 1 else resolve("and", tuple(conditions))
    return Case(((condition, expr),), Literal(None, expr.type), expr.type, True, getattr(expr, "span", None))
