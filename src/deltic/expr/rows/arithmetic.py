"""Arithmetic on one row by the result's type: integers check their range, FLOAT rounds to float32, DECIMAL is exact, then rounded."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from deltic.expr.failures import division_by_zero, overflow
from deltic.expr.nodes import Call
from deltic.expr.rows.numbers import (
    cut_units,
    fit,
    float_quotient,
    float_remainder,
    half_even,
    half_up,
    in_range,
    integer_quotient,
    of_double,
    of_units,
    product,
    quotient,
    saturated,
    single,
    truncated,
)
from deltic.schema import BIGINT, FLOAT, Type

Number = int | float | Decimal


def _exact(call: Call, value: Fraction, what: str) -> Decimal:
    result = fit(value, call.type)
    if result is None:
        raise overflow(f"{call.type.sql} {what}", call.span)
    return result


def _ranged(call: Call, value: int, what: str) -> int:
    if not in_range(value, call.type):
        raise overflow(f"{call.type.sql} {what}", call.span)
    return value


def _floating(call: Call, value: float) -> float:
    return single(value) if call.type == FLOAT else value


def add(call: Call, left: Number, right: Number) -> Number:
    if isinstance(left, float) and isinstance(right, float):
        return _floating(call, left + right)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return _exact(call, Fraction(left) + Fraction(right), "addition")
    assert isinstance(left, int) and isinstance(right, int)
    return _ranged(call, left + right, "addition")


def subtract(call: Call, left: Number, right: Number) -> Number:
    if isinstance(left, float) and isinstance(right, float):
        return _floating(call, left - right)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return _exact(call, Fraction(left) - Fraction(right), "subtraction")
    assert isinstance(left, int) and isinstance(right, int)
    return _ranged(call, left - right, "subtraction")


def multiply(call: Call, left: Number, right: Number) -> Number:
    if isinstance(left, float) and isinstance(right, float):
        return _floating(call, left * right)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return _exact(call, product(left, right), "multiplication")
    assert isinstance(left, int) and isinstance(right, int)
    return _ranged(call, left * right, "multiplication")


def divide(call: Call, left: Number, right: Number) -> Number:
    """left / right, DOUBLE or DECIMAL."""
    if right == 0:
        raise division_by_zero(call)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return _exact(call, quotient(left, right), "division")
    assert isinstance(left, float) and isinstance(right, float)
    return float_quotient(left, right)


def integral_divide(call: Call, left: Number, right: Number) -> int:
    """left DIV right: BIGINT, towards zero."""
    if right == 0:
        raise division_by_zero(call)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return _ranged(call, truncated(Fraction(left) / Fraction(right)), "division")
    assert isinstance(left, int) and isinstance(right, int)
    return _ranged(call, integer_quotient(left, right), "division")


def _remainder(left: Number, right: Number) -> Number | Fraction:
    """left % right, with the sign of `left`."""
    if isinstance(left, float) and isinstance(right, float):
        return float_remainder(left, right)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        a, b = Fraction(left), Fraction(right)
        return a - b * truncated(a / b)
    assert isinstance(left, int) and isinstance(right, int)
    return left - right * integer_quotient(left, right)


def wrapped(value: int, type: Type) -> int:
    """`value` wrapped to Java's long if the type is BIGINT, else to int: Java computes with bytes and shorts as ints."""
    half = 1 << (63 if type == BIGINT else 31)
    return (value + half) % (2 * half) - half


def remainder(call: Call, left: Number, right: Number) -> Number:
    if right == 0:
        raise division_by_zero(call)
    rest = _remainder(left, right)
    return _exact(call, rest, "remainder") if isinstance(rest, Fraction) else rest


def pmod(call: Call, left: Number, right: Number) -> Number:
    """The remainder; if negative, (remainder + right) % right, which stays negative for a negative `right`."""
    if right == 0:
        raise division_by_zero(call)
    rest = _remainder(left, right)
    if isinstance(rest, Fraction):
        divisor = Fraction(right)
        moved = rest + divisor
        return _exact(call, moved - divisor * truncated(moved / divisor) if rest < 0 else rest, "remainder")
    if isinstance(rest, float):
        assert isinstance(right, float)
        return float_remainder(_floating(call, rest + right), right) if rest < 0 else rest
    assert isinstance(rest, int) and isinstance(right, int)
    if rest >= 0:
        return rest
    shifted = wrapped(rest + right, call.type)
    return shifted - right * integer_quotient(shifted, right)


def negate(call: Call, value: Number) -> Number:
    if isinstance(value, int):
        return _ranged(call, -value, "negation")
    return _cut(call, -Fraction(value), "negation") if isinstance(value, Decimal) else -value


def absolute(call: Call, value: Number) -> Number:
    if isinstance(value, int):
        return _ranged(call, abs(value), "absolute value")
    if isinstance(value, Decimal):
        return value if value >= 0 else _cut(call, -Fraction(value), "absolute value")
    return abs(value)


def _cut(call: Call, value: Fraction, what: str) -> Decimal:
    """The value rounded to 34 significant digits, as in Spark; rounding up may overflow the type."""
    return _exact(call, Fraction(cut_units(half_up(value, call.type.scale)), 10**call.type.scale), what)


def sign(value: float) -> float:
    """-1.0 or 1.0; zeros and NaN are returned unchanged."""
    return value if value == 0 or math.isnan(value) else math.copysign(1.0, value)


def ceil(call: Call, value: Number) -> Number:
    """CEIL: BIGINT for a DOUBLE (saturating) or BIGINT; a DECIMAL of scale 0 for a DECIMAL."""
    if isinstance(value, Decimal):
        return _exact(call, Fraction(math.ceil(value)), "ceil")
    return value if isinstance(value, int) else saturated(float(math.ceil(value)) if math.isfinite(value) else value)


def floor(call: Call, value: Number) -> Number:
    if isinstance(value, Decimal):
        return _exact(call, Fraction(math.floor(value)), "floor")
    return value if isinstance(value, int) else saturated(float(math.floor(value)) if math.isfinite(value) else value)


def round_(call: Call, value: Number, places: int) -> Number:
    """ROUND: half up. A double is rounded in its shortest decimal form; a result of zero is 0.0."""
    return _rounded(call, value, places, even=False)


def bround(call: Call, value: Number, places: int) -> Number:
    """BROUND: half even."""
    return _rounded(call, value, places, even=True)


def _rounded(call: Call, value: Number, places: int, *, even: bool) -> Number:
    to_units = half_even if even else half_up
    if isinstance(value, float):
        exact = of_double(value)
        if exact is None:
            return value
        places = max(-400, min(places, 400))  # a double has no digits beyond
        result = float(to_units(exact, places) / Fraction(10) ** places)
        return _floating(call, result)
    if isinstance(value, int):
        if places >= 0:
            return value
        places = max(-30, places)
        return _ranged(call, to_units(Fraction(value), places) * 10**-places, "rounding")
    places = min(max(-80, places), call.type.scale)
    units = to_units(Fraction(value), places) * 10 ** (call.type.scale - places)
    decimal = of_units(units, call.type)
    if decimal is None:
        raise overflow(f"{call.type.sql} rounding", call.span)
    return decimal
