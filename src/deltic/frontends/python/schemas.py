"""Schemas as Python writes them: `{"src": int, "name": str | None}`, or a type's SQL name such as "DECIMAL(10,2)"."""

from __future__ import annotations

import datetime
import types
from collections.abc import Hashable, Mapping
from typing import Any, Final, Union, get_args, get_origin

from deltic.errors import CircuitError
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, NULL, STRING, TIMESTAMP, Field, Schema, Type

PYTHON: Final[dict[object, Type]] = {
    bool: BOOLEAN,
    int: BIGINT,
    float: DOUBLE,
    str: STRING,
    datetime.date: DATE,
    datetime.datetime: TIMESTAMP,
}
Columns = Mapping[str, Any]


def schema_of(columns: Columns | Schema) -> Schema:
    """The schema. Columns are NOT NULL unless their type says `| None`. Raises CircuitError.

    >>> [(f.name, f.type.sql, f.nullable) for f in schema_of({"src": int, "name": str | None, "cost": "DECIMAL(10,2)"})]
    [('src', 'BIGINT', False), ('name', 'STRING', True), ('cost', 'DECIMAL(10,2)', False)]
    """
    if isinstance(columns, Schema):
        return columns
    if not isinstance(columns, Mapping) or not columns:
        raise CircuitError("a schema without columns" if columns == {} else f"{columns!r} is no schema", expected='{"column": type, …}')
    if bad := [name for name in columns if not isinstance(name, str) or not name]:
        raise CircuitError(f"{bad[0]!r} is no name of a column", expected="a text")
    return Schema(tuple(_field(name, given) for name, given in columns.items()))


def _field(name: str, given: Any) -> Field:
    parts = get_args(given) if get_origin(given) in (Union, types.UnionType) else (given,)
    kinds = [part for part in parts if part is not type(None)]
    found = _type(kinds[0]) if len(kinds) == 1 else None
    if found is None:
        expected = "bool, int, float, str, datetime.date or datetime.datetime, with | None if it may be NULL, or a type's SQL name"
        raise CircuitError(f"column {name} has no type {given!r}", expected=expected)
    return Field(name, found, len(kinds) < len(parts))


def _type(given: Any) -> Type | None:
    if isinstance(given, Type):
        return given
    if not isinstance(given, str):
        return PYTHON.get(given) if isinstance(given, Hashable) else None
    try:
        found = Type.parse(given.upper())
    except ValueError:
        return None
    return None if found == NULL else found
