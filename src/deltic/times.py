"""Times of day as numbers and as text: microseconds since midnight, and Spark's forms `12:34:56.7` and `1:02:03 PM`.

What always holds: `parse(render(x)) = x`.
"""

from __future__ import annotations

import datetime
import re
from typing import Final

from deltic.types import MOST_PLACES

SECOND: Final = 1_000_000
NANOSECONDS: Final = 1_000
"""In a microsecond: Spark counts a TIME in nanoseconds."""
SIZES: Final = {"HOUR": 3_600 * SECOND, "MINUTE": 60 * SECOND, "SECOND": SECOND, "MILLISECOND": 1_000, "MICROSECOND": 1}
"""The units of TIME_DIFF and TIME_TRUNC, in microseconds."""
DAY: Final = 24 * SIZES["HOUR"]
_EDGE: Final = "".join(map(chr, range(33))) + "\x7f"
_BLANK: Final = "[\x00-\x20\x7f]*"
_TEXT: Final = re.compile(
    rf"(?:(T)|{_BLANK})([0-9]{{1,2}})(?::([0-9]{{1,2}})(?::([0-9]{{1,2}})(?:\.([0-9]*))?)?)?(?:{_BLANK}([AaPp])[Mm])?"
)


def micros_of(value: datetime.time) -> int:
    """Since midnight."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * SECOND + value.microsecond


def time_of(micros: int) -> datetime.time | None:
    """The time so many microseconds after midnight; None if that is outside the day."""
    if not 0 <= micros < DAY:
        return None
    seconds, micros = divmod(micros, SECOND)
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)


def unit_of(places: int) -> int:
    """What is left of a time, in microseconds, when its seconds are cut off after so many places."""
    return int(10 ** (MOST_PLACES - places))


def cut(value: datetime.time, unit: int) -> datetime.time:
    """The latest multiple of the unit until then.

    >>> cut(datetime.time(12, 34, 56, 789), unit_of(0))
    datetime.time(12, 34, 56)
    """
    micros = micros_of(value)
    result = time_of(micros - micros % unit)
    assert result is not None
    return result


def render(value: datetime.time) -> str:
    """As Spark casts it to STRING, with as many places as the fraction needs."""
    text = value.isoformat("seconds")
    return f"{text}.{value.microsecond:06d}".rstrip("0") if value.microsecond else text


def parse(text: str) -> datetime.time | None:
    """h:m, h:m:s or h:m:s.fraction, or Th, also after T, and before AM or PM; digits after the sixth are left out. None for other text.

    Blanks around it are ignored, but before T, as by Spark.

    >>> parse(" 1:02:03.45 pm "), parse("13:02 pm"), parse(" T13:02")
    (datetime.time(13, 2, 3, 450000), None, None)
    """
    match = _TEXT.fullmatch(text.rstrip(_EDGE))
    if match is None or not (match[1] or match[3]):
        return None
    hour, minute, second = int(match[2]), int(match[3] or 0), int(match[4] or 0)
    if match[6] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (match[6] in "Pp")
    try:
        return datetime.time(hour, minute, second, int((match[5] or "")[:6].ljust(6, "0")))
    except ValueError:
        return None
