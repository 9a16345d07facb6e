"""Intake: rows that users give as words, without Arrow's or NumPy's calls for each column where they fit; the rest `encoding.py` encodes.

What always holds: the words are those of `encoding.py`. Rows that a table refuses are left to the general path, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from deltic.canonical import normalized
from deltic.domains import is_restricted
from deltic.kernels import intake, text
from deltic.kernels.build import CHECKED
from deltic.kernels.export import release_frame
from deltic.kernels.memory import Words
from deltic.kernels.room import fresh
from deltic.kernels.table import address, buffer_address
from deltic.schema import BIGINT, OPERATIONS, Field, Op, Schema, TableSchema
from deltic.trace.dict_rows import DictColumns
from deltic.trace.encoding import MARKER, NEGATIVE_ZERO, Layout, encode, encode_table, whole
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable
from deltic.trace.sums import NARROW
from deltic.trace.workers import ALONE, Workers

Item = TypeVar("Item")
Result = TypeVar("Result")

SMALL: Final = 1 << 16
"""Rows up to which the chunks of a frame are joined before they are copied."""
_HALVES: Final[Words] = np.array(
    [(*np.frombuffer((name[:4] + name[2:]).encode(), "<i4"), op) for name, op in OPERATIONS.items() if len(name) == 6], np.int64
)
"""Of each name of six letters, which the usual ones have, the first four and the last four, and its code."""
WEIGHT: Final = int(Op.WEIGHT)
"""Not the member of the enumeration: numba takes 40 µs to see that it is an integer."""
_KEPT: Final = 1024
_WIDE: Final = {pa.string().id: 0, pa.binary().id: 0, pa.large_string().id: 1, pa.large_binary().id: 1}
"""By Arrow type of strings whether its offsets are int64."""


class TableIntake(NamedTuple):
    """How the rows of a table become words. frames: None if the kernel cannot copy them. dicts: None if a column has no plain form.

    keys: the key as a table of its own. key_frames: for frames of the key's columns alone, as whole rows.
    """

    table: TableSchema
    frames: FrameColumns | None
    dicts: DictColumns | None
    keys: TableSchema
    key_frames: FrameColumns | None


_intakes: dict[int, TableIntake] = {}
"""By id() of the table."""


def intake_of(table: TableSchema) -> TableIntake:
    """Cost: a microsecond for a table that was asked for before."""
    kept = _intakes.get(id(table))
    if kept is None or kept.table is not table:
        if len(_intakes) >= _KEPT:
            _intakes.clear()
        keys = TableSchema(table.name, Schema(tuple(table.schema[i] for i in table.key)), tuple(range(len(table.key))))
        key_frames = FrameColumns.of(table, table.key) if table.key else None
        kept = _intakes[id(table)] = TableIntake(table, FrameColumns.of(table), DictColumns.of(table), keys, key_frames)
    return kept


def encode_changes(table: pa.Table | pa.RecordBatch, target: TableSchema, strings: StringTable) -> tuple[Words, ...]:
    """The words of rows of a table, in its column order. In a primary key -0.0 is encoded as 0.0, which equals it.

    They are copied: a frame from NumPy or pandas may share memory that is written to later. Raises as `encode`.
    """
    frames = intake_of(target).frames
    words = None if frames is None else frames.words_of(table, strings)
    return _encoded(table, target, strings) if words is None else words


def _encoded(table: pa.Table | pa.RecordBatch, target: TableSchema, strings: StringTable) -> tuple[Words, ...]:
    """As `encode_changes`, column by column."""
    zeros = [i for i in target.key if target.schema[i].type.has_zeros]
    for i in zeros:
        field = target.schema[i]
        if field.type.is_nested:
            table = table.set_column(i, field.name, normalized(whole(table.column(i)), field.type))
    words = tuple([owned(word) for word in encode_table(table, target.schema, strings)])
    if not zeros:
        return words
    slices = Layout.of(target.schema).slices
    signed = {slices[i].start for i in zeros if target.schema[i].type.is_float}
    return tuple(np.where(word == NEGATIVE_ZERO, 0, word) if i in signed else word for i, word in enumerate(words))


def owned(words: Words) -> Words:
    """The array, or a copy if it is a view of another's memory."""
    return words if words.flags.owndata else words.copy()


class _BytesColumn(NamedTuple):
    """A column whose words are ids. number: of the column. place: of its word in a row. zeros: whether -0.0 in it is written as 0.0.

    validated: whether the contents of its Arrow arrays are checked.
    """

    number: int
    place: int
    field: Field
    zeros: bool
    validated: bool

    def planned(self, kind: pa.DataType) -> tuple[int, ...] | None:
        """A column of this Arrow type, as for the kernel of strings; None if it does not read such columns."""
        wide = None if self.field.type.held.is_nested else _WIDE.get(kind.id)
        check = text.UTF8 if pa.types.is_string(self.field.type.arrow) else text.BOUNDS
        return None if wide is None else (self.number, self.place, wide, check)


_NONE: Final[frozenset[int]] = frozenset()
_Target = tuple[int, int, int]
"""The addresses of the words of pending rows, of their ops and ordinals, and of their weights."""


@dataclass(frozen=True, slots=True)
class FrameColumns:
    """How frames with the Arrow types of a table become words: by a call of a kernel for all columns but those of ids, and one for these.

    plan: as for the kernel. words: of a row. ids: the columns whose words are ids. arrow: by column its Arrow type, None if its words are
    ids. longs: the columns whose words are int64 as Arrow has them, whatever they are. is_checked: whether no value that the kernel takes
    is refused by the table. blank: int64[words], a row without values, if frames do not have all columns of the table.
    """

    plan: Words
    words: int
    ids: tuple[_BytesColumn, ...]
    arrow: tuple[pa.DataType | None, ...]
    longs: tuple[int, ...]
    is_checked: bool
    blank: Words | None

    @staticmethod
    def of(table: TableSchema, given: Sequence[int] | None = None) -> FrameColumns | None:
        """given: the columns that frames have, in their order; all by default. None if the kernel has no kind for a column."""
        given = range(len(table.schema)) if given is None else given
        fields = [table.schema[i] for i in given]
        if CHECKED or any(field.type.kind.stored == "none" for field in fields):  # Arrow's memory has no handles
            return None
        layout = Layout.of(table.schema)
        places = [layout.slices[i].start for i in given]
        zeros = [i in table.key and table.schema[i].type.has_zeros for i in given]
        return FrameColumns(
            np.array([word for one in zip(fields, places, zeros, strict=True) for word in planned(*one)], np.int64),
            layout.width,
            tuple(
                _BytesColumn(i, places[i], field, zeros[i], field.type.is_validated)
                for i, field in enumerate(fields)
                if field.type.has_bytes
            ),
            tuple(None if field.type.has_bytes else field.type.arrow for field in fields),
            tuple(i for i, field in enumerate(fields) if field.type == BIGINT and not field.nullable),
            not any(_is_left(field) for field in fields),
            None if len(fields) == len(table.schema) else layout.blank(),
        )

    def sized(self, narrow: Mapping[int, int]) -> FrameColumns:
        """The same for frames whose integers have fewer bytes in some columns. narrow: how many, by column."""
        if not narrow:
            return self
        plan = self.plan.copy()
        for i, size in narrow.items():
            plan[intake.COLUMN * i + intake.WIDTH] = size
        return replace(self, plan=plan)

    def rows(
        self,
        frame: pa.Table,
        op: int,
        ordinal: int,
        strings: StringTable,
        ops: Words | None = None,
        workers: Workers = ALONE,
        unread: Collection[int] = (),
        *,
        lends: bool = False,
    ) -> Rows | None:
        """The pending rows of a frame of the table's columns, for WEIGHT with the weights after them. ops: of each row, in place of `op`.
        unread: columns of strings that are NULL in them, until `complete` is called. lends: whether a large frame may lend its memory.

        None if the frame is empty, or has a weight of 0 or a value that the table refuses. workers: divide a large frame.
        Raises CollidingStrings.
        """
        n, words = frame.num_rows, self.words
        lent = self._lent(frame) if lends and n > SMALL else {}
        if n <= SMALL:
            block = fresh((words + 3) * n)
            first, marks = address(block), block[words * n :]
            target = (first, first + 8 * words * n, first + 8 * (words + 2) * n)
        else:  # what only the table's input reads is not kept with the words, which the state may keep as they are
            block, marks = fresh((words + 1) * n), fresh(2 * n)
            first = address(block)
            target = (first, address(marks), first + 8 * words * n)
        if self.blank is not None:
            block[: words * n].reshape(words, n)[:] = self.blank[:, np.newaxis]
        copying = self._without(lent) if lent else self
        if not copying._copy(frame, block, target, op, ordinal, strings, workers, unread):
            return None
        if ops is not None:
            marks[:n] = ops
        if n <= SMALL:
            return Rows.packed(block, first, words + 2, 1, n)
        *columns, weights = block.reshape(words + 1, n)
        for i, values in lent.items():
            columns[self.plan[intake.COLUMN * i + intake.PLACE]] = values
        return Rows((*columns, marks[:n], marks[n:]), (weights,))

    def _lent(self, frame: pa.Table | pa.RecordBatch) -> Mapping[int, Words]:
        """The memory of the columns that are int64[n] in one piece, without NULL, by their numbers; nothing is copied."""
        lent: dict[int, Words] = {}
        for i in self.longs:
            column = frame.column(i)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            if column.type != pa.int64() or column.null_count or len(chunks) != 1:
                continue
            values = np.frombuffer(chunks[0].buffers()[1], np.int64, len(column), 8 * chunks[0].offset)
            if values.flags.aligned:
                lent[i] = values
        return lent

    def _without(self, columns: Collection[int]) -> FrameColumns:
        """The same without copies of these columns."""
        plan = self.plan.copy()
        for i in columns:
            plan[intake.COLUMN * i + intake.KIND] = intake.BYTES
        return replace(self, plan=plan)

    def complete(self, frame: pa.Table, rows: Rows, unread: Collection[int], strings: StringTable) -> None:
        """Writes the columns that `rows` has left out to its result. Raises CollidingStrings."""
        for number, place, field, *_ in self.ids:
            if number in unread:
                rows.columns[place][:] = encode(frame.column(number), field, strings)[0]

    def words_of(self, frame: pa.Table | pa.RecordBatch, strings: StringTable) -> tuple[Words, ...] | None:
        """The words of a frame whose first columns are the table's; None as in `rows`, and if columns have other types."""
        types = [frame.column(i).type for i in range(len(self.arrow))]
        if not all(type == kind or (kind is None and not pa.types.is_null(type)) for type, kind in zip(types, self.arrow, strict=True)):
            return None
        block = np.empty((self.words, frame.num_rows), np.int64)
        target = (address(block.reshape(-1)), 0, 0)
        return tuple(block) if self._copy(frame, block.reshape(-1), target, intake.UNMARKED, 0, strings) else None

    def _copy(
        self,
        frame: pa.Table | pa.RecordBatch,
        block: Words,
        target: _Target,
        op: int,
        ordinal: int,
        strings: StringTable,
        workers: Workers = ALONE,
        unread: Collection[int] = (),
    ) -> bool:
        """Writes the words to `block`, of which `target` has the address."""
        total: int = frame.num_rows
        batches = _batches(frame) if total else []
        if not total:
            return False
        if total <= SMALL:
            interned = self._copy_small(batches[0], target, op, ordinal, strings, unread)
        else:
            interned = _NONE if self._copy_large(batches, target, op, ordinal, workers) else None
        if interned is None:
            return False
        if not self.ids:
            return True
        checked = [each.number for each in self.ids if each.validated and each.number not in interned and each.number not in unread]
        if not all(_divided(_is_valid, [batch.column(number) for batch in batches for number in checked], total, workers)):
            return False

        def intern(part: tuple[pa.Array, Words, _BytesColumn]) -> None:
            column, words, each = part
            words[:] = encode(normalized(column, each.field.type) if each.zeros else column, each.field, strings)[0]

        parts: list[tuple[pa.Array, Words, _BytesColumn]] = []
        row = 0
        for batch in batches:
            for each in self.ids:
                start = each.place * total + row
                words = block[start : start + batch.num_rows]
                if each.number in unread:
                    words[:] = MARKER
                elif each.number not in interned:
                    parts.append((batch.column(each.number), words, each))
            row += batch.num_rows
        _divided(intern, parts, total, workers)
        return True

    def _copy_small(
        self, batch: pa.RecordBatch, target: _Target, op: int, ordinal: int, strings: StringTable, unread: Collection[int]
    ) -> frozenset[int] | None:
        """Copies all columns but those of ids, and some of these, which it returns; None for values that the kernel does not take."""
        plan: list[tuple[int, ...]] = []
        if self.ids:
            kinds = [each.planned(batch.column(each.number).type) for each in self.ids if each.number not in unread]
            plan = [planned for planned in kinds if planned is not None]
            for number, *_ in plan:
                if not _is_valid(batch.column(number), full=False):
                    return None
        done = self._copied(batch, target, batch.num_rows, 0, op, ordinal, strings if plan else None, plan)
        if done == text.INVALID:
            return None
        return frozenset([number for number, *_ in plan[:done]]) if plan else _NONE

    def _copy_large(self, batches: Sequence[pa.RecordBatch], target: _Target, op: int, ordinal: int, workers: Workers) -> bool:
        """Copies all columns but those of ids; False for values that the kernel does not take."""
        parts: list[tuple[int, pa.RecordBatch]] = []
        total = 0
        for batch in batches:
            parts += [(total + start, batch.slice(start, end - start)) for start, end in workers.ranges(batch.num_rows)]
            total += batch.num_rows

        def copied(part: tuple[int, pa.RecordBatch]) -> bool:
            first, batch = part
            return self._copied(batch, target, total, first, op, ordinal + first) != text.INVALID

        return all(_divided(copied, parts, total, workers))

    def _copied(
        self,
        batch: pa.RecordBatch,
        target: _Target,
        total: int,
        row: int,
        op: int,
        ordinal: int,
        strings: StringTable | None = None,
        texts: Sequence[tuple[int, ...]] = (),
    ) -> int:
        """Copies all columns but those of ids, by Arrow's C data interface; with `strings`, then as many as it can of the columns `texts`,
        planned. Returns how many, or INVALID for values that the kernels do not take."""
        words = np.empty(intake.ARROW_ARRAY, np.int64)
        frame = address(words)
        batch._export_to_c(frame)
        try:
            copied = intake.copy_frame(frame, self.plan, *target, total, row, op, int(op == WEIGHT), ordinal)
            if copied == intake.NOT_PLAIN:
                return text.INVALID
            return 0 if strings is None else strings.intern_frame(frame, np.array(texts, np.int64).reshape(-1), target[0], total, row)
        finally:
            release_frame(frame)


def usual_operations(column: pa.ChunkedArray) -> Words | None:
    """The codes of operations whose names have six letters, a delete that of a whole row; None if some have other names.

    Reads the bytes of the names, which no other check needs then.
    """
    if column.type != pa.string() or column.num_chunks != 1 or not len(column):
        return None
    names, n = column.chunk(0), len(column)
    _, offsets, letters = names.buffers()
    if names.null_count or offsets is None or letters is None or offsets.size < 4 * (names.offset + n + 1):
        return None
    codes, first = np.empty(n, np.int64), buffer_address(offsets, column) + 4 * names.offset
    read = intake.read_operations(first, buffer_address(letters, column), letters.size, n, _HALVES.reshape(-1), codes)
    return codes if read == n else None


def _divided(work: Callable[[Item], Result], items: Sequence[Item], rows: int, workers: Workers) -> list[Result | None]:
    """The results for the parts of a frame of so many rows, which are divided among threads if there are many."""
    if not workers.divides(rows):
        return [work(item) for item in items]
    return workers.map(lambda item, stop: None if stop.is_set() else work(item), items)


def _batches(frame: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    """The chunks of a frame, those of a small one joined."""
    if isinstance(frame, pa.RecordBatch):
        return [frame]
    batches: list[pa.RecordBatch] = frame.to_batches()
    return frame.combine_chunks().to_batches() if len(batches) > 1 and frame.num_rows <= SMALL else batches


def _is_valid(column: pa.Array, full: bool = True) -> bool:
    """Whether texts are UTF-8, and the parts of nested values within their buffers, without decimals of more digits than their type.

    full: False to check the first offset and the last alone, for a kernel that checks those between them.
    """
    try:
        column.validate(full=full)
    except pa.ArrowInvalid:
        return False
    return True


def planned(field: Field, place: int, zeros: bool) -> list[int]:
    """A column, as for the kernel."""
    type, width = field.type, 0
    least, most = (-(2**63), 0), (2**63 - 1, 0)
    match type.kind.stored:
        case "bytes":
            kind = intake.BYTES
        case "bits":
            kind = intake.BITS
        case "f4":
            kind = intake.FLOAT
        case "f8":
            kind = intake.DOUBLE
        case "decimal":
            end = 10**type.precision - 1
            kind = intake.NARROW if type.precision <= NARROW else intake.WIDE
            least, most = ((-end, 0), (end, 0)) if kind == intake.NARROW else (_pair(-end), _pair(end))
        case stored:
            kind, width = intake.INTEGER, np.dtype(stored).itemsize
            if type.kind.ends is not None:
                first, last = (int(pa.scalar(end, type.arrow).value) for end in type.kind.ends)
                least, most = (first, 0), (last, 0)
            elif type != BIGINT:
                least = (-(2**63) + 1, 0)  # less is the marker
    null = intake.REFUSED if not field.nullable else intake.FLAGGED if type == BIGINT else intake.MARKED
    return [kind, width, place, null, *least, *most, int(zeros)]


def _pair(number: int) -> tuple[int, int]:
    """The words of a decimal of two words."""
    low = number & (2**64 - 1)
    return number >> 64, low - 2**63


def _is_left(field: Field) -> bool:
    """Whether the kernel does not check all that the table requires of a column: parts of intervals, lengths, what is in nested values."""
    type = field.type
    return type.is_limited or (is_restricted(type) and (type.has_bytes or type.kind.ends is None))
