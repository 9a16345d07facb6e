"""Date and time functions on one row. Timestamps are aware datetimes in UTC; results outside the years 1 to 9999 are errors."""

from __future__ import annotations

import calendar
import datetime
from decimal import Decimal
from typing import Final, TypeVar

from deltic.errors import Span
from deltic.expr.failures import invalid, out_of_calendar
from deltic.expr.rows.casts import EPOCH, MICROSECOND, SECOND

D = TypeVar("D", bound=datetime.date)

DATE_UNITS: Final = {
    "YEAR": "YEAR",
    "YYYY": "YEAR",
    "YY": "YEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "MON": "MONTH",
    "MM": "MONTH",
    "WEEK": "WEEK",
}
TIME_UNITS: Final = {
    "DAY": "DAY",
    "DD": "DAY",
    "HOUR": "HOUR",
    "MINUTE": "MINUTE",
    "SECOND": "SECOND",
    "MILLISECOND": "MILLISECOND",
    "MICROSECOND": "MICROSECOND",
}
_MICROS: Final = {
    "DAY": 86400 * SECOND,
    "HOUR": 3600 * SECOND,
    "MINUTE": 60 * SECOND,
    "SECOND": SECOND,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}


def add_days(value: D, days: int, span: Span | None = None) -> D:
    try:
        return value + datetime.timedelta(days=days)
    except OverflowError:
        raise out_of_calendar("a date", span) from None


def add_months(value: D, months: int, span: Span | None = None) -> D:
    """The same day of the month, or its last day where the month is shorter; the time of day stays."""
    years, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not 1 <= years <= 9999:
        raise out_of_calendar("a date", span)
    day = min(value.day, calendar.monthrange(years, month + 1)[1])
    return value.replace(year=years, month=month + 1, day=day)


def add_microseconds(value: datetime.datetime, micros: int, span: Span | None = None) -> datetime.datetime:
    try:
        return value + datetime.timedelta(microseconds=micros)
    except OverflowError:
        raise out_of_calendar("a timestamp", span) from None


def micros_of(value: datetime.datetime) -> int:
    """Microseconds since 1970."""
    return (value - EPOCH) // MICROSECOND


def unix_timestamp(value: datetime.datetime) -> int:
    """Whole seconds since 1970, towards 1970."""
    micros = micros_of(value)
    return micros // SECOND if micros >= 0 else -(-micros // SECOND)


def second_fraction(value: datetime.datetime) -> Decimal:
    """Seconds of the minute with six decimal places."""
    return Decimal(value.second * SECOND + value.microsecond).scaleb(-6)


def last_day(value: datetime.date) -> datetime.date:
    return value.replace(day=calendar.monthrange(value.year, value.month)[1])


def make_date(year: int, month: int, day: int, span: Span | None = None) -> datetime.date:
    try:
        return datetime.date(year, month, day)
    except (ValueError, OverflowError):
        raise invalid(f"make_date({year}, {month}, {day}) is not a date", span) from None


def trunc(value: datetime.date, unit: str) -> datetime.date | None:
    """The first day of the year, quarter, month or week (Monday); None for any other unit."""
    match DATE_UNITS.get(unit.upper()):
        case "YEAR":
            return value.replace(month=1, day=1)
        case "QUARTER":
            return value.replace(month=(value.month - 1) // 3 * 3 + 1, day=1)
        case "MONTH":
            return value.replace(day=1)
        case "WEEK":
            return value - datetime.timedelta(days=value.weekday())
        case _:
            return None


def date_trunc(unit: str, value: datetime.datetime) -> datetime.datetime | None:
    """The timestamp with all smaller units cleared; None for an unknown unit."""
    if unit.upper() in DATE_UNITS:
        day = trunc(value.date(), unit)
        return None if day is None else datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)
    name = TIME_UNITS.get(unit.upper())
    if name is None:
        return None
    micros = micros_of(value)
    return EPOCH + datetime.timedelta(microseconds=micros - micros % _MICROS[name])
