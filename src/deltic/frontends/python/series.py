"""Columns as PySpark passes them to functions of pandas_udf, and back.

A STRUCT is a DataFrame, within another value a dict; a MAP is a dict, an ARRAY an array of NumPy, of objects if integers in it are NULL; a
VARIANT is a Variant. A TIMESTAMP has no zone: it is in that of the session, UTC. Moments and durations are counted in nanoseconds, so those
that pandas cannot hold are errors, as in Spark.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from deltic.expr.python import value_in
from deltic.schema import Type
from deltic.types import is_variant, with_variants


def series_of(array: pa.Array, *, frames: bool = True) -> Any:
    """The column as a series, or a STRUCT as a DataFrame of its fields. frames: whether it is; in groups it is a series of dicts."""
    if is_variant(array.type):
        return array.to_pandas().map(with_variants)
    if frames and pa.types.is_struct(array.type):
        fields = [_without_zone(field) for field in array.flatten()]
        table = pa.Table.from_arrays(fields, names=[field.name for field in array.type])
        return table.to_pandas(maps_as_pydicts="strict", coerce_temporal_nanoseconds=True)
    nested = pa.types.is_nested(array.type)
    return _without_zone(array).to_pandas(maps_as_pydicts="strict", coerce_temporal_nanoseconds=True, integer_object_nulls=nested)


def _without_zone(array: pa.Array) -> pa.Array:
    kind = array.type
    return array.cast(pa.timestamp(kind.unit)) if pa.types.is_timestamp(kind) and kind.tz is not None else array


def array_of(result: Any, type: Type) -> pa.Array:
    """What a function returned as an array: of a DataFrame for a STRUCT, whose columns count by name, or by place if no name is a text.

    NaN, NaT and None are NULL. Raises ValueError or TypeError for what is none.
    """
    if type.name == "STRUCT":
        return _struct_of(result, type)
    if not type.held.is_nested:
        return pa.Array.from_pandas(result)
    values = [None if _is_missing(value) else value_in(type, _with_nulls(value)) for value in result]
    for given, value in zip(result, values, strict=True):
        if value is None and not _is_missing(given):
            raise TypeError(f"{given!r} is not a {type.sql}")
    return pa.array(values, type.arrow)


def _struct_of(frame: Any, type: Type) -> pa.Array:
    if not hasattr(frame, "columns"):
        raise TypeError(f"a {frame.__class__.__name__}, where a STRUCT requires a pandas DataFrame")
    names = list(frame.columns)
    if len(names) != len(type.parts):
        raise ValueError(f"{len(names)} columns, where {type.sql} has {len(type.parts)} fields")
    by_name = any(isinstance(name, str) for name in names)
    columns = [frame[part.name] if by_name else frame.iloc[:, i] for i, part in enumerate(type.parts)]
    fields = [array_of(column, part.type).cast(part.type.arrow) for column, part in zip(columns, type.parts, strict=True)]
    return pa.StructArray.from_arrays(fields, fields=list(type.arrow))


def _with_nulls(value: Any) -> Any:
    """A part of a result with None for what is missing in it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _with_nulls(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_with_nulls, value))
    return None if _is_missing(value) else value


def _is_missing(value: Any) -> bool:
    return value is None or value.__class__.__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
