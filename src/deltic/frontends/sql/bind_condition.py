"""Binds WHERE and HAVING: each conjunct is a condition on a row, or the membership of a row in a subquery.

EXISTS and IN become semijoins, NOT EXISTS an antijoin, NOT IN a `not_in` join. Conditions of a subquery's WHERE on the outer row become
keys of the join, if they are equalities, or its residual. Conditions on rows are applied first, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import Call, Column, Expr, resolve
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_relation import EQUAL, with_equality
from deltic.frontends.sql.bind_time import Timely, conditions
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.scope import OUTER, reads_inner, reads_outer
from deltic.plan.columns import conjunction, map_columns
from deltic.plan.nodes import Filter, Join, JoinKind, Plan, TemporalFilter


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery: its rows, its select list over them, and its conditions on its rows and the outer row."""

    plan: Plan
    outputs: tuple[Expr, ...]
    correlated: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Membership:
    """A join with a subquery. The first of each key pair, and columns from OUTER on in the residual, are over the outer rows."""

    kind: JoinKind
    inner: Inner
    keys: tuple[tuple[Expr, Expr], ...]
    residual: tuple[Expr, ...]
    value: tuple[Expr, Expr] | None = None


BindInner = Callable[[tree.Query, Environment], Inner]
Conjunct = Expr | Membership | Timely


def bind_conjuncts(node: tree.Expression, binder: ExpressionBinder, env: Environment, bind_inner: BindInner) -> list[Conjunct]:
    """The conjuncts of a condition, in order."""
    inside = env.within(binder.scope)
    bound: list[Conjunct] = []
    for part, negated in _split(node, False):
        match part:
            case tree.ExistsTest():
                bound.append(_exists(bind_inner(part.query, inside), negated))
            case tree.InQuery():
                bound.append(_in(part, negated != part.negated, binder, bind_inner(part.query, inside)))
            case _:
                bound.extend(conditions(binder.condition(part, negated)))
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


def _exists(inner: Inner, negated: bool) -> Membership:
    keys, residual = _correlation(inner)
    return Membership("anti" if negated else "semi", inner, keys, residual)


def _in(node: tree.InQuery, negated: bool, binder: ExpressionBinder, inner: Inner) -> Membership:
    row = node.operand
    values = [binder.bind(part) for part in (row.items if isinstance(row, tree.RowValue) else (row,))]
    span = node.span
    if len(values) != len(inner.outputs):
        expected = f"{len(values)} column{'s' * (len(values) > 1)}, found {len(inner.outputs)}"
        raise TypeMismatch("the subquery of IN has the wrong number of columns", span=span, expected=expected)
    pairs = [_equal(outer, inner_value, span) for outer, inner_value in zip(values, inner.outputs, strict=True)]
    keys, residual = _correlation(inner)
    if not negated:
        return Membership("semi", inner, (*keys, *pairs), residual)
    if len(pairs) > 1 or residual:
        what = "NOT IN of several columns" if len(pairs) > 1 else "a correlated NOT IN with more than equalities"
        raise Unsupported(f"{what} is not supported", span=span, remedy="NOT EXISTS, which takes NULL as no match")
    return Membership("not_in", inner, keys, (), pairs[0])


def _equal(outer: Expr, inner_value: Expr, span: Span) -> tuple[Expr, Expr]:
    """The two sides cast to one type."""
    equal = resolve(EQUAL, [outer, inner_value], span)
    assert isinstance(equal, Call)
    return equal.arguments[0], equal.arguments[1]


def _correlation(inner: Inner) -> tuple[tuple[tuple[Expr, Expr], ...], tuple[Expr, ...]]:
    """(keys, residual) of the conditions on the outer row."""
    keys, residual = [], []
    for condition in inner.correlated:
        sides = outer_equality(condition)
        if sides is None:
            residual.append(condition)
        else:
            keys.append((_as_own(sides[0]), sides[1]))
    return tuple(keys), tuple(residual)


def outer_equality(condition: Expr) -> tuple[Expr, Expr] | None:
    """(outer, inner) of an equality between the two queries; columns of the outer one have indexes from OUTER."""
    if isinstance(condition, Call) and condition.function == EQUAL:
        for outer, inner in (condition.arguments, condition.arguments[::-1]):
            if reads_outer(outer) and not reads_inner(outer) and reads_inner(inner) and not reads_outer(inner):
                return outer, inner
    return None


def _as_own(expr: Expr) -> Expr:
    """An expression over the outer query, with that query's own column indexes."""
    return map_columns(expr, lambda column: replace(column, index=column.index - OUTER))


def apply(plan: Plan, conditions: Sequence[Conjunct], over: Callable[[Expr], Expr] = lambda expr: expr) -> Plan:
    """The rows of `plan` that satisfy the conditions, which `over` rewrites over the plan's rows. Equalities become join keys."""
    rest: list[Expr] = []
    for condition in conditions:
        if not isinstance(condition, Membership | Timely):
            bound = over(condition)
            joined = with_equality(plan, bound)
            plan = joined or plan
            rest.extend([] if joined else [bound])
    if rest:
        plan = Filter(plan, conjunction(rest))
    times = [condition.over(over) for condition in conditions if isinstance(condition, Timely)]
    if times:
        lower, upper = tuple(b for time in times for b in time.lower), tuple(b for time in times for b in time.upper)
        plan = TemporalFilter(plan, lower, upper)
    for condition in conditions:
        if isinstance(condition, Membership):
            plan = _joined(plan, condition, over)
    return plan


def _joined(plan: Plan, member: Membership, over: Callable[[Expr], Expr]) -> Plan:
    width = len(plan.schema)

    def beside(column: Column) -> Expr:
        if column.index >= OUTER:
            return over(replace(column, index=column.index - OUTER))
        return replace(column, index=column.index + width)

    residual = conjunction(map_columns(part, beside) for part in member.residual) if member.residual else None
    keys = tuple((over(outer), inner_value) for outer, inner_value in member.keys)
    value = None if member.value is None else (over(member.value[0]), member.value[1])
    return Join(plan, member.inner.plan, member.kind, keys, residual, value)
