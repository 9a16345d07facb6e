"""Parses values from text as Spark's ANSI casts do. Every function returns None for malformed text.

White space and control characters around the text are ignored, as by Spark; around floating-point and decimal numbers, which Java trims,
DEL is not. Spark's forms that depend on the current day ('now', 'today', a time without a date) are malformed here: a view must be a
function of its tables. So are dates outside the years 1 to 9999.
"""

from __future__ import annotations

import datetime
import math
import re
import zoneinfo
from fractions import Fraction
from typing import Final

from deltic.expr.rows.numbers import double, single

_JAVA_EDGE: Final = "".join(map(chr, range(33)))
"""What Java's String.trim removes."""
_EDGE: Final = _JAVA_EDGE + "\x7f"
SHORT_ZONES: Final = {
    **{"ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo"},
    **{"AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns"},
    **{"CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "EST": "-05:00"},
    **{"HST": "-10:00", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia"},
    **{"MST": "-07:00", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix"},
    **{"PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh"},
}
"""Java's ZoneId.SHORT_IDS, which Spark reads in casts and in arguments that are zones, but not by patterns of dates and times."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FLOATING: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL: Final = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_DATE: Final = re.compile(r"\+?([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIME: Final = r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(.*))?)?)?"
_TIMESTAMP: Final = re.compile(r"\+?([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})" + _TIME + r")?)?", re.DOTALL)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(?:([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{2}))?)?|([0-9]{2})([0-9]{2})([0-9]{2})?)")
_TRUE: Final = frozenset(("t", "true", "y", "yes", "1"))
_FALSE: Final = frozenset(("f", "false", "n", "no", "0"))
_SPECIAL: Final = {
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
    "nan": math.nan,
}
_MOST_EXPONENT: Final = 6000  # beyond it a number is zero or infinite in every type, and its exact fraction would be huge
_MOST_DIGITS: Final = 1000  # a tie between two doubles has at most 767 significant digits, one between two decimals 77


def parse_boolean(text: str) -> bool | None:
    word = text.strip(_EDGE).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def parse_integer(text: str) -> int | None:
    """Digits with an optional sign, of any size."""
    word = text.strip(_EDGE)
    return int(word) if _INTEGER.fullmatch(word) and len(word) < 100 else None


def parse_decimal(text: str) -> Fraction | None:
    word = text.strip(_JAVA_EDGE)
    return _fraction(word) if _NUMBER.fullmatch(word) else None


def parse_double(text: str) -> float | None:
    return _floating(text, False)


def parse_single(text: str) -> float | None:
    """A FLOAT, rounded once."""
    return _floating(text, True)


def _floating(text: str, narrow: bool) -> float | None:
    word = text.strip(_JAVA_EDGE)
    if (special := _SPECIAL.get(word.lower())) is not None:
        return special
    if match := _FLOATING.fullmatch(word):
        value = _fraction(match[1])
        size = single(abs(value)) if narrow else double(abs(value))
    elif match := _HEXADECIMAL.fullmatch(word):
        size = abs(_hexadecimal(match[1]))
        size = single(size) if narrow else size
    else:
        return None
    return -size if word.startswith("-") else size


def _hexadecimal(word: str) -> float:
    try:
        return float.fromhex(word)
    except OverflowError:
        return math.inf


def _fraction(word: str) -> Fraction:
    """The number. With more than _MOST_DIGITS significant digits, a shorter number that every type rounds to the same value."""
    mantissa, _, exponent = word.lower().partition("e")
    whole, _, places = mantissa.lstrip("+-").partition(".")
    digits = (whole + places).lstrip("0")
    power = _exponent(exponent) - len(places)
    if len(digits) > _MOST_DIGITS:
        rest = digits[_MOST_DIGITS:]
        digits = digits[:_MOST_DIGITS] + ("1" if rest.strip("0") else "0")
        power += len(rest) - 1
    size = int(digits or 0) * Fraction(10) ** max(-_MOST_EXPONENT, min(power, _MOST_EXPONENT))
    return -size if word.startswith("-") else size


def _exponent(word: str) -> int:
    """An exponent; only its first nine digits count."""
    size = int(word.lstrip("+-").lstrip("0")[:9] or 0)
    return -size if word.startswith("-") else size


def parse_date(text: str) -> datetime.date | None:
    """yyyy, yyyy-m or yyyy-m-d; the last may be followed by a space or T and any text."""
    match = _DATE.fullmatch(text.strip(_EDGE))
    return _date(match[1], match[2], match[3]) if match else None


def _date(year: str, month: str | None, day: str | None) -> datetime.date | None:
    try:
        return datetime.date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None


def parse_timestamp(text: str) -> datetime.datetime | None:
    """A date as in `parse_date`, then optionally a space or T and h, h:m or h:m:s[.fraction][zone]; the default zone is UTC."""
    if (parts := _moment(text)) is None:
        return None
    local, zone = parts
    try:
        return local.replace(tzinfo=zone or datetime.UTC).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def parse_local_timestamp(text: str) -> datetime.datetime | None:
    """As `parse_timestamp`, without the zone, which is read and left out."""
    parts = _moment(text)
    return None if parts is None else parts[0]


def parse_zoneless_timestamp(text: str) -> datetime.datetime | None:
    """As `parse_local_timestamp`; None for a text with a zone."""
    parts = _moment(text)
    return None if parts is None or parts[1] is not None else parts[0]


def _moment(text: str) -> tuple[datetime.datetime, datetime.tzinfo | None] | None:
    """The time as written, and its zone if it names one."""
    match = _TIMESTAMP.fullmatch(text.strip(_EDGE))
    if not match or (day := _date(match[1], match[2], match[3])) is None:
        return None
    fraction, name = match[7], match[8]
    zone = parse_zone(name.strip(_EDGE)) if name else None
    if name and zone is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.group(4, 5, 6))
    micros = int((fraction or "")[:6].ljust(6, "0"))
    try:
        return datetime.datetime(day.year, day.month, day.day, hour, minute, second, micros), zone
    except ValueError:
        return None


def parse_zone(name: str) -> datetime.tzinfo | None:
    """UTC, an offset, a zone by its name in the IANA database, or one of Java's short names."""
    name = SHORT_ZONES.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return datetime.UTC
    if match := _OFFSET.fullmatch(name):
        hours, minutes, seconds = int(match[2] or match[5]), int(match[3] or match[6] or 0), int(match[4] or match[7] or 0)
        offset = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if minutes > 59 or seconds > 59 or offset > datetime.timedelta(hours=18):
            return None
        return datetime.timezone(offset if match[1] == "+" else -offset)
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return None
