"""Durations as texts, '1 hour 30 minutes', as Spark reads them for the windows of event time: months, days and microseconds.

Months have no fixed length, so a duration is added to a time part by part.
"""

from __future__ import annotations

import datetime
import re
from typing import Final, NamedTuple

from deltic.errors import Span
from deltic.expr.rows.dates import add_microseconds, add_months

DAY_US: Final = 86_400_000_000
_MONTHS: Final = {"year": 12, "month": 1}
_DAYS: Final = {"week": 7, "day": 1}
_SIZES_US: Final = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "millisecond": 1_000, "microsecond": 1}
_SPACE: Final = "\0-\x20\x7f"
_PART: Final = re.compile(
    rf"([+-]?)[{_SPACE}]*([0-9]+|[0-9]*\.[0-9]+|[0-9]+\.)[{_SPACE}]+({'|'.join((*_MONTHS, *_DAYS, *_SIZES_US))})s?(?:[{_SPACE}]+|\Z)"
)
_PREFIX: Final = re.compile(rf"interval[{_SPACE}]+")
_MOST: Final = 2**31 - 1
_MOST_US: Final = 2**63 - 1


class Duration(NamedTuple):
    """Months, days and microseconds, each added to a time in this order."""

    months: int
    days: int
    micros: int

    @property
    def fixed_us(self) -> int | None:
        """Its length in microseconds; None if it has months."""
        return None if self.months else self.days * DAY_US + self.micros


def parse_duration(text: str) -> Duration | None:
    """The duration; None for a text that is none.

    >>> parse_duration("1 hour 30 minutes"), parse_duration("-2 weeks 1 month"), parse_duration("0.5 seconds")
    (Duration(months=0, days=0, micros=5400000000), Duration(months=1, days=-14, micros=0), Duration(months=0, days=0, micros=500000))
    >>> parse_duration("1day"), parse_duration("1.5 hours"), parse_duration("")
    (None, None, None)
    """
    rest = text.strip("".join(map(chr, (*range(0x21), 0x7F)))).lower()
    prefix = _PREFIX.match(rest)
    place = prefix.end() if prefix else 0
    if place == len(rest):
        return None
    months = days = micros = 0
    while place < len(rest):
        match = _PART.match(rest, place)
        if match is None:
            return None
        sign, (whole, _, fraction) = -1 if match[1] == "-" else 1, match[2].partition(".")
        unit, amount, place = match[3], sign * int(whole or "0"), match.end()
        if "." in match[2] and (unit != "second" or len(fraction) > 9):
            return None
        months += amount * _MONTHS.get(unit, 0)
        days += amount * _DAYS.get(unit, 0)
        micros += amount * _SIZES_US.get(unit, 0) + sign * (int(fraction.ljust(9, "0")) // 1000 if fraction else 0)
    if max(abs(months), abs(days)) > _MOST or abs(micros) > _MOST_US:
        return None
    return Duration(months, days, micros)


def later(time: datetime.datetime, duration: Duration, span: Span | None = None) -> datetime.datetime:
    """The time after the duration. Raises EvaluationError outside the calendar."""
    return add_microseconds(add_months(time, duration.months, span), duration.days * DAY_US + duration.micros, span)
