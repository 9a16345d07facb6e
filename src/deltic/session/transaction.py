"""Transactions: changes to tables, gathered until they are committed as one tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from deltic.circuit.pending import PendingRows
from deltic.connectors.fits import fit_of, shaped
from deltic.connectors.fitting import fit
from deltic.connectors.frames import WEIGHT, Changes, change_frame, keys_or_rows, operations, rows_frame
from deltic.errors import ClosedError, DataError, UnknownName
from deltic.schema import Op, StreamSchema, TableSchema
from deltic.trace.encoding import Layout
from deltic.trace.intake import encode_changes, intake_of, owned, usual_operations
from deltic.trace.strings import StringTable
from deltic.trace.workers import ALONE, Workers

if TYPE_CHECKING:
    from types import TracebackType

    from deltic.session.definitions import Definitions


Unread = Mapping[str, frozenset[int]]
"""By table the columns of strings that nothing reads: see `circuit.unread`."""


class PartialChanges(Exception):
    """Definitions read what was left out of pending changes. Caught within the session."""


class _Partial(NamedTuple):
    """Rows whose strings in the columns `unread` have not been looked up, and the frame that has them."""

    rows: PendingRows
    frame: pa.Table
    unread: frozenset[int]
    table: TableSchema


class PendingChanges:
    """The changes of one tick by table, encoded, in order.

    definitions: those by which they are gathered, if they are known; `complete` must be called unless `fits` those of the tick.
    """

    def __init__(
        self, strings: StringTable, workers: Workers = ALONE, definitions: Definitions | None = None, *, borrows: bool = False
    ) -> None:
        """workers: encode large frames. borrows: whether these lend their memory until the changes are committed."""
        self._strings, self._workers, self.definitions, self._borrows = strings, workers, definitions, borrows
        self._unread: Unread = {} if definitions is None else definitions.unread
        self._partial: list[_Partial] = []
        self._parts: dict[str, list[PendingRows]] = {}
        self._weighed: dict[str, bool] = {}
        self._next = 0
        self.tables: dict[str, TableSchema] = {}
        """The tables as they were defined when changes to them were added."""

    def add(self, table: TableSchema, op: Op, rows: pa.Table) -> None:
        """All rows of the frame under one operation. A DELETE_KEY frame has the key's columns alone."""
        n = rows.num_rows
        _check_key(table, (op,))
        if not n:
            return
        words = self._key_words(table, rows) if op is Op.DELETE_KEY else encode_changes(rows, table, self._strings)
        ordinals = np.arange(self._next, self._next + n)
        rows_of_op = PendingRows.of(tuple(words), np.full(n, int(op)), ordinals, np.ones(n, np.int64))
        self._append(table, rows_of_op, weighed=False)
        self._next += n

    def add_rows(self, table: TableSchema, op: Op, frame: Any) -> None:
        """All rows of a frame of the table's columns under one operation. Raises FrameError, ConstraintViolation."""
        plain = self._plain(frame, table, op)
        if plain is None:
            self.add(table, op, rows_frame(frame, table, replaces=op in (Op.UPDATE, Op.UPSERT)))
        else:
            self._append_plain(table, op, self._noted(plain, table))

    def add_deletes(self, table: TableSchema, keys_or_whole_rows: Any) -> None:
        """Rows to delete, as `Transaction.delete` takes them."""
        if len(table.key) < len(table.schema):
            keys = plain_keys(keys_or_whole_rows, table, self._next, self._strings, self._workers)
            if keys is not None:
                self._append_plain(table, Op.DELETE_KEY, keys)
                return
            plain = plain_changes(keys_or_whole_rows, table, Op.DELETE_ROW, self._next, self._strings, self._workers)
            if plain is not None:
                self._append_plain(table, Op.DELETE_ROW, plain.rows)
                return
        kind, rows = keys_or_rows(keys_or_whole_rows, table)
        self.add(table, Op.DELETE_KEY if kind == "keys" else Op.DELETE_ROW, rows)

    def _append_plain(self, table: TableSchema, op: Op, plain: PendingRows) -> None:
        _check_key(table, (op,))
        self._append(table, plain, weighed=False)
        self._next += len(plain)

    def add_frame(self, table: TableSchema, frame: Any, sequence: str | None) -> None:
        """A change frame as users give it. Raises FrameError, ConstraintViolation."""
        encoded = self._plain(frame, table, None) if sequence is None else None
        if encoded is None:
            self.add_changes(table, change_frame(frame, table, sequence))
            return
        plain, weighed = self._noted(encoded, table) if self._unread else encoded.rows, encoded.weighed
        n = plain.rows.length
        if not weighed and not table.key:
            _check_key(table, np.unique(plain.ops))
        self._append(table, plain, weighed=weighed)
        self._next += n + weighed

    def add_weighted(self, table: TableSchema, columns: Sequence[Sequence[Any]], weights: Sequence[int]) -> None:
        """Rows with weights other than 0, as columns of Python's values that fit the types. Raises FrameError, ConstraintViolation."""
        plainly = intake_of(table).dicts
        plain = None if plainly is None else plainly.of_columns(columns, weights, self._next)
        if plain is not None:
            self._append(table, PendingRows(plain), weighed=True)
            self._next += len(weights) + 1
            return
        fitted = [fit(list(values), field, f"table {table.name}") for values, field in zip(columns, table.schema, strict=True)]
        frame = pa.Table.from_arrays([*fitted, pa.array(weights, pa.int64())], [*table.schema.names, WEIGHT])
        self.add_changes(table, change_frame(frame, table))

    def add_changes(self, table: TableSchema, changes: Changes) -> None:
        """A change frame."""
        n = len(changes.ops)
        if not n:
            return
        weighed = int(changes.ops[0]) == Op.WEIGHT
        if not weighed:
            _check_key(table, np.unique(changes.ops))
        words = encode_changes(changes.rows, table, self._strings)
        ordinals = changes.ordinals + self._next if self._next else changes.ordinals
        self._append(table, PendingRows.of(words, changes.ops, ordinals, owned(changes.weights)), weighed=weighed)
        self._next = (self._next + n if weighed else int(ordinals.max())) + 1

    def _left_out(self, table: TableSchema) -> frozenset[int]:
        return self._unread.get(table.name, frozenset())

    def _plain(self, frame: Any, table: TableSchema, op: Op | None) -> EncodedRows | None:
        """See `plain_changes`."""
        unread = self._left_out(table)
        return plain_changes(frame, table, op, self._next, self._strings, self._workers, unread, borrows=self._borrows)

    def _noted(self, encoded: EncodedRows, table: TableSchema) -> PendingRows:
        """The rows, noted if they are partial; complete if some of them are not inserted, which is an error that shows them."""
        rows, frame = encoded.rows, encoded.frame
        if frame is None or not (unread := self._left_out(table)):
            return rows
        self._partial.append(_Partial(rows, frame, unread, table))
        if not rows.added.all():
            self.complete()
        return rows

    def fits(self, unread: Unread) -> bool:
        """Whether definitions that do not read these columns can compute the tick."""
        return all(partial.unread <= unread.get(partial.table.name, frozenset()) for partial in self._partial)

    def complete(self) -> None:
        """Encodes what was left out; `rows` must be called again. Raises CollidingStrings."""
        for partial in self._partial:
            columns = intake_of(partial.table).frames
            assert columns is not None
            columns.complete(partial.frame, partial.rows.rows, partial.unread, self._strings)
        self._partial.clear()

    def rows(self) -> Mapping[str, PendingRows]:
        """The changes by table."""
        return {name: parts[0] if len(parts) == 1 else PendingRows.concat(parts) for name, parts in self._parts.items()}

    def _append(self, table: TableSchema, rows: PendingRows, *, weighed: bool) -> None:
        if self._weighed.setdefault(table.name, weighed) != weighed:
            raise DataError(
                f"table {table.name} is changed by weights and by operations in one tick",
                expected="one of them, since operations apply in order and weights have none",
                remedy="use two transactions, or give the weights as operations",
            )
        self.tables[table.name] = table
        self._parts.setdefault(table.name, []).append(rows)

    def _key_words(self, table: TableSchema, keys: pa.Table) -> list[Any]:
        """Words of whole rows, of which only the key counts."""
        layout = Layout.of(table.schema)
        key_words = encode_changes(keys, intake_of(table).keys, self._strings)
        words: list[Any] = [np.full(keys.num_rows, word) for word in layout.blank()]
        positions = (w for i in table.key for w in range(layout.slices[i].start, layout.slices[i].stop))
        for position, word in zip(positions, key_words, strict=True):
            words[position] = word
        return words


class Transaction:
    """Gathers changes and commits them as one tick, all or none, when its `with` block ends without an error; see `Session.transaction`.

    Operations apply in the order of the calls, rows in the order of the frame.
    """

    def __init__(self, changes: PendingChanges, table: Callable[[str], TableSchema], commit: Callable[[PendingChanges], None]) -> None:
        """table: returns a table by its name, or raises. commit: commits the changes."""
        self._changes, self._lookup, self._commit = changes, table, commit
        self._open = self._done = False

    def insert(self, table: str, frame: Any) -> None:
        """New rows. A primary key that exists is an error."""
        self._changes.add_rows(self._table(table), Op.INSERT, frame)

    def upsert(self, table: str, frame: Any) -> None:
        """Rows that replace those with the same primary key, or are new."""
        self._changes.add_rows(self._table(table), Op.UPSERT, frame)

    def update(self, table: str, frame: Any) -> None:
        """Rows that replace those with the same primary key, which must exist."""
        self._changes.add_rows(self._table(table), Op.UPDATE, frame)

    def delete(self, table: str, keys_or_whole_rows: Any) -> None:
        """Rows to delete: by primary key (values, tuples, or frames of the key's columns alone), or whole rows, which must match."""
        self._changes.add_deletes(self._table(table), keys_or_whole_rows)

    def apply(self, table: str, changes: Any, *, sequence: str | None = None) -> None:
        """A change frame: the table's columns and `_op` or `_weight`."""
        schema = self._table(table)
        self._changes.add_frame(schema, changes, sequence)

    def _table(self, name: str) -> TableSchema:
        if not self._open:
            raise ClosedError(
                "the transaction is not open",
                expected="changes inside the `with` block that commits them",
                remedy="with session.transaction() as tx: …",
            )
        return self._lookup(name)

    def __enter__(self) -> Transaction:
        if self._done:
            raise ClosedError("the transaction has ended", remedy="begin a new one with session.transaction()")
        self._open = self._done = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open = False
        if kind is None:
            self._commit(self._changes)


_ARROW: Final = (pa.Table, pa.RecordBatch)


class EncodedRows(NamedTuple):
    """Pending rows, and the frame that they are of with the table's columns first; None if columns cannot have been left out.

    weighed: whether they have weights.
    """

    rows: PendingRows
    frame: pa.Table | None
    weighed: bool


def plain_changes(
    frame: Any,
    table: TableSchema,
    op: Op | None,
    ordinal: int,
    strings: StringTable,
    workers: Workers = ALONE,
    unread: frozenset[int] = frozenset(),
    *,
    borrows: bool = False,
) -> EncodedRows | None:
    """The changes of an Arrow frame, or of a few dicts; None for others, and if a value is refused.

    op: of all rows, which then have the table's columns alone; None if they have weights or operations. ordinal: of the first row. unread:
    columns of an Arrow frame that are left out. borrows: whether a large frame lends its memory. Raises as `shaped` for columns of other
    Arrow types, and FrameError for operations.
    """
    intake = intake_of(table)
    if type(frame) is list:
        dicts = intake.dicts
        code = None if op is None else int(op)
        rows = None if dicts is None else dicts.of_dicts(frame, ordinal, strings, keyed=bool(table.key), op=code)
        return None if rows is None else EncodedRows(PendingRows(rows), None, op is None and WEIGHT in frame[0])
    columns = intake.frames
    if columns is None or not columns.is_checked or not isinstance(frame, _ARROW):
        return None
    fits, code, ops = fit_of(frame.schema, table), int(Op.WEIGHT if op is None else op), None
    if fits.verdict == "no" or (fits.verdict == "rows") != (op is not None):
        return None
    if fits.wide or fits.verdict == "operations":
        frame = pa.Table.from_batches([frame]) if isinstance(frame, pa.RecordBatch) else frame
        frame = shaped(frame, table, fits.narrow) if fits.wide else frame
    if fits.verdict == "operations":
        code, ops = int(Op.INSERT), operations(frame, table, usual_operations(frame.column(len(table.schema))))
        if ops is None:
            return None
    columns = columns.sized(fits.narrow) if fits.narrow else columns
    rows = columns.rows(frame, code, ordinal, strings, ops, workers, unread, lends=borrows)
    return None if rows is None else EncodedRows(PendingRows(rows, owned=True), frame, fits.verdict == "weighted")


def plain_keys(frame: Any, table: TableSchema, ordinal: int, strings: StringTable, workers: Workers) -> PendingRows | None:
    """Deletes by a few keys, or by those of a frame of the key's columns alone, in their order; None in other cases. Raises as `shaped`."""
    intake = intake_of(table)
    if type(frame) is list:
        keys = None if intake.dicts is None or not table.key else intake.dicts.of_keys(frame, ordinal, strings)
        return None if keys is None else PendingRows(keys)
    columns = intake.key_frames
    if columns is None or not columns.is_checked or not isinstance(frame, pa.Table):
        return None
    fits = fit_of(frame.schema, intake.keys)
    if fits.verdict != "rows":
        return None
    frame = shaped(frame, intake.keys, fits.narrow) if fits.wide else frame
    rows = columns.sized(fits.narrow).rows(frame, int(Op.DELETE_KEY), ordinal, strings, None, workers)
    return None if rows is None else PendingRows(rows)


def _check_key(table: TableSchema, ops: Any) -> None:
    if table.key:
        return
    if isinstance(table, StreamSchema):
        if any(op not in (Op.INSERT, Op.WEIGHT) for op in ops):
            raise DataError(
                f"rows of stream {table.name} can only be inserted",
                expected="inserts: a stream holds the rows of one tick, and is empty in the next",
                remedy=f"make {table.name} a table if its rows are changed or deleted",
            )
        return
    for op in ops:
        if op in (Op.UPSERT, Op.UPDATE, Op.DELETE_KEY):
            operation = {Op.UPSERT: "upsert", Op.UPDATE: "update", Op.DELETE_KEY: "delete by key"}[Op(op)]
            raise DataError(
                f"table {table.name} has no PRIMARY KEY, so {operation} is not possible",
                expected="insert, and delete of whole rows",
                remedy=f"declare a PRIMARY KEY on {table.name}",
            )


def unknown_table(name: str, tables: tuple[str, ...], *, is_view: bool = False) -> UnknownName:
    if is_view:
        return UnknownName(f"{name} is a view, not a table", expected="a table", remedy="change the tables that it reads; it follows them")
    expected = f"one of {', '.join(tables)}" if tables else "a table created by CREATE TABLE"
    return UnknownName.of_relation(name, f"there is no table {name}", expected=expected)
