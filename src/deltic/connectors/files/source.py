"""The files of a folder as a Source: the order in which they are read, and their offsets.

Files are read in the order of their names, each completely before the next; a late file with a smaller name is read next. The offsets in
the state record what was read; a failed tick does not move a FileSource. A file that was read may be removed, but not changed. Its offset
is removed with the next batch, so a folder that is briefly missing loses no offsets.
"""

from __future__ import annotations

import os
import time
import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import csv

from deltic.connectors.files.folder import Entry
from deltic.connectors.files.offsets import ConsumedFile, FilePosition, consumed_files, position_of
from deltic.connectors.files.portions import Portion
from deltic.connectors.files.reader import FileReader
from deltic.connectors.source import DeadLetter, Json, Offsets, SourceBatch
from deltic.errors import SourceError
from deltic.schema import TableSchema

_RECENT_NS: Final = 2_000_000_000
"""A folder that changed this recently may change again within one tick of the file system's clock."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one file in a batch. lines: int64[n], the number of each row in its file, counted from 1."""

    name: str
    changes: pa.Table
    lines: np.ndarray


@dataclass(slots=True)
class _Gathering:
    """The rows of the next batch so far."""

    pieces: list[_Piece] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    rows: int = 0

    def batch(self, offsets: Offsets, folder: Path) -> SourceBatch:
        parts = [piece.changes for piece in self.pieces if piece.changes.num_rows]
        changes = pa.concat_tables(parts) if parts else None
        return SourceBatch(
            changes, offsets, self.rows, tuple(self.files), self.dead_letters, lambda row: self._origin(row, folder), self._place
        )

    def _origin(self, row: int, folder: Path) -> str:
        file, line = self._place(row)
        return f"file {folder / file}, row {line}"

    def _place(self, row: int) -> tuple[str, int]:
        ends = list(accumulate(len(piece.lines) for piece in self.pieces))
        position = bisect_right(ends, row)
        piece = self.pieces[position]
        return piece.name, int(piece.lines[row - ends[position]])


class FileSource:
    """The source of one table: the folder that `reader` reads."""

    def __init__(self, table: TableSchema, reader: FileReader) -> None:
        self._table, self._reader, self._folder = table.name, reader, reader.folder
        self._consumed: dict[str, ConsumedFile] = {}
        self._cursor: FilePosition | None = None
        self._touched: dict[str, ConsumedFile] = {}
        """Consumed files with a new modification time and the same bytes."""
        self._reading: _Reading | None = None
        self._listed: dict[str, Entry] = {}
        self._upcoming: deque[str] = deque()
        """Names of the files to read, in order, without the one in progress."""
        self._removed: list[str] = []
        self._listing = (0, 0)
        """(time of the last listing, time of the folder's last change before it), in nanoseconds."""

    @property
    def location(self) -> str:
        return str(self._folder)

    def restore(self, offsets: Offsets) -> None:
        """O(files)."""
        self._consumed, self._cursor = consumed_files(self._table, offsets.parts), position_of(self._table, offsets)
        self._touched, self._reading = {}, None
        self._listing = (0, 0)

    def refresh(self, *, force: bool) -> None:
        """Lists the folder if it has changed or with `force`. Raises SourceError if a consumed file has changed. Cost: O(files)."""
        now, changed = time.time_ns(), _changed_ns(self._folder)
        listed, before = self._listing
        if not force and before == changed and listed - before > _RECENT_NS:
            return
        self._listed = {entry.name: entry for entry in self._reader.listing()}
        for name, entry in self._listed.items():
            consumed = self._touched.get(name) or self._consumed.get(name)
            if consumed is not None and (consumed.size_bytes, consumed.mtime_ns) != (entry.size_bytes, entry.mtime_ns):
                self._touched[name] = self._verified(consumed, entry)
        if self._cursor is not None:
            self._check_split(self._cursor)
        split = self._cursor.name if self._cursor else None
        self._upcoming = deque(sorted(name for name in self._listed if name not in self._consumed and name != split))
        self._removed = [name for name in self._consumed if name not in self._listed]
        self._listing = (now, changed)

    def pending(self) -> Sequence[str]:
        """The file in progress, then the others by name."""
        return ([self._cursor.name] if self._cursor else []) + list(self._upcoming)

    def read(self, limit_rows: int) -> SourceBatch | None:
        gathering, done = _Gathering(), dict[str, ConsumedFile]()
        while gathering.rows < limit_rows and (reading := self._reading or self._next(done)) is not None:
            self._reading = reading
            reading.fill(gathering, limit_rows)
            if reading.over:
                done[reading.entry.name] = reading.consumed
                self._reading = None
        if not gathering.files:
            return None
        return gathering.batch(self._offsets(gathering, done), self._folder)

    def committed(self, batch: SourceBatch) -> None:
        for name in self._removed:
            del self._consumed[name]
        self._removed = []
        self._consumed |= consumed_files(self._table, batch.offsets.parts)
        self._cursor = position_of(self._table, batch.offsets)
        self._touched = {}

    def _next(self, done: Mapping[str, ConsumedFile]) -> _Reading | None:
        """Opens the next file after the rows already read."""
        cursor = self._cursor
        if cursor is not None and cursor.name not in done:
            return _Reading(self._reader, self._listed[cursor.name], cursor.checksum, cursor.rows, cursor.prefix)
        if not self._upcoming:
            return None
        entry = self._listed[self._upcoming.popleft()]
        return _Reading(self._reader, entry, self._reader.checksum(entry))

    def _offsets(self, gathering: _Gathering, done: Mapping[str, ConsumedFile]) -> Offsets:
        removed: dict[str, Json] = dict.fromkeys(self._removed)
        consumed = {name: file.json() for name, file in (self._touched | dict(done)).items()}
        cursor = None if self._reading is None else self._reading.cursor(gathering).json()
        return Offsets(cursor, {**removed, **consumed})

    def _verified(self, consumed: ConsumedFile, entry: Entry) -> ConsumedFile:
        """The record of a file with a new modification time. Raises SourceError if its bytes have changed."""
        checksum = self._reader.checksum(entry)
        if (consumed.size_bytes, consumed.checksum) != (entry.size_bytes, checksum):
            raise SourceError(
                f"{self._about(entry.name)} changed after it was read "
                f"(then {consumed.size_bytes:,} bytes with checksum {consumed.checksum:08x}, now {entry.size_bytes:,} with {checksum:08x})",
                expected="files that stay as they are once they have been read",
                remedy="restore the old file, or remove it; put changes into a new file",
            )
        return replace(consumed, mtime_ns=entry.mtime_ns)

    def _check_split(self, cursor: FilePosition) -> None:
        """Raises SourceError if the file in progress was removed; its unread rows may change."""
        entry = self._listed.get(cursor.name)
        if entry is None:
            raise SourceError(
                f"{self._about(cursor.name)} was removed when only its first {cursor.rows:,} rows had been read",
                remedy="restore it, so that the rest can be read too",
            )
        if self._reading is None and (cursor.size_bytes, cursor.mtime_ns) != (entry.size_bytes, entry.mtime_ns):
            self._reading = self._resumed(cursor, entry)

    def _resumed(self, cursor: FilePosition, entry: Entry) -> _Reading:
        reading = _Reading(self._reader, entry, self._reader.checksum(entry))
        again = _Gathering()
        while again.rows < cursor.rows and not reading.over:
            reading.fill(again, cursor.rows)
        if again.rows < cursor.rows or reading.cursor(again).prefix != cursor.prefix:
            raise SourceError(
                f"{self._about(entry.name)} changed in its first {cursor.rows:,} rows, which had been read",
                expected="a file that changes, if at all, after these rows",
                remedy="restore these rows; put changes to them into a new file",
            )
        return reading

    def _about(self, name: str) -> str:
        return f"table {self._table}: the file {self._folder / name}"


class _Reading:
    """A file in progress, read from row `start`. prefix: the checksum of the rows before."""

    def __init__(self, reader: FileReader, entry: Entry, checksum: int, start: int = 0, prefix: int = 0) -> None:
        self.entry, self._checksum, self._rows, self._prefix = entry, checksum, start, prefix
        self._portions = reader.read(entry, start)
        self._ahead: Portion | None = next(self._portions, None)

    @property
    def over(self) -> bool:
        return self._ahead is None

    @property
    def consumed(self) -> ConsumedFile:
        """The record of the file, once it has been read completely."""
        assert self.over
        return ConsumedFile(self.entry.size_bytes, self.entry.mtime_ns, self._checksum, self._rows)

    def fill(self, gathering: _Gathering, limit: int) -> None:
        """Adds rows to the batch until it has `limit` or the file ends."""
        if self.entry.name not in gathering.files:
            gathering.files.append(self.entry.name)
        while self._ahead is not None and gathering.rows < limit:
            portion, self._ahead = _cut(self._ahead, limit - gathering.rows)
            self._ahead = self._ahead or next(self._portions, None)
            gathering.pieces.append(_Piece(self.entry.name, portion.changes, portion.lines))
            gathering.dead_letters += portion.letters
            gathering.rows += portion.rows
            self._rows += portion.rows

    def cursor(self, gathering: _Gathering) -> FilePosition:
        """The position after the batch. Cost: O(rows of the batch)."""
        for piece in gathering.pieces:
            if piece.name == self.entry.name:
                self._prefix = _checksum(piece, self._prefix)
        return FilePosition(self.entry.name, self._rows, self.entry.size_bytes, self.entry.mtime_ns, self._checksum, self._prefix)


def _changed_ns(folder: Path) -> int:
    """The time at which a name in the folder last changed, in nanoseconds; 0 if the folder does not exist, which the listing reports."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _cut(portion: Portion, rows: int) -> tuple[Portion, Portion | None]:
    """(the portion's first `rows` rows, the rest)."""
    if portion.rows <= rows:
        return portion, None
    middle = portion.first + rows
    split = int(np.searchsorted(portion.lines, middle))
    first = [letter for letter in portion.letters if letter.row < middle]
    head = Portion(portion.changes.slice(0, split), rows, portion.first, first, portion.lines[:split])
    rest = [letter for letter in portion.letters if letter.row >= middle]
    return head, Portion(portion.changes.slice(split), portion.rows - rows, middle, rest, portion.lines[split:])


def _checksum(piece: _Piece, before: int) -> int:
    """CRC-32 of the rows' content and numbers, continuing `before`; independent of the split into portions."""
    out = pa.BufferOutputStream()
    csv.write_csv(piece.changes.append_column("", pa.array(piece.lines)), out, csv.WriteOptions(include_header=False))
    return zlib.crc32(out.getvalue(), before)
