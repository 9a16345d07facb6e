"""Functions of times of day on columns: microseconds since midnight as integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from deltic.expr.arrays.dates import DAY
from deltic.expr.arrays.datum import Datum, Kernel, array_of, dense, fail_at, nulls_of, strict_nulls, values_of
from deltic.expr.arrays.decimals import decimals_of
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.nodes import Call
from deltic.expr.registry import row_form
from deltic.schema import BIGINT, DATE, TIME
from deltic.times import SECOND, SIZES, unit_of

_FAR = 2 * DAY


def _micros(datum: Datum, length: int) -> np.ndarray:
    """int64[length], 0 where NULL."""
    values: np.ndarray = values_of(dense(datum, length), TIME)
    return values


def _in_day(call: Call, micros: np.ndarray, *arguments: Datum) -> pa.Array:
    """The times of the call's type. Raises ArithmeticOverflow where they are outside the day."""
    nulls = strict_nulls(*arguments)
    fail_at(((micros < 0) | (micros >= DAY)) & ~np.asarray(nulls), row_form(call), *arguments)
    return array_of(micros - micros % unit_of(call.type.precision), nulls, call.type)


def moved(sign: int) -> Kernel:
    """Kernel: (TIME, day-time INTERVAL), added up or subtracted."""

    def kernel(call: Call, length: int, value: Datum, by: Datum) -> Datum:
        steps = np.clip(values_of(dense(by, length), call.arguments[1].type), -_FAR, _FAR)  # further is outside the day as well
        return _in_day(call, _micros(value, length) + sign * steps, value, by)

    return kernel


def between(call: Call, length: int, end: Datum, start: Datum) -> Datum:
    return array_of(_micros(end, length) - _micros(start, length), strict_nulls(end, start), call.type)


def of_count(size: int) -> Kernel:
    """Kernel: so many units of `size` microseconds after midnight."""

    def kernel(call: Call, length: int, count: Datum) -> Datum:
        units = values_of(dense(count, length), BIGINT)
        return _in_day(call, np.clip(units, -1, DAY) * size, count)  # DAY units are outside the day as well

    return kernel


def count_of(size: int) -> Kernel:
    """Kernel: whole units of `size` microseconds since midnight."""
    return lambda call, length, value: array_of(_micros(value, length) // size, nulls_of(dense(value, length)), BIGINT)


def seconds(call: Call, length: int, value: Datum) -> Datum:
    return decimals_of(_micros(value, length), nulls_of(dense(value, length)), call.type)


def second_fraction(call: Call, length: int, value: Datum) -> Datum:
    micros = _micros(value, length) % (60 * SECOND)
    return decimals_of(micros - micros % unit_of(call.arguments[0].type.precision), nulls_of(dense(value, length)), call.type)


def _size(unit: Datum) -> int | None:
    """Of a constant unit; None of another one, and of a unit that is unknown."""
    return SIZES.get(str(unit.as_py()).upper()) if isinstance(unit, pa.Scalar) else None


def truncate(call: Call, length: int, unit: Datum, value: Datum) -> Datum:
    size = _size(unit)
    if size is None:
        return per_distinct(call, length, unit, value)
    micros = _micros(value, length)
    return array_of(micros - micros % size, nulls_of(dense(value, length)), call.type)


def difference(call: Call, length: int, unit: Datum, start: Datum, end: Datum) -> Datum:
    size = _size(unit)
    if size is None:
        return per_distinct(call, length, unit, start, end)
    micros = _micros(end, length) - _micros(start, length)
    return array_of(np.where(micros < 0, -(-micros // size), micros // size), strict_nulls(start, end), BIGINT)


def date_at_time(call: Call, length: int, day: Datum, time: Datum) -> Datum:
    days = values_of(dense(day, length), DATE).astype(np.int64)
    return array_of(days * DAY + _micros(time, length), strict_nulls(day, time), call.type)
