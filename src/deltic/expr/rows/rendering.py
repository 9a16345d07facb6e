"""Values as STRING, as Java prints them.

Doubles and floats have the shortest form of at least two digits that reads back as the same number (Java 19 and newer; older
versions print one more digit for a few numbers).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import assert_never

from deltic import intervals
from deltic.expr.nodes import Value
from deltic.expr.rows.numbers import single
from deltic.schema import FLOAT, Type


def render(value: Value, type: Type) -> str:
    """CAST(value AS STRING); `value` is not NULL."""
    if type.is_interval and isinstance(value, int | datetime.timedelta):
        return intervals.render(value, type)
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
        case float():
            return render_single(value) if type == FLOAT else render_double(value)
        case Decimal():
            return format(value, "f")
        case datetime.timedelta():
            raise AssertionError(f"a timedelta of type {type}")
        case bytes() | tuple():
            raise AssertionError("casts render bytes and nested values, since that can fail")
        case datetime.datetime():
            return render_timestamp(value)
        case datetime.date():
            return value.isoformat()
        case None:
            raise AssertionError("NULL has no text")
        case _:
            assert_never(value)


def render_timestamp(value: datetime.datetime) -> str:
    """With as many decimal places as the fraction needs.

    >>> render_timestamp(datetime.datetime(2020, 1, 1, 12, 0, 0, 120000))
    '2020-01-01 12:00:00.12'
    """
    text = value.replace(tzinfo=None).isoformat(" ", "seconds")
    return f"{text}.{value.microsecond:06d}".rstrip("0") if value.microsecond else text


def render_double(value: float) -> str:
    """Java's Double.toString.

    >>> render_double(1e10), render_double(0.001), render_double(5e-324)
    ('1.0E10', '0.001', '4.9E-324')
    """
    return _special(value) or _java(value, _digits(value, repr(value), float))


def render_single(value: float) -> str:
    """Java's Float.toString.

    >>> render_single(single(1.1))
    '1.1'
    """
    if special := _special(value):
        return special
    short = next(text for places in range(9) if single(float(text := f"{value:.{places}e}")) == value)
    return _java(value, _digits(value, short, lambda text: single(float(text))))


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
