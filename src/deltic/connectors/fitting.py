"""One column made to fit one field, or refused by row and column.

What always holds: a column that comes back has exactly the field's Arrow type and denotes the same values as the one that came in
(FLOAT from Python's floats alone rounds, as in Spark). A kind of value that never fits is a FrameError; a value of a right kind
that does not fit, and NULL in a NOT NULL column, is a ConstraintViolation. Rows are counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.connectors.recognise import Column
from deltic.errors import ConstraintViolation, FrameError
from deltic.schema import Field, Type, outside_calendar

_MOST_PLACES: Final = 38


def fit(column: Column, field: Field, where: str) -> pa.ChunkedArray[Any]:
    """`column` as the field's type, NULLs not judged. Raises FrameError, ConstraintViolation. Zero-copy where nothing changes."""
    if isinstance(column, list):
        return _fit_values(column, field, where)
    plain = without_dictionary(column)
    target = field.type.arrow
    if plain.type == target:
        return plain
    if not may_become(plain.type, field.type):
        message = f"{where}, column {field.name}: found Arrow {column.type}"
        raise FrameError(message, expected=field.type.values, remedy="convert the column first")
    return _checked(lambda part: cast(part, field.type), plain, field, where)


def check_nulls(column: pa.ChunkedArray[Any], field: Field, where: str) -> None:
    """Raises ConstraintViolation for the first NULL of a NOT NULL field."""
    if not field.nullable and column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise ConstraintViolation(
            f"{where}, row {row}, column {field.name}: NULL in a NOT NULL column",
            expected=field.type.values,
            remedy=f"give a value, or declare {field.name} without NOT NULL",
        )


def check_calendar(column: pa.ChunkedArray[Any], field: Field, where: str) -> None:
    """Raises ConstraintViolation for a date or timestamp outside the years 1 to 9999. They could never be read again."""
    row = outside_calendar(field.type, column)
    if row >= 0:
        message = f"{where}, row {row}, column {field.name}: a {field.type.sql} outside the years 1 to 9999"
        raise ConstraintViolation(message, expected=field.type.values)


def without_dictionary(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    if not pa.types.is_dictionary(column.type):
        return column
    # A take, since Arrow casts no dictionary of string views (Polars' categories are such).
    value = pa.string() if pa.types.is_string_view(column.type.value_type) else column.type.value_type
    chunks: list[Any] = column.chunks
    return pa.chunked_array([chunk.dictionary.cast(value).take(chunk.indices) for chunk in chunks], type=value)


def may_become(found: pa.DataType, wanted: Type) -> bool:
    """Whether some values of the Arrow type `found` are values of `wanted`."""
    t = pa.types
    if t.is_null(found):
        return True
    if wanted.is_integer:
        return bool(t.is_integer(found))
    if wanted.is_float:
        return bool(t.is_integer(found) or (t.is_floating(found) and found.bit_width <= wanted.arrow.bit_width))
    if wanted.is_decimal:
        return bool(t.is_integer(found) or t.is_decimal(found))
    if wanted.name == "STRING":
        return bool(t.is_large_string(found) or t.is_string_view(found))
    if wanted.name == "DATE":
        return bool(t.is_date64(found))
    if wanted.name == "BINARY":
        return bool(t.is_large_binary(found) or t.is_binary_view(found) or t.is_fixed_size_binary(found))
    if wanted.name == "TIMESTAMP_NTZ":
        return bool(t.is_timestamp(found) and found.tz is None)
    return wanted.name == "TIMESTAMP" and bool(t.is_timestamp(found))


def cast(part: pa.ChunkedArray[Any], wanted: Type) -> pa.ChunkedArray[Any]:
    """Raises ArrowInvalid if a value is lost."""
    found, target = part.type, wanted.arrow
    if wanted.is_decimal and pa.types.is_integer(found):
        return part.cast(pa.decimal256(76, wanted.scale)).cast(target)  # from int64 Arrow wants room for 19 digits first
    return part.cast(target)


def _fit_values(values: list[object], field: Field, where: str) -> pa.ChunkedArray[Any]:
    """Python values are judged by their own types: Arrow's guess for a mixed list can lose parts of a value."""
    allowed = field.type.kind.python
    kinds = set(map(type, values)) - {type(None)}
    if any(issubclass(kind, np.generic) for kind in kinds):
        values = [v.item() if isinstance(v, np.generic) else v for v in values]
        kinds = set(map(type, values)) - {type(None)}
    wrong = {kind for kind in kinds if not _is_kind(kind, allowed)}
    if wrong:
        row = next(i for i, value in enumerate(values) if type(value) in wrong)
        found = f"{type(values[row]).__name__} {values[row]!r}"
        raise FrameError(f"{where}, row {row}, column {field.name}: found {found}", expected=field.type.values)
    if field.type.is_decimal and int in kinds:
        values = [Decimal(v) if isinstance(v, int) else v for v in values]
    return _checked(lambda part: _build(part, field.type), values, field, where)


def _is_kind(kind: type, allowed: tuple[type, ...]) -> bool:
    """bool is not an int here, nor datetime a date, though Python says that they are."""
    if kind is bool or issubclass(kind, datetime):
        return bool in allowed if kind is bool else datetime in allowed
    return issubclass(kind, allowed)


def _build(values: list[object], wanted: Type) -> pa.ChunkedArray[Any]:
    if wanted.is_decimal and any(isinstance(value, Decimal) and _is_too_fine(value) for value in values):
        raise pa.ArrowInvalid("digits far after the point, on which Arrow may crash")
    if wanted.name == "TIMESTAMP_NTZ" and any(isinstance(value, datetime) and value.tzinfo is not None for value in values):
        raise pa.ArrowInvalid("a time with a zone, which Arrow would leave out")
    array = pa.array(values, type=wanted.arrow)
    if wanted.name == "FLOAT":
        _refuse_new_infinities(array, pa.array(values, type=pa.float64()))
    return pa.chunked_array([array])


def _is_too_fine(value: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent < -_MOST_PLACES


def _refuse_new_infinities(narrow: pa.Array[Any], wide: pa.Array[Any]) -> None:
    if pc.any(pc.and_(pc.is_inf(narrow), pc.invert(pc.is_inf(wide))), min_count=0).as_py():
        raise pa.ArrowInvalid("out of range")


def _checked(convert: Callable[[Any], pa.ChunkedArray[Any]], column: Any, field: Field, where: str) -> pa.ChunkedArray[Any]:
    """convert(column), or a ConstraintViolation that names the first row it fails on."""
    try:
        return convert(column)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        row = _first_failure(convert, column)
    value = column[row] if isinstance(column, list) else shown(column[row])
    if isinstance(value, str) and "\\u" in ascii(value):  # half a character, which nobody could print, is written as its number
        value = value.encode("utf-8", "backslashreplace").decode()
    raise ConstraintViolation(f"{where}, row {row}, column {field.name}: {value} does not fit", expected=field.type.values)


def _first_failure(convert: Callable[[Any], object], column: Any) -> int:
    """The least row on which `convert` fails, in log n conversions; it fails on the whole column."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        if _fails(convert, column[low:middle]):
            high = middle
        else:
            low = middle
    return low


def _fails(convert: Callable[[Any], object], part: object) -> bool:
    try:
        convert(part)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return True
    return False


def shown(scalar: Any) -> object:
    """A value for a message; a timestamp may be beyond what Python's datetime holds."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, ImportError):
        return scalar.value
