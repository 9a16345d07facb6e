"""Arithmetic of intervals on columns: microseconds and months as integers; what does not fit 64 bits at once is left to the row form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from deltic.expr.arrays.arithmetic import raise_zero
from deltic.expr.arrays.datum import Datum, Kernel, Mask, array_of, dense, fail_at, nulls_of, strict_nulls, values_of
from deltic.expr.arrays.decimals import decimals_of
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.nodes import Call
from deltic.expr.registry import row_form
from deltic.intervals import FIRST, SIZES
from deltic.schema import BIGINT, DATE, INT, TIMESTAMP, Type, decimal

_HALF: Final = 2.0**62
_LONGER: Final = {"HOUR": "DAY", "MINUTE": "HOUR", "SECOND": "MINUTE", "MONTH": "YEAR"}


def units_of(datum: Datum, type: Type, length: int) -> np.ndarray:
    """int64[length]: microseconds or months, 0 where NULL."""
    values: np.ndarray = values_of(dense(datum, length), type)
    return values.astype(np.int64, copy=False)


def _as_intervals(call: Call, units: np.ndarray, wrapped: Mask, arguments: tuple[Datum, ...]) -> pa.Array:
    """Raises ArithmeticOverflow where the sum has wrapped around, or is out of the type's range."""
    nulls = strict_nulls(*arguments)
    outside = units < FIRST if call.type.is_day_time else (units < -(2**31)) | (units >= 2**31)
    fail_at((wrapped | outside) & ~np.asarray(nulls), row_form(call), *arguments)
    return array_of(units, nulls, call.type)


def _binary(run: Callable[[np.ndarray, np.ndarray], np.ndarray], wraps: Callable[..., Mask]) -> Kernel:
    def kernel(call: Call, length: int, left: Datum, right: Datum) -> Datum:
        a, b = (units_of(side, call.type, length) for side in (left, right))
        with np.errstate(over="ignore"):
            units = run(a, b)
        return _as_intervals(call, units, wraps(a, b, units), (left, right))

    return kernel


add: Final = _binary(lambda a, b: a + b, lambda a, b, r: ((a ^ r) & (b ^ r)) < 0)
subtract: Final = _binary(lambda a, b: a - b, lambda a, b, r: ((a ^ b) & (a ^ r)) < 0)


def unary(run: Callable[[np.ndarray], np.ndarray]) -> Kernel:
    """Kernel: unary minus, or abs."""

    def kernel(call: Call, length: int, value: Datum) -> Datum:
        units = units_of(value, call.type, length)
        return _as_intervals(call, run(units), np.zeros(length, bool), (value,))

    return kernel


def multiply(call: Call, length: int, value: Datum, number: Datum) -> Datum:
    if call.arguments[1].type != BIGINT:
        return per_distinct(call, length, value, number)
    a, b = units_of(value, call.type, length), units_of(number, BIGINT, length)
    if (np.abs(a.astype(float)) * np.abs(b.astype(float)) >= _HALF).any():
        return per_distinct(call, length, value, number)
    return _as_intervals(call, a * b, np.zeros(length, bool), (value, number))


def divide(call: Call, length: int, value: Datum, number: Datum) -> Datum:
    raise_zero(call, length, value, number)
    if call.arguments[1].type != BIGINT:
        return per_distinct(call, length, value, number)
    a, b = units_of(value, call.type, length), units_of(number, BIGINT, length)
    if (np.abs(a.astype(float)) * 2 + np.abs(b.astype(float)) >= _HALF).any():
        return per_distinct(call, length, value, number)
    size, by = np.abs(a), np.where(b == 0, 1, np.abs(b))
    units = (2 * size + by) // (2 * by)
    return _as_intervals(call, np.where((a < 0) != (b < 0), -units, units), np.zeros(length, bool), (value, number))


def microseconds(call: Call, length: int, value: Datum) -> Datum:
    return dense(value, length).view(pa.int64())


def between(call: Call, length: int, end: Datum, start: Datum) -> Datum:
    difference = values_of(dense(end, length), TIMESTAMP) - values_of(dense(start, length), TIMESTAMP)
    return array_of(difference, strict_nulls(end, start), call.type)


def days_between(call: Call, length: int, end: Datum, start: Datum) -> Datum:
    days = values_of(dense(end, length), DATE).astype(np.int64) - values_of(dense(start, length), DATE)
    return array_of(days * SIZES["DAY"], strict_nulls(end, start), call.type)


def part(call: Call, length: int, value: Datum, field: Datum) -> Datum:
    word = field.as_py() if isinstance(field, pa.Scalar) else field[0].as_py()
    units = units_of(value, call.arguments[0].type, length)
    rest = np.fmod(units, SIZES[_LONGER[word]]) if word in _LONGER else units
    if word == "SECOND":
        return decimals_of(rest, nulls_of(dense(value, length)), decimal(8, 6))
    size = np.abs(rest) // SIZES[word]
    return array_of(np.where(rest < 0, -size, size), nulls_of(dense(value, length)), call.type)


def make_year_month(call: Call, length: int, years: Datum, months: Datum) -> Datum:
    y, m = (units_of(part, INT, length) for part in (years, months))
    return _as_intervals(call, 12 * y + m, np.zeros(length, bool), (years, months))
