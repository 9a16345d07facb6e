"""Doubles and floats as Java prints them.

They have the shortest form of at least two digits that reads back as the same number (Java 19 and newer; older
versions print one more digit for a few numbers).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal


def render_double(value: float) -> str:
    """Java's Double.toString.

    >>> render_double(1e10), render_double(0.001), render_double(5e-324)
    ('1.0E10', '0.001', '4.9E-324')
    """
    return _special(value) or _java(value, _digits(value, repr(value), float))


def render_single(value: float) -> str:
    """Java's Float.toString.

    >>> render_single(1.100000023841858)
    '1.1'
    """
    if special := _special(value):
        return special
    short = next(text for places in range(9) if _narrow(float(text := f"{value:.{places}e}")) == value)
    return _java(value, _digits(value, short, lambda text: _narrow(float(text))))


def _narrow(value: float) -> float:
    """The nearest FLOAT."""
    try:
        result: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return result


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None


def _digits(value: float, short: str, read: Callable[[str], float]) -> tuple[str, int]:
    """(significant digits, exponent of the first). A two-digit form that is nearer to the value is preferred to a one-digit form."""
    two = f"{abs(value):.1e}"
    number = Decimal(short).copy_abs()
    if len(number.normalize().as_tuple().digits) == 1 and read(two) == abs(value):
        number = Decimal(two)
    digits = "".join(map(str, number.as_tuple().digits))
    exponent = number.adjusted() if number else 0
    return digits.rstrip("0") or "0", exponent


def _java(value: float, parts: tuple[str, int]) -> str:
    digits, exponent = parts
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        padded = digits.ljust(exponent + 1, "0")
        return f"{sign}{padded[: exponent + 1]}.{padded[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
