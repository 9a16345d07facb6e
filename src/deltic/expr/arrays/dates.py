"""Date and time functions on columns: days and microseconds since 1970 as integers. Results stay in the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.expr.arrays.datum import Datum, Kernel, Mask, array_of, dense, fail_at, nulls_of, strict_nulls, values_of
from deltic.expr.arrays.decimals import decimals_of
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.nodes import Call
from deltic.expr.registry import row_form
from deltic.expr.rows.dates import DATE_UNITS, TIME_UNITS
from deltic.schema import BIGINT, DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, Type, decimal

SECOND: Final = 1_000_000
DAY: Final = 86400 * SECOND
FIRST_DAY: Final = -719162  # 0001-01-01
LAST_DAY: Final = 2932896  # 9999-12-31
FIRST_MICRO: Final = FIRST_DAY * DAY
LAST_MICRO: Final = (LAST_DAY + 1) * DAY - 1
CALENDAR: Final = {DATE: (FIRST_DAY, LAST_DAY), **dict.fromkeys((TIMESTAMP, TIMESTAMP_NTZ), (FIRST_MICRO, LAST_MICRO))}
"""The first and the last value of a type."""
_MOST_DAYS: Final = 4_000_000  # more months than the calendar
_FIRST_MONTH: Final = -1969 * 12
_LAST_MONTH: Final = 8030 * 12 - 1
_STEP: Final = {"DAY": DAY, "HOUR": 3600 * SECOND, "MINUTE": 60 * SECOND, "SECOND": SECOND, "MILLISECOND": 1000, "MICROSECOND": 1}


def part(function: Callable[..., Datum], **options: Any) -> Kernel:
    """Kernel: a part of a DATE as INT."""
    return lambda call, length, value: function(value, **options).cast(INT.arrow)


def clock(part: Callable[[np.ndarray], np.ndarray]) -> Kernel:
    """Kernel: a part of a TIMESTAMP or a TIME as INT."""

    def kernel(call: Call, length: int, value: Datum) -> Datum:
        return array_of(part(values_of(value, TIMESTAMP)), nulls_of(value), INT)

    return kernel


def second_fraction(call: Call, length: int, value: Datum) -> Datum:
    return decimals_of(values_of(value, TIMESTAMP) % (60 * SECOND), nulls_of(value), decimal(8, 6))


def unix_timestamp(call: Call, length: int, value: Datum) -> Datum:
    micros = values_of(value, TIMESTAMP)
    return array_of(np.where(micros < 0, -(-micros // SECOND), micros // SECOND), nulls_of(value), BIGINT)


def _shifted(call: Call, values: np.ndarray, arguments: tuple[Datum, ...], bad: Mask | bool = False) -> Datum:
    """The values as the call's type. Raises ArithmeticOverflow where `bad`, or where they leave the calendar."""
    first, last = CALENDAR[call.type]
    nulls = strict_nulls(*arguments)
    outside = (bad | (values < first) | (values > last)) & ~np.asarray(nulls)
    fail_at(outside, row_form(call), *arguments)
    return array_of(values, nulls, call.type)


def _add_days(sign: int) -> Kernel:
    def kernel(call: Call, length: int, value: Datum, days: Datum) -> Datum:
        base = values_of(dense(value, length), call.type).astype(np.int64)
        count = sign * values_of(dense(days, length), INT).astype(np.int64)
        far = np.abs(count) > _MOST_DAYS
        step = 1 if call.type == DATE else DAY
        return _shifted(call, base + np.where(far, 0, count) * step, (value, days), far)

    return kernel


def add_microseconds(call: Call, length: int, value: Datum, count: Datum) -> Datum:
    base, steps = values_of(dense(value, length), TIMESTAMP), values_of(dense(count, length), BIGINT)
    # A timestamp is below 2^58 in size, so a count within twice the calendar cannot wrap around.
    far = (steps > 2 * LAST_MICRO) | (steps < -2 * LAST_MICRO)
    return _shifted(call, base + np.where(far, 0, steps), (value, count), far)


def time_bucket(call: Call, length: int, months: Datum, size: Datum, value: Datum, origin: Datum) -> Datum:
    """Buckets of a fixed length at once; those of months once for each time."""
    if not isinstance(months, pa.Scalar) or not isinstance(size, pa.Scalar) or months.as_py() != 0 or not size.is_valid:
        return per_distinct(call, length, months, size, value, origin)
    times, start = values_of(dense(value, length), TIMESTAMP), values_of(dense(origin, length), TIMESTAMP)
    return _shifted(call, times - (times - start) % size.as_py(), (months, size, value, origin))


def add_months(call: Call, length: int, value: Datum, count: Datum) -> Datum:
    base = values_of(dense(value, length), call.type)
    days, rest = (base.astype(np.int64), 0) if call.type == DATE else np.divmod(base, DAY)
    month, day = _month_and_day(days)
    target = month + values_of(dense(count, length), INT)
    far = (target < _FIRST_MONTH) | (target > _LAST_MONTH)
    start, size = _month_start_and_size(np.where(far, 0, target))
    moved = start + np.minimum(day, size - 1)
    return _shifted(call, moved if call.type == DATE else moved * DAY + rest, (value, count), far)


def _month_and_day(days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(months since 1970, days since the month's first)."""
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    return months.astype(np.int64), (dates - months.astype("M8[D]")).astype(np.int64)


def _month_start_and_size(months: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the month's first day since 1970, its number of days)."""
    start = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    return start, (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64) - start


def last_day(call: Call, length: int, value: Datum) -> Datum:
    month, _ = _month_and_day(values_of(value, DATE))
    start, size = _month_start_and_size(month)
    return array_of(start + size - 1, nulls_of(value), DATE)


def datediff(call: Call, length: int, end: Datum, start: Datum) -> Datum:
    difference = values_of(dense(end, length), DATE) - values_of(dense(start, length), DATE)
    return array_of(difference, strict_nulls(end, start), INT)


def make_date(call: Call, length: int, year: Datum, month: Datum, day: Datum) -> Datum:
    y, m, d = (values_of(dense(part, length), INT).astype(np.int64) for part in (year, month, day))
    months = np.where((y < 1) | (y > 9999) | (m < 1) | (m > 12), _FIRST_MONTH - 1, (y - 1970) * 12 + m - 1)
    start, size = _month_start_and_size(months)
    bad = (months < _FIRST_MONTH) | (d < 1) | (d > size)
    return _shifted(call, start + np.where(bad, 0, d - 1), (year, month, day), bad)


def truncated_days(days: np.ndarray, unit: str) -> np.ndarray:
    """The first day of the YEAR, QUARTER, MONTH or WEEK that contains each day."""
    if unit == "WEEK":
        monday: np.ndarray = days - (days + 3) % 7  # 1970-01-01 was a Thursday
        return monday
    months, _ = _month_and_day(days)
    size = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[unit]
    start, _ = _month_start_and_size(months - months % size)
    return start


def _truncated(values: np.ndarray, unit: str, type: Type) -> np.ndarray | None:
    """The values truncated to the unit; None for an unknown unit."""
    if (name := DATE_UNITS.get(unit.upper())) is not None:
        return truncated_days(values, name) if type == DATE else truncated_days(values // DAY, name) * DAY
    if type == DATE or (name := TIME_UNITS.get(unit.upper())) is None:
        return None
    whole: np.ndarray = values - values % _STEP[name]
    return whole


def truncate(call: Call, value: Datum, unit: Datum, length: int) -> Datum:
    values = values_of(dense(value, length), call.type)
    nulls = np.array(np.broadcast_to(strict_nulls(value, unit), length))
    result = np.zeros(length, np.int64)
    words = dense(unit, length)
    for word in words.unique().to_pylist() if isinstance(unit, pa.Array) else [unit.as_py()]:
        if word is not None:
            rows = np.asarray(pc.equal(words, word).fill_null(False).to_numpy(zero_copy_only=False))
            part = _truncated(values[rows], word, call.type)
            nulls[rows] |= part is None
            result[rows] = 0 if part is None else part
    return array_of(result, nulls if nulls.any() else False, call.type)


add_days: Final = _add_days(1)
subtract_days: Final = _add_days(-1)
