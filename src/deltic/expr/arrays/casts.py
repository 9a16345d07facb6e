"""CAST of columns. A row that has no value in the target raises the interpreter's CastFailure, or is NULL in TRY_CAST.

Every cast is a function (array, source, target) -> (array, mask of failed rows or None); the values of failed rows are undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import CastFailure, EvaluationError, Span
from deltic.expr.arrays.arithmetic import rounded_units, saturated
from deltic.expr.arrays.dates import DAY, FIRST_MICRO, LAST_MICRO, SECOND
from deltic.expr.arrays.datum import Mask, array_of, fail_at, nulls_of, truths, values_of, without
from deltic.expr.arrays.decimals import NARROW, decimals_of, digits_of, misfits, rescale, scaled_up, truncated_quotient, units_of, wide
from deltic.expr.arrays.distinct import apply_distinct
from deltic.expr.nodes import Cast
from deltic.expr.rows.casts import cast_value
from deltic.expr.typing import SECONDS_OF_DAY
from deltic.intervals import SIZES, UNITS
from deltic.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER_BITS,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Type,
    decimal,
)
from deltic.times import unit_of

Outcome = tuple[pa.Array, Mask | None]

_WHOLE: Final = r"^-?[0-9]{1,18}$"
_YEAR: Final = r"^([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"  # not 0000, which Arrow would take
_MOMENT: Final = _YEAR + r"-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
_PLAIN: Final = {
    "DOUBLE": r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$",
    "DATE": _YEAR + r"-[0-9]{2}-[0-9]{2}$",
    "TIMESTAMP": _MOMENT,
    "TIMESTAMP_NTZ": _MOMENT,
    "TIME": r"^[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$",
}
_EXACT: Final = 2**53
_MAX_POWER: Final = 22  # 10^22 is the greatest power of ten that is a double


def cast_array(node: Cast, array: pa.Array) -> pa.Array:
    """The values of `node.argument` cast to `node.type`. Raises CastFailure with the first row that fails, unless lenient."""
    source, target = node.argument.type, node.type
    if source == NULL:
        return pa.nulls(len(array), target.arrow)
    if source.is_collated or target.is_collated:
        return array  # only the collation differs
    by_value = source.is_nested or VARIANT in (source, target)
    route = partial(_by_value, lenient=node.lenient, span=node.span) if by_value else _route(source, target)
    result, bad = route(array, source, target)
    if bad is None or not bad.any():
        return result
    if not node.lenient:
        fail_at(bad, lambda value: cast_value(value, source, target, node.span), array)
    elif target == TIMESTAMP and source.is_numeric:
        # A finite number is a valid timestamp in Spark, but outside our calendar.
        finite = np.isfinite(values_of(array, source)) if source.is_float else True
        fail_at(bad & finite, lambda value: cast_value(value, source, target, node.span), array)
    return without(result, bad, target)


def _route(source: Type, target: Type) -> Callable[[pa.Array, Type, Type], Outcome]:
    if source == BINARY:
        return _from_binary
    if source.is_interval or target.is_interval:
        return _interval
    if target == STRING:
        return _to_string
    if source == STRING:
        return _from_string
    if source.is_time:
        return _from_time
    if source in (TIMESTAMP, TIMESTAMP_NTZ):
        return _from_timestamp
    if source == DATE:
        return _date_to_timestamp
    if target == BOOLEAN:
        return _to_boolean
    if target == TIMESTAMP:
        return _to_timestamp
    if source.is_decimal:
        return _from_decimal
    return _from_float if source.is_float else _from_integer


def _by_value(array: pa.Array, source: Type, target: Type, *, lenient: bool = False, span: Span | None = None) -> Outcome:
    """Casts each distinct value once with the interpreter; failed where it fails."""
    failed = object()
    seen: list[Any] = []

    def run(value: Any) -> int:
        try:
            seen.append(cast_value(value, source, target, span, lenient=lenient))
        except EvaluationError as error:
            if lenient and not isinstance(error, CastFailure):
                raise
            seen.append(failed)
        return len(seen) - 1

    which = apply_distinct(run, [array], len(array), BIGINT)
    results = pa.array([None if value is failed else value for value in seen], target.arrow)
    wrong = pa.array([value is failed for value in seen], pa.bool_())
    return results.take(which), truths(wrong.take(which), len(array)) if seen else None


def _interval(array: pa.Array, source: Type, target: Type) -> Outcome:
    """Between intervals, and from an interval to an integer; others by value."""
    if not source.is_interval or not (target.is_interval or target.is_integer):
        return _by_value(array, source, target)
    units = values_of(array, source).astype(np.int64)
    if target.is_interval:
        return array_of(units - np.fmod(units, UNITS[target.fields[1]]), nulls_of(array), target), None
    size = SIZES[source.fields[1]]
    numbers = np.where(units < 0, -(-units // size), units // size)
    half = 1 << (INTEGER_BITS[target.name] - 1)
    bad = (numbers < -half) | (numbers >= half) if target != BIGINT else np.zeros(len(units), bool)
    return array_of(np.where(bad, 0, numbers), nulls_of(array), target), bad


def _from_binary(array: pa.Array, source: Type, target: Type) -> Outcome:
    try:
        return array.cast(target.arrow), None
    except pa.ArrowInvalid:
        return _by_value(array, source, target)


def _to_string(array: pa.Array, source: Type, target: Type) -> Outcome:
    if source.is_integer or source in (BOOLEAN, DATE):
        return array.cast(target.arrow), None
    if source in (TIMESTAMP, TIMESTAMP_NTZ):
        text = array.view(pa.timestamp("us")).cast(target.arrow)
        return pc.replace_substring_regex(text, r"\.?0*$", ""), None
    if source.is_time:
        return pc.replace_substring_regex(array.cast(target.arrow), r"\.?0*$", ""), None
    return _by_value(array, source, target)


def _from_string(array: pa.Array, source: Type, target: Type) -> Outcome:
    """Arrow parses the plain forms of most data; other forms are parsed once per distinct value."""
    if target == BINARY:
        return array.cast(target.arrow), None
    form = _WHOLE if target.is_integer else _PLAIN.get(target.name)
    if form is not None and pc.all(pc.match_substring_regex(array, form)).as_py() is True:
        try:
            return _read_plain(array, target), None
        except pa.ArrowInvalid:
            pass  # a month 13, or a number out of range: parse by value to get the row
    return _by_value(array, source, target)


def _read_plain(array: pa.Array, target: Type) -> pa.Array:
    if target in (TIMESTAMP, TIMESTAMP_NTZ):
        return array.cast(pa.timestamp("us")).view(target.arrow)
    if target.is_time:  # Arrow parses no times without a date
        return pc.binary_join_element_wise("1970-01-01", array, " ").cast(pa.timestamp("us")).cast(target.arrow)
    return array.cast(target.arrow)


def _to_boolean(array: pa.Array, source: Type, target: Type) -> Outcome:
    if source.is_decimal:
        units = units_of(array, source)
        return array_of(np.asarray(units != 0, bool), nulls_of(array), BOOLEAN), None
    return pc.not_equal(array, pa.scalar(0, array.type)), None


def _from_integer(array: pa.Array, source: Type, target: Type) -> Outcome:
    """From an integer type or BOOLEAN."""
    if source == BOOLEAN:
        array, source = array.cast(pa.int64()), BIGINT
    if target.is_decimal:
        return _decimal_from_units(values_of(array, source).astype(np.int64), nulls_of(array), decimal(19, 0), target)
    if target.is_integer and INTEGER_BITS[target.name] < INTEGER_BITS[source.name]:
        values, half = values_of(array, source), 1 << (INTEGER_BITS[target.name] - 1)
        bad = (values < -half) | (values >= half)
        return array.cast(target.arrow, safe=False), bad
    return array.cast(target.arrow, safe=False), None


def _from_float(array: pa.Array, source: Type, target: Type) -> Outcome:
    if target.is_float:
        return array.cast(target.arrow, safe=False), None
    values, nulls = values_of(array, source).astype(np.float64), nulls_of(array)
    if target.is_decimal:
        return _decimal_from_doubles(array, values, source, target)
    limit = 2.0 ** (INTEGER_BITS[target.name] - 1)
    whole = np.trunc(values)
    # 2^63 is accepted: Spark compares with the double nearest to BIGINT's greatest value, which is 2^63.
    inside = (whole >= -limit) & ((whole < limit) | ((whole == limit) & (target == BIGINT)))
    bad = ~inside & ~np.asarray(nulls)
    return array_of(saturated(np.where(inside, whole, 0.0)), nulls, target), bad


def _decimal_from_doubles(array: pa.Array, values: np.ndarray, source: Type, target: Type) -> Outcome:
    """NaN and infinities become NULL. Values near a tie, or large, are cast one by one (see arithmetic.rounded_units)."""
    finite = np.isfinite(values)
    units, unsure = rounded_units(np.where(finite, values, 0.0), min(target.scale, _MAX_POWER))
    if target.scale > _MAX_POWER or unsure.any():
        return _by_value(array, source, target)
    signed = np.where(values < 0, -units, units).astype(np.int64)
    nulls = nulls_of(array) | ~finite
    return decimals_of(signed, nulls, target), misfits(signed, nulls, target.precision)


def _decimal_from_units(units: np.ndarray, nulls: Mask | bool, source: Type, target: Type) -> Outcome:
    scaled = rescale(units, source.scale, target.scale, digits_of(units, source.precision))
    bad = misfits(scaled, nulls, target.precision)
    return decimals_of(scaled, nulls | bad, target), bad


def _from_decimal(array: pa.Array, source: Type, target: Type) -> Outcome:
    units, nulls = units_of(array, source), nulls_of(array)
    if target.is_decimal:
        return _decimal_from_units(units, nulls, source, target)
    if target.is_float:
        return _float_from_decimal(array, units, source, target)
    whole = truncated_quotient(wide(units) if source.scale > NARROW else units, 10**source.scale)
    half = 1 << (INTEGER_BITS[target.name] - 1)
    bad = np.asarray((whole < -half) | (whole >= half), bool)
    return array_of(np.where(bad, 0, whole).astype(np.int64), nulls, target), bad


def _float_from_decimal(array: pa.Array, units: np.ndarray, source: Type, target: Type) -> Outcome:
    """Correctly rounded, as a quotient of two exact doubles is; wider units use Python's quotient of integers, which is exact too."""
    if target == FLOAT:
        return _by_value(array, source, target)
    if source.scale <= _MAX_POWER and units.dtype == np.int64 and bool((np.abs(units) < _EXACT).all()):
        return array_of(units / 10.0**source.scale, nulls_of(array), DOUBLE), None
    return array_of((wide(units) / 10**source.scale).astype(np.float64), nulls_of(array), DOUBLE), None


def _date_to_timestamp(array: pa.Array, source: Type, target: Type) -> Outcome:
    return array_of(values_of(array, DATE).astype(np.int64) * DAY, nulls_of(array), target), None


def _from_timestamp(array: pa.Array, source: Type, target: Type) -> Outcome:
    if target in (TIMESTAMP, TIMESTAMP_NTZ):
        return array.view(target.arrow), None
    micros, nulls = values_of(array, TIMESTAMP), nulls_of(array)
    if target == DATE:
        return array_of(micros // DAY, nulls, DATE), None
    if target.is_decimal:
        return _decimal_from_units(micros, nulls, decimal(NARROW, 6), target)
    if target.is_float:
        return array_of(micros / SECOND, nulls, target), None
    seconds, half = micros // SECOND, 1 << (INTEGER_BITS[target.name] - 1)
    bad = (seconds < -half) | (seconds >= half)
    return array_of(np.where(bad, 0, seconds), nulls, target), bad


def _from_time(array: pa.Array, source: Type, target: Type) -> Outcome:
    micros, nulls = values_of(array, source), nulls_of(array)
    if target.is_time:
        return array_of(micros - micros % unit_of(target.precision), nulls, target), None
    if target.is_decimal:
        return _decimal_from_units(micros, nulls, SECONDS_OF_DAY, target)
    seconds, half = micros // SECOND, 1 << (INTEGER_BITS[target.name] - 1)
    return array_of(np.where(bad := seconds >= half, 0, seconds), nulls, target), bad


def _to_timestamp(array: pa.Array, source: Type, target: Type) -> Outcome:
    """From seconds since 1970, truncated to microseconds; fails outside the years 1 to 9999."""
    nulls = nulls_of(array)
    if source.is_float:
        with np.errstate(all="ignore"):
            scaled = np.trunc(values_of(array, source).astype(np.float64) * SECOND)
        bad = ~((scaled >= FIRST_MICRO) & (scaled <= LAST_MICRO)) & ~np.asarray(nulls)
        return array_of(np.where(bad, 0, scaled).astype(np.int64), nulls, TIMESTAMP), bad
    if source.is_decimal:
        units = scaled_up(wide(units_of(array, source)), 6, source.precision)
        micros = truncated_quotient(units, 10**source.scale)
    else:
        micros = wide(values_of(array, source)) * SECOND
    bad = np.asarray((micros < FIRST_MICRO) | (micros > LAST_MICRO), bool)
    return array_of(np.where(bad, 0, micros).astype(np.int64), nulls, TIMESTAMP), bad
