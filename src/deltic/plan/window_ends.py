"""Ends of windows: the least time, or number, that no row of a window has.

A window is a value of a column with LATENESS; its date, TRUNC, DATE_TRUNC or TIME_BUCKET; or a number DIV a constant, also times one. These
are nondecreasing functions, so when the watermark has reached the end of a window, no row of it can come.
"""

from __future__ import annotations

import datetime
from typing import Final

from deltic.expr.nodes import Call, Case, Cast, Column, Expr, Literal
from deltic.expr.rows.dates import DATE_UNITS, TIME_UNITS, add_months
from deltic.plan.columns import compared
from deltic.plan.nodes import Bound, FlatMap
from deltic.schema import BIGINT, DATE, INT, TIMESTAMP

WINDOWS: Final = "a column with LATENESS, its date, window(), trunc(), date_trunc() or time_bucket(), or a whole number div a constant"
_DAY_US: Final = 86_400_000_000
_FIXED_US: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": _DAY_US,
    "WEEK": 7 * _DAY_US,
}
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_CALENDAR_MONTHS: Final = 12 * 9_998
_CLIPPED_DAYS: Final = 3
"""A day of the month after the 28th may be that many days later in the next window than in this one."""
_MOST: Final = (1 << 63) - 1


def window_end(window: Expr, column: int, value: Expr | None = None) -> Bound | None:
    """The end of a row's window: the least value of `column` in the next one, or later; None if the expression is not a window of it.

    value: the window as the rows have it, if not as the expression itself. The end is NULL for a window that the calendar ends in.

    >>> from deltic.expr.nodes import Column
    >>> window_end(Column(0, TIMESTAMP, False), 0).offset
    1
    """
    window = start_of(window) if value is None else window
    given, value = value, window if value is None else value
    match window:
        case _ if _is_time(window, column):
            return _own(value)
        case Cast(argument=argument, lenient=False) if window.type == DATE and _is_time(argument, column):
            return _of_day(value)
        case Call("trunc", (argument, Literal(value=str(unit)))) if _is_time(argument, column) or _is_day(argument, column):
            return _truncated(_midnight(value), DATE_UNITS.get(unit.upper()))
        case Call("date_trunc", (Literal(value=str(unit)), argument)) if _is_time(argument, column):
            return _truncated(value, {**DATE_UNITS, **TIME_UNITS}.get(unit.upper()))
        case Call("time_bucket", (Literal(value=int(months)), Literal(value=int(size_us)), argument, Literal(value=origin))):
            if not _is_time(argument, column) or not isinstance(origin, datetime.datetime):
                return None
            clipped = _CLIPPED_DAYS * _DAY_US if origin.day > 28 else 0
            return _later(value, months, clipped) if months else Bound(value, size_us)
        case Call("integral_divide", (argument, Literal(value=int(size)))) if size > 0 and _is_time(argument, column):
            return _of_quotient(value, size)
        case Call("multiply", (inner, Literal(value=int(factor))) | (Literal(value=int(factor)), inner)) if window.type == BIGINT:
            divided = None if given is None else Call("integral_divide", (given, Literal(factor, BIGINT)), BIGINT, given.nullable)
            return window_end(inner, column, divided) if factor > 0 else None
        case _:
            return None


def start_of(window: Expr) -> Expr:
    """The start of a window(), from the STRUCT, its start or its end; other expressions are unchanged."""
    match window:
        case Call("field", (Call("make_struct", parts), Literal(value=int(index)))):
            return start_of(parts[index])
        case Call("make_struct", (start, Call("add_microseconds", (again, Literal())))) if start == again:
            return start
        case Call("add_microseconds", (Column() | Call("time_bucket") as start, Literal())):
            return start
        case _:
            return window


def sliding_end(plan: FlatMap, time: Expr, column: int, window: Expr) -> Bound | None:
    """The end of a row's sliding window, `window` over the rows of the plan, if it is the start; None if it is not a window of `column`.

    time: that of a row, over the rows of the table of the column.
    """
    size = plan.arguments[1]
    assert isinstance(size, Literal) and isinstance(size.value, int)
    window = start_of(window)
    is_start = isinstance(window, Column) and window.index == len(plan.input.schema)
    return Bound(window, size.value) if is_start and window.type == TIMESTAMP and _is_time(time, column) else None


def _is_time(expr: Expr, column: int) -> bool:
    """Whether it is the column, also as a TIMESTAMP or BIGINT, which keeps the order of its values."""
    match expr:
        case Column(index=index):
            return index == column
        case Cast(argument=Column(index=index, type=narrow), type=wide, lenient=False):
            return index == column and ((narrow == DATE and wide == TIMESTAMP) or (narrow.is_integer and wide == BIGINT))
        case _:
            return False


def _is_day(expr: Expr, column: int) -> bool:
    return isinstance(expr, Cast) and not expr.lenient and expr.type == DATE and _is_time(expr.argument, column)


def _own(value: Expr) -> Bound | None:
    """Of a window of one value of the column."""
    if value.type == DATE:
        return _of_day(value)
    if value.type == TIMESTAMP:
        return Bound(value, 1)
    if value.nullable or not value.type.is_integer:
        return None
    return Bound(value if value.type == BIGINT else Cast(value, BIGINT, False), 1)


def _of_day(value: Expr) -> Bound:
    return Bound(_midnight(value), _DAY_US)


def _midnight(day: Expr) -> Expr:
    return Cast(day, TIMESTAMP, day.nullable)


def _of_quotient(quotient: Expr, size: int) -> Bound | None:
    """Of the numbers that DIV `size` truncates to the quotient, toward zero: the one after the greatest of them."""
    if quotient.nullable:
        return None
    least = Call("multiply", (quotient, Literal(size, BIGINT)), BIGINT, False)
    is_last = compared("greater", quotient, Literal((_MOST - size + 1) // size, BIGINT))
    is_negative = compared("less", quotient, Literal(0, BIGINT))
    greatest = Call("add", (least, Literal(size - 1, BIGINT)), BIGINT, False)
    return Bound(Case(((is_last, Literal(_MOST, BIGINT)), (is_negative, least)), greatest, BIGINT, False), 1)


def _truncated(window: Expr, unit: str | None) -> Bound | None:
    if unit in _FIXED_US:
        return Bound(window, _FIXED_US[unit])
    return _later(window, _MONTHS[unit], 0) if unit in _MONTHS else None


def _later(window: Expr, months: int, offset: int) -> Bound:
    if months > _CALENDAR_MONTHS:
        return Bound(Literal(None, TIMESTAMP), offset)
    last = Literal(add_months(datetime.datetime.max.replace(tzinfo=datetime.UTC), -months), TIMESTAMP)
    is_last = compared("greater", window, last)
    end = Call("add_months", (window, Literal(months, INT)), TIMESTAMP, window.nullable)
    return Bound(Case(((is_last, Literal(None, TIMESTAMP)),), end, TIMESTAMP, True), offset)


def length(end: Bound) -> int:
    """About how long the window is, to choose the shortest."""
    match end.moment:
        case Case(otherwise=Call("add_months", (_, Literal(value=int(months))))):
            return months * 31 * _DAY_US
        case Case(otherwise=Call("add", (_, Literal(value=int(rest))))):
            return rest + end.offset
        case Literal():
            return _CALENDAR_MONTHS * 31 * _DAY_US
        case _:
            return end.offset
