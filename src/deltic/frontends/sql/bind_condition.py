"""WHERE and HAVING: their conjuncts, each a condition on a row or the membership of a row in a subquery.

EXISTS and IN become semijoins, NOT EXISTS an antijoin, NOT IN a `not_in` join. What a subquery's WHERE asks of the outer row
moves into the join: equalities as keys, anything else as its residual. The conditions on rows are applied first, as Spark does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import Call, Column, Expr, resolve
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_relation import EQUAL, with_equality
from deltic.frontends.sql.bind_time import Timely, conditions
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.scope import OUTER, reads_inner, reads_outer
from deltic.plan.columns import conjunction, map_columns
from deltic.plan.nodes import Filter, Join, JoinKind, Plan, TemporalFilter

SUBQUERIES = (exp.Exists, exp.In)


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery: its rows, its select list over them, and the conditions that its rows must meet with the outer row."""

    plan: Plan
    outputs: tuple[Expr, ...]
    correlated: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Membership:
    """A join with a subquery. The first of each pair, and columns from OUTER on in the residual, are over the outer rows."""

    kind: JoinKind
    inner: Inner
    keys: tuple[tuple[Expr, Expr], ...]
    residual: tuple[Expr, ...]
    value: tuple[Expr, Expr] | None = None


BindInner = Callable[[exp.Expr, Environment], Inner]
Conjunct = Expr | Membership | Timely


def bind_conjuncts(node: exp.Expr, binder: ExpressionBinder, env: Environment, bind_inner: BindInner) -> list[Conjunct]:
    """The parts of a condition, in their order."""
    inside = env.within(binder.scope)
    bound: list[Conjunct] = []
    for part, negated in _split(node, False):
        if isinstance(part, exp.Exists):
            bound.append(_exists(bind_inner(part.this, inside), negated, env.places.of(part)))
        elif isinstance(part, exp.In) and part.args.get("query") is not None:
            bound.append(_in(part, negated, binder, bind_inner(part.args["query"], inside)))
        else:
            bound.extend(conditions(binder.condition(exp.Not(this=part) if negated else part)))
    return bound


def _split(node: exp.Expr, negated: bool) -> Iterator[tuple[exp.Expr, bool]]:
    """Conjuncts; NOT is taken off a subquery only."""
    inner = node.unnest()
    if isinstance(inner, exp.And) and not negated:
        yield from _split(inner.this, False)
        yield from _split(inner.expression, False)
    elif isinstance(inner, exp.Not) and _is_subquery(inner.this):
        yield from _split(inner.this, not negated)
    elif negated and not _is_subquery(inner):
        yield node, True
    else:
        yield inner if _is_subquery(inner) else node, negated


def _is_subquery(node: exp.Expr) -> bool:
    inner = node.unnest()
    if isinstance(inner, exp.Not):
        return _is_subquery(inner.this)
    return isinstance(inner, exp.Exists) or (isinstance(inner, exp.In) and inner.args.get("query") is not None)


def _exists(inner: Inner, negated: bool, span: Span) -> Membership:
    keys, residual = _correlation(inner)
    return Membership("anti" if negated else "semi", inner, keys, residual)


def _in(node: exp.In, negated: bool, binder: ExpressionBinder, inner: Inner) -> Membership:
    values = [binder.bind(part) for part in _row(node.this)]
    span = binder.places.of(node)
    if len(values) != len(inner.outputs):
        expected = f"{len(values)} column{'s' * (len(values) > 1)}, found {len(inner.outputs)}"
        raise TypeMismatch("the subquery of IN has another number of columns", span=span, expected=expected)
    pairs = [_equal(ours, theirs, span) for ours, theirs in zip(values, inner.outputs, strict=True)]
    keys, residual = _correlation(inner)
    if not negated:
        return Membership("semi", inner, (*keys, *pairs), residual)
    if len(pairs) > 1 or residual:
        what = "NOT IN of several columns" if len(pairs) > 1 else "a correlated NOT IN with more than equalities"
        raise Unsupported(f"{what} is not supported", span=span, remedy="NOT EXISTS, which takes NULL as no match")
    return Membership("not_in", inner, keys, (), pairs[0])


def _row(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _equal(ours: Expr, theirs: Expr, span: Span) -> tuple[Expr, Expr]:
    """The two sides, brought to one type."""
    equal = resolve(EQUAL, [ours, theirs], span)
    assert isinstance(equal, Call)
    return equal.arguments[0], equal.arguments[1]


def _correlation(inner: Inner) -> tuple[tuple[tuple[Expr, Expr], ...], tuple[Expr, ...]]:
    """What the inner rows must meet, as keys and residual."""
    keys, residual = [], []
    for condition in inner.correlated:
        sides = outer_equality(condition)
        if sides is None:
            residual.append(condition)
        else:
            keys.append((_as_own(sides[0]), sides[1]))
    return tuple(keys), tuple(residual)


def outer_equality(condition: Expr) -> tuple[Expr, Expr] | None:
    """The (outer, inner) sides of an equality between the two queries; the outer one still counts from OUTER."""
    if isinstance(condition, Call) and condition.function == EQUAL:
        for outer, inner in (condition.arguments, condition.arguments[::-1]):
            if reads_outer(outer) and not reads_inner(outer) and reads_inner(inner) and not reads_outer(inner):
                return outer, inner
    return None


def _as_own(expr: Expr) -> Expr:
    """An expression over the outer query, as that query itself writes it."""
    return map_columns(expr, lambda column: replace(column, index=column.index - OUTER))


def apply(plan: Plan, asked: Sequence[Conjunct], over: Callable[[Expr], Expr] = lambda expr: expr) -> Plan:
    """The rows of `plan` that meet the conditions, each brought by `over` onto the plan's rows. Equalities become keys of joins."""
    rest: list[Expr] = []
    for condition in asked:
        if not isinstance(condition, Membership | Timely):
            bound = over(condition)
            joined = with_equality(plan, bound)
            plan = joined or plan
            rest.extend([] if joined else [bound])
    if rest:
        plan = Filter(plan, conjunction(rest))
    times = [condition.over(over) for condition in asked if isinstance(condition, Timely)]
    if times:
        lower, upper = tuple(b for time in times for b in time.lower), tuple(b for time in times for b in time.upper)
        plan = TemporalFilter(plan, lower, upper)
    for condition in asked:
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
    keys = tuple((over(ours), theirs) for ours, theirs in member.keys)
    value = None if member.value is None else (over(member.value[0]), member.value[1])
    return Join(plan, member.inner.plan, member.kind, keys, residual, value)
