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
    """Whole months: the last month counts if its day and time of day have been reached."""
    months = (end.year - start.year) * 12 + end.month - start.month
    start_of_day, end_of_day = (start.day, start.time()), (end.day, end.time())
    if months > 0 and end_of_day < start_of_day:
        return months - 1
    return months + 1 if months < 0 and end_of_day > start_of_day else months
