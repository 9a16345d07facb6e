"""Binds WHERE and HAVING: each conjunct is a condition on a row, or the membership of a row in a subquery.

EXISTS and IN become semijoins, NOT EXISTS an antijoin, NOT IN a `not_in` join; inside other conditions they are values (bind_subquery).
Conditions on rows are applied first, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from deltic.errors import Span
from deltic.expr import Expr, resolve
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_subquery import Subqueries, members, outer_of
from deltic.frontends.sql.bind_time import TimeCondition
from deltic.frontends.sql.scope import Outer, reads_subqueries
from deltic.frontends.sql.shared_below import over_shared
from deltic.frontends.sql.time_cases import TimeCases, conditions, timed
from deltic.plan.columns import conjunction, shift
from deltic.plan.equalities import with_equality
from deltic.plan.nodes import DependentJoin, Filter, Plan
from deltic.plan.null_patterns import possible


@dataclass(frozen=True, slots=True)
class Membership:
    """A condition that a subquery has a row, or none, which is equal to some values. pairs: (value, column of the subquery).

    span: the place of the subquery.
    """

    kind: OneOf["semi", "anti", "not_in"]
    rows: Plan
    outer: Outer
    span: Span
    pairs: tuple[tuple[Expr, Expr], ...] = ()


Conjunct = Expr | Membership | TimeCondition | TimeCases


def bind_conjuncts(node: tree.Expression, binder: ExpressionBinder) -> list[Conjunct]:
    """The conjuncts of a condition, in order."""
    bound: list[Conjunct] = []
    parts = list(_split(node, False))
    for part, negated in parts:
        match part:
            case tree.ExistsTest() | tree.InQuery() if binder.subqueries is not None:
                bound.append(_membership(part, negated, binder, binder.subqueries))
            case _:
                bound.extend(conditions(binder.condition(part, negated, operand=len(parts) > 1)))
    return bound


def _split(node: tree.Expression, negated: bool) -> Iterator[tuple[tree.Expression, bool]]:
    """The conjuncts; a NOT is removed only from a subquery."""
    inner = tree.unnest(node)
    if isinstance(inner, tree.Operation) and inner.operators[0] == "AND" and not negated:
        for operand in inner.operands:
            yield from _split(operand, False)
    elif isinstance(inner, tree.Prefix) and _is_subquery(inner):
        yield from _split(inner.operand, not negated)
    else:
        yield inner if _is_subquery(inner) else node, negated


def _is_subquery(node: tree.Expression) -> bool:
    inner = tree.unnest(node)
    if isinstance(inner, tree.Prefix) and inner.operator == "NOT":
        return _is_subquery(inner.operand)
    return isinstance(inner, tree.ExistsTest | tree.InQuery)


def _membership(node: tree.ExistsTest | tree.InQuery, negated: bool, binder: ExpressionBinder, subqueries: Subqueries) -> Membership:
    outer = outer_of(binder)
    rows = subqueries.bind_query(node.query, subqueries.env.within(outer))
    if isinstance(node, tree.ExistsTest):
        return Membership("anti" if negated else "semi", rows, outer, node.query.span)
    pairs = tuple(members(binder, node, rows))
    if negated == node.negated:
        return Membership("semi", rows, outer, node.query.span, pairs)
    return Membership("not_in" if len(pairs) == 1 else "anti", rows, outer, node.query.span, pairs)


def apply(plan: Plan, conditions: Sequence[Conjunct], subqueries: Subqueries, over: Callable[[Expr], Expr] = lambda expr: expr) -> Plan:
    """The rows of `plan` that satisfy the conditions, which `over` rewrites over the plan's rows. Equalities become join keys."""
    rest: list[Expr] = []
    exprs = [condition for condition in conditions if not isinstance(condition, Membership | TimeCondition | TimeCases)]
    for condition in exprs:
        if not reads_subqueries(condition):
            bound = over(condition)
            joined = with_equality(plan, bound)
            plan = joined or plan
            rest.extend([] if joined else [bound])
    if rest:
        plan = over_shared(Filter(plan, conjunction(rest)))
    times = [condition for condition in conditions if isinstance(condition, TimeCondition | TimeCases)]
    late = [time for time in times if isinstance(time, TimeCondition) and any(map(reads_subqueries, time.moments))]
    plan = timed(plan, [time.over(over) for time in times if time not in late])
    for member in conditions:
        if isinstance(member, Membership):
            plan = _joined(plan, member, subqueries, over)
    tests = [condition for condition in exprs if reads_subqueries(condition)]
    plan = subqueries.joined(plan, tests, over)
    if tests:
        plan = over_shared(Filter(plan, conjunction(subqueries.filled(over(test)) for test in tests)))
    plan = subqueries.joined(plan, [moment for time in late for moment in time.moments], over)
    return timed(plan, [time.over(over).over(subqueries.filled) for time in late])


def _joined(plan: Plan, member: Membership, subqueries: Subqueries, over: Callable[[Expr], Expr]) -> Plan:
    columns = [column for column, _ in member.outer.columns.values()]
    plan = subqueries.joined(plan, [*columns, *(value for value, _ in member.pairs)], over)
    outer = tuple((one.number, subqueries.filled(over(column))) for column, one in member.outer.columns.values())
    pairs = [(subqueries.filled(over(value)), other) for value, other in member.pairs]
    if member.kind == "not_in":
        return subqueries.env.unnest(DependentJoin(plan, member.rows, "not_in", outer, None, pairs[0], member.span))
    equal = [resolve("=", [value, shift(other, len(plan.schema))]) for value, other in pairs]
    if member.kind == "anti":
        equal = [possible(part) for part in equal]
    return subqueries.env.unnest(
        DependentJoin(plan, member.rows, member.kind, outer, conjunction(equal) if equal else None, span=member.span)
    )
