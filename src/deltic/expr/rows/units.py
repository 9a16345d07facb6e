"""Whole units between two moments, as counted by java.time.temporal.ChronoUnit."""

from __future__ import annotations

import datetime
from typing import Final

from deltic.expr.rows.casts import SECOND
from deltic.expr.rows.dates import micros_of

MONTHS: Final = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
MICROS: Final = {
    "WEEK": 7 * 86400 * SECOND,
    "DAY": 86400 * SECOND,
    "HOUR": 3600 * SECOND,
    "MINUTE": 60 * SECOND,
    "SECOND": SECOND,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}

_MONTH: Final = 32
"""More than a month has days."""


def whole_units(unit: str, start: datetime.datetime, end: datetime.datetime) -> int:
    """Whole units from `start` to `end`, towards zero; negative where `end` is earlier.

    >>> one, other = (datetime.datetime(2024, month, 31, tzinfo=datetime.UTC) for month in (1, 3))
    >>> whole_units("MONTH", one, other), whole_units("DAY", other, one)
    (2, -60)
    """
    if unit in MONTHS:
        return _towards_zero(_months(start, end), MONTHS[unit])
    return _towards_zero(micros_of(end) - micros_of(start), MICROS[unit])


def _towards_zero(amount: int, size: int) -> int:
    return amount // size if amount >= 0 else -(-amount // size)


def _months(start: datetime.datetime, end: datetime.datetime) -> int:
    """Whole months, as java.time counts them: first a day that the time of day cuts short goes, then days of the month are compared."""
    day = end.date()
    if day > start.date() and end.time() < start.time():
        day -= datetime.timedelta(days=1)
    elif day < start.date() and end.time() > start.time():
        day += datetime.timedelta(days=1)
    months = (day.year - start.year) * 12 + day.month - start.month
    return _towards_zero(months * _MONTH + day.day - start.day, _MONTH)
