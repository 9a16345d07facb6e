"""The columns that a table for the rows of a frame has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from deltic.connectors.list_views import is_list_view
from deltic.connectors.recognise import columns_of
from deltic.errors import FrameError
from deltic.schema import NULL, Field, Schema
from deltic.types import Type, is_variant, type_of


def inferred(frame: Any, where: str) -> Schema:
    """Nullable columns for a frame of Arrow, pandas, Polars or DuckDB, or a list of dicts. where: names the table in errors.

    Raises FrameError for a column whose values no type has.
    """
    columns = columns_of(frame, Schema(()), where)
    if not columns.names:
        raise FrameError(f"{where}: the frame has no columns", expected="at least one")
    types = [_type(_arrow(column, name, where), name, where) for name, column in zip(columns.names, columns.columns, strict=True)]
    return Schema(tuple(map(Field, columns.names, types)))


def _arrow(column: pa.ChunkedArray[Any] | Sequence[object], name: str, where: str) -> pa.DataType:
    if isinstance(column, pa.ChunkedArray):
        return column.type
    try:
        return pa.array(column).type
    except (pa.ArrowException, OverflowError) as error:
        raise FrameError(f"{where}, column {name}: {error}", expected="values of one type", remedy="convert the column first") from error


def _type(arrow: pa.DataType, name: str, where: str) -> Type:
    if pa.types.is_null(arrow):
        raise only_null(name, where)
    plain = _plain(arrow)
    if plain is None:
        message = f"{where}, column {name}: no type has the values of Arrow {arrow}"
        raise FrameError(message, remedy="convert the column first, or CREATE TABLE, which states the type")
    inferred = type_of(plain)
    if inferred.has(lambda part: part == NULL):
        message = f"{where}, column {name}: a part of {inferred.sql} has only NULLs, or no values, and so no type"
        raise FrameError(message, remedy="CREATE TABLE, which states the type")
    return inferred


def only_null(name: str, where: str) -> FrameError:
    return FrameError(f"{where}, column {name}: all values are NULL, so it has no type", remedy="CREATE TABLE, which states the type")


def _plain(arrow: pa.DataType) -> pa.DataType | None:
    """The Arrow type of the columns that hold such values; None if there is none.

    >>> _plain(pa.uint32()), _plain(pa.list_(pa.large_string())), _plain(pa.float16())
    (DataType(int64), ListType(list<item: string>), DataType(float))
    """
    t = pa.types
    if t.is_dictionary(arrow):
        return _plain(arrow.value_type)
    if t.is_struct(arrow) and not is_variant(arrow):
        parts = [(part.name, _plain(part.type)) for part in arrow]
        return None if any(kind is None for _, kind in parts) else pa.struct(parts)
    if t.is_list(arrow) or t.is_large_list(arrow) or t.is_fixed_size_list(arrow) or is_list_view(arrow):
        item = _plain(arrow.value_type)
        return None if item is None else pa.list_(item)
    if t.is_map(arrow):
        key, item = _plain(arrow.key_type), _plain(arrow.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    return _plain_scalar(arrow)


def _plain_scalar(arrow: pa.DataType) -> pa.DataType | None:
    t = pa.types
    if t.is_unsigned_integer(arrow):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}[arrow.bit_width]
    if t.is_decimal(arrow):
        return pa.decimal128(arrow.precision, arrow.scale) if arrow.precision <= 38 and 0 <= arrow.scale <= arrow.precision else None
    if t.is_timestamp(arrow):
        return pa.timestamp("us", None if arrow.tz is None else "UTC")
    for is_kind, plain in _KINDS:
        if is_kind(arrow):
            return plain
    try:
        type_of(arrow)
    except StopIteration:
        return None
    return arrow


_KINDS: Final = (
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
    (pa.types.is_date64, pa.date32()),
    (pa.types.is_time, pa.time64("us")),
    (pa.types.is_duration, pa.duration("us")),
)
