"""Joins whose condition is that a value is outside of two bounds, `x > hi OR x < lo`: unions of joins, each by one bound.

The rows above hi, and those below lo. Where lo is above hi, they would have common rows: there the second ones are those up to hi. Which
of both holds is a filter on the side of the bounds, so no match reads them, and a change of these lists the rows between old and new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.functions.signature import flattened
from deltic.expr.nodes import Call, Expr, columns_of
from deltic.plan.columns import columns_of_all, compared, conjunction, conjuncts, is_null, reference, shift
from deltic.plan.guarded_keys import is_guarded
from deltic.plan.guarded_ranges import has_one_row
from deltic.plan.join_nodes import Join
from deltic.plan.nodes import Aggregate, Filter, Plan, Project
from deltic.plan.ranges import Inequality, comparison, on_one_point, range_of
from deltic.stacks import unbounded


class _Outside(NamedTuple):
    """The part of this number of a condition is `above OR below`: point > hi, point < lo."""

    part: int
    above: Inequality
    below: Inequality


def has_outside_range(join: Join) -> bool:
    """Whether the join is one by the values outside of two bounds."""
    return _outside(join) is not None


def by_outside_range(join: Join) -> tuple[Plan, ...] | None:
    """Plans without common pairs whose union is an inner join; None if its condition has no such OR.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import AggregateCall, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("x", BIGINT),))))
    >>> x, lo, hi = (Column(i, BIGINT, True, name) for i, name in enumerate(("x", "lo", "hi")))
    >>> ends = Aggregate(t, (), tuple((name, AggregateCall(of, (x,), BIGINT, True)) for name, of in (("lo", "min"), ("hi", "max"))))
    >>> outside = resolve("or", [resolve(">", [x, hi]), resolve("<", [x, lo])])
    >>> for plan in by_outside_range(Join(t, ends, "inner", (), outside)): print(show(plan))
    Join inner where (x#0 > hi#2)
      Table t (x)
      Aggregate: lo := min(x#0), hi := max(x#0)
        Table t (x)
    Join inner where (x#0 < lo#1)
      Table t (x)
      Filter (is_null(hi#1) or (lo#0 <= hi#1))
        Aggregate: lo := min(x#0), hi := max(x#0)
          Table t (x)
    Join inner where (x#0 <= hi#2)
      Table t (x)
      Filter (hi#1 < lo#0)
        Aggregate: lo := min(x#0), hi := max(x#0)
          Table t (x)
    """
    assert join.kind == "inner"
    if (outside := _outside(join)) is None:
        return None
    assert join.residual is not None
    above, below, parts = outside.above, outside.below, conjuncts(join.residual)
    width = len(join.left.schema)
    lo, hi = (shift(bound, -width) if below.left else bound for bound in (below.greater, above.lesser))
    touching = not (above.strict or below.strict)  # a value that equals both bounds is above and below
    apart: Expr = compared("less" if touching else "less_equal", lo, hi)
    crossed = compared("less_equal" if touching else "less", hi, lo)
    rest = compared("less_equal" if above.strict else "less", above.greater, above.lesser)

    def joined(condition: Expr, where: Expr | None = None) -> Join:
        own = replace(join, residual=conjunction([*parts[: outside.part], condition, *parts[outside.part + 1 :]]))
        if where is None:
            return own
        return replace(own, right=Filter(join.right, where)) if below.left else replace(own, left=Filter(join.left, where))

    if apart.nullable:
        apart = resolve("or", [is_null(hi), apart])
    return joined(above.part), joined(below.part, apart), joined(rest, crossed)


def _outside(join: Join) -> _Outside | None:
    if join.residual is None or is_guarded(join) or range_of(join) is not None:
        return None
    width = len(join.left.schema)
    for i, part in enumerate(conjuncts(join.residual)):
        if not isinstance(part, Call) or part.function != "or" or can_fail(part):
            continue
        branches = flattened("or", part.arguments)
        both = [comparison(branch, width) for branch in branches]
        match both:
            case [Inequality(open=None) as one, Inequality(open=None) as other]:
                for above, below in ((one, other), (other, one)):
                    of_point = on_one_point(above, below)
                    if of_point is not None and has_value(join, left=above.left):
                        return _Outside(i, *of_point)
    return None


def has_value(join: Join, *, left: bool) -> bool:
    """Whether a side has single values: of all rows, or of each key."""
    plan, side = (join.left, 0) if left else (join.right, 1)
    return has_one_row(plan) if not join.keys else _has_one_row_by(plan, [key[side] for key in join.keys])


@unbounded
def _has_one_row_by(plan: Plan, keys: Sequence[Expr]) -> bool:
    """Whether it is an aggregate by columns that these expressions read, or what is computed of it: they are taken to determine its row."""
    columns = columns_of_all(keys)
    match plan:
        case Filter():
            return _has_one_row_by(plan.input, keys)
        case Project():
            return _has_one_row_by(plan.input, [plan.columns[i][1] for i in sorted(columns)])
        case Join(kind="inner"):
            return _joins_one_row_by(plan, columns)
        case _:
            return isinstance(plan, Aggregate) and columns >= set(range(len(plan.keys)))


def _joins_one_row_by(plan: Join, columns: AbstractSet[int]) -> bool:
    """Whether both sides have one row by these columns, or by those that the join makes equal to them."""
    width = len(plan.left.schema)
    pairs = [(left, shift(right, width)) for left, right in plan.keys]
    known: set[Expr] = {reference(plan.schema, i) for i in columns}
    known |= {other for pair in pairs for one, other in (pair, pair[::-1]) if one in known}
    left, right = ([expr for expr in known if columns_of(expr) <= set(side)] for side in (range(width), range(width, len(plan.schema))))
    return _has_one_row_by(plan.left, left) and _has_one_row_by(plan.right, [shift(expr, -width) for expr in right])
