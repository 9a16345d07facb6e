"""Bounded portions of a file's rows, split into valid changes and dead letters.

Rows are counted from 1: in Parquet the rows; in CSV the records, without the header and empty lines; in JSON all lines. Invariant of a
Portion: `changes` has the table's columns, in its order and Arrow types, followed by `_op` (STRING) if the source has an operation
column; no NOT NULL column has a NULL, except in a delete by key alone; rows are in the order of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deltic.connectors.fitting import with_lengths
from deltic.connectors.frames import OP
from deltic.connectors.source import DeadLetter
from deltic.errors import ConstraintViolation, DataError, FrameError, shortened
from deltic.schema import KNOWN_OPERATIONS, OPERATIONS, STRING, Field, Op, StreamSchema, TableSchema

_LONGEST_TEXT: Final = 10_000
FIX_OR_SKIP: Final = "fix the file, or set on_error 'dead_letter' to continue without such rows"


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows `first` to `first + rows - 1` of a file.

    rows: how many were read; first - 1 + rows is the next `start`.
    lines: int64[n], the number in the file of each row of `changes`. letters: the invalid rows, in order.
    """

    changes: pa.Table
    rows: int
    first: int
    letters: list[DeadLetter]
    lines: npt.NDArray[np.int64]


def cut(portion: Portion, rows: int) -> tuple[Portion, Portion | None]:
    """(the portion's first `rows` rows, the rest)."""
    if portion.rows <= rows:
        return portion, None
    middle = portion.first + rows
    split = int(np.searchsorted(portion.lines, middle))
    first = [letter for letter in portion.letters if letter.row < middle]
    head = Portion(portion.changes.slice(0, split), rows, portion.first, first, portion.lines[:split])
    rest = [letter for letter in portion.letters if letter.row >= middle]
    return head, Portion(portion.changes.slice(split), portion.rows - rows, middle, rest, portion.lines[split:])


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a value or a row is refused. out: the value is of the right kind but out of range, or NULL."""

    reason: str
    expected: str
    remedy: str | None = None
    out: bool = False


@dataclass(frozen=True, slots=True)
class ParsedColumn:
    """A column of its field's Arrow type. faults: by row, counted from 0, for values that are not valid; NULL in `array`."""

    array: pa.Array
    faults: Mapping[int, Fault]


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """Rows `first` to `first + rows - 1` as parsed, not yet validated against the table.

    columns: one for each of `fields_of`. numbers: int64[n], the number of each row. torn: malformed records, by number: (fault, text).
    text: the text of the i-th row.
    """

    first: int
    rows: int
    numbers: npt.NDArray[np.int64]
    columns: Sequence[ParsedColumn]
    torn: Mapping[int, tuple[Fault, str]]
    text: Callable[[int], str]


def fields_of(table: TableSchema, op_column: str | None) -> tuple[Field, ...]:
    """The columns of a file: the table's and, after them, the operation."""
    return table.schema.fields if op_column is None else (*table.schema.fields, Field(op_column, STRING))


class RowSplitter:
    """Splits the rows of blocks into changes and dead letters. strict: the first invalid row raises instead, with the remedy."""

    def __init__(self, table: TableSchema, op_column: str | None, *, strict: bool, remedy: str = FIX_OR_SKIP) -> None:
        self._table, self._has_op, self._strict, self._remedy = table, op_column is not None, strict, remedy
        self._fields = fields_of(table, op_column)
        names = [*table.schema.names, OP] if self._has_op else list(table.schema.names)
        self._schema = pa.schema([(name, field.type.arrow) for name, field in zip(names, self._fields, strict=True)])
        self._others = [i for i in range(len(table.schema)) if i not in table.key]

    def portion(self, file: str, block: ParsedBlock) -> Portion:
        """Raises FrameError or ConstraintViolation for the first bad row, if strict."""
        columns = self._judged(block)
        bad = self._bad(block, columns)
        if bad and self._strict:
            raise self._error(file, *min(bad.items()))
        changes = pa.Table.from_arrays([column.array for column in columns], schema=self._schema)
        good = np.isin(block.numbers, np.fromiter(bad, np.int64, len(bad)), invert=True) if bad else None
        letters = [_letter(file, row, *refusal) for row, refusal in sorted(bad.items())]
        if good is None or good.all():
            return Portion(changes, block.rows, block.first, letters, block.numbers)
        return Portion(changes.filter(pa.array(good)), block.rows, block.first, letters, block.numbers[good])

    def _bad(self, block: ParsedBlock, columns: Sequence[ParsedColumn]) -> dict[int, tuple[str | None, Fault, str]]:
        """By row number: the first invalid column, its fault, and the row's text."""
        refused: dict[int, tuple[str | None, Fault, str]] = {row: (None, *torn) for row, torn in block.torn.items()}
        first: dict[int, tuple[str, Fault]] = {}
        for field, column in zip(self._fields, columns, strict=True):
            for i, fault in column.faults.items():
                first.setdefault(i, (field.name, fault))
        for i, (name, fault) in first.items():
            refused[int(block.numbers[i])] = (name, fault, block.text(i))
        return refused

    def _judged(self, block: ParsedBlock) -> list[ParsedColumn]:
        """The columns, with faults added for NULLs and operations that the table does not allow."""
        columns = list(block.columns)
        bare: npt.NDArray[np.bool_] | None = None
        if self._has_op:
            columns[-1], deletes = self._judged_ops(columns[-1])
            bare = self._bare(columns, deletes)
        for i, field in enumerate(self._table.schema):
            if field.type.is_limited:
                columns[i] = _within_length(columns[i], field)
            if not field.nullable and columns[i].array.null_count:
                columns[i] = _without_nulls(columns[i], field, bare)
        return columns

    def _judged_ops(self, column: ParsedColumn) -> tuple[ParsedColumn, npt.NDArray[np.bool_]]:
        """The validated operations, and a mask of the deletes."""
        encoded = column.array.dictionary_encode(null_encoding="encode")
        words = encoded.dictionary.to_pylist()
        faults = [self._op_fault(word) for word in words]
        deletes = np.array([word is not None and OPERATIONS.get(word.lower()) is Op.DELETE_ROW for word in words], bool)
        codes = encoded.indices.to_numpy()
        wrong = {i: fault for i, code in enumerate(codes.tolist()) if (fault := faults[code])} if any(faults) else {}
        return ParsedColumn(column.array, {**wrong, **column.faults}), deletes[codes] if len(words) else np.zeros(0, bool)

    def _op_fault(self, word: str | None) -> Fault | None:
        op = None if word is None else OPERATIONS.get(word.lower())
        if op is None:
            return Fault("NULL is not an operation" if word is None else f"{quoted(word)} is not an operation", KNOWN_OPERATIONS)
        if op is not Op.INSERT and isinstance(self._table, StreamSchema):
            remedy = f"make {self._table.name} a table if its rows are changed or deleted"
            return Fault(f"{word}, but rows of a stream can only be inserted", "insert", remedy)
        if op in (Op.UPSERT, Op.UPDATE) and not self._table.key:
            remedy = "declare a PRIMARY KEY, or delete the old row and insert the new one"
            return Fault(f"{word}, but the table has no PRIMARY KEY", "insert or delete", remedy)
        return None

    def _bare(self, columns: Sequence[ParsedColumn], deletes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | None:
        """Mask of the deletes that give only the key."""
        if not self._table.key or not deletes.any():
            return None
        bare = deletes.copy()
        for i in self._others:
            bare &= columns[i].array.is_null().to_numpy(zero_copy_only=False)
        for i in self._table.key:
            bare &= columns[i].array.is_valid().to_numpy(zero_copy_only=False)
        return bare

    def _error(self, file: str, row: int, refusal: tuple[str | None, Fault, str]) -> DataError:
        column, fault, _ = refusal
        where = f"table {self._table.name}, file {file}, row {row}" + (f", column {column}" if column else "")
        kind = ConstraintViolation if fault.out else FrameError
        remedy = fault.remedy or self._remedy
        error = kind(f"{where}: {fault.reason}", expected=fault.expected, remedy=remedy)
        error.table = self._table.name
        return error


def _within_length(column: ParsedColumn, field: Field) -> ParsedColumn:
    """The texts as they are stored; those that are too long are faults."""
    text, rows = with_lengths(column.array, field.type)
    long = {row: Fault(f"{len(column.array[row].as_py())} characters do not fit", field.type.values, out=True) for row in rows}
    return ParsedColumn(text, {**long, **column.faults})


def _without_nulls(column: ParsedColumn, field: Field, bare: npt.NDArray[np.bool_] | None) -> ParsedColumn:
    nulls = column.array.is_null().to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(nulls if bare is None else nulls & ~bare)
    fault = Fault("NULL in a NOT NULL column", field.type.values, out=True)
    return ParsedColumn(column.array, {**dict.fromkeys(wrong.tolist(), fault), **column.faults})


def _letter(file: str, row: int, column: str | None, fault: Fault, text: str) -> DeadLetter:
    return DeadLetter(file, row, column, shortened(f"{fault.reason}; expected: {fault.expected}"), text[:_LONGEST_TEXT])


def quoted(value: str) -> str:
    """A value for a message, shortened."""
    return repr(value) if len(value) <= 100 else f"{value[:100]!r}…"


def in_table_order(names: Iterable[str], fields: Sequence[Field]) -> tuple[list[int], list[str], list[str], list[str]]:
    """(position of each field among `names`, case-insensitive; -1 if missing; names that are not fields; missing fields; duplicates)."""
    names_of_fields = {field.name.lower() for field in fields}
    positions: dict[str, int] = {}
    extra, twins = [], []
    for i, name in enumerate(names):
        if name.lower() in positions:
            twins.append(name)
        elif name.lower() not in names_of_fields:
            extra.append(name)
        positions.setdefault(name.lower(), i)
    missing = [field.name for field in fields if field.name.lower() not in positions]
    return [positions.get(field.name.lower(), -1) for field in fields], extra, missing, twins


def remedy_for_extra(name: str) -> str:
    """The remedy for a column that is not in the table."""
    if name.lower() == OP:
        return f"say op_column '{name}' if it says what a row does"
    return f"add {name} to the table, or leave it out"
