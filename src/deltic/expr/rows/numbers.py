"""Numbers of one row: range-checked integers, Java's doubles and floats, exact decimals.

A DECIMAL is a Decimal whose exponent is minus the scale of its type, and never a negative zero. Rounding is half up (away from zero).
FLOAT is a Python float that float32 can hold.
"""

from __future__ import annotations

import math
import struct
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from deltic.expr.rows import strict_power
from deltic.schema import INTEGER_BITS, Type

_WIDE: Final = Context(prec=200)
_PRODUCT_DIGITS: Final = 39  # Java's MathContext in Spark's decimal multiplication
SIGN_DIGITS: Final = 34
_GREATEST_SINGLE: Final = 2.0**128 - 2.0**104
_SINGLE_END: Final = 2.0**128 - 2.0**103
"""Midway between the greatest float32 and 2^128: from here on the nearest float32 is infinite."""
_QUOTIENT_SCALE: Final = 39  # the scale that Spark divides to before it rounds to the result's


def in_range(value: int, type: Type) -> bool:
    """Whether an integer type holds `value`."""
    half = 1 << (INTEGER_BITS[type.name] - 1)
    return -half <= value < half


def single(value: Fraction | float | int) -> float:
    """The float32 nearest to `value`, ties to even; ±infinity beyond its range.

    The value is rounded to a double first; if that lies midway between two float32, the exact value decides.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return value
    near = nearest(value)
    if not math.isfinite(near):
        return near
    if not -_SINGLE_END < value < _SINGLE_END:
        return math.copysign(math.inf, near)
    if abs(near) >= _SINGLE_END:  # rounded up to where the infinities begin
        return math.copysign(_GREATEST_SINGLE, near)
    result: float = struct.unpack("f", struct.pack("f", near))[0]
    if isinstance(value, float) or Fraction(near) == value or result == near:
        return result
    exact = Fraction(value)
    other = _neighbour(result, toward=exact)
    gap, other_gap = abs(Fraction(result) - exact), abs(Fraction(other) - exact)
    return other if other_gap < gap else result


def nearest(value: Fraction | float | int) -> float:
    """The double nearest to `value`, ties to even; an infinity beyond the greatest double."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _neighbour(value: float, toward: Fraction) -> float:
    (bits,) = struct.unpack("i", struct.pack("f", value))
    if value == 0:
        return value
    away = (toward > value) == (value > 0)
    result: float = struct.unpack("f", struct.pack("i", bits + (1 if away else -1)))[0]
    return result if math.isfinite(result) else value


def double(value: Fraction | int | Decimal) -> float:
    """The double nearest to `value`."""
    return nearest(Fraction(value))


def half_up(value: Fraction, scale: int) -> int:
    """`value` in units of 10^-scale, rounded half away from zero; `scale` may be negative."""
    scaled = abs(value) * Fraction(10) ** scale
    size = math.floor(scaled + Fraction(1, 2))
    return -size if value < 0 else size


def half_even(value: Fraction, scale: int) -> int:
    """As half_up, ties to even."""
    return round(value * Fraction(10) ** scale)


def fit(value: Fraction, type: Type) -> Decimal | None:
    """`value` as a DECIMAL of `type`, rounded half up; None if it has too many digits."""
    return of_units(half_up(value, type.scale), type)


def of_units(units: int, type: Type) -> Decimal | None:
    """units·10^-scale as a DECIMAL of `type`; None if it has too many digits."""
    return Decimal(units).scaleb(-type.scale, _WIDE) if abs(units) < 10**type.precision else None


def of_double(value: float) -> Fraction | None:
    """The number denoted by a double's shortest decimal form, which Spark rounds and casts; None for NaN and infinities."""
    return Fraction(repr(value)) if math.isfinite(value) else None


def product(left: Decimal, right: Decimal) -> Fraction:
    """left·right, rounded half up to 39 significant digits."""
    exact = Fraction(left) * Fraction(right)
    scale = -int(left.as_tuple().exponent) - int(right.as_tuple().exponent)
    surplus = len(str(abs(half_up(exact, scale)))) - _PRODUCT_DIGITS
    if surplus <= 0:
        return exact
    return half_up(exact, scale - surplus) * Fraction(10) ** (surplus - scale)


def cut_units(units: int, digits: int = SIGN_DIGITS) -> int:
    """Units rounded half even to `digits` significant digits, as Spark does in negation and absolute value."""
    surplus = len(str(abs(units))) - digits
    return units if surplus <= 0 else round(Fraction(units, 10**surplus)) * 10**surplus


def quotient(left: Decimal, right: Decimal) -> Fraction:
    """left/right, rounded half up to 39 places."""
    return Fraction(half_up(Fraction(left) / Fraction(right), _QUOTIENT_SCALE), 10**_QUOTIENT_SCALE)


def truncated(value: Fraction) -> int:
    """The integer part, towards zero."""
    return math.trunc(value)


def integer_quotient(left: int, right: int) -> int:
    """left/right towards zero."""
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def float_quotient(left: float, right: float) -> float:
    """Java's left/right for doubles, division by zero included."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def float_remainder(left: float, right: float) -> float:
    """Java's left % right for doubles."""
    if math.isinf(left) or math.isnan(left) or right == 0 or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def power(base: float, exponent: float) -> float:
    """Java's Math.pow."""
    if exponent == 0:
        return 1.0
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    odd = exponent.is_integer() and exponent % 2 == 1
    if base != 0 and math.isfinite(base) and math.isfinite(exponent) and (base > 0 or exponent.is_integer()):
        value = strict_power.power(abs(base), exponent)
        return -value if base < 0 and odd else value
    try:
        return math.pow(base, exponent)  # of 0, an infinity or NaN: exact
    except ValueError:
        if base != 0:
            return math.nan
        return math.copysign(math.inf, base) if odd else math.inf


def saturated(value: float) -> int:
    """Java's cast of an integral double to long: saturating; NaN becomes 0."""
    if math.isnan(value):
        return 0
    return int(max(-(2.0**63), min(value, 2.0**63))) if abs(value) < 2.0**63 else (2**63 - 1 if value > 0 else -(2**63))
