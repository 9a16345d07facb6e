"""Parquet files: columns by name; row groups before the start are skipped without decoding; values out of range are refused.

Faults of the whole file (its columns, their types, damaged bytes) are SourceErrors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deltic.connectors.files.converting import Conversion
from deltic.connectors.files.portions import Fault, ParsedBlock, ParsedColumn, in_table_order, remedy_for_extra
from deltic.connectors.fitting import cast, may_become, shown, without_dictionary
from deltic.domains import is_restricted, unfit
from deltic.errors import SourceError
from deltic.schema import Field, TableSchema, Type

_ROWS: Final = 1 << 16
_MAGIC: Final = b"PAR1"
_LEAST_BYTES: Final = 12


class ParquetFiles:
    """Reads the columns `fields` of `table`'s files."""

    def __init__(self, table: TableSchema, fields: Sequence[Field]) -> None:
        self._table, self._fields = table.name, fields

    def blocks(self, file: IO[bytes], name: str, start: int, check: Callable[[], None]) -> Iterator[ParsedBlock]:
        """Blocks of at most 65,536 rows after the first `start`. check: raises if the file is no longer what was opened."""
        self._check_ends(file, name)
        try:
            with pq.ParquetFile(pa.PythonFile(file, "r"), coerce_int96_timestamp_unit="us") as parquet:
                yield from self._blocks(parquet, name, start)
        except (pa.ArrowException, OSError) as error:
            check()  # a change of the file explains the failure better
            self._fail(name, f"is damaged: {_first_line(error)}", "a complete Parquet file", "write it again")

    def groups(self, file: IO[bytes], name: str, check: Callable[[], None]) -> list[int]:
        """The number of rows of each row group. check: as of `blocks`."""
        self._check_ends(file, name)
        try:
            metadata = pq.read_metadata(pa.PythonFile(file, "r"))
        except (pa.ArrowException, OSError) as error:
            check()
            self._fail(name, f"is damaged: {_first_line(error)}", "a complete Parquet file", "write it again")
        check()
        return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]

    def _check_ends(self, file: IO[bytes], name: str) -> None:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        begins = file.read(len(_MAGIC)) == _MAGIC
        file.seek(max(0, size - len(_MAGIC)))
        ends = size >= _LEAST_BYTES and file.read(len(_MAGIC)) == _MAGIC
        file.seek(0)
        if not ends:
            what = f"is cut short, at {size:,} bytes: it does not end as Parquet does" if begins else "is not a Parquet file"
            self._fail(name, what, "a complete Parquet file", "write it again, under a name that starts with '.' until it is complete")

    def _blocks(self, parquet: pq.ParquetFile, name: str, start: int) -> Iterator[ParsedBlock]:
        order = self._order(parquet.schema_arrow, name)
        groups, skipped = list(range(parquet.num_row_groups)), 0
        while groups and skipped + (rows := parquet.metadata.row_group(groups[0]).num_rows) <= start:
            skipped += rows
            groups.pop(0)
        names = parquet.schema_arrow.names
        batches = parquet.iter_batches(_ROWS, row_groups=groups, columns=[names[i] for i in order], use_threads=False)
        first = skipped
        for batch in batches:
            rest = batch.slice(max(0, start - first))
            first += batch.num_rows
            if rest.num_rows:
                yield self._block(rest, first - rest.num_rows + 1)

    def _block(self, batch: pa.RecordBatch, first: int) -> ParsedBlock:
        numbers = np.arange(first, first + batch.num_rows)
        named = {column.lower(): i for i, column in enumerate(batch.schema.names)}
        columns = [_column(batch.column(named[field.name.lower()]), field) for field in self._fields]
        return ParsedBlock(first, batch.num_rows, numbers, columns, {}, lambda i: _text(batch.slice(i, 1)))

    def _order(self, schema: pa.Schema, name: str) -> list[int]:
        """The position of each field. Raises SourceError for a missing or extra column, or one of an incompatible type."""
        order, extra, missing, twins = in_table_order(schema.names, self._fields)
        listed = "the columns " + ", ".join(field.name for field in self._fields)
        if twins:
            self._fail(name, f"has the column {twins[0]} twice (case does not count)", listed, None)
        if extra:
            self._fail(name, f"has a column {extra[0]}, which is not in the table", listed, remedy_for_extra(extra[0]))
        if missing:
            self._fail(name, f"has no column {missing[0]}", listed, f"give {missing[0]}, of NULLs where there are no values")
        for field, i in zip(self._fields, order, strict=True):
            stored = schema.field(i).type
            plain = stored.value_type if pa.types.is_dictionary(stored) else stored
            if plain != field.type.arrow and not may_become(plain, field.type) and not _as_spark_writes(plain, field.type):
                self._fail(name, f"column {field.name}: found {plain}", field.type.values, "write it with this type")
        return order

    def _fail(self, name: str, what: str, expected: str, remedy: str | None) -> NoReturn:
        joint = ", " if what.startswith("column ") else " "
        raise SourceError(f"table {self._table}: the file {name}{joint}{what}", expected=expected, remedy=remedy) from None


def _column(array: pa.Array, field: Field) -> ParsedColumn:
    if pa.types.is_dictionary(array.type):
        array = without_dictionary(pa.chunked_array([array])).chunk(0)
    if _as_spark_writes(array.type, field.type):
        array = array.view(field.type.arrow)
    if array.type == field.type.arrow and not (field.type.held.is_nested or is_restricted(field.type)):
        return _checked_text(array, field) if pa.types.is_string(array.type) else ParsedColumn(array, {})
    conversion = Conversion(field.type.arrow, lambda part: _converted(part, field.type), lambda scalar: _one(scalar, field))
    return conversion.column(array)


def _as_spark_writes(stored: pa.DataType, target: Type) -> bool:
    """Whether it is a day-time INTERVAL as Spark stores one, in microseconds."""
    return bool(target.is_day_time and stored == pa.int64())


def _checked_text(array: pa.Array, field: Field) -> ParsedColumn:
    """Verifies UTF-8, which writers of Parquet do not guarantee."""
    return Conversion(pa.string(), _validated, lambda scalar: _one(scalar, field)).column(array)


def _validated(array: pa.Array) -> pa.Array:
    array.validate(full=True)
    return array


def _converted(array: pa.Array, target: Type) -> pa.Array:
    """The values as those of the type. Raises ArrowInvalid for one that does not fit."""
    whole = _cast(array, target)
    if (wrong := unfit(target, whole)) is not None:
        raise pa.ArrowInvalid(wrong.what)
    return whole


def _cast(array: pa.Array, target: Type) -> pa.Array:
    """As `_converted`, but for what Arrow can hold and the type cannot."""
    whole = array if array.type == target.arrow else cast(pa.chunked_array([array]), target).combine_chunks()
    whole.validate(full=True)
    return whole


def _one(scalar: pa.Scalar[Any], field: Field) -> Any | Fault:
    try:
        whole = _cast(pa.array([scalar], scalar.type), field.type)
    except pa.ArrowException as error:
        why = f": {error}" if field.type.has_variant else ""
    else:
        if (wrong := unfit(field.type, whole)) is None:
            return whole[0]
        why = f": {wrong.what}"
    return Fault(f"{_shown(scalar)} does not fit{why}", field.type.values, out=True)


def _shown(scalar: Any) -> str:
    if pa.types.is_string(scalar.type):
        return repr(bytes(scalar.as_buffer()))
    return str(shown(scalar))


def _text(row: pa.RecordBatch) -> str:
    return json.dumps({name: None if not (v := row.column(i)[0]).is_valid else _plain(v) for i, name in enumerate(row.schema.names)})


def _plain(scalar: Any) -> object:
    if pa.types.is_string(scalar.type):
        return bytes(scalar.as_buffer()).decode(errors="backslashreplace")
    value = shown(scalar)
    return value if isinstance(value, (bool, int)) else str(value)


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].removesuffix(".")
