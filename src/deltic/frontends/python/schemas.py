"""Schemas in Python's notation: `{"src": int, "name": str | None}`, or a type's SQL name such as "DECIMAL(10,2)"."""

from __future__ import annotations

import datetime
import types
from collections.abc import Hashable, Mapping
from typing import Any, Final, Union, get_args, get_origin

import pyarrow as pa

from deltic.errors import CircuitError, QueryError
from deltic.frontends.sql.bind_schema import type_in
from deltic.schema import BIGINT, BOOLEAN, DATE, DAY_TO_SECOND, DOUBLE, STRING, TIME, TIMESTAMP, Field, Schema, Type
from deltic.types import type_of as type_of_arrow

PYTHON: Final[dict[object, Type]] = {
    bool: BOOLEAN,
    int: BIGINT,
    float: DOUBLE,
    str: STRING,
    datetime.date: DATE,
    datetime.datetime: TIMESTAMP,
    datetime.time: TIME,
    datetime.timedelta: DAY_TO_SECOND,
}
Columns = Mapping[str, Any]


def schema_of(columns: Columns | Schema) -> Schema:
    """The schema. Columns are NOT NULL unless their type is `… | None`. Raises CircuitError.

    >>> [(f.name, f.type.sql, f.nullable) for f in schema_of({"src": int, "name": str | None, "cost": "DECIMAL(10,2)"})]
    [('src', 'BIGINT', False), ('name', 'STRING', True), ('cost', 'DECIMAL(10,2)', False)]
    """
    if isinstance(columns, Schema):
        return columns
    return Schema(tuple(field_of(name, notation) for name, notation in with_names(columns).items()))


def with_names(columns: Columns) -> Columns:
    """The columns. Raises CircuitError unless there are some, with names."""
    if not isinstance(columns, Mapping) or not columns:
        raise CircuitError("a schema without columns" if columns == {} else f"invalid schema {columns!r}", expected='{"column": type, …}')
    if bad := [name for name in columns if not isinstance(name, str) or not name]:
        raise CircuitError(f"invalid column name {bad[0]!r}", expected="a str that is not empty")
    return columns


def field_of(name: str, notation: Any) -> Field:
    """A column of a schema. Raises CircuitError."""
    parts = get_args(notation) if get_origin(notation) in (Union, types.UnionType) else (notation,)
    kinds = [part for part in parts if part is not type(None)]
    type_ = type_of(kinds[0]) if len(kinds) == 1 else None
    if type_ is None:
        expected = "bool, int, float, str, a class of datetime, with | None if it may be NULL, or a type's SQL name"
        raise CircuitError(f"column {name}: invalid type {notation!r}", expected=expected)
    return Field(name, type_, len(kinds) < len(parts))


def type_of(notation: Any) -> Type | None:
    """The type that a Python type, a type of PySpark or Arrow, or a type's SQL name stands for; None for anything else."""
    if isinstance(notation, Type):
        return notation
    if isinstance(notation, pa.DataType):
        try:
            return type_of_arrow(notation)
        except StopIteration:
            return None
    if not isinstance(notation, type) and callable(named := getattr(notation, "simpleString", None)):
        notation = named()  # a type of PySpark
    if not isinstance(notation, str):
        return PYTHON.get(notation) if isinstance(notation, Hashable) else None
    try:
        type_ = type_in(notation)
    except QueryError:
        return None
    return None if type_.is_limited else type_
