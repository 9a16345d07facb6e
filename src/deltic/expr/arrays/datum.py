"""Columns and constants, and conversions between Arrow and NumPy.

A Datum is a pa.Array, or a pa.Scalar for a value that is the same on every row. Kernels get at least one array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import EvaluationError
from deltic.expr.failures import at_row
from deltic.schema import Type
from deltic.types import frozen

Datum: TypeAlias = pa.Array | pa.Scalar
Mask: TypeAlias = np.ndarray
"""bool[n]."""
Kernel: TypeAlias = Callable[..., Datum]
"""(call, length, *arguments) -> value."""


def dense(datum: Datum, length: int) -> pa.Array:
    """The datum as an array of `length`."""
    if not isinstance(datum, pa.Scalar):
        return datum
    return pa.repeat(datum, length) if length else pa.array([], datum.type)  # Arrow cannot repeat an ARRAY no times


def nulls_of(datum: Datum) -> Mask | bool:
    """Where the datum is NULL: bool[n], or one bool for all rows."""
    if isinstance(datum, pa.Scalar):
        return not datum.is_valid
    return _bools(datum.is_null()) if datum.null_count else False


def _bools(array: pa.Array) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def truths(datum: Datum, length: int) -> Mask:
    """bool[length]: where a BOOLEAN is TRUE (not NULL)."""
    if isinstance(datum, pa.Scalar):
        return np.full(length, datum.as_py() is True)
    return _bools(datum.fill_null(False) if datum.null_count else datum)


def values_of(datum: Datum, type: Type) -> Any:
    """The values of a fixed-width type other than BOOLEAN and DECIMAL as a NumPy array (dates in days, timestamps in
    microseconds), 0 where NULL; one number for a constant. Zero-copy where there are no NULLs.
    """
    if isinstance(datum, pa.Scalar):
        array = pa.repeat(datum, 1)
        return values_of(array, type)[0]
    dtype = np.dtype(type.kind.stored)
    if not len(datum):
        return np.empty(0, dtype)
    whole = np.frombuffer(datum.buffers()[1], dtype, count=datum.offset + len(datum))[datum.offset :]
    return np.where(nulls_of(datum), dtype.type(0), whole) if datum.null_count else whole


def array_of(values: np.ndarray, nulls: Mask | bool, type: Type) -> pa.Array:
    """The values as an Arrow array of `type`."""
    if type.kind.stored == "bits":
        return pa.array(values, pa.bool_(), mask=_mask(nulls, len(values)))
    data = np.ascontiguousarray(values, np.dtype(type.kind.stored))
    return pa.Array.from_buffers(type.arrow, len(data), [validity(nulls, len(data)), pa.py_buffer(data)])


def _mask(nulls: Mask | bool, length: int) -> Mask | None:
    if isinstance(nulls, np.ndarray):
        return nulls
    return np.ones(length, bool) if nulls else None


def validity(nulls: Mask | bool, length: int) -> pa.Buffer | None:
    """Arrow's validity bitmap; None if there are no NULLs."""
    mask = _mask(nulls, length)
    return None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))


def choosable(datum: Datum, length: int, type: Type) -> Datum:
    """The datum in a form that Arrow can choose from: it has none for constants in which a NULL has no type."""
    return dense(datum, length) if type.is_nested else datum


def without(array: pa.Array, nulls: Mask | bool, type: Type) -> pa.Array:
    """The array with NULL also where `nulls`."""
    return array if nulls is False else pc.if_else(pa.array(_mask(nulls, len(array))), pa.scalar(None, type.arrow), array)


def python_value(datum: Datum, row: int = 0) -> Any:
    """The value of a row, as the interpreter represents it."""
    return frozen((datum if isinstance(datum, pa.Scalar) else datum[row]).as_py())


def fail_at(bad: Mask, run: Callable[..., Any], *arguments: Datum) -> None:
    """Raises the error of `run` on the values of the first bad row, with `row` set. Does nothing if no row is bad."""
    if not bad.any():
        return
    row = int(bad.argmax())
    try:
        run(*(python_value(a, row) for a in arguments))
    except EvaluationError as error:
        raise at_row(error, row) from None
    raise AssertionError("expected the row form to fail on a bad row")


def strict_nulls(*arguments: Datum) -> Mask | bool:
    """Mask of the rows where any argument is NULL; one bool if it is the same for all."""
    nulls: Mask | bool = False
    for argument in arguments:
        nulls = nulls | nulls_of(argument)
    return nulls
