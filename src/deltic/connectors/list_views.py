"""List views of Arrow, as Polars and DuckDB may give them, as lists: Arrow's own cast makes lists with too few offsets of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def without_list_views(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """The column with lists in place of list views, also in its parts."""
    if not _has_list_view(column.type):
        return column
    chunks = [_without_list_views(chunk) for chunk in column.chunks]
    return pa.chunked_array(chunks, None if chunks else _without_list_views(pa.array([], column.type)).type)


def is_list_view(type: pa.DataType) -> bool:
    """Whether it is one of either width."""
    return bool(pa.types.is_list_view(type) or pa.types.is_large_list_view(type))


def _has_list_view(type: pa.DataType) -> bool:
    if pa.types.is_map(type):
        return _has_list_view(type.key_type) or _has_list_view(type.item_type)
    if pa.types.is_struct(type):
        return any(_has_list_view(part.type) for part in type)
    return is_list_view(type) or (hasattr(type, "value_type") and _has_list_view(type.value_type))


def _without_list_views(array: pa.Array[Any]) -> pa.Array[Any]:
    type = array.type
    if not _has_list_view(type):
        return array
    if pa.types.is_struct(type):
        parts = [_without_list_views(part) for part in array.flatten()]
        fields = [pa.field(field.name, part.type) for field, part in zip(type, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())
    missing = array.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_map(type):
        listed = array.cast(pa.list_(pa.struct([type.key_field, type.item_field])))
        keys, items = (_without_list_views(part) for part in listed.flatten().flatten())
        return pa.MapArray.from_arrays(_offsets(listed, missing), keys, items)
    lists = pa.LargeListArray if pa.types.is_large_list_view(type) else pa.ListArray
    return lists.from_arrays(_offsets(array, missing), _without_list_views(array.flatten()))


def _offsets(lists: pa.Array[Any], missing: npt.NDArray[np.bool_]) -> pa.Array[Any]:
    """Where each list begins in the elements of all; NULL for one that is NULL."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    wide = pa.types.is_large_list_view(lists.type)
    return pa.array(np.append(0, np.cumsum(lengths)), pa.int64() if wide else pa.int32(), mask=np.append(missing, False))
