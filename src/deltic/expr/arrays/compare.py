"""Comparisons of columns: NaN equals NaN and is greatest, -0.0 equals 0.0, strings by their UTF-8 bytes (as Arrow compares them)."""

from __future__ import annotations

import math
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from deltic.canonical import key_bytes, normalized
from deltic.expr.arrays.datum import Datum, Kernel, array_of, dense, nulls_of, values_of
from deltic.expr.nodes import Call
from deltic.schema import BOOLEAN, NULL, TINYINT, Type

_PLAIN: Final = {
    "equal": pc.equal,
    "not_equal": pc.not_equal,
    "less": pc.less,
    "less_equal": pc.less_equal,
    "greater": pc.greater,
    "greater_equal": pc.greater_equal,
}
_MIRRORED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def compare(name: str, type: Type, left: Datum, right: Datum) -> Datum:
    """BOOLEAN: the comparison of two operands of one type; NULL where either is."""
    if type == NULL:
        return pa.scalar(None, pa.bool_())
    if type.is_float:
        return _compare_floats(name, left, right)
    if type.is_nested:
        left, right = (_key_bytes(side, type) for side in (left, right))
    elif type == BOOLEAN:
        left, right = left.cast(TINYINT.arrow), right.cast(TINYINT.arrow)
    return _PLAIN[name](left, right)


def _key_bytes(datum: Datum, type: Type) -> Datum:
    """Bytes that compare as the nested values do."""
    return key_bytes(pa.repeat(datum, 1), type)[0] if isinstance(datum, pa.Scalar) else key_bytes(datum, type)


def _compare_floats(name: str, left: Datum, right: Datum) -> Datum:
    if _is_number(left) and name in _MIRRORED:
        left, right, name = right, left, _MIRRORED[name]
    if _is_number(right) or (_is_number(left) and name not in _MIRRORED):
        plain = _PLAIN[name](left, right)
        # In IEEE every comparison with NaN except <> is false; here NaN > number is true.
        return pc.or_(plain, pc.is_nan(left)) if name in ("greater", "greater_equal") else plain
    match name:
        case "equal":
            return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))
        case "not_equal":
            return pc.invert(_compare_floats("equal", left, right))
        case "greater":
            return pc.or_(pc.greater(left, right), pc.and_not(pc.is_nan(left), pc.is_nan(right)))
        case "less":
            return _compare_floats("greater", right, left)
        case "less_equal":
            return pc.invert(_compare_floats("greater", left, right))
        case _:
            return pc.invert(_compare_floats("greater", right, left))


def _is_number(datum: Datum) -> bool:
    return isinstance(datum, pa.Scalar) and datum.is_valid and not math.isnan(datum.as_py())


def same(type: Type, left: Datum, right: Datum) -> Datum:
    """<=>: NULL equals NULL; the result is never NULL."""
    equal = compare("equal", type, left, right)
    if not equal.null_count if isinstance(equal, pa.Array) else equal.is_valid:
        return equal
    return pc.or_(pc.fill_null(equal, False), pc.and_(pc.is_null(left), pc.is_null(right)))


def comparison(name: str) -> Kernel:
    """A comparison of two columns of one type."""

    def kernel(call: Call, length: int, left: Datum, right: Datum) -> Datum:
        return compare(name, call.arguments[0].type, left, right)

    return kernel


def extreme(comparison: str) -> Kernel:
    """GREATEST and LEAST: of equal extremes the first; NULLs are skipped."""

    def kernel(call: Call, length: int, *values: Datum) -> Datum:
        best = values[0]
        for value in values[1:]:
            better = pc.fill_null(compare(comparison, call.type, value, best), False)
            best = pc.if_else(pc.or_(better, pc.is_null(best)), value, best)
        return best

    return kernel


def isnan(call: Call, length: int, value: Datum) -> Datum:
    return pc.fill_null(pc.is_nan(value), False)


def normalize(call: Call, length: int, value: Datum) -> Datum:
    """0.0 for -0.0, and one NaN."""
    return normal(dense(value, length), call.type)


def normal(array: pa.Array, type: Type) -> pa.Array:
    """As `normalize`, of a type with such values."""
    if type.is_nested:
        return normalized(array, type)
    values = values_of(array, type) + 0.0
    values[values != values] = math.nan
    return array_of(values, nulls_of(array), type)
