"""Converts a user's frame to an Arrow table with exactly the columns of a table.

A frame is a pyarrow Table or RecordBatch, a pandas, Polars or Spark DataFrame (which is collected here), anything with an Arrow C
stream, or a list of dicts. Its columns may be in any order and any case; a missing column is an error even if it is nullable, and so
is an extra one. Invariant of a result: the columns are the table's, in its order, with its names and Arrow types, and no NOT NULL
column contains a NULL; Arrow's own `nullable` flags are ignored. Rows are counted from 0.

The operations of a change frame, by its column `_op` (any case) or `_weight`:
- insert, i, c, create: adds the row. update, u: replaces the row with its key, which must exist. upsert: replaces or adds it.
- delete, d: if the table has a PRIMARY KEY and every other column is NULL (or omitted, by a frame of deletes or by a dict),
  deletes the row with the key, whatever its other columns; otherwise all columns must match.
- `_weight`: adds that many copies of the row, or removes them if negative; 0 is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deltic.connectors.fits import OP_COLUMN, WEIGHT_COLUMN, fit_of, shaped
from deltic.connectors.fitting import check_domain, check_lengths, check_nulls, check_parts, fit, without_dictionary
from deltic.connectors.recognise import Column, Columns, columns_of, not_a_frame
from deltic.domains import is_restricted
from deltic.errors import FrameError
from deltic.purity import shown
from deltic.schema import BIGINT, KNOWN_OPERATIONS, OPERATIONS, STRING, Field, Op, Schema, TableSchema, Type

OP: Final = OP_COLUMN
WEIGHT: Final = WEIGHT_COLUMN
Words: TypeAlias = NDArray[np.int64]
Fitted: TypeAlias = pa.Table | pa.RecordBatch

_ASCENDING: Final[Words] = np.arange(4096, dtype=np.int64)


_ALL_WEIGHT: Final[Words] = np.full(4096, int(Op.WEIGHT), np.int64)
_DELETES: Final = frozenset(name for name, op in OPERATIONS.items() if op is Op.DELETE_ROW)


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of one table, rows in the order of the frame.

    rows: the table's columns, perhaps followed by others; outside the key, a DELETE_KEY row has NULL, or zero in NOT NULL columns.
    ops: int64[n], codes of Op. weights: int64[n], never 0, and 1 except for WEIGHT.
    ordinals: int64[n], distinct: the order in which changes apply; without a sequence, the row's number in the frame.
    """

    rows: Fitted
    ops: Words
    ordinals: Words
    weights: Words


def rows_frame(frame: Any, table: TableSchema, *, replaces: bool = False) -> pa.Table:
    """All columns of `table`. Raises FrameError, ConstraintViolation. Cost: microseconds if the frame has the right schema.

    replaces: the rows replace others, so a column that the frame lacks may be one that is not to change.
    """
    if isinstance(frame, pa.Table) and (fits := fit_of(frame.schema, table)).verdict == "rows":
        return _checked(shaped(frame, table) if fits.others else frame, table)
    return _fitted(columns_of(frame, table.schema, _where(table)), table, replaces=replaces)


def keys_or_rows(frame: Any, table: TableSchema) -> tuple[Literal["keys", "rows"], pa.Table]:
    """The rows to delete: ("keys", the key's columns in its order) if only these are given, else ("rows", all columns).

    Accepts frames, and sequences of keys: values, or tuples if the key has several columns.
    """
    where = _where(table)
    if isinstance(frame, pa.Table) and len(table.key) < len(table.schema) and fit_of(frame.schema, table).verdict == "rows":
        return "rows", _checked(shaped(frame, table), table)
    if isinstance(frame, (Sequence, np.ndarray, pa.Array, pa.ChunkedArray, set, frozenset)) and not isinstance(frame, str):
        values = _plain_values(frame)
        if values and not isinstance(values[0], Mapping):
            return "keys", _of_keys(values, table)
        frame = values
    if isinstance(frame, (str, int)):
        raise not_a_frame(frame, where, is_key=True)
    columns = columns_of(frame, table.schema, where)
    key = tuple(table.schema[i] for i in table.key)
    if key and {name.lower() for name in columns.names} == {field.name.lower() for field in key}:
        return "keys", _fitted(columns, TableSchema(table.name, Schema(key), tuple(range(len(key)))))
    return "rows", _fitted(columns, table)


def change_frame(frame: Any, table: TableSchema, sequence: str | None = None) -> Changes:
    """The changes of a frame with `_op` or `_weight`.

    sequence: a column, of the table or not, by which the changes are ordered; ties keep the frame's order.
    Raises FrameError, ConstraintViolation.
    """
    if not isinstance(sequence, str | None):
        raise FrameError(f"{_where(table)}: invalid sequence {shown(sequence)}", expected="the name of a column")
    if sequence is None and isinstance(frame, pa.Table) and fit_of(frame.schema, table).verdict == "weighted":
        rows = shaped(frame, table)
        batches = (rows if rows.column(0).num_chunks == 1 else rows.combine_chunks()).to_batches()
        if len(batches) == 1 and not batches[0].column(len(table.schema)).null_count:
            return _weighted(_checked(batches[0], table), batches[0].column(len(table.schema)).to_numpy(), None)
    return _changes(_complete_deletes(frame, table, sequence), table, sequence)


def operations(frame: pa.Table, table: TableSchema, codes: Words | None) -> Words | None:
    """The codes of a frame of the table's columns and `_op`; None if some may be deletes by key, with NULL in all columns that may have it.

    codes: if they are known. Raises FrameError.
    """
    if codes is None:
        codes = _codes(frame.column(len(table.schema)), table)
    else:
        _check_keyed(codes, table)
    by_key = table.key and all(table.schema[i].nullable for i in _others(table, None))
    return None if by_key and (codes == int(Op.DELETE_ROW)).any() else codes


def _where(table: TableSchema) -> str:
    return f"table {table.name}"


def _checked(rows: Fitted, table: TableSchema) -> Fitted:
    for i, field in enumerate(table.schema.fields):
        restricted, limited = is_restricted(field.type), field.type.is_limited
        if field.type.is_validated:
            check_parts(rows.column(i), field, _where(table))
        if field.nullable and not (restricted or limited):
            continue
        column = rows.column(i)
        if not field.nullable and column.null_count:
            check_nulls(column, field, _where(table))
        if restricted:
            check_domain(column, field, _where(table))
        if limited:
            rows = rows.set_column(i, rows.schema.field(i), check_lengths(column, field, _where(table)))
    return rows


def _fitted(columns: Columns, table: TableSchema, *, replaces: bool = False) -> pa.Table:
    positions = _positions(columns, table.schema, _where(table), replaces=replaces)
    for field, position in zip(table.schema, positions, strict=True):
        row = columns.absent.get(columns.names[position])
        if row is not None:
            raise FrameError(f"{_where(table)}, row {row}: no column {field.name}", expected=_listed(table.schema), remedy="a NULL is None")
    given = [columns.columns[i] for i in positions]
    return _checked(_assemble(given, table), table)


def _assemble(columns: Sequence[Column], table: TableSchema) -> pa.Table:
    fitted = [fit(column, field, _where(table)) for column, field in zip(columns, table.schema, strict=True)]
    return pa.Table.from_arrays(fitted, schema=pa.schema([(field.name, field.type.arrow) for field in table.schema]))


def _positions(columns: Columns, schema: Schema, where: str, *, replaces: bool = False) -> list[int]:
    """The position of each field in the frame. Raises FrameError unless every field is there exactly once, and nothing else."""
    positions: dict[str, int] = {}
    for i, name in enumerate(columns.names):
        if name.lower() in positions:
            raise FrameError(f"{where}: the frame has the column {name} twice (case does not count)", expected=_listed(schema))
        positions[name.lower()] = i
    known = {name.lower() for name in schema.names}
    extra = [name for name in columns.names if name.lower() not in known]
    missing = [name for name in schema.names if name.lower() not in positions]
    if extra:
        message = f"{where}: the frame has a column {extra[0]}, which is not in the table"
        raise FrameError(message, expected=_listed(schema), remedy=f"drop {extra[0]} from the frame")
    if missing:
        remedy = f"give {missing[0]}, of NULLs where there are no values" if schema[schema.find(missing[0])[0]].nullable else None
        if replaces:
            remedy = f"give {missing[0]}, since rows are replaced whole; UPDATE … SET or MERGE in session.sql change some of the columns"
        if indexed := [name for name in missing if name.lower() in columns.index]:
            raise FrameError(f"{where}: {indexed[0]} is the index of the frame, not a column", remedy="frame.reset_index()")
        raise FrameError(f"{where}: the frame has no column {missing[0]}", expected=_listed(schema), remedy=remedy)
    return [positions[name.lower()] for name in schema.names]


def _listed(schema: Schema) -> str:
    return "the columns " + ", ".join(schema.names)


def _plain_values(values: Any) -> Sequence[Any]:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return list(values.to_pylist())
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


def _of_keys(keys: Sequence[Any], table: TableSchema) -> pa.Table:
    where, fields = _where(table), tuple(table.schema[i] for i in table.key)
    if not fields:
        raise FrameError(f"{where}: a key to delete, but the table has no PRIMARY KEY", expected="rows with all columns")
    tuples = keys if isinstance(keys[0], tuple) else [(key,) for key in keys]
    for i, key in enumerate(tuples):
        if not isinstance(key, tuple) or len(key) != len(fields):
            expected = f"a key ({', '.join(field.name for field in fields)})"
            raise FrameError(f"{where}, row {i}: found {keys[i]!r}", expected=expected)
    key_table = TableSchema(table.name, Schema(fields))
    return _checked(_assemble([list(column) for column in zip(*tuples, strict=True)], key_table), key_table)


def _others(table: TableSchema, sequence: str | None) -> list[int]:
    """The columns outside the key that identify the row of a delete; the sequence column does not."""
    ignored = {*table.key, *(table.schema.find(sequence) if sequence else ())}
    return [i for i in range(len(table.schema)) if i not in ignored]


def _complete_deletes(frame: Any, table: TableSchema, sequence: str | None) -> Any:
    """Adds the missing columns, as NULL, to the dicts of a list that delete by key alone."""
    if not isinstance(frame, Sequence) or isinstance(frame, (str, bytes)) or not table.key:
        return frame
    others = [table.schema[i].name for i in _others(table, sequence)]
    lowercase = {name.lower() for name in others}
    return [{**row, **dict.fromkeys(others)} if _is_bare_delete(row, lowercase) else row for row in frame]


def _is_bare_delete(row: object, others: set[str]) -> bool:
    return isinstance(row, Mapping) and str(row.get(OP)).lower() in _DELETES and not any(str(name).lower() in others for name in row)


def _changes(frame: Any, table: TableSchema, sequence: str | None) -> Changes:
    where = _where(table)
    columns = columns_of(frame, table.schema, where)
    if isinstance(frame, Sequence) and not frame:
        return _nothing(table)
    marks = {name: columns.columns[i] for i, name in enumerate(columns.names) if name.lower() in (OP, WEIGHT)}
    _check_marks(columns, marks, where)
    order = _order(columns, table, sequence)
    rest = _without(columns, set(marks) | ({sequence} if sequence and not table.schema.find(sequence) else set()))
    name, mark = next(iter(marks.items()))
    if name.lower() == WEIGHT:
        return _weighted(_fitted(rest, table), _weights(mark, table), order)
    ops = _codes(mark, table)
    others = _others(table, sequence)
    rest = _with_missing(rest, ops, table, others)
    rows, ops = _deletes_by_key(rest, ops, table, others)
    ordinals = np.arange(len(ops), dtype=np.int64) if order is None else order
    return Changes(rows, ops, ordinals, np.ones(len(ops), np.int64))


def _nothing(table: TableSchema) -> Changes:
    empty = np.empty(0, np.int64)
    return Changes(_assemble([[] for _ in table.schema], table), empty, empty, empty)


def _check_marks(columns: Columns, marks: Mapping[str, Column], where: str) -> None:
    if len(marks) != 1:
        marked = "both _op and _weight" if marks else "neither _op nor _weight"
        expected = f"one of them: _op ({KNOWN_OPERATIONS}) or _weight (an integer)"
        remedy = None if marks else "rows without them go to session.insert, upsert, update or delete"
        raise FrameError(f"{where}: a change frame with {marked}", expected=expected, remedy=remedy)
    name = next(iter(marks))
    if name in columns.absent:
        raise FrameError(f"{where}, row {columns.absent[name]}: no {name}")


def _without(columns: Columns, names: set[str]) -> Columns:
    lower = {name.lower() for name in names}
    kept = [i for i, name in enumerate(columns.names) if name.lower() not in lower]
    return replace(columns, names=tuple(columns.names[i] for i in kept), columns=tuple(columns.columns[i] for i in kept))


def _weighted(rows: Fitted, weights: Words, order: Words | None) -> Changes:
    ordinals = _ascending(len(weights)) if order is None else order
    if np.count_nonzero(weights) < len(weights):
        kept = np.flatnonzero(weights)
        rows, weights, ordinals = rows.take(kept), weights[kept], ordinals[kept]
    ops = _ALL_WEIGHT[: len(weights)] if len(weights) <= len(_ALL_WEIGHT) else np.full(len(weights), int(Op.WEIGHT), np.int64)
    return Changes(rows, ops, ordinals, weights)


def _ascending(length: int) -> Words:
    return _ASCENDING[:length] if length <= len(_ASCENDING) else np.arange(length, dtype=np.int64)


def _weights(mark: Column, table: TableSchema) -> Words:
    field = Field(WEIGHT, BIGINT, nullable=False)
    fitted = fit(mark, field, _where(table))
    if fitted.null_count:
        raise FrameError(f"{_where(table)}, row {_first(fitted.is_null())}: _weight is NULL", expected="an integer")
    weights: Words = fitted.to_numpy()
    return weights


def _first(flags: pa.ChunkedArray[Any]) -> int:
    return int(pc.index(flags, True).as_py())


def _codes(mark: Column, table: TableSchema) -> Words:
    """int64[n]: codes of Op; every delete is a DELETE_ROW for now."""
    names = fit(mark, Field(OP, STRING), _where(table)).combine_chunks()
    encoded = names.dictionary_encode(null_encoding="encode")
    codes = np.array([_code(name, table) for name in encoded.dictionary.to_pylist()], np.int64)
    indices = encoded.indices.to_numpy()
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        row = int(np.flatnonzero(np.isin(indices, unknown))[0])
        operation = names[row].as_py()
        shown = "NULL" if operation is None else repr(operation)
        raise FrameError(f"{_where(table)}, row {row}: _op is {shown}", expected=KNOWN_OPERATIONS)
    result: Words = codes[indices]
    _check_keyed(result, table)
    return result


def _code(name: str | None, table: TableSchema) -> int:
    return -1 if name is None else int(OPERATIONS.get(name.lower(), -1))


def _check_keyed(ops: Words, table: TableSchema) -> None:
    """Raises FrameError for updates and upserts of a table without a key."""
    if table.key:
        return
    needs_key = np.flatnonzero((ops == Op.UPSERT) | (ops == Op.UPDATE))
    if len(needs_key):
        row = int(needs_key[0])
        message = f"{_where(table)}, row {row}: {Op(ops[row]).name.lower()}, but the table has no PRIMARY KEY"
        raise FrameError(message, expected="insert or delete", remedy="declare a PRIMARY KEY, or delete the old row and insert the new one")


def _with_missing(columns: Columns, ops: Words, table: TableSchema, others: Sequence[int]) -> Columns:
    """Adds the missing columns of a frame of deletes that has only the key's columns."""
    names = [table.schema[i].name for i in others]
    given = {name.lower() for name in columns.names}
    if not table.key or any(name.lower() in given for name in names) or not np.all(ops == Op.DELETE_ROW):
        return columns
    nulls = tuple(pa.chunked_array([pa.nulls(columns.length)]) for _ in names)
    return replace(columns, names=(*columns.names, *names), columns=(*columns.columns, *nulls))


def _deletes_by_key(columns: Columns, ops: Words, table: TableSchema, others: Sequence[int]) -> tuple[pa.Table, Words]:
    """The rows, and the codes, with DELETE_KEY for each delete that gives only the key."""
    if not table.key or not np.any(ops == Op.DELETE_ROW):
        return _fitted(columns, table), ops
    lenient = TableSchema(table.name, table.schema.nullable, table.key)
    rows = _fitted(columns, lenient)
    bare = ops == Op.DELETE_ROW
    for i in others:
        bare &= rows.column(i).is_null().to_numpy()
    for i in others:
        field = table.schema[i]
        if not field.nullable:
            rows = rows.set_column(i, field.name, pc.if_else(pa.array(bare), _zero(field.type), rows.column(i)))
    return _checked(rows, table), np.where(bare, int(Op.DELETE_KEY), ops)


def _zero(type: Type) -> pa.Scalar[Any]:
    """A value of the type, for columns that are not read."""
    return pa.array([type.kind.zero], type.arrow)[0]


def _order(columns: Columns, table: TableSchema, sequence: str | None) -> Words | None:
    """int64[n]: the rank of each row by the sequence column; ties keep the frame's order."""
    if sequence is None:
        return None
    where = _where(table)
    position = next((i for i, name in enumerate(columns.names) if name.lower() == sequence.lower()), None)
    if position is None:
        raise FrameError(f"{where}: the frame has no column {sequence}, named as its sequence")
    column = columns.columns[position]
    values = _sequence_values(column, sequence, where) if isinstance(column, list) else _sortable(column)
    if values.null_count:
        raise FrameError(f"{where}, row {_first(values.is_null())}: the sequence {sequence} is NULL")
    ranks = np.empty(columns.length, np.int64)
    try:
        ascending = pc.sort_indices(values)
    except pa.ArrowException as error:
        message = f"{where}: the sequence {sequence} is of type {values.type}"
        raise FrameError(message, expected="numbers, strings, dates or times") from error
    ranks[ascending.to_numpy()] = np.arange(columns.length)
    return ranks


def _sortable(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """The same values, in a form that Arrow can sort: it cannot sort dictionaries and views of strings."""
    values = without_dictionary(column)
    return values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values


def _sequence_values(values: list[Any], sequence: str, where: str) -> pa.ChunkedArray[Any]:
    try:
        return pa.chunked_array([pa.array(values)])
    except (pa.ArrowException, OverflowError) as error:
        raise FrameError(f"{where}: the sequence {sequence} has values of different kinds", expected="values that have an order") from error
