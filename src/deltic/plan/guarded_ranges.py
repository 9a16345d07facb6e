"""Comparisons that can fail with a single row: rows are looked up by them, and fail where the condition fails.

Of `x * 2 > (SELECT max(x) FROM t)` the product may overflow. Looked up by a range alone (plan/ranges.py), the condition is tested again on
each match, with the value, so a change of the value lists all matches. So such a join is split as one by an equality that can fail
(plan/guarded_keys.py): rows on which no side of the comparison fails are looked up by what cannot fail, and the condition raises the error
on the others, of which there are none once the tick is committed.
"""

from __future__ import annotations

from dataclasses import replace

from deltic.expr.failing import can_fail
from deltic.expr.functions.attempts import attempt
from deltic.expr.nodes import Call, Expr, columns_of
from deltic.plan.columns import conjunction, conjuncts, shift
from deltic.plan.guarded_keys import is_guarded, pairs_that_fail
from deltic.plan.join_nodes import Join
from deltic.plan.nodes import Aggregate, Filter, Plan, Project
from deltic.plan.ranges import compared_sides, range_of
from deltic.schema import BOOLEAN
from deltic.stacks import unbounded


def has_guarded_range(join: Join) -> bool:
    """Whether rows are looked up by a comparison with a single row that can fail."""
    if join.keys or join.residual is None or not (has_one_row(join.left) or has_one_row(join.right)) or is_guarded(join):
        return False
    by, width = range_of(join), len(join.left.schema)
    if by is None or not (can_fail(by.point) or any(can_fail(each.expr) for each in (by.low, by.high) if each is not None)):
        return False
    return any(_is_tried(part, width) for part in conjuncts(join.residual))


def by_guarded_range(join: Join) -> tuple[Plan, ...] | None:
    """Plans without common rows whose union is an inner join; None if it has no such comparison.

    >>> from deltic.expr import resolve
    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import AggregateCall, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("x", BIGINT, False),))))
    >>> x, top = Column(0, BIGINT, False, "x"), Column(1, BIGINT, True, "top")
    >>> most = Aggregate(t, (), (("top", AggregateCall("max", (x,), BIGINT, True)),))
    >>> for plan in by_guarded_range(Join(t, most, "inner", (), resolve(">", [resolve("negate", [x]), top]))): print(show(plan))
    Join inner where (attempt(negate(x#0)) > top#1)
      Table t (x)
      Aggregate: top := max(x#0)
        Table t (x)
    Project x#1, top#0
      Join inner where ((not(fails(negate(x#1))) <= is_null(top#0)) and ((negate(x#1) > top#0) <=> true))
        Aggregate: top := max(x#0)
          Table t (x)
        Filter fails(negate(x#0))
          Table t (x)
    """
    assert join.kind == "inner"
    if not has_guarded_range(join):
        return None
    assert join.residual is not None
    width = len(join.left.schema)
    failing: tuple[list[Expr], list[Expr]] = ([], [])
    parts: list[Expr] = []
    for part in conjuncts(join.residual):
        if not _is_tried(part, width):
            parts.append(part)
            continue
        comparison = _tested(part)
        tried = tuple(attempt(side) if can_fail(side) else side for side in comparison.arguments)
        parts.append(_with(part, replace(comparison, arguments=tried, nullable=True)))
        for side in filter(can_fail, comparison.arguments):
            right = min(columns_of(side)) >= width
            failing[right].append(shift(side, -width) if right else side)
    return replace(join, residual=conjunction(parts)), *pairs_that_fail(join, *failing)


def _is_tried(part: Expr, width: int) -> bool:
    """Whether it is a comparison that can fail. Not one that is TRUE where a bound is NULL, since `attempt` is NULL where it fails."""
    return can_fail(part) and compared_sides(part, width) is not None


def _tested(part: Expr) -> Call:
    """The comparison of a condition, which may be tested by IS TRUE."""
    assert isinstance(part, Call)
    inner = part.arguments[0]
    return inner if part.function in ("same", "equal") and isinstance(inner, Call) and inner.type == BOOLEAN else part


def _with(part: Expr, comparison: Call) -> Call:
    """The condition with another comparison."""
    assert isinstance(part, Call)
    return comparison if _tested(part) is part else replace(part, arguments=(comparison, *part.arguments[1:]))


@unbounded
def has_one_row(plan: Plan) -> bool:
    """Whether it is an aggregate of all rows, or what is computed of it: it has at most one row."""
    match plan:
        case Project() | Filter():
            return has_one_row(plan.input)
        case Join(kind="inner"):
            return has_one_row(plan.left) and has_one_row(plan.right)
        case _:
            return isinstance(plan, Aggregate) and not plan.keys
