"""Arithmetic on integer and floating columns, and the numeric functions of doubles; DECIMAL goes to decimal_arithmetic.py.

NaN and infinities are results here, not errors: NumPy's floating-point warnings are suppressed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.expr.arrays import decimal_arithmetic, strict_math
from deltic.expr.arrays.datum import Datum, Kernel, array_of, dense, fail_at, nulls_of, strict_nulls, values_of
from deltic.expr.arrays.distinct import apply_distinct, per_distinct
from deltic.expr.nodes import Call, Literal
from deltic.expr.registry import row_form
from deltic.schema import BIGINT, DOUBLE, INTEGER_BITS, Type

Arrow = Callable[..., Datum]

_TIE: Final = 1e-3  # nearer to a tie than this, a double is rounded by its decimal form
_LARGEST: Final = 2.0**40  # below it, the product with a power of ten errs by less than _TIE


def ring(checked: Arrow, unchecked: Arrow, exact: Callable[..., Any], decimals: Kernel) -> Kernel:
    """+, -, *, unary minus and abs: Arrow's checked function for integers and its unchecked one for floats, the same on Python
    integers, and the kernel for DECIMAL.
    """

    def kernel(call: Call, length: int, *arguments: Datum) -> Datum:
        if call.type.is_decimal:
            return decimals(call, length, *arguments)
        if call.type.is_float:
            return unchecked(*arguments)
        try:
            return checked(*arguments)
        except pa.ArrowInvalid:
            _raise_overflow(call, exact, length, *arguments)
            raise

    return kernel


def _raise_overflow(call: Call, operation: Callable[..., Any], length: int, *arguments: Datum) -> None:
    half = 1 << (INTEGER_BITS[call.type.name] - 1)
    exact = operation(*(np.asarray(values_of(dense(a, length), call.type)).astype(object) for a in arguments))
    bad = ((exact < -half) | (exact >= half)).astype(bool) & ~np.asarray(strict_nulls(*arguments))
    fail_at(bad, row_form(call), *arguments)


def raise_zero(call: Call, length: int, left: Datum, right: Datum) -> None:
    """Raises DivisionByZero with the first row where `right` is 0 and neither side is NULL."""
    if isinstance(right, pa.Scalar):
        zero = np.full(length, right.is_valid and right.as_py() == 0)
    else:
        zeros = pc.equal(right, pa.scalar(0, right.type))
        if not pc.any(zeros).as_py():
            return
        zero = np.asarray(zeros.fill_null(False).to_numpy(zero_copy_only=False))
    fail_at(zero & ~np.asarray(nulls_of(left)), row_form(call), left, right)


def divide(call: Call, length: int, left: Datum, right: Datum) -> Datum:
    raise_zero(call, length, left, right)
    return decimal_arithmetic.divide(call, length, left, right) if call.type.is_decimal else pc.divide(left, right)


def integral_divide(call: Call, length: int, left: Datum, right: Datum) -> Datum:
    raise_zero(call, length, left, right)
    if call.arguments[0].type.is_decimal:
        return decimal_arithmetic.integral_divide(call, length, left, right)
    a, b, nulls = _numbers(BIGINT, length, left, right)
    fail_at((a == np.iinfo(np.int64).min) & (b == -1) & ~np.asarray(nulls), row_form(call), left, right)
    quotient = a // b
    quotient += (a - quotient * b != 0) & ((a < 0) != (b < 0))
    return array_of(quotient, nulls, BIGINT)


def _numbers(type: Type, length: int, left: Datum, right: Datum) -> tuple[np.ndarray, np.ndarray, Any]:
    """(dividends, divisors with 1 where NULL, where either is NULL)."""
    nulls = strict_nulls(left, right)
    a, b = (values_of(dense(d, length), type) for d in (left, right))
    return a, np.where(nulls, b.dtype.type(1), b), nulls


def remainder(call: Call, length: int, left: Datum, right: Datum) -> Datum:
    raise_zero(call, length, left, right)
    if call.type.is_decimal:
        return decimal_arithmetic.remainder(call, length, left, right)
    a, b, nulls = _numbers(call.type, length, left, right)
    with np.errstate(all="ignore"):
        return array_of(np.fmod(a, b), nulls, call.type)


def pmod(call: Call, length: int, left: Datum, right: Datum) -> Datum:
    raise_zero(call, length, left, right)
    if call.type.is_decimal:
        return decimal_arithmetic.pmod(call, length, left, right)
    a, b, nulls = _numbers(call.type, length, left, right)
    if call.type.is_integer and a.dtype.itemsize < 4:
        a, b = a.astype(np.int32), b.astype(np.int32)  # as Java does; int and long wrap around there and here
    with np.errstate(all="ignore"):
        rest = np.fmod(a, b)
        return array_of(np.where(rest < 0, np.fmod(rest + b, b), rest), nulls, call.type)


def exp(call: Call, length: int, value: Datum) -> Datum:
    array = dense(value, length)
    return array_of(strict_math.exp(values_of(array, DOUBLE)), nulls_of(array), DOUBLE)


def _logarithm(value: Datum, length: int) -> pa.Array:
    """The natural logarithm: NULL where the argument is 0 or less; NaN stays NaN."""
    array = dense(value, length)
    values = values_of(array, DOUBLE)
    return array_of(strict_math.log(values), nulls_of(array) | (values <= 0), DOUBLE)


def ln(call: Call, length: int, value: Datum) -> Datum:
    return _logarithm(value, length)


def log2(call: Call, length: int, value: Datum) -> Datum:
    return pc.divide(_logarithm(value, length), math.log(2.0))


def log(call: Call, length: int, base: Datum, value: Datum) -> Datum:
    return pc.divide(_logarithm(value, length), _logarithm(base, length))


def power(call: Call, length: int, base: Datum, exponent: Datum) -> Datum:
    """A square is a product, as in Java; other powers are computed once per distinct combination of arguments."""
    if isinstance(exponent, pa.Scalar) and exponent.as_py() == 2.0:
        return pc.multiply(base, base)
    return per_distinct(call, length, base, exponent)


def sign(call: Call, length: int, value: Datum) -> Datum:
    array = dense(value, length)
    values = values_of(array, DOUBLE)
    return array_of(np.where((values == 0) | np.isnan(values), values, np.copysign(1.0, values)), nulls_of(array), DOUBLE)


def whole(round_to: Callable[[np.ndarray], np.ndarray], decimals: Kernel) -> Kernel:
    """CEIL and FLOOR. Doubles saturate at BIGINT's range; NaN becomes 0."""

    def kernel(call: Call, length: int, value: Datum) -> Datum:
        source = call.arguments[0].type
        if source.is_decimal:
            return decimals(call, length, value)
        return value if source.is_integer else array_of(saturated(round_to(values_of(value, DOUBLE))), nulls_of(value), BIGINT)

    return kernel


def saturated(values: np.ndarray) -> np.ndarray:
    """Whole doubles as int64, as Java casts them."""
    limits = np.iinfo(np.int64)
    inside = np.where(np.abs(values) < 2.0**63, values, 0.0).astype(np.int64)
    return np.where(values >= 2.0**63, limits.max, np.where(values <= -(2.0**63), limits.min, inside))


def rounding(call: Call, length: int, value: Datum, places: Datum) -> Datum:
    source, shown = call.arguments[0].type, _places(call)
    if source.is_decimal:
        return decimal_arithmetic.round_(call, length, value, places)
    if source.is_integer and shown >= 0:
        return value
    if source == DOUBLE and call.function == "round" and 0 <= shown <= 15:
        return _round_doubles(call, length, value, shown)
    return apply_distinct(lambda v: row_form(call)(v, shown), [value], length, call.type)


def _places(call: Call) -> int:
    """The constant second argument of ROUND; it is not NULL, since a NULL makes the call NULL before it is evaluated."""
    places = call.arguments[1]
    assert isinstance(places, Literal) and isinstance(places.value, int)
    return places.value


def _round_doubles(call: Call, length: int, value: pa.Array, places: int) -> pa.Array:
    """Through a product with a power of ten where that is certain to be correct, else through the shortest decimal form."""
    values = values_of(value, DOUBLE)
    units, unsure = rounded_units(values, places)
    result = np.copysign(units / 10.0**places, values)
    rounded = array_of(np.where(units == 0, 0.0, result), nulls_of(value), DOUBLE)
    if not unsure.any():
        return rounded
    rows = np.flatnonzero(unsure)
    slow = apply_distinct(lambda v: row_form(call)(v, places), [value.take(pa.array(rows))], len(rows), DOUBLE)
    return pc.replace_with_mask(rounded, pa.array(unsure), slow)


def rounded_units(values: np.ndarray, places: int) -> tuple[np.ndarray, np.ndarray]:
    """(|values|·10^places rounded half up, mask of values whose shortest decimal form might round differently)."""
    with np.errstate(all="ignore"):
        product = np.abs(values) * 10.0**places
        fraction = product - np.floor(product)
        unsure = ~(product < _LARGEST) | (np.abs(fraction - 0.5) < _TIE)
        return np.where(unsure, 0.0, np.floor(product + 0.5)), unsure
