"""Conditions that all branches of an OR share are tested once, before it: `(a AND b) OR (a AND c)` is `a AND (b OR c)`.

A shared equality of two relations can then be the key of their join, and a shared condition on one relation can be tested below the join.
Without that, `FROM t, u WHERE (t.k = u.k AND …) OR (t.k = u.k AND …)` joins every row with every other one.

A condition that can fail is not shared, since a condition before it in its branch may guard it. Distribution holds in three-valued logic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from deltic.expr.failing import can_fail
from deltic.expr.functions.signature import flattened
from deltic.expr.nodes import Call, Expr
from deltic.plan.columns import conjunction, conjuncts, disjunction
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Filter, Join, Plan
from deltic.plan.streams import is_of_ticks, reads_ticks
from deltic.plan.walk import map_inputs


@once_per_node
def factor_disjunctions(plan: Plan) -> Plan:
    """Factors the conditions of filters and joins. Plans whose state would begin again (plan/streams.py) stay as they are.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BOOLEAN, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema(tuple(Field(name, BOOLEAN) for name in "abc"))))
    >>> a, b, c = (Column(i, BOOLEAN, True, name) for i, name in enumerate("abc"))
    >>> branches = (conjunction([a, b]), conjunction([c, a]))
    >>> plan = Filter(t, Call("or", branches, BOOLEAN, True))
    >>> print(show(plan))
    Filter ((a#0 and b#1) or (c#2 and a#0))
      Table t (a, b, c)
    >>> print(show(factor_disjunctions(plan)))
    Filter (a#0 and (b#1 or c#2))
      Table t (a, b, c)
    """
    if is_of_ticks(plan):
        return plan
    plan = map_inputs(plan, factor_disjunctions)
    if reads_ticks(plan):
        return plan
    match plan:
        case Filter() if (factored := _factored(plan.predicate)) is not None:
            return replace(plan, predicate=factored)
        case Join() if plan.residual is not None and (factored := _factored(plan.residual)) is not None:
            return replace(plan, residual=factored)
        case _:
            return plan


def _factored(predicate: Expr) -> Expr | None:
    """None if nothing is shared."""
    parts = conjuncts(predicate)
    factored = tuple(each for part in parts for each in _parts(part))
    return None if factored == parts else conjunction(factored)


def _parts(part: Expr) -> Iterator[Expr]:
    """The conditions of which an OR is the conjunction, the shared ones first; the part itself if it has no shared ones."""
    branches = _branches(part)
    shared = [each for each in branches[0] if not can_fail(each) and all(_among(each, other) for other in branches[1:])]
    if len(branches) == 1 or not shared:
        yield part
        return
    yield from dict.fromkeys(shared)
    rests = [[each for each in branch if not _among(each, shared)] for branch in branches]
    if all(rests):
        yield disjunction([*map(conjunction, rests)], part.span)


def _branches(part: Expr) -> list[tuple[Expr, ...]]:
    """The conditions of each branch of an OR."""
    if not (isinstance(part, Call) and part.function == "or"):
        return [conjuncts(part)]
    return [conjuncts(branch) for branch in flattened("or", part.arguments)]


def _among(expr: Expr, parts: Sequence[Expr]) -> bool:
    return expr in parts or _turned(expr) in parts


def _turned(expr: Expr) -> Expr:
    """An equality with its sides exchanged."""
    if isinstance(expr, Call) and expr.function == "equal":
        return replace(expr, arguments=expr.arguments[::-1])
    return expr
