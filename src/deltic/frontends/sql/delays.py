"""The delay of a watermark as text: numbers with units, as for Spark's withWatermark."""

from __future__ import annotations

import re
from typing import Final

UNITS_US: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
FORM: Final = "numbers with units from microseconds to weeks, such as '10 seconds' or '1 hour 30 minutes'"
_PART: Final = r"(\d{1,12})\s*(" + "|".join(UNITS_US) + r")s?"


def delay_us(text: str) -> int | None:
    """Microseconds; None for an invalid delay.

    >>> delay_us("interval 1 hour 30 minutes")
    5400000000
    """
    match = re.fullmatch(rf"\s*(?:interval\s+)?({_PART}(?:\s+{_PART})*)\s*", text.lower())
    if match is None:
        return None
    return sum(int(number) * UNITS_US[unit] for number, unit in re.findall(_PART, match[1]))
