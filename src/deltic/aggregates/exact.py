"""Exact arithmetic for references and finish functions: integers and fractions, rounded once."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from decimal import Context, Decimal
from fractions import Fraction

from deltic.aggregates.definition import Rows
from deltic.errors import ArithmeticOverflow
from deltic.expr.nodes import Value
from deltic.expr.rows.numbers import nearest
from deltic.intervals import interval_of, units_of
from deltic.schema import INTEGER_BITS, Type

ROOT_BITS = 160
ROOT_DIGITS = 1200
"""Decimal digits sufficient to determine the double nearest to the root of any quotient of sums of doubles."""


def number(value: Value) -> int | float | Decimal:
    """The value, which is a number."""
    assert isinstance(value, int | float | Decimal)
    return value


def float_sum(values: Iterable[tuple[Value, int]]) -> float:
    """Σ value·weight of floats, correctly rounded; a sum of zero is 0.0. NaN gives NaN, and so does +∞ with -∞.

    An infinity of negative weight is the opposite one; values whose weights cancel do not count.
    """
    finite, special = Fraction(0), {"nan": 0, "inf": 0, "-inf": 0}
    for value, weight in values:
        assert isinstance(value, float)
        if math.isfinite(value):
            finite += Fraction(value) * weight
        else:
            special[str(value)] += weight
    infinities = {math.copysign(math.inf, weight * sign) for weight, sign in ((special["inf"], 1), (special["-inf"], -1)) if weight}
    if special["nan"] or infinities:
        return math.nan if special["nan"] or len(infinities) == 2 else infinities.pop()
    return nearest(finite)


def nearest_ratio(numerator: int, denominator: int) -> float:
    """The double nearest to numerator / denominator, ties to even; an infinity beyond the greatest double."""
    try:
        return numerator / denominator  # of integers, correctly rounded
    except OverflowError:
        return math.inf if (numerator > 0) == (denominator > 0) else -math.inf


def nearest_root(numerator: int, denominator: int) -> float:
    """The double nearest to √(numerator / denominator), numerator ≥ 0 and denominator > 0.

    The integer root has at least ROOT_BITS bits, and a sticky bit records whether it is exact, so the final rounding is correct.
    """
    shift = max(0, 2 * ROOT_BITS - numerator.bit_length() + denominator.bit_length())
    shift += shift & 1
    quotient, rest = divmod(numerator << shift, denominator)
    root = math.isqrt(quotient)
    sticky = bool(rest) or root * root != quotient
    return nearest_ratio(root << 1 | sticky, 1 << (shift // 2 + 1))


def decimal_root(number: Fraction) -> float:
    """√number as a double by long decimals, for references: an algorithm independent of `nearest_root`."""
    context = Context(prec=ROOT_DIGITS)
    try:
        return float(context.sqrt(context.divide(Decimal(number.numerator), Decimal(number.denominator))))
    except OverflowError:
        return math.inf


def fitted(total: int, type: Type) -> int:
    """The total. Raises ArithmeticOverflow if it does not fit the integer type."""
    half = 1 << (INTEGER_BITS[type.name] - 1)
    if not -half <= total < half:
        raise ArithmeticOverflow(f"an aggregate is out of range for {type.sql}: {total}")
    return total


def interval_total(rows: Rows, type: Type) -> Value:
    """Σ value·weight of intervals, in microseconds or months, as an interval. Raises ArithmeticOverflow."""
    total = 0
    for (value,), weight in rows:
        assert isinstance(value, int | datetime.timedelta)
        total += units_of(value) * weight
    return as_interval(total, type)


def as_interval(units: int, type: Type) -> Value:
    """Raises ArithmeticOverflow if the type does not have it."""
    value = interval_of(units, type)
    if value is None:
        raise ArithmeticOverflow(f"an aggregate is out of range for {type.sql}")
    return value


def half_up(number: Fraction, scale: int) -> int:
    """`number`·10^scale, rounded half away from zero."""
    size: int = math.floor(abs(number) * 10**scale + Fraction(1, 2))
    return -size if number < 0 else size


def as_decimal(number: Fraction, type: Type) -> Decimal:
    """`number` as DECIMAL(p, s), built from its digits, since arithmetic on Decimal rounds to 28 digits."""
    unscaled = half_up(number, type.scale)
    if abs(unscaled) >= 10**type.precision:
        raise ArithmeticOverflow(f"an aggregate is out of range for {type.sql}")
    return Decimal((int(unscaled < 0), tuple(int(digit) for digit in str(abs(unscaled))), -type.scale))
