"""Binds ASOF joins: `a [LEFT | RIGHT | FULL] ASOF JOIN b MATCH_CONDITION (a.time >= b.time) [ON a.key = b.key AND …]`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deltic.errors import TypeMismatch, Unsupported
from deltic.expr import Call, Expr, columns_of
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.scope import Scope, ScopedRelation, moved
from deltic.plan.asof import AFTER, Nearest, asof_join
from deltic.plan.columns import shift
from deltic.plan.equalities import split
from deltic.plan.nodes import Join, JoinKind
from deltic.plan.ranges import is_ordered

KINDS: Final[dict[str, JoinKind]] = {"": "inner", "INNER": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}
FLIPPED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
_FORM: Final = "MATCH_CONDITION (left.time >= right.time), or >, <=, <"


def bind_asof_join(left: ScopedRelation, right: ScopedRelation, node: tree.JoinClause, env: Environment) -> ScopedRelation:
    """The join. node: with a MATCH_CONDITION."""
    assert node.match is not None
    kind = KINDS.get(node.kind)
    if kind is None or node.natural or node.columns:
        words = "USING" if node.columns else " ".join(word for word in ("NATURAL" * node.natural, node.kind) if word)
        remedy = "ON a.key = b.key" if node.columns or node.natural else "[LEFT | RIGHT | FULL] ASOF JOIN"
        raise Unsupported(f"{words} in an ASOF JOIN is not supported", span=node.span, remedy=remedy)
    width = len(left.plan.schema)
    both = Scope(left.scope.columns + moved(right.scope.columns, width), Join(left.plan, right.plan, "inner").schema)
    binder = ExpressionBinder(replace(both, outer=env.outer), "MATCH_CONDITION")
    times = _times(binder.condition(node.match), width)
    keys, rest = ((), None) if node.condition is None else split(replace(binder, clause="ON").condition(node.condition), width)
    if rest is not None:
        raise Unsupported(
            "the condition of an ASOF JOIN is not an equality of both sides",
            span=rest.span or node.span,
            expected="ON left.key = right.key AND …",
            remedy="filter a side in a subquery, or the result with WHERE",
        )
    plan = asof_join(left.plan, right.plan, kind, replace(times, keys=keys), node.right.span)
    return ScopedRelation(plan, Scope(both.columns, plan.schema))


def _times(condition: Expr, width: int) -> Nearest:
    """The two times of a MATCH_CONDITION. width: of the left side."""
    if not (isinstance(condition, Call) and condition.function in AFTER):
        raise TypeMismatch("the MATCH_CONDITION is not one comparison", span=condition.span, expected=_FORM)
    comparison, (one, other) = condition.function, condition.arguments
    sides = [{i < width for i in columns_of(operand)} for operand in (one, other)]
    if sides == [{False}, {True}]:
        comparison, one, other = FLIPPED[comparison], other, one
    elif sides != [{True}, {False}]:
        raise TypeMismatch("the MATCH_CONDITION does not compare both sides of the join", span=condition.span, expected=_FORM)
    if not is_ordered(one.type):
        remedy = "compare numbers, dates, times or timestamps"
        raise Unsupported(f"a MATCH_CONDITION over {one.type.sql} is not supported", span=condition.span, remedy=remedy)
    return Nearest(one, comparison, shift(other, -width), ())
