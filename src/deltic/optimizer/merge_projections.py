"""Merges consecutive projections, and a projection below an aggregate into the aggregate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from deltic.expr.nodes import Column, Expr, children
from deltic.plan.columns import substitute
from deltic.plan.nodes import Aggregate, Plan, Project
from deltic.plan.traits import is_cheap
from deltic.plan.walk import expressions, map_expressions, map_inputs, transform


def merge_projections(plan: Plan) -> Plan:
    """Substitutes the inner expressions, unless one that is not cheap would be computed more than once.

    An inner expression was evaluated on every row, so evaluating it within the outer one adds no failure.

    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> from deltic.plan.nodes import Table
    >>> t = Table(TableSchema("t", Schema((Field("a", BIGINT), Field("b", BIGINT)))))
    >>> inner = Project(t, (("x", Column(1, BIGINT, True, "b")), ("y", Column(0, BIGINT, True, "a"))))
    >>> plan = Project(inner, (("z", Column(1, BIGINT, True, "y")),))
    >>> print(show(plan))
    Project z := y#1
      Project x := b#1, y := a#0
        Table t (a, b)
    >>> print(show(merge_projections(plan)))
    Project z := a#0
      Table t (a, b)
    """
    return transform(plan, merged)


def merged(plan: Plan) -> Plan:
    """The node over the input of the projection below it, if that is its input."""
    if isinstance(plan, Project | Aggregate) and isinstance(plan.input, Project):
        inner = [expr for _, expr in plan.input.columns]
        if _computes_once(expressions(plan), inner):
            below = plan.input.input
            return map_inputs(map_expressions(plan, lambda expr: substitute(expr, inner)), lambda _: below)
    return plan


def _computes_once(outer: Sequence[Expr], inner: Sequence[Expr]) -> bool:
    uses = Counter(index for expr in outer for index in _uses(expr))
    return all(count <= 1 or is_cheap(inner[index]) for index, count in uses.items())


def _uses(expr: Expr) -> list[int]:
    """Positions of the columns read, once for each occurrence."""
    if isinstance(expr, Column):
        return [expr.index]
    return [index for part in children(expr) for index in _uses(part)]
