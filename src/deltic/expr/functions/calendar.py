"""Date and time arithmetic with days, months and INTERVAL literals, and differences. Results are in the years 1 to 9999."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from deltic.errors import Span
from deltic.expr.arrays import dates as arrays
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring, of_plain_texts
from deltic.expr.failures import invalid
from deltic.expr.functions.signature import (
    CONDITION,
    DAY,
    DAY_OR_INSTANT,
    DAYS,
    INSTANT,
    INTEGER,
    LONG,
    TEXT,
    TypeRule,
    calls,
    constant,
    first,
    takes,
)
from deltic.expr.nodes import TRUE, Call, Expr
from deltic.expr.registry import Function, Rewrite, Typed
from deltic.expr.rows import dates as rows
from deltic.expr.rows.dates import DATE_UNITS, TIME_UNITS
from deltic.schema import DATE, DOUBLE, INT, TIMESTAMP


def _truncation(plain: TypeRule, unit: int, units: Mapping[str, str]) -> TypeRule:
    """A truncation's signature: the result is nullable if the unit, argument `unit`, may be unknown."""

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        typed = plain(name, arguments, span)
        word = constant(typed.arguments[unit])
        is_unit = word is not None and isinstance(word.value, str) and word.value.upper() in units
        return typed._replace(nullable=not is_unit or typed.arguments[1 - unit].nullable)

    return rule


_WEEK: Final = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_WEEKDAY: Final = {name: i for i, day in enumerate(_WEEK) for name in (day, day[:3], day[:2])}
_MONTH_S: Final = 31 * 86400


def _next_day(call: Call, day: datetime.date, name: str) -> datetime.date:
    """The first day after `day` that is the named weekday."""
    weekday = _WEEKDAY.get(name.upper())
    if weekday is None:
        raise invalid(f"next_day: {name!r} is not a day of the week", call.span)
    return rows.add_days(day, (weekday - day.weekday() - 1) % 7 + 1, call.span)


def _months_between(call: Call, end: datetime.datetime, start: datetime.datetime, rounded: bool) -> float:
    """Months; a fraction counts months of 31 days. Integral between equal days of the month, and between last days. 8 places if rounded."""
    months = float((end.year - start.year) * 12 + end.month - start.month)
    if end.day == start.day or rows.last_day(end.date()).day - end.day == rows.last_day(start.date()).day - start.day == 0:
        return months
    seconds = (end.day - start.day) * 86400 + _second_of_day(end) - _second_of_day(start)
    exact = months + seconds / _MONTH_S
    return math.floor(Fraction(exact * 1e8) + Fraction(1, 2)) / 1e8 if rounded else exact


def _second_of_day(moment: datetime.datetime) -> int:
    return moment.hour * 3600 + moment.minute * 60 + moment.second


FUNCTIONS: Final = (
    Function(name="next_day", signature=takes([DAY, TEXT], DATE), can_fail=True, rows=_next_day, arrays=per_distinct),
    Function(
        name="months_between",
        signature=takes([INSTANT, INSTANT, CONDITION], DOUBLE, defaults=[TRUE]),
        can_fail=False,
        rows=_months_between,
        arrays=per_distinct,
    ),
    Function(
        name="add_days",
        named=False,
        signature=takes([DAY_OR_INSTANT, INTEGER], first),
        can_fail=True,
        rows=lambda call, d, n: rows.add_days(d, n, call.span),
        arrays=arrays.add_days,
    ),
    Function(
        name="subtract_days",
        named=False,
        signature=takes([DAY_OR_INSTANT, INTEGER], first),
        can_fail=True,
        rows=lambda call, d, n: rows.add_days(d, -n, call.span),
        arrays=arrays.subtract_days,
    ),
    Rewrite(name="date_add", aliases=("dateadd",), build=of_plain_texts(calls("add_days", takes([DAY, DAYS], DATE)))),
    Rewrite(name="date_sub", build=of_plain_texts(calls("subtract_days", takes([DAY, DAYS], DATE)))),
    Function(
        name="add_months",
        signature=takes([DAY, INTEGER], DATE),
        can_fail=True,
        rows=lambda call, d, n: rows.add_months(d, n, call.span),
        arrays=arrays.add_months,
    ),
    Rewrite(name="plus_months", named=False, build=calls("add_months", takes([DAY_OR_INSTANT, INTEGER], first))),
    Function(
        name="add_microseconds",
        named=False,
        signature=takes([INSTANT, LONG], TIMESTAMP),
        can_fail=True,
        rows=lambda call, t, n: rows.add_microseconds(t, n, call.span),
        arrays=arrays.add_microseconds,
    ),
    Function(
        name="datediff",
        aliases=("date_diff",),
        signature=takes([DAY, DAY], INT),
        can_fail=False,
        rows=lambda call, a, b: (a - b).days,
        arrays=arrays.datediff,
    ),
    Function(
        name="last_day",
        signature=takes([DAY], DATE),
        can_fail=False,
        rows=lambda call, d: rows.last_day(d),
        arrays=arrays.last_day,
    ),
    Function(
        name="trunc",
        collated=ignoring,
        signature=_truncation(takes([DAY, TEXT], DATE), 1, DATE_UNITS),
        can_fail=False,
        rows=lambda call, d, unit: rows.trunc(d, unit),
        arrays=lambda call, length, value, unit: arrays.truncate(call, value, unit, length),
    ),
    Function(
        name="date_trunc",
        collated=ignoring,
        signature=_truncation(takes([TEXT, INSTANT], TIMESTAMP), 0, {**DATE_UNITS, **TIME_UNITS}),
        can_fail=False,
        rows=lambda call, unit, t: rows.date_trunc(unit, t),
        arrays=lambda call, length, unit, value: arrays.truncate(call, value, unit, length),
    ),
    Function(
        name="make_date",
        signature=takes([INTEGER, INTEGER, INTEGER], DATE),
        can_fail=True,
        rows=lambda call, y, m, d: rows.make_date(y, m, d, call.span),
        arrays=arrays.make_date,
    ),
)
