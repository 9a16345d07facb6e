"""Intervals as numbers and as text: their fields, and Spark's forms `INTERVAL '1 02:03:04.5' DAY TO SECOND` and `1 02:03:04.5`.

A day-time interval is a timedelta in Python, a year-month interval the number of its months. What always holds:
`parse(render(x, type), type) = x` if x has no part of the type's last field.
"""

from __future__ import annotations

import datetime
import re
from functools import cache
from typing import Final

from deltic.kinds import DAY_TIME, YEAR_MONTH
from deltic.types import Type

Interval = datetime.timedelta | int
"""A day-time interval, or a number of months."""

SECOND: Final = 1_000_000
FIRST: Final = -9_223_372_036_854 * SECOND
"""The least number of microseconds: Arrow reads no timedelta in the second before it, and the very least word is NULL."""
UNITS: Final = {"DAY": 86_400 * SECOND, "HOUR": 3_600 * SECOND, "MINUTE": 60 * SECOND, "SECOND": 1, "YEAR": 12, "MONTH": 1}
"""What is left of an interval, in microseconds or months, when it is cut off after this field."""
SIZES: Final = {**UNITS, "SECOND": SECOND}
"""A field, in microseconds or months."""
_WITHIN: Final = {"HOUR": 24, "MINUTE": 60, "SECOND": 60, "MONTH": 12}
_MOST_DIGITS: Final = {"DAY": 9, "HOUR": 10, "MINUTE": 12, "SECOND": 13, "YEAR": 10, "MONTH": 10}
"""Of a first field, as in Spark."""
_BLANKS: Final = "".join(map(chr, (*range(33), 127)))
"""What Spark trims: blanks and controls of ASCII."""
_LAST: Final = 2**63 - 1
_LAST_MONTH: Final = 2**31 - 1
MICROSECOND: Final = datetime.timedelta(microseconds=1)


def units_of(value: Interval) -> int:
    """Microseconds, or months."""
    return value // MICROSECOND if isinstance(value, datetime.timedelta) else value


def interval_of(units: int, type: Type) -> Interval | None:
    """The interval of so many microseconds, or months; None if the type has none."""
    if type.is_day_time:
        return datetime.timedelta(microseconds=units) if FIRST <= units <= _LAST else None
    return units if -_LAST_MONTH - 1 <= units <= _LAST_MONTH else None


def whole_units(units: float, type: Type) -> int:
    """The microseconds or months, without their fraction and within the type, as Spark's percentiles make them of a DOUBLE.

    >>> from deltic.types import DAY_TO_SECOND, YEAR_TO_MONTH
    >>> whole_units(-2.5, YEAR_TO_MONTH), whole_units(1e30, DAY_TO_SECOND) == 2**63 - 1
    (-2, True)
    """
    least, most = (FIRST, _LAST) if type.is_day_time else (-_LAST_MONTH - 1, _LAST_MONTH)
    return max(least, min(most, int(units)))


def cut(units: int, unit: int) -> int:
    """A multiple of the unit, towards 0."""
    return units - units % unit if units >= 0 else -(-units - -units % unit)


def fields_of(type: Type) -> tuple[str, ...]:
    """All of its fields, from long to short."""
    family = DAY_TIME if type.is_day_time else YEAR_MONTH
    start, end = map(family.index, type.fields)
    return family[start : end + 1]


def render(value: Interval, type: Type) -> str:
    """As Spark casts it to STRING.

    >>> from deltic.types import interval
    >>> render(datetime.timedelta(days=1, seconds=-0.5), interval("DAY", "SECOND")), render(-14, interval("YEAR", "MONTH"))
    ("INTERVAL '0 23:59:59.5' DAY TO SECOND", "INTERVAL '-1-2' YEAR TO MONTH")
    """
    units = units_of(value)
    rest, text = abs(units), ""
    for i, field in enumerate(fields_of(type)):
        amount, rest = divmod(rest, SIZES[field])
        if i:
            text += {"HOUR": " ", "MONTH": "-"}.get(field, ":")
        text += str(amount) if field in ("DAY", *YEAR_MONTH) else f"{amount:02}"
    if type.fields[1] == "SECOND" and rest:
        text += f".{rest:06}".rstrip("0")
    return f"INTERVAL '{'-' * (units < 0)}{text}' {type.sql.removeprefix('INTERVAL ')}"


@cache
def _pattern(type: Type) -> re.Pattern[str]:
    """The sign and the amounts of the fields."""
    text = ""
    for i, field in enumerate(fields_of(type)):
        digits = "[0-9]{1,2}" if i else f"[0-9]{{1,{_MOST_DIGITS[field]}}}"
        text += ({"HOUR": " ", "MONTH": "-"}.get(field, ":") if i else "") + f"({digits})"
    return re.compile(rf"([+-]?){text}" + (r"(?:\.([0-9]{1,9}))?" if type.fields[1] == "SECOND" else ""))


@cache
def _whole_pattern(type: Type) -> re.Pattern[str]:
    words = r"\s+".join(type.sql.split()[1:])
    return re.compile(rf"INTERVAL\s+([+-]?)'([^']*)'\s+{words}", re.IGNORECASE | re.ASCII)


def parse(text: str, type: Type) -> Interval | None:
    """The interval that the text is, in either form, blanks around it aside; None if it is none of the type."""
    sign, inner = 1, text.strip(_BLANKS)
    whole = _whole_pattern(type).fullmatch(inner)
    if whole is not None:
        sign, inner = -1 if whole[1] == "-" else 1, whole[2]
    return parse_fields(inner, type, sign)


def parse_fields(text: str, type: Type, sign: int = 1) -> Interval | None:
    """As `parse`, of the form without INTERVAL.

    >>> from deltic.types import interval
    >>> parse_fields("-1 02:03", interval("DAY", "MINUTE"))
    datetime.timedelta(days=-2, seconds=79020)
    """
    match = _pattern(type).fullmatch(text)
    if match is None:
        return None
    fields = fields_of(type)
    amounts = [int(digits) for digits in match.groups()[1 : len(fields) + 1]]
    if any(amount >= _WITHIN[field] for amount, field in zip(amounts[1:], fields[1:], strict=True)):
        return None
    units = sum(amount * SIZES[field] for amount, field in zip(amounts, fields, strict=True))
    if type.fields[1] == "SECOND" and match.group(len(fields) + 2):
        units += int(match.group(len(fields) + 2).ljust(6, "0")[:6])
    return interval_of(sign * (-units if match[1] == "-" else units), type)
