"""Frames of all supported kinds as named columns.

A kind is recognised by its type's module or by its Arrow C stream; pandas, Polars and PySpark are never imported here. Frames are only
checked for consistency, not against a table: rows are dicts, names are strings, columns convert to Arrow. Columns of Python rows stay
lists, since the table decides their type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import FrameError
from deltic.schema import Schema
from deltic.types import backquoted

_YEAR_MONTH: Final = ("interval year", "interval month")
"""How Spark's names of their types begin."""
_MAY_BE_NULL: Final = ("nullable", "containsNull", "valueContainsNull")
"""What says so in the JSON of Spark's types."""
_MISSING: Final = "_deltic_missing_"
Column: TypeAlias = "pa.ChunkedArray[Any] | list[object]"


@dataclass(frozen=True, slots=True)
class Columns:
    """Named columns of one length, in the order of the frame. absent: name -> the first row of a list of dicts without it.

    index: the names of the index of pandas, in lower case.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    length: int
    absent: Mapping[str, int]
    index: tuple[str, ...] = ()


def is_spark(frame: object) -> bool:
    """Whether `frame` is a DataFrame of PySpark, classic or Connect."""
    return any(t.__name__ == "DataFrame" and t.__module__.startswith("pyspark.sql") for t in type(frame).__mro__)


def in_arrow(frame: Any, where: str) -> Any:
    """The DataFrame of PySpark with its intervals of years and months as numbers of months: Python's Arrow has no type for them.

    Raises FrameError for such intervals within nested values.
    """
    columns = []
    for name, kind in frame.dtypes:
        quoted = backquoted(name)
        if kind.startswith(_YEAR_MONTH):
            columns.append(f"CAST(CAST({quoted} AS INTERVAL MONTH) AS INT) AS {quoted}")
        elif any(word in kind for word in _YEAR_MONTH):
            message = f"{where}, column {name}: {kind} cannot be read from Spark"
            raise FrameError(message, expected="intervals of years and months as columns of their own")
        else:
            columns.append(quoted)
    return frame.selectExpr(*columns) if any(" AS " in column for column in columns) else frame


def check_batch(frame: Any, where: str) -> None:
    """Raises FrameError for a DataFrame of PySpark that is a stream."""
    if frame.isStreaming:
        raise FrameError(f"{where}: the frame is a stream", remedy="deltic.spark.StreamingPipeline feeds tables from streams")


def of_spark(frame: Any, where: str) -> pa.Table:
    """The rows of a DataFrame of PySpark. Raises FrameError for a stream, and for what Python's Arrow has no type for."""
    check_batch(frame, where)
    frame = _with_optional_parts(in_arrow(frame, where))
    variants = [name for name, kind in frame.dtypes if kind == "variant"]
    if not variants:
        table: pa.Table = frame.toArrow()
        return table
    # PySpark cannot convert a VARIANT that is NULL (its parts are NOT NULL), so NULLs come as columns of their own.
    quoted = [backquoted(name) for name in frame.columns]
    shown = [f"coalesce({q}, parse_json('null')) AS {q}" if n in variants else q for n, q in zip(frame.columns, quoted, strict=True)]
    missing = [f"{q} IS NULL AS {_MISSING}{i}" for i, q in enumerate(quoted) if frame.columns[i] in variants]
    table = frame.selectExpr(*shown, *missing).toArrow()
    columns = list(table.columns)[: len(quoted)]
    for i, name in enumerate(frame.columns):
        if name in variants:
            columns[i] = pc.if_else(table.column(f"{_MISSING}{i}"), pa.scalar(None, columns[i].type), columns[i])
    return pa.table(columns, schema=pa.schema(list(table.schema)[: len(quoted)]))


def _with_optional_parts(frame: Any) -> Any:
    """The DataFrame with nested values whose parts may be NULL: PySpark (4.2) cannot convert a NULL whose parts are NOT NULL."""
    if not any("struct<" in kind for _, kind in frame.dtypes):
        return frame
    given = frame.schema
    optional = type(given).fromJson(_optional(given.jsonValue()))
    columns = [frame[backquoted(field.name)] for field in given]
    for i, (own, other) in enumerate(zip(given, optional, strict=True)):
        if own.dataType != other.dataType:  # no cast that is not needed: those to TIME are refused by default
            columns[i] = columns[i].cast(other.dataType).alias(own.name)
    return frame.select(*columns)


def _optional(kind: Any) -> Any:
    """A type of Spark in JSON, whose parts may all be NULL."""
    if isinstance(kind, list):
        return [_optional(part) for part in kind]
    if not isinstance(kind, dict):
        return kind
    return {name: part if name == "metadata" else name in _MAY_BE_NULL or _optional(part) for name, part in kind.items()}


def is_pandas(frame: object) -> bool:
    return any(t.__name__ == "DataFrame" and t.__module__.startswith("pandas.") for t in type(frame).__mro__)


def columns_of(frame: Any, schema: Schema, where: str) -> Columns:
    """The columns of any frame; a Spark DataFrame is collected. `schema` only guides pandas, which has no nullable integers.

    where: names the table in errors. Raises FrameError for other objects.
    """
    if isinstance(frame, pa.Table):
        return _of_arrow(frame)
    if isinstance(frame, pa.RecordBatch):
        return _of_arrow(pa.Table.from_batches([frame]))
    if is_spark(frame):
        return _of_arrow(of_spark(frame, where))
    if is_pandas(frame):
        return _of_pandas(frame, schema, where)
    if isinstance(frame, Sequence) and not isinstance(frame, (str, bytes)):
        return _of_rows(frame, schema, where)
    if hasattr(frame, "__arrow_c_stream__"):
        return _of_arrow(pa.table(frame))
    raise not_a_frame(frame, where)


def not_a_frame(frame: object, where: str, *, is_key: bool = False) -> FrameError:
    kind = type(frame)
    if is_key:
        remedy = f"pass a list of keys: [{frame!r}]"
    elif kind.__name__ == "LazyFrame":
        remedy = "call .collect() on it first"
    elif isinstance(frame, Mapping):
        remedy = "pass a list of rows; of lists by column, pyarrow.table(…) makes a frame"
    elif isinstance(frame, Iterator):
        remedy = "list(…) of it; session.load takes iterators, and makes a tick of each chunk"
    elif isinstance(frame, (str, Path)):
        remedy = "session.load reads files"
    else:
        remedy = "pass one of these, or a list of dicts with the column names as keys"
    kinds = "a pyarrow Table or RecordBatch, a pandas, Polars or Spark DataFrame, or a list of dicts"
    return FrameError(f"{where}: found {kind.__module__}.{kind.__qualname__}, which is not a frame", expected=kinds, remedy=remedy)


def _of_arrow(table: pa.Table) -> Columns:
    return Columns(tuple(table.column_names), tuple(table.columns), table.num_rows, {})


def _of_rows(rows: Sequence[Any], schema: Schema, where: str) -> Columns:
    """Dicts may differ in the order of their keys; an empty list has the columns of the table."""
    if not rows:
        return Columns(schema.names, tuple([] for _ in schema), 0, {})
    names: dict[str, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise FrameError(f"{where}, row {i}: found {type(row).__name__}", expected="a dict with the column names as keys")
        names.update(dict.fromkeys(row))
    odd = next((n for n in names if not isinstance(n, str)), None)
    if odd is not None:
        raise FrameError(f"{where}: a row has the key {odd!r}", expected="column names, which are strings")
    lists = tuple([row.get(name) for row in rows] for name in names)
    absent = {name: i for name in names if (i := next((i for i, row in enumerate(rows) if name not in row), -1)) >= 0}
    return Columns(tuple(names), lists, len(rows), absent)


def _of_pandas(frame: Any, schema: Schema, where: str) -> Columns:
    """NaN and NaT are NULL, as in pandas; the index is ignored."""
    names = []
    for name in frame.columns:
        if not isinstance(name, str):
            raise FrameError(f"{where}: the frame has a column called {name!r}", expected="column names, which are strings")
        names.append(name)
    columns = tuple(_of_series(frame.iloc[:, i], name, schema) for i, name in enumerate(names))
    index = tuple(name.lower() for name in frame.index.names if isinstance(name, str))
    return Columns(tuple(names), columns, len(frame), {}, index)


def _of_series(series: Any, name: str, schema: Schema) -> Column:
    """A float column of integral numbers is read as integers: pandas converts integers with a missing value to floats."""
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):  # of values in an object column that Arrow cannot read
        return _values(series)
    if series.dtype == object and not (pa.types.is_string(array.type) or pa.types.is_null(array.type)):
        return _values(series)  # Arrow's inferred type can lose information: of a date and a datetime it makes two dates
    column: pa.ChunkedArray[Any] = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    if pa.types.is_float16(column.type):  # of which Arrow computes little
        column = column.cast(pa.float32())
    position = schema.find(name)
    if len(position) == 1 and schema[position[0]].type.is_integer and pa.types.is_floating(column.type):
        whole = pc.and_(pc.equal(pc.floor(column), column), pc.less_equal(pc.abs(column), pa.scalar(2.0**53)))
        return column.cast(pa.int64()) if pc.all(whole, min_count=0).as_py() else column
    return column


def _values(series: Any) -> list[object]:
    return [None if missing else value for value, missing in zip(series, series.isna(), strict=True)]
