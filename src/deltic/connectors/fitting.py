"""Converts one column to the type of one field, or refuses it with the row and column.

Invariant: a result has exactly the field's Arrow type and the same values as the input (only FLOAT from Python's floats is rounded,
as in Spark). A wrong class of values is a FrameError; a value out of the type's range, and NULL in a NOT NULL column, is a
ConstraintViolation. Rows are counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.connectors.list_views import without_list_views
from deltic.connectors.recognise import Column
from deltic.domains import has_nanoseconds, of_numpy, unfit, with_fields
from deltic.errors import ConstraintViolation, FrameError
from deltic.schema import BINARY, DATE, Field, Type
from deltic.variants import of_pyspark

MISSING: Final = ("NAType", "NaTType")
"""The classes of pandas' NULLs."""

_MOST_PLACES: Final = 38
_MONTH_DAY_NANO: Final = pa.month_day_nano_interval()
_MISFITS: Final = (pa.ArrowException, OverflowError, UnicodeEncodeError, ValueError, TypeError)


def fit(column: Column, field: Field, where: str) -> pa.ChunkedArray[Any]:
    """`column` converted to the field's type; NULLs are not checked. Raises FrameError, ConstraintViolation. Zero-copy if unchanged."""
    if isinstance(column, list):
        return _fit_values(column, field, where)
    plain = without_list_views(without_dictionary(column))
    arrow_type = field.type.arrow
    if plain.type == arrow_type:
        check_parts(plain, field, where)
        return plain
    if not may_become(plain.type, field.type):
        message = f"{where}, column {field.name}: found Arrow {column.type}"
        raise FrameError(message, expected=field.type.values, remedy=_column_conversion(plain.type, field))
    return _checked(lambda part: cast(part, field.type), plain, field, where)


def _column_conversion(found: pa.DataType, field: Field) -> str:
    """How a column of a frame becomes one of the field's type."""
    if pa.types.is_timestamp(found) and field.type == DATE:
        return f"in pandas frame['{field.name}'].dt.date, in Polars .dt.date(), in Arrow .cast('date32')"
    return "convert the column first"


def check_parts(column: pa.Array[Any] | pa.ChunkedArray[Any], field: Field, where: str) -> None:
    """Raises FrameError for texts that are not UTF-8, nested values beyond their buffers, and parts that are no values of their types."""
    if field.type.is_validated:
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            if pa.types.is_string(column.type) and (row := _malformed(column)) is not None:
                message = f"{where}, row {row}, column {field.name}: the text is not UTF-8"
                raise FrameError(message, expected=field.type.values, remedy="decode it, or declare the column as BINARY") from None
            raise FrameError(f"{where}, column {field.name}: the column is damaged: {error}", expected=field.type.values) from None


def _malformed(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> int | None:
    """The first row whose text is not UTF-8; None if the offsets of the column are wrong."""
    try:
        bytes_ = column.cast(pa.binary())
        bytes_.validate(full=True)
    except pa.ArrowInvalid:
        return None
    for row, value in enumerate(bytes_.to_pylist()):
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            return row
    return None


def check_nulls(column: pa.ChunkedArray[Any], field: Field, where: str) -> None:
    """Raises ConstraintViolation for the first NULL of a NOT NULL field."""
    if not field.nullable and column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise ConstraintViolation(
            f"{where}, row {row}, column {field.name}: NULL in a NOT NULL column",
            expected=field.type.values,
            remedy=f"give a value, or declare {field.name} without NOT NULL",
        )


def check_domain(column: pa.ChunkedArray[Any], field: Field, where: str) -> None:
    """Raises ConstraintViolation for a value that Arrow can represent and the type cannot, such as a date after the year 9999."""
    if (wrong := unfit(field.type, column)) is not None:
        message = f"{where}, row {wrong.row}, column {field.name}: {wrong.what}"
        raise ConstraintViolation(message, expected=field.type.values)


def with_lengths(column: pa.Array[Any] | pa.ChunkedArray[Any], target: Type) -> tuple[Any, Sequence[int]]:
    """(a column of CHAR(n) or VARCHAR(n) as it is stored, the rows that are too long).

    Blanks at the end that are too many are cut off; CHAR is filled with blanks up to n.
    """
    limit, text = target.precision, column
    rows: Sequence[int] = ()
    if (pc.max(pc.utf8_length(column)).as_py() or 0) > limit:
        rows = pc.indices_nonzero(pc.greater(pc.utf8_length(pc.utf8_rtrim(column, " ")), limit)).to_pylist()
        text = pc.if_else(pc.greater(pc.utf8_length(column), limit), pc.utf8_slice_codeunits(column, 0, limit), column)
    return (pc.utf8_rpad(text, limit, " ") if target.name == "CHAR" else text), rows


def check_lengths(column: pa.ChunkedArray[Any], field: Field, where: str) -> pa.ChunkedArray[Any]:
    """As `with_lengths`. Raises ConstraintViolation for a value that is too long."""
    text, rows = with_lengths(column, field.type)
    if rows:
        message = f"{where}, row {rows[0]}, column {field.name}: {len(column[rows[0]].as_py())} characters do not fit {field.type.sql}"
        raise ConstraintViolation(message, expected=f"at most {field.type.precision}, blanks at the end not counted")
    return text


def without_dictionary(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    if not pa.types.is_dictionary(column.type):
        return column
    # A take, since Arrow cannot cast a dictionary of string views, as Polars' categories are.
    value = pa.string() if pa.types.is_string_view(column.type.value_type) else column.type.value_type
    chunks: list[Any] = column.chunks
    return pa.chunked_array([chunk.dictionary.cast(value).take(chunk.indices) for chunk in chunks], type=value)


def may_become(source: pa.DataType, target: Type) -> bool:
    """Whether some values of the Arrow type `source` are values of `target`."""
    t = pa.types
    if t.is_null(source) or source == target.arrow:
        return True
    if target.is_nested:
        return _parts_may_become(source, target)
    if target.name == "VARIANT":
        return _is_of_parts(source)
    if target.is_integer:
        return bool(t.is_integer(source))
    if target.is_float:
        return bool(t.is_integer(source) or (t.is_floating(source) and source.bit_width <= target.arrow.bit_width))
    if target.is_decimal:
        return bool(t.is_integer(source) or t.is_decimal(source))
    if target.read.name == "STRING":
        return bool(t.is_large_string(source) or t.is_string_view(source))
    if target.name == "DATE":
        return bool(t.is_date64(source))
    if target.is_day_time:
        return bool(t.is_duration(source))
    if target.is_year_month:
        return bool(t.is_integer(source) or source == _MONTH_DAY_NANO)
    if target.is_time:
        return bool(t.is_time(source))
    if target.name == "BINARY":
        return bool(t.is_large_binary(source) or t.is_binary_view(source) or t.is_fixed_size_binary(source))
    if target.name == "TIMESTAMP_NTZ":
        return bool(t.is_timestamp(source) and source.tz is None)
    return target.name == "TIMESTAMP" and bool(t.is_timestamp(source))


def _parts_may_become(source: pa.DataType, target: Type) -> bool:
    """Whether the parts are those of the type, a STRUCT's fields by name (any case) and in its order, and may become what they must."""
    t = pa.types
    if target.name == "ARRAY":
        lists = t.is_list(source) or t.is_large_list(source) or t.is_fixed_size_list(source)
        return bool(lists) and may_become(source.value_type, target.parts[0].type)
    if target.name == "MAP":
        parts = [source.key_type, source.item_type] if t.is_map(source) else []
    elif not t.is_struct(source) or [part.name.lower() for part in source] != [part.name.lower() for part in target.parts]:
        return False
    else:
        parts = [part.type for part in source]
    types = [part.type for part in target.parts]
    return len(parts) == len(types) and all(map(may_become, parts, types))


def _is_of_parts(source: pa.DataType) -> bool:
    """Whether it has the two parts of a VARIANT, in any order; a shredded one has more."""
    parts = list(source) if pa.types.is_struct(source) else []
    return sorted(part.name for part in parts) == ["metadata", "value"] and all(may_become(part.type, BINARY) for part in parts)


def cast(part: pa.ChunkedArray[Any], target: Type) -> pa.ChunkedArray[Any]:
    """Raises ArrowInvalid if a value is lost."""
    source, arrow_type = part.type, target.arrow
    if target.is_decimal and pa.types.is_integer(source):
        return part.cast(pa.decimal256(76, target.scale)).cast(arrow_type)  # from int64, Arrow requires room for 19 digits first
    if source == _MONTH_DAY_NANO:
        return pa.chunked_array([_months(chunk.to_pylist()) for chunk in part.chunks], arrow_type)
    if target.held.is_nested and not pa.types.is_null(source):
        part = pa.chunked_array([with_fields(target, chunk) for chunk in part.chunks], None if part.num_chunks else source)
    if target.name == "STRUCT":
        return pa.chunked_array([_struct(chunk, target) for chunk in part.chunks], arrow_type)
    cast = part.cast(arrow_type)
    if not target.has_map:
        return cast
    # Arrow does not count the NULLs of keys that it has cast, and ends the process when it joins such chunks: taken rows are counted.
    return pa.chunked_array([chunk.take(pa.array(np.arange(len(chunk)))) for chunk in cast.chunks], arrow_type)


def _months(values: Sequence[object]) -> pa.Array[Any]:
    """Numbers of months. Raises ArrowInvalid for an interval with days or less."""
    return pa.array([_month_count(value) for value in values], pa.int32())


def _month_count(value: object) -> object:
    if isinstance(value, pa.MonthDayNano):
        if value.days or value.nanoseconds:
            raise pa.ArrowInvalid("an interval of months with days")
        return value.months
    return value


def _struct(chunk: pa.Array[Any], target: Type) -> pa.Array[Any]:
    """Field by field."""
    if pa.types.is_null(chunk.type):
        return chunk.cast(target.arrow)
    parts = [cast(pa.chunked_array([part]), f.type).combine_chunks() for part, f in zip(chunk.flatten(), target.parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=list(target.arrow), mask=chunk.is_null())


def _conversion(value: object, target: Type) -> str | None:
    """What makes a Python value one of the type, if it is clear which it means."""
    match value:
        case float() if value != value:
            return "None is NULL"
        case str() if target.name == "DATE":
            return "date.fromisoformat(text)"
        case str() if target.name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            return "datetime.fromisoformat(text)"
        case str() if target.is_integer:
            return "int(text)"
        case str() if target.name in ("FLOAT", "DOUBLE"):
            return "float(text)"
        case str() | float() if target.is_decimal:
            return "decimal.Decimal(str(x))"
        case datetime() if target.name == "DATE":
            return "value.date()"
        case UUID() if target.name == "STRING":
            return "str(value)"
        case _:
            return None


def _fit_values(values: list[object], field: Field, where: str) -> pa.ChunkedArray[Any]:
    """Python values are checked by their classes: Arrow's inferred type for a mixed list can lose parts of a value."""
    allowed = (*field.type.kind.python, np.ndarray) if field.type.name == "ARRAY" else field.type.kind.python
    if field.type.name == "VARIANT":
        values = [of_pyspark(value) for value in values]
    kinds = set(map(type, values)) - {type(None)}
    if missing := set(filter(_is_missing, kinds)):
        values = [None if type(value) in missing else value for value in values]
        kinds -= missing
    if any(issubclass(kind, np.generic) for kind in kinds):
        values = [of_numpy(value, field.type) for value in values]
        kinds = set(map(type, values)) - {type(None)}
    wrong = {kind for kind in kinds if not _is_kind(kind, allowed)}
    if wrong:
        row, found = next((i, value) for i, value in enumerate(values) if type(value) in wrong)
        message = f"{where}, row {row}, column {field.name}: found {type(found).__name__} {found!r}"
        raise FrameError(message, expected=field.type.values, remedy=_conversion(found, field.type))
    if field.type.held.is_nested:
        return _checked(lambda part: _build_nested(part, field.type), values, field, where)
    if field.type.is_decimal and int in kinds:
        values = [Decimal(v) if isinstance(v, int) else v for v in values]
    return _checked(lambda part: _build(part, field.type), values, field, where)


def _is_missing(kind: type) -> bool:
    """Whether it is the class of pandas.NA or pandas.NaT."""
    return kind.__name__ in MISSING and kind.__module__.startswith("pandas.")


def _is_kind(kind: type, allowed: tuple[type, ...]) -> bool:
    """As issubclass, but bool is not an int and datetime is not a date."""
    if kind is bool or issubclass(kind, datetime):
        return bool in allowed if kind is bool else datetime in allowed
    return issubclass(kind, allowed)


def _build(values: list[object], target: Type) -> pa.ChunkedArray[Any]:
    if target.is_decimal and any(isinstance(value, Decimal) and _is_too_fine(value) for value in values):
        raise pa.ArrowInvalid("too many decimal places, on which Arrow may crash")
    if target.is_year_month:
        return pa.chunked_array([_months(values)])
    if not (target.is_integer or target.name == "STRING") and any(map(has_nanoseconds, values)):
        raise pa.ArrowInvalid("parts of a microsecond, which Arrow would leave out")
    if target.name in ("TIMESTAMP_NTZ", "TIME") and any(
        isinstance(value, datetime | time) and value.tzinfo is not None for value in values
    ):
        raise pa.ArrowInvalid("a time with a zone, which Arrow would leave out")
    array = pa.array(values, type=target.arrow)
    if target.name == "FLOAT":
        _refuse_new_infinities(array, pa.array(values, type=pa.float64()))
    return pa.chunked_array([array])


def _build_nested(values: list[object], target: Type) -> pa.ChunkedArray[Any]:
    return pa.chunked_array([pa.array([_plain(value, target) for value in values], type=target.arrow)])


def _plain(value: Any, target: Type) -> object:
    """The value as Arrow takes it. Raises ArrowInvalid for a part that does not fit, and for a dict without a field or with another.

    pandas.NA and pandas.NaT are NULL, as a whole and as parts; NaN is a value in a DOUBLE.
    """
    value = of_numpy(value, target)
    if value is None or _is_missing(type(value)):
        return None
    value = of_pyspark(value) if target.name == "VARIANT" else value
    if not _is_kind(type(value), target.kind.python if not target.is_integer else (int,)):
        raise pa.ArrowInvalid(f"{type(value).__name__} for {target.sql}")
    types = [part.type for part in target.parts]
    match target.name:
        case "ARRAY":
            return [_plain(part, types[0]) for part in value]
        case "MAP":
            pairs = value.items() if isinstance(value, dict) else value
            return [(_plain(key, types[0]), _plain(item, types[1])) for key, item in pairs]
        case "STRUCT":
            return tuple(_plain(part, kind) for part, kind in zip(_in_order(value, target), types, strict=True))
        case "VARIANT":
            return _variant(value)
        case _ if target.is_year_month:
            return _month_count(value)
        case "TIME" if value.tzinfo is not None:
            raise pa.ArrowInvalid("a time with a zone, which Arrow would leave out")
        case _ if has_nanoseconds(value):
            raise pa.ArrowInvalid("parts of a microsecond, which Arrow would leave out")
        case "DECIMAL":
            return Decimal(value) if isinstance(value, int) else value
        case _:
            return value


def _variant(value: Any) -> object:
    """Its two parts."""
    if isinstance(value, dict) and value.keys() != {"value", "metadata"}:
        raise pa.ArrowInvalid("a dict that is not of the two parts")
    parts = (value["value"], value["metadata"]) if isinstance(value, dict) else tuple(value)
    if len(parts) != 2 or not all(isinstance(part, bytes | bytearray) for part in parts):
        raise pa.ArrowInvalid("not two parts of bytes")
    return tuple(bytes(part) for part in parts)


def _in_order(value: Any, target: Type) -> list[object]:
    """The values of a STRUCT's fields: of a dict by their names, in any case."""
    if not isinstance(value, dict):
        return list(value)
    given = {str(name).lower(): part for name, part in value.items()}
    names = [part.name.lower() for part in target.parts]
    if len(given) < len(value) or set(given) != set(names):
        raise pa.ArrowInvalid("other fields")
    return [given[name] for name in names]


def _is_too_fine(value: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent < -_MOST_PLACES


def _refuse_new_infinities(narrow: pa.Array[Any], wide: pa.Array[Any]) -> None:
    if pc.any(pc.and_(pc.is_inf(narrow), pc.invert(pc.is_inf(wide))), min_count=0).as_py():
        raise pa.ArrowInvalid("out of range")


def _checked(convert: Callable[[Any], pa.ChunkedArray[Any]], column: Any, field: Field, where: str) -> pa.ChunkedArray[Any]:
    """convert(column). Raises ConstraintViolation with the first row on which it fails."""
    try:
        return convert(column)
    except _MISFITS:
        row = _first_failure(convert, column)
    value = column[row] if isinstance(column, list) else shown(column[row])
    if isinstance(value, str) and "\\u" in ascii(value):  # a lone surrogate cannot be encoded: show its code point
        value = value.encode("utf-8", "backslashreplace").decode()
    raise ConstraintViolation(f"{where}, row {row}, column {field.name}: {value} does not fit", expected=field.type.values)


def _first_failure(convert: Callable[[Any], object], column: Any) -> int:
    """The first row on which `convert` fails. Precondition: it fails on the whole column. Cost: O(log n) conversions."""
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
    except _MISFITS:
        return True
    return False


def shown(scalar: Any) -> object:
    """A value for a message; a timestamp or date outside the range of Python's is shown as a number."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, ImportError):
        if pa.types.is_struct(scalar.type):
            return {name: shown(part) for name, part in scalar.items()}
        return [shown(part) for part in scalar.values] if pa.types.is_nested(scalar.type) else scalar.value
