"""DECIMAL columns as unscaled integers ("units"): int64 if they fit, by the type's precision or as they are, else Python integers.

Units of precision p have at most p digits; 18 digits fit int64, and so does the sum of two. Rounding is half up (away from zero). Units
are 0 where NULL.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.expr.arrays.datum import Datum, Mask, nulls_of, validity
from deltic.expr.rows.numbers import cut_units
from deltic.schema import Type

NARROW: Final = 18  # digits that int64 holds, with room to add two such numbers
_LOW: Final = (1 << 64) - 1


def units_of(datum: Datum, type: Type) -> Any:
    """int64[n], or object[n] for a type of more than 18 digits with a value beyond ±2^62; one integer for a constant."""
    if isinstance(datum, pa.Scalar):
        return int(datum.as_py().scaleb(type.scale)) if datum.is_valid and type.precision <= NARROW else _wide_constant(datum, type)
    length = len(datum)
    if not length:
        return np.empty(0, np.int64 if type.precision <= NARROW else object)
    words = np.frombuffer(datum.buffers()[1], np.int64, count=2 * (datum.offset + length)).reshape(-1, 2)[datum.offset :]
    if type.precision <= NARROW or not (words[:, 0] >> 62 != words[:, 1]).any():
        units: np.ndarray = words[:, 0]
    else:
        units = words[:, 1].astype(object) * (_LOW + 1) + np.ascontiguousarray(words[:, 0]).view(np.uint64).astype(object)
    return np.where(nulls_of(datum), 0, units) if datum.null_count else units


def _wide_constant(datum: pa.Scalar, type: Type) -> int:
    array = pa.repeat(datum, 1)
    return int(units_of(array, type)[0])


def decimals_of(units: np.ndarray, nulls: Mask | bool, type: Type) -> pa.Array:
    """An Arrow array of `type`; the units fit it where not NULL."""
    words = np.empty((len(units), 2), np.int64)
    if units.dtype == object:
        kept = np.where(nulls, 0, units)
        words[:, 0] = (kept & _LOW).astype(np.uint64).view(np.int64) if len(units) else 0
        words[:, 1] = (kept >> 64).astype(np.int64) if len(units) else 0
    else:
        words[:, 0], words[:, 1] = units, units >> 63
    return pa.Array.from_buffers(type.arrow, len(units), [validity(nulls, len(units)), pa.py_buffer(words)])


def wide(units: Any) -> Any:
    """The units as Python integers, which do not overflow."""
    return units.astype(object) if isinstance(units, np.ndarray) else int(units)


def digits_of(units: Any, most: int) -> int:
    """An upper bound of the units' digits. most: another one, by their type."""
    if most <= NARROW or (isinstance(units, np.ndarray) and units.dtype == object):
        return most
    if not isinstance(units, np.ndarray):
        return min(most, len(str(abs(units))))
    return min(most, len(str(max(-int(units.min()), int(units.max()), 0)))) if len(units) else 0


def scaled_up(units: Any, places: int, digits: int) -> Any:
    """units·10^places. digits: an upper bound of the units' digits."""
    if digits + places > NARROW:
        units = wide(units)
    return units * 10**places


def rescale(units: Any, source: int, target: int, digits: int) -> Any:
    """Units of scale `source` converted to scale `target`."""
    if target >= source:
        return scaled_up(units, target - source, digits)
    return half_up_quotient(units, 10 ** (source - target), digits)


def half_up_quotient(units: Any, divisor: Any, digits: int) -> Any:
    """units/divisor, rounded half away from zero; the divisor is not 0. digits: an upper bound of the digits of both."""
    if digits >= NARROW or (isinstance(divisor, int) and divisor >= 10**NARROW):
        units, divisor = wide(units), wide(divisor)
    size, by = abs(units), abs(divisor)
    quotient = (2 * size + by) // (2 * by)
    return np.where((units < 0) != (divisor < 0), -quotient, quotient)


def truncated_quotient(units: Any, divisor: Any) -> Any:
    """units/divisor towards zero, for a divisor other than 0."""
    quotient = abs(units) // abs(divisor)
    return np.where((units < 0) != (divisor < 0), -quotient, quotient)


def remainder(units: Any, divisor: Any) -> Any:
    """units % divisor, with the sign of `units`."""
    rest = abs(units) % abs(divisor)
    return np.where(units < 0, -rest, rest)


def misfits(units: np.ndarray, nulls: Mask | bool, precision: int) -> Mask:
    """Mask: not NULL and more than `precision` digits."""
    if units.dtype != object and precision > NARROW:
        return np.zeros(len(units), bool)
    bad: Mask = np.asarray(abs(units) >= 10**precision, bool) & ~np.asarray(nulls)
    return bad


def cut_product(units: Any) -> Any:
    """Products rounded to 39 significant digits, as by the Java multiplication that Spark uses."""
    if not isinstance(units, np.ndarray):
        return _cut_product(units)
    long = np.flatnonzero(abs(units) >= 10**39) if units.dtype == object else ()
    if not len(long):
        return units
    cut = units.copy()
    cut[long] = [_cut_product(value) for value in units[long]]
    return cut


def _cut_product(units: int) -> int:
    surplus = len(str(abs(units))) - 39
    if surplus <= 0:
        return units
    by: int = 10**surplus
    size = (2 * abs(units) + by) // (2 * by) * by
    return -size if units < 0 else size


cut_sign: Final = np.frompyfunc(cut_units, 1, 1)
"""Units rounded to 34 significant digits."""
