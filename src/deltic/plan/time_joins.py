"""Joins of two streams with bounds on the difference of their times: each pair once, in the tick that has the later of its rows.

The rows of one side are kept until the watermark of the other has passed all times with which they can be joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from deltic.expr.nodes import Call, Cast, Column, Expr, Literal
from deltic.plan.columns import conjuncts, reference, shift
from deltic.plan.nodes import Bound, ByWatermark, Join, OverTicks, Plan, Union
from deltic.plan.streams import is_stream
from deltic.plan.windows import origin
from deltic.schema import BIGINT, BOOLEAN, DATE, TIMESTAMP, TableSchema

_MICROSECOND: Final = timedelta(microseconds=1)
_DAY_US: Final = 86_400_000_000
_MOST: Final = 1 << 62
"""Of a bound; one beyond bounds nothing."""
_FLIPPED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal", "equal": "equal"}


@dataclass(frozen=True, slots=True)
class EventTime:
    """The column with LATENESS of a table, as a side of a join has it. column: its position in the side."""

    table: TableSchema
    column: int


@dataclass(frozen=True, slots=True)
class DifferenceBounds:
    """least ≤ right's time - left's time ≤ most, in microseconds or units of whole numbers; None if there is no such bound."""

    left: EventTime
    right: EventTime
    least: int | None
    most: int | None


def is_pairing(plan: Plan) -> bool:
    """Whether it is a join of two streams, whose rows of different ticks are joined too."""
    return isinstance(plan, Join) and is_stream(plan.left) and is_stream(plan.right)


def time_bounds(join: Join, above: Iterable[Expr] = ()) -> DifferenceBounds | None:
    """The bounds on columns with LATENESS of both sides, by the conditions of the join and of a filter above; None without such columns.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.schema import Field, Lateness, Schema, StreamSchema
    >>> s = Table(StreamSchema("s", Schema((Field("at", TIMESTAMP, False),)), lateness=Lateness(0, 0)))
    >>> a, b = Column(0, TIMESTAMP, False), Column(1, TIMESTAMP, False)
    >>> later = Call("less_equal", (b, Call("add_microseconds", (a, Literal(5, BIGINT)), TIMESTAMP, False)), TIMESTAMP, False)
    >>> bounds = time_bounds(Join(s, s, "inner"), (later,))
    >>> bounds.least, bounds.most
    (None, 5)
    """
    width = len(join.left.schema)
    bounds: DifferenceBounds | None = None
    for left, right, least, most in _differences(join, above):
        times = _time_of(join.left, left), _time_of(join.right, right - width)
        if times[0] is None or times[1] is None:
            continue
        if bounds is None:
            bounds = DifferenceBounds(times[0], times[1], None, None)
        if (bounds.left, bounds.right) == times:
            least, most = _tighter(max, bounds.least, least), _tighter(min, bounds.most, most)
            bounds = DifferenceBounds(bounds.left, bounds.right, least, most)
    return bounds


def _tighter(choose: Callable[[int, int], int], bound: int | None, given: int | None) -> int | None:
    return given if bound is None else bound if given is None else choose(bound, given)


def paired(join: Join, above: Iterable[Expr] = ()) -> Plan | None:
    """The join by relations that forget; None if it does not bound how long rows are kept. above: the conditions of a filter above it."""
    bounds = time_bounds(join, above)
    if join.kind != "inner" or bounds is None or bounds.least is None or bounds.most is None:
        return None
    left = _kept(join.left, bounds.left, bounds.most, bounds.right.table)
    right = _kept(join.right, bounds.right, -bounds.least, bounds.left.table)
    if left is None or right is None:
        return None
    earlier, so_far = OverTicks(left, "delay"), Union((OverTicks(right, "delay"), OverTicks(join.right, "current")))
    return Union((_with(join, join.left, so_far), _with(join, earlier, join.right)))


def _with(join: Join, left: Plan, right: Plan) -> Join:
    return Join(left, right, "inner", join.keys, join.residual, hint=join.hint, span=join.span)


def _kept(side: Plan, time: EventTime, after: int, other: TableSchema) -> Plan | None:
    """The rows of the side with which a later row of `other` can be joined, whose time is at most `after` more than theirs."""
    moment: Expr = reference(side.schema, time.column)
    if moment.type == DATE:
        moment = Cast(moment, TIMESTAMP, moment.nullable)
    elif moment.type.is_integer:
        if moment.nullable:
            return None
        moment = moment if moment.type == BIGINT else Cast(moment, BIGINT, False)
    return ByWatermark(side, other, Bound(moment, after + 1), "joinable")


def _time_of(side: Plan, column: int) -> EventTime | None:
    """The column if it is that with the LATENESS of its table."""
    table, expr = origin(side, reference(side.schema, column))
    if table is None or table.lateness is None or _shifted(expr) != (table.lateness.column, 0):
        return None
    return EventTime(table, column)


def _differences(join: Join, above: Iterable[Expr]) -> Iterator[tuple[int, int, int | None, int | None]]:
    """(left column, right column, the least and the most of their difference), the columns of both sides counted on."""
    width = len(join.left.schema)
    conditions = [*(conjuncts(join.residual) if join.residual is not None else ()), *above]
    comparisons = [c for c in conditions if isinstance(c, Call) and c.function in _FLIPPED]
    comparisons += [Call("equal", (left, shift(right, width)), BOOLEAN, True) for left, right in join.keys]
    for comparison in comparisons:
        difference = _difference(comparison.function, *comparison.arguments)
        if difference is None:
            continue
        function, one, other, by = difference
        if one < width <= other:
            function, one, other, by = _FLIPPED[function], other, one, -by
        if other < width <= one and abs(by) < _MOST:
            yield other, one, None if function.startswith("less") else by, None if function.startswith("greater") else by


def _difference(function: str, first: Expr, second: Expr) -> tuple[str, int, int, int] | None:
    """(comparison, column, other column, by): column - other column compared with `by`."""
    by = 0
    if _units(first) is not None:
        function, first, second = _FLIPPED[function], second, first
    match first:
        case Call("time_between" | "days_between" | "subtract", (one, other)) if (units := _units(second)) is not None:
            first, second, by = one, other, units
    own, others = _shifted(first), _shifted(second)
    return None if own is None or others is None else (function, own[0], others[0], by - own[1] + others[1])


def _units(literal: Expr) -> int | None:
    """Microseconds of an interval of days or less, or a whole number."""
    value = literal.value if isinstance(literal, Literal) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return value // _MICROSECOND if isinstance(value, timedelta) else None


def _shifted(expr: Expr) -> tuple[int, int] | None:
    """(a column of times or whole numbers, what is added to it); None for other expressions."""
    match expr:
        case Column():
            return (expr.index, 0) if expr.type in (TIMESTAMP, DATE) or expr.type.is_integer else None
        case Cast(argument=argument, lenient=False):
            same = (argument.type == DATE and expr.type == TIMESTAMP) or (argument.type.is_integer and expr.type.is_integer)
            return _shifted(argument) if same else None
        case Call("add_microseconds", (time, Literal(value=int(by)))):
            return _plus(_shifted(time), by)
        case Call("add_days", (time, Literal(value=int(by)))):
            return _plus(_shifted(time), by * _DAY_US)
        case Call("subtract_days", (time, Literal(value=int(by)))):
            return _plus(_shifted(time), -by * _DAY_US)
        case Call("add", (number, Literal(value=int(by))) | (Literal(value=int(by)), number)) if expr.type.is_integer:
            return _plus(_shifted(number), by)
        case Call("subtract", (number, Literal(value=int(by)))) if expr.type.is_integer:
            return _plus(_shifted(number), -by)
        case _:
            return None


def _plus(time: tuple[int, int] | None, by: int) -> tuple[int, int] | None:
    return None if time is None else (time[0], time[1] + by)
