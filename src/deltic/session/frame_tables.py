"""Tables whose columns and rows are those of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from deltic.connectors.frames import WEIGHT, rows_frame
from deltic.connectors.inferring import inferred, only_null
from deltic.connectors.recognise import is_spark
from deltic.errors import CatalogError, FrameError, Span, did_you_mean
from deltic.frontends.sql.parse_statement import parse_columns
from deltic.frontends.sql.sql_types import schema_of
from deltic.frontends.statements import CreateTable
from deltic.purity import shown
from deltic.schema import Schema, TableSchema
from deltic.types import backquoted


def table_of_frame(name: str, frame: Any, key: Sequence[str]) -> CreateTable:
    """The definition of a table for the rows of a frame. Raises FrameError, CatalogError, and QueryError for types of Spark's alone."""
    if not isinstance(name, str) or not name:
        raise CatalogError(f"invalid name {shown(name)} of a table", expected="a text")
    where = f"table {name}"
    schema = _of_spark(frame, where) if is_spark(frame) else inferred(frame, where)
    _check_names(schema, where)
    positions = tuple(_position(schema, one, where) for one in _key_names(key, where))
    if len(set(positions)) < len(positions):
        raise CatalogError(f"{where}: the key names a column twice")
    fields = tuple(replace(field, nullable=i not in positions) for i, field in enumerate(schema))
    return CreateTable(TableSchema(name, Schema(fields), positions), False, Span(name, 0, len(name), "<table_from>"))


def _check_names(schema: Schema, where: str) -> None:
    """Raises FrameError unless the columns have names, and different ones; case does not count."""
    seen: set[str] = set()
    for i, name in enumerate(schema.names, 1):
        if not name:
            raise FrameError(f"{where}: column {i} of the frame has no name", remedy="rename it first")
        if name.lower() in seen:
            raise FrameError(f"{where}: two columns of the frame are called {name}; case does not count", remedy="rename one of them first")
        seen.add(name.lower())


def _key_names(key: Any, where: str) -> list[str]:
    if isinstance(key, str):
        return [key]
    if not isinstance(key, Sequence) or not all(isinstance(name, str) for name in key):
        raise CatalogError(f"{where}: invalid key {shown(key)}", expected="the names of columns")
    return list(key)


def _of_spark(frame: Any, where: str) -> Schema:
    """Spark's own types: Arrow has none for some of them."""
    for name, kind in frame.dtypes:
        if kind == "void":
            raise only_null(name, where)
    return schema_of(parse_columns(", ".join(f"{backquoted(name)} {kind}" for name, kind in frame.dtypes), where))


def _position(schema: Schema, name: str, where: str) -> int:
    positions = schema.find(name)
    if len(positions) != 1:
        problem = "more than one column" if positions else "no column"
        raise CatalogError(
            f"{where}: the frame has {problem} {name}, which the key names",
            expected=f"one of {', '.join(schema.names)}",
            remedy=did_you_mean(name, schema.names),
        )
    return positions[0]


def inserts(frame: Any, table: TableSchema) -> Any:
    """A change frame that adds the rows."""
    if is_spark(frame):
        return frame.selectExpr("*", f"1L AS {WEIGHT}")
    rows = rows_frame(frame, table)
    return rows.append_column(WEIGHT, pa.array(np.ones(rows.num_rows, np.int64)))
