"""CSV: records of RFC 4180, in UTF-8, whose fields stand in the table's order or under a header; quoted fields may span lines.

A field equal to `null_value` is NULL; in quotes it is a STRING or BINARY of that text, but still NULL for other types. A record with too
many or too few fields is torn. Faults of the whole file (its header, its encoding, an unterminated quote) are SourceErrors.
Records are counted without the header and without empty lines.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions, InvalidRow, ParseOptions, ReadOptions, open_csv

from deltic.connectors.files.portions import Fault, ParsedBlock, ParsedColumn, in_table_order, remedy_for_extra
from deltic.connectors.files.text import from_text
from deltic.errors import SourceError
from deltic.schema import BINARY, Field, TableSchema

_ROWS: Final = 1 << 16
_BYTES: Final = 8 << 20
_LONGEST_HEADER: Final = 1 << 20
_QUOTE: Final = b'"'


@dataclass(frozen=True, slots=True)
class _Records:
    """Records of the file, including the header: `fields` has those of the right width, as text; `torn` the others."""

    fields: pa.RecordBatch
    numbers: npt.NDArray[np.int64]
    torn: dict[int, InvalidRow]

    @property
    def last(self) -> int:
        return max(int(self.numbers[-1]) if len(self.numbers) else 0, *self.torn, 0)


class CsvFiles:
    """Reads the columns `fields` of `table`'s files."""

    def __init__(self, table: TableSchema, fields: Sequence[Field], *, header: bool, sep: str, null_value: str) -> None:
        for field in fields:
            if field.type.held.is_nested:
                message = f"table {table.name}: CSV has no form for the column {field.name} of {field.type.sql}"
                raise SourceError(message, expected="a table without ARRAY, MAP, STRUCT and VARIANT", remedy="read it as JSON or Parquet")
        self._table, self._fields = table.name, fields
        self._header, self._sep, self._null = header, sep, null_value
        self._listed = "the columns " + ", ".join(field.name for field in fields)

    def blocks(self, file: IO[bytes], name: str, start: int, check: Callable[[], None]) -> Iterator[ParsedBlock]:
        """Blocks of at most 65,536 records after the first `start`, plus torn ones. A file without a byte needs no header."""
        if file.read(4) in (b"", codecs.BOM_UTF8):
            return
        file.seek(0)
        order, above = (self._order(file, name), 1) if self._header else (list(range(len(self._fields))), 0)
        if order is None:
            return
        first = start + 1
        for records in self._records(file, name):
            for part in _bounded(records, above + start):
                yield self._block(part, order, first, above)
                first = part.last - above + 1

    def _block(self, records: _Records, order: Sequence[int], first: int, above: int) -> ParsedBlock:
        batch = records.fields
        columns = [self._column(batch.column(i), field) for field, i in zip(self._fields, order, strict=True)]
        if first == 1 and not above and len(batch):
            columns = [
                self._as_header(column, batch.column(i), field) for column, field, i in zip(columns, self._fields, order, strict=True)
            ]
        torn = {number - above: (self._fault(row), row.text) for number, row in records.torn.items()}
        return ParsedBlock(first, records.last - above - first + 1, records.numbers - above, columns, torn, lambda i: self._text(batch, i))

    def _column(self, texts: pa.Array, field: Field) -> ParsedColumn:
        if field.type.is_text:
            return ParsedColumn(texts, {})
        null = pc.equal(texts, self._null)
        if field.type != BINARY and pc.any(null).as_py():  # it was quoted: no number, date or time looks like this
            texts = pc.if_else(null, pa.scalar(None, pa.string()), texts)
        return from_text(field.type).column(texts)

    def _as_header(self, column: ParsedColumn, texts: pa.Array, field: Field) -> ParsedColumn:
        """A column whose first value, if it is at fault and the column's name, is met with what to do about headers."""
        fault = column.faults.get(0)
        if fault is None or (texts[0].as_py() or "").lower() != field.name.lower():
            return column
        remedy = "set header true, if the first line has the names of the columns"
        return replace(column, faults={**column.faults, 0: replace(fault, remedy=remedy)})

    def _fault(self, row: InvalidRow) -> Fault:
        count = row.actual_columns
        return Fault(f"a record of {count} field{'s' if count != 1 else ''}", f"{len(self._fields)} fields: {self._listed}")

    def _text(self, batch: pa.RecordBatch, i: int) -> str:
        """The record in a canonical form: its original quotes are not known."""
        written = io.StringIO()
        fields = [self._null if (value := column[i].as_py()) is None else value for column in batch.columns]
        csv.writer(written, delimiter=self._sep, lineterminator="").writerow(fields)
        return written.getvalue()

    def _order(self, file: IO[bytes], name: str) -> list[int] | None:
        """The position of each field by the header; None if all lines are empty. Raises SourceError for missing and extra columns."""
        text = file.read(_LONGEST_HEADER).decode("utf-8-sig", errors="replace")
        file.seek(0)
        names = next((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=self._sep) if row), None)
        if names is None:
            return None
        order, extra, missing, twins = in_table_order(names, self._fields)
        if twins:
            raise self._error(name, f"has the column {twins[0]} twice (case does not count)", self._listed)
        if extra:
            raise self._error(name, f"has a column {extra[0]!r}, which is not in the table", self._listed, remedy_for_extra(extra[0]))
        if missing:
            raise self._error(name, f"has no column {missing[0]} in its header", self._listed, f"give {missing[0]}, empty where it is NULL")
        return order

    def _records(self, file: IO[bytes], name: str) -> Iterator[_Records]:
        """The records; the last ones only after the file's end has been verified to be complete."""
        torn: dict[int, InvalidRow] = {}
        held: _Records | None = None
        last = 0
        try:
            for batch in self._reader(file, name, torn):
                records = _numbered(batch, last, torn)
                if batch.num_rows or records.torn:
                    if held is not None:
                        yield held
                    last, held = records.last, records
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error):
                raise
            what = f"has a record of more than {_BYTES >> 20} MiB after record {last - self._header}"
            raise self._error(name, what, "records that are shorter", "look for a quote that is not closed") from None
        if torn:
            if held is not None:
                yield held
            held = _Records(_nothing(len(self._fields)), np.empty(0, np.int64), torn)
        if held is None:
            return
        if _is_left_open(file, held, self._sep):
            what = f"ends within a quoted field, which begins in its last record, {held.last - self._header}"
            raise self._error(name, what, "a complete CSV file", "write it again, or close the quotes")
        yield held

    def _reader(self, file: IO[bytes], name: str, torn: dict[int, InvalidRow]) -> Any:
        def put_aside(row: InvalidRow) -> str:
            torn[row.number] = row
            return "skip"

        names = [str(i) for i in range(len(self._fields))]
        return open_csv(
            pa.PythonFile(_Utf8(file, lambda what: self._error(name, what, "UTF-8", "write it again in UTF-8")), "r"),
            read_options=ReadOptions(column_names=names, use_threads=False, block_size=_BYTES),
            parse_options=ParseOptions(delimiter=self._sep, newlines_in_values=True, invalid_row_handler=put_aside),
            convert_options=ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[self._null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _error(self, name: str, what: str, expected: str, remedy: str | None = None) -> SourceError:
        return SourceError(f"table {self._table}: the file {name} {what}", expected=expected, remedy=remedy)


class _Utf8:
    """A file, as Arrow reads it, whose bytes are verified to be UTF-8."""

    closed = False

    def __init__(self, file: IO[bytes], error: Callable[[str], SourceError]) -> None:
        self._file, self._error = file, error
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._lines = 1

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        try:
            self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            line = self._lines + error.object.count(b"\n", 0, error.start)
            raise self._error(f"is not UTF-8: byte 0x{error.object[error.start]:02x} in line {line}") from None
        self._lines += block.count(b"\n")
        return block

    def close(self) -> None:
        """Does nothing: the file is closed where it was opened."""


def _numbered(batch: pa.RecordBatch, before: int, torn: dict[int, InvalidRow]) -> _Records:
    """The records after number `before`; moves the torn ones among and directly after them out of `torn`."""
    ahead = np.arange(before + 1, before + batch.num_rows + len(torn) + 1)
    numbers = ahead[np.isin(ahead, list(torn), invert=True)][: batch.num_rows] if torn else ahead
    last = int(numbers[-1]) if len(numbers) else before
    while last + 1 in torn:
        last += 1
    return _Records(batch, numbers, {number: torn.pop(number) for number in sorted(torn) if number <= last})


def _bounded(records: _Records, skipped: int) -> Iterator[_Records]:
    """The records after number `skipped`, in blocks of bounded size."""
    begin = int(np.searchsorted(records.numbers, skipped, side="right"))
    torn = {number: row for number, row in records.torn.items() if number > skipped}
    while len(records.numbers) - begin > _ROWS:
        end = begin + _ROWS
        last = int(records.numbers[end - 1])
        here = {number: torn.pop(number) for number in list(torn) if number <= last}
        yield _Records(records.fields.slice(begin, _ROWS), records.numbers[begin:end], here)
        begin = end
    if torn or begin < len(records.numbers):
        yield _Records(records.fields.slice(begin), records.numbers[begin:], torn)


def _nothing(width: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], pa.string())] * width, names=[str(i) for i in range(width)])


def _is_left_open(file: IO[bytes], records: _Records, sep: str) -> bool:
    """Whether the file ends in a quoted field without its closing quote, which Arrow accepts."""
    if records.last in records.torn:
        try:
            list(csv.reader(io.StringIO(records.torn[records.last].text, newline=""), delimiter=sep, strict=True))
        except csv.Error:
            return True
        return False
    value = records.fields.column(records.fields.num_columns - 1)[-1].as_py()
    if value is None:
        return False
    opened = _QUOTE + value.encode().replace(_QUOTE, 2 * _QUOTE)
    size = os.fstat(file.fileno()).st_size
    tail = os.pread(file.fileno(), len(opened) + 4, max(0, size - len(opened) - 4))
    if records.fields.num_columns > 1:
        return tail.endswith(sep.encode() + opened)
    closed = tuple(opened + _QUOTE + end for end in (b"", b"\n", b"\r\n", b"\r"))
    return tail.endswith(opened) and tail.removesuffix(opened)[-1:] in (b"", b"\n", b"\r") and not tail.endswith(closed)
