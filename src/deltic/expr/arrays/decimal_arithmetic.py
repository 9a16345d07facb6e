"""Arithmetic on DECIMAL columns: exact, then rounded half up to the result's scale; a result with too many digits is an overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from deltic.expr.arrays import decimals
from deltic.expr.arrays.datum import Datum, Kernel, Mask, array_of, fail_at, strict_nulls
from deltic.expr.arrays.decimals import NARROW, decimals_of, digits_of, misfits, rescale, scaled_up, truncated_quotient, units_of, wide
from deltic.expr.nodes import Call, Literal
from deltic.expr.registry import row_form
from deltic.expr.rows.numbers import SIGN_DIGITS
from deltic.schema import BIGINT, Type

_QUOTIENT_SCALE: Final = 39  # Spark divides to this scale before it rounds to the result's
_MAX_PRECISION: Final = 38


def _fitted(call: Call, length: int, units: Any, arguments: tuple[Datum, ...]) -> Datum:
    """The units as the call's type. Raises ArithmeticOverflow where they do not fit."""
    nulls = strict_nulls(*arguments)
    units = np.broadcast_to(units, (length,)) if np.ndim(units) == 0 else units
    fail_at(misfits(units, nulls, call.type.precision), row_form(call), *arguments)
    return decimals_of(units, nulls, call.type)


def _types(call: Call) -> tuple[Type, Type]:
    left, right = call.arguments[:2]
    return left.type, right.type


def _aligned(call: Call, left: Datum, right: Datum) -> tuple[Any, Any, int]:
    """(units, units, scale): both at the larger scale, wide where one of them needs it."""
    a, b = _types(call)
    scale = max(a.scale, b.scale)
    x, y = units_of(left, a), units_of(right, b)
    first, second = digits_of(x, a.precision), digits_of(y, b.precision)
    x, y = scaled_up(x, scale - a.scale, first), scaled_up(y, scale - b.scale, second)
    if max(first + scale - a.scale, second + scale - b.scale) > NARROW:
        x, y = wide(x), wide(y)
    return x, y, scale


def _sum(operation: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(call: Call, length: int, left: Datum, right: Datum) -> Datum:
        x, y, scale = _aligned(call, left, right)
        # The sum has more digits than its type only where the type was cut off at 38, and then it is wide.
        return _fitted(call, length, rescale(operation(x, y), scale, call.type.scale, NARROW), (left, right))

    return kernel


def multiply(call: Call, length: int, left: Datum, right: Datum) -> Datum:
    a, b = _types(call)
    x, y = units_of(left, a), units_of(right, b)
    digits = digits_of(x, a.precision) + digits_of(y, b.precision)
    if digits > NARROW:
        x, y = wide(x), wide(y)
    product = x * y
    if digits > _MAX_PRECISION + 1:
        product = decimals.cut_product(product)
    return _fitted(call, length, rescale(product, a.scale + b.scale, call.type.scale, digits), (left, right))


def divide(call: Call, length: int, left: Datum, right: Datum) -> Datum:
    """left / right. Precondition: the divisor is not 0 where neither operand is NULL."""
    a, b = _types(call)
    nulls = strict_nulls(left, right)
    # A quotient by fewer than 38 - scale digits is too far from a tie for Spark's first rounding to matter.
    scale = call.type.scale if b.precision + call.type.scale < _MAX_PRECISION else _QUOTIENT_SCALE
    places = scale - a.scale + b.scale
    x, y = units_of(left, a), _divisor(nulls, units_of(right, b))
    if places < 0:
        y, places, digits = wide(y) * 10**-places, 0, _MAX_PRECISION
    else:
        digits = max(a.precision + places, b.precision)
    quotient = decimals.half_up_quotient(scaled_up(x, places, a.precision), y, digits)
    return _fitted(call, length, rescale(wide(quotient), scale, call.type.scale, _MAX_PRECISION), (left, right))


def integral_divide(call: Call, length: int, left: Datum, right: Datum) -> Datum:
    """left DIV right: BIGINT, towards zero. Precondition: the divisor is not 0 where neither operand is NULL."""
    nulls = strict_nulls(left, right)
    x, y, _ = _aligned(call, left, right)
    quotient = truncated_quotient(x, _divisor(nulls, y))
    bad = np.asarray((quotient < -(2**63)) | (quotient >= 2**63), bool) & ~np.asarray(nulls)
    fail_at(bad, row_form(call), left, right)
    return array_of(np.where(nulls, 0, quotient).astype(np.int64), nulls, BIGINT)


def remainder(call: Call, length: int, left: Datum, right: Datum) -> Datum:
    x, y, scale = _divisible(call, left, right)
    rest = decimals.remainder(x, y)
    return _fitted(call, length, rescale(rest, scale, call.type.scale, NARROW), (left, right))


def pmod(call: Call, length: int, left: Datum, right: Datum) -> Datum:
    x, y, scale = _divisible(call, left, right)
    rest = decimals.remainder(x, y)
    moved = np.where(rest < 0, decimals.remainder(rest + y, y), rest)
    return _fitted(call, length, rescale(moved, scale, call.type.scale, NARROW), (left, right))


def _divisible(call: Call, left: Datum, right: Datum) -> tuple[Any, Any, int]:
    nulls = strict_nulls(left, right)
    x, y, scale = _aligned(call, left, right)
    return x, _divisor(nulls, y), scale


def _divisor(nulls: Mask | bool, units: Any) -> Any:
    """The units with 1 wherever an operand is NULL, so that none is 0.

    A constant stays an int, as NumPy holds none beyond 64 bits. It is 0 only if an operand is NULL in every row.
    """
    return np.where(nulls, 1, units) if isinstance(units, np.ndarray) else units or 1


def negate(call: Call, length: int, value: Datum) -> Datum:
    return _fitted(call, length, _negated(units_of(value, call.type), call.type), (value,))


def absolute(call: Call, length: int, value: Datum) -> Datum:
    units = units_of(value, call.type)
    return _fitted(call, length, np.where(units < 0, _negated(units, call.type), units), (value,))


def _negated(units: Any, type: Type) -> Any:
    """The negation, of which Spark keeps 34 significant digits."""
    return decimals.cut_sign(-units) if type.precision > SIGN_DIGITS else -units


def _whole(upwards: bool) -> Kernel:
    def kernel(call: Call, length: int, value: Datum) -> Datum:
        source = call.arguments[0].type
        units, by = units_of(value, source), 10**source.scale
        if source.scale > NARROW:
            units = wide(units)
        return _fitted(call, length, -(-units // by) if upwards else units // by, (value,))

    return kernel


def round_(call: Call, length: int, value: Datum, places: Datum) -> Datum:
    source, shown = call.arguments[0].type, call.arguments[1]
    assert isinstance(shown, Literal) and isinstance(shown.value, int)
    kept = min(max(-80, shown.value), call.type.scale)
    units = units_of(value, source)
    if kept < 0 or call.function == "bround":
        units = wide(units)
    if call.function == "bround":
        units = _half_even_quotient(units, 10 ** (source.scale - kept)) if kept < source.scale else units
    else:
        units = rescale(units, source.scale, kept, source.precision)
    return _fitted(call, length, scaled_up(units, call.type.scale - kept, source.precision), (value, places))


def _half_even_quotient(units: Any, by: int) -> Any:
    quotient = units // by
    twice = 2 * (units - quotient * by)
    up = np.asarray(twice > by, bool) | (np.asarray(twice == by, bool) & np.asarray(quotient % 2 == 1, bool))
    return np.where(up, quotient + 1, quotient)


add: Final = _sum(lambda x, y: x + y)
subtract: Final = _sum(lambda x, y: x - y)
ceil: Final = _whole(True)
floor: Final = _whole(False)
