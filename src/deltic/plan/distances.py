"""Joins by the distance of a number from a value, `abs(x - m) > k` and `x - m <= k`: rows are looked up by x.

The numbers x of which such a condition is TRUE are those from one number on, or before one (expr/functions/distance_bounds.py), which
depends on m and k alone; so is a distance without its sign between two such numbers, or outside of them. That is so of finite numbers: the
few rows with others are joined by the condition as it is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.functions.distance_bounds import distance_bound
from deltic.expr.nodes import Call, Cast, Expr, Literal, calls_python, columns_of, outer_columns
from deltic.plan.columns import compared, conjunction, conjuncts, shift
from deltic.plan.guarded_keys import is_guarded
from deltic.plan.join_nodes import Join
from deltic.plan.nodes import Filter, Plan
from deltic.plan.outside_ranges import has_value
from deltic.plan.ranges import GREATER_FIRST, LESSER_FIRST, range_of
from deltic.schema import DOUBLE, INTEGER_BITS

STRICT: Final = {**LESSER_FIRST, **GREATER_FIRST}


class _Distance(NamedTuple):
    """A condition: point - value or, unless `rises`, value - point, compared with a limit.

    absolute: its size is. greater: whether it is to be the greater one. strict: and not equal. left: whether the point is over the left
    side.
    """

    point: Expr
    value: Expr
    limit: Expr
    rises: bool
    absolute: bool
    greater: bool
    strict: bool
    left: bool


def has_distance(join: Join) -> bool:
    """Whether rows are looked up by a distance."""
    return _distance(join) is not None


def by_distance(join: Join) -> tuple[Plan, ...] | None:
    """Plans without common pairs whose union is an inner join; None if its condition compares no distance.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import Aggregate, AggregateCall, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("x", DOUBLE),))))
    >>> x, m = (Column(i, DOUBLE, True, name) for i, name in enumerate("xm"))
    >>> mean = Aggregate(t, (), (("m", AggregateCall("avg", (x,), DOUBLE, True)),))
    >>> far = resolve(">", [resolve("abs", [resolve("-", [x, m])]), Literal(2.0, DOUBLE)])
    >>> for plan in by_distance(Join(t, mean, "inner", (), far)): print(show(plan))
    Join inner where ((distance_bound(m#1, 2.0, true, true) <= x#0) or (x#0 < distance_bound(m#1, 2.0, false, true)))
      Filter (abs(x#0) < inf)
        Table t (x)
      Aggregate: m := avg(x#0)
        Table t (x)
    Join inner where ((abs((x#0 - m#1)) > 2.0) <=> true)
      Filter not((abs(x#0) < inf))
        Table t (x)
      Aggregate: m := avg(x#0)
        Table t (x)
    """
    assert join.kind == "inner"
    if (first := _distance(join)) is None:
        return None
    assert join.residual is not None
    bounded, written = list[Expr](), list[Expr]()
    for part in conjuncts(join.residual):
        own = next((each for each in _distances(join, part) if each.point == first.point), None)
        bounded += [part] if own is None else _bounded(own)
        written.append(part if own is None else resolve("is_true", [part]))
    looked_up = replace(join, residual=conjunction(bounded))
    if _is_finite(first.point):
        return (looked_up,)
    finite = resolve("<", [resolve("abs", [first.point]), Literal(math.inf, DOUBLE)])
    finite = finite if first.left else shift(finite, -len(join.left.schema))

    def on(condition: Expr, join: Join) -> Join:
        return replace(join, left=Filter(join.left, condition)) if first.left else replace(join, right=Filter(join.right, condition))

    return on(finite, looked_up), on(resolve("not", [finite]), replace(join, residual=conjunction(written)))


def _bounded(distance: _Distance) -> Iterator[Expr]:
    """Comparisons of the point that are TRUE of a finite one where the distance is."""
    strict = distance.strict == distance.greater  # of the condition, or else of its opposite
    x, m, k = distance.point, distance.value, distance.limit
    if not distance.absolute:
        bound = distance_bound(m, k, rises=distance.rises, strict=strict)
        yield compared("less_equal", bound, x) if distance.rises == distance.greater else compared("less", x, bound)
        return
    above, below = (distance_bound(m, k, rises=rises, strict=strict) for rises in (True, False))
    if distance.greater:
        yield resolve("or", [compared("less_equal", above, x), compared("less", x, below)])
    else:
        yield from (compared("less_equal", below, x), compared("less", x, above))


def _distance(join: Join) -> _Distance | None:
    if join.residual is None or is_guarded(join) or range_of(join) is not None:
        return None
    return next((each for part in conjuncts(join.residual) for each in _distances(join, part)), None)


def _distances(join: Join, part: Expr) -> Iterator[_Distance]:
    """The condition as a distance from a value of the other side."""
    width = len(join.left.schema)
    return (each for each in _compared(part, width) if has_value(join, left=not each.left))


def _compared(part: Expr, width: int) -> Iterator[_Distance]:
    if not isinstance(part, Call) or part.function not in STRICT or can_fail(part) or outer_columns(part) or calls_python(part):
        return
    function, (one, other) = part.function, part.arguments
    strict = STRICT[function]
    for measured, limit, greater in ((one, other, function in GREATER_FIRST), (other, one, function in LESSER_FIRST)):
        match measured:
            case Call(function="abs", arguments=(Call(function="subtract", arguments=(x, y), type=type),)):
                absolute = True
            case Call(function="subtract", arguments=(x, y), type=type):
                absolute = False
            case _:
                continue
        if not type == x.type == y.type == limit.type == DOUBLE:
            continue
        for point, value, rises in ((x, y, True), (y, x, False)):
            sides = [{i < width for i in columns_of(expr)} for expr in (point, value, limit)]
            if sides[0] in ({True}, {False}) and sides[1] == {sides[0] != {True}} and sides[2] <= sides[1]:
                yield _Distance(point, value, limit, rises, absolute, greater, strict, sides[0] == {True})


def _is_finite(expr: Expr) -> bool:
    """Whether it is surely a finite number, as an integer is."""
    return isinstance(expr, Cast) and expr.argument.type.sql in INTEGER_BITS
