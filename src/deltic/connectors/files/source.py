"""The files of a folder as a Source: the order in which they are read, and their offsets.

Files are read in the order of their names, each completely before the next; a late file with a smaller name is read next. The offsets in
the state record what was read; a failed tick does not move a FileSource. A file that was read may be removed, but not changed. Its offset
is removed with the next batch, so a folder that is briefly missing loses no offsets. A source that is spread over tasks (`remote.py`) reads
the same rows under the same offsets: which of both has read a file is not visible in them, but for the checksum of the first rows.
"""

from __future__ import annotations

import logging
import os
import time
import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import csv

from deltic.connectors.files.folder import Entry
from deltic.connectors.files.offsets import UNSUMMED, ConsumedFile, FilePosition, consumed_files, position_of
from deltic.connectors.files.portions import Portion, cut
from deltic.connectors.files.reader import FileReader
from deltic.connectors.files.remote import LARGE_BYTES, RemoteFiles, checksums, letters_of, ranges_of
from deltic.connectors.files.writing import json_text
from deltic.connectors.source import POSITION, DeadLetter, Json, Offsets, Run, SourceBatch
from deltic.errors import SourceError
from deltic.schema import TableSchema

_log: Final = logging.getLogger(__name__)
_AT_ONCE: Final = 64
"""The most large files whose checksums tasks compute in one job."""
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
    remote: RemoteFiles | None = None
    """Set if tasks read the batch, and not this process."""

    def batch(self, offsets: Offsets, folder: Path) -> SourceBatch:
        if self.remote is not None:
            changes, place_in = self.remote if self.rows else None, self.remote.place
        else:
            parts = [piece.changes for piece in self.pieces if piece.changes.num_rows]
            changes, place_in = pa.concat_tables(parts) if parts else None, self._place

        def place(row: int) -> tuple[str, int]:
            name, line = place_in(row)
            return str(folder / name), line

        def origin(row: int) -> str:
            file, line = place(row)
            return f"file {file}, row {line}"

        return SourceBatch(changes, offsets, self.rows, tuple(self.files), self.dead_letters, origin, place)

    def _place(self, row: int) -> tuple[str, int]:
        ends = list(accumulate(len(piece.lines) for piece in self.pieces))
        position = bisect_right(ends, row)
        piece = self.pieces[position]
        return piece.name, int(piece.lines[row - ends[position]])


class FileSource:
    """The source of one table: the folder that `reader` reads."""

    def __init__(self, table: TableSchema, reader: FileReader) -> None:
        self._table, self._reader, self._folder = table.name, reader, reader.folder
        self._keyed = bool(table.key)
        self._run: Run | None = None
        self._spreads = reader.reads_groups and table.lateness is None and not table.schema.find(POSITION)
        self._sums: dict[Entry, int] = {}
        """Checksums of large files that tasks have computed."""
        self._consumed: dict[str, ConsumedFile] = {}
        self._cursor: FilePosition | None = None
        self._touched: dict[str, ConsumedFile] = {}
        """Consumed files with a new modification time and the same bytes."""
        self._reading: _Reading | _RemoteReading | None = None
        self._listed: dict[str, Entry] = {}
        self._upcoming: deque[str] = deque()
        """Names of the files to read, in order, without the one in progress."""
        self._removed: list[str] = []
        self._listing = (0, 0)
        """(time of the last listing, time of the folder's last change before it), in nanoseconds."""

    @property
    def location(self) -> str:
        return str(self._folder)

    def spread(self, run: Run) -> bool:
        """Large files that have row groups are read by tasks; not those of a table with lateness, whose rows the pipeline looks at."""
        self._run = run if self._spreads else None
        return self._spreads

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
        while gathering.rows < limit_rows and (reading := self._reading or self._next(gathering, done)) is not None:
            self._reading = reading
            reading.fill(gathering, limit_rows)
            if reading.over:
                done[reading.entry.name] = reading.consumed
                self._reading = None
        if not gathering.files:
            return None
        if gathering.remote is not None and self._run is not None and not self._reader.strict:
            gathering.dead_letters = letters_of(gathering.remote, self._run)
        return gathering.batch(self._offsets(gathering, done), self._folder)

    def committed(self, batch: SourceBatch) -> None:
        for name in self._removed:
            del self._consumed[name]
        self._removed = []
        self._consumed |= consumed_files(self._table, batch.offsets.parts)
        self._cursor = position_of(self._table, batch.offsets)
        self._touched = {}

    def _next(self, gathering: _Gathering, done: Mapping[str, ConsumedFile]) -> _Reading | _RemoteReading | None:
        """Opens the next file after the rows already read; None also if tasks read the batch and not that file, or that file alone."""
        cursor = self._cursor if self._cursor is not None and self._cursor.name not in done else None
        if cursor is None and not self._upcoming:
            return None
        entry = self._listed[self._upcoming[0] if cursor is None else cursor.name]
        summed = self._summed(entry)
        if gathering.files and (summed is None) != (gathering.remote is None):
            return None
        if cursor is None:
            self._upcoming.popleft()
        if summed is not None:
            checksum, rows = (summed, 0) if cursor is None else (cursor.checksum, cursor.rows)
            return _RemoteReading(self._reader, entry, checksum, self._keyed, rows)
        if cursor is not None:
            return _Reading(self._reader, entry, cursor.checksum, cursor.rows, cursor.prefix)
        return _Reading(self._reader, entry, self._reader.checksum(entry))

    def _summed(self, entry: Entry) -> int | None:
        """The checksum of a file that tasks read, which they compute, together with those of files after it; None for any other file."""
        if self._run is None or entry.size_bytes < LARGE_BYTES:
            return None
        if entry not in self._sums:
            names = [entry.name, *(name for name in self._upcoming if name != entry.name)]
            large = [one for name in names if (one := self._listed[name]).size_bytes >= LARGE_BYTES][:_AT_ONCE]
            sums = checksums(self._reader, large, self._run)
            if sums is None:
                _log.warning("table %s: Spark's tasks do not find the files of %s, so the driver reads them", self._table, self._folder)
                self._run = None
                return None
            self._sums = dict(zip(large, sums, strict=True))
        return self._sums[entry]

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
        checksum = self._reader.checksum(entry)
        if cursor.prefix == UNSUMMED and checksum == cursor.checksum:
            return _Reading(self._reader, entry, checksum, cursor.rows, UNSUMMED)
        if cursor.prefix == UNSUMMED:
            raise SourceError(
                f"{self._about(entry.name)} changed when only its first {cursor.rows:,} rows had been read",
                expected="a file that stays as it is until it has been read",
                remedy="restore it; put changes into a new file",
            )
        reading = _Reading(self._reader, entry, checksum)
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
            portion, self._ahead = cut(self._ahead, limit - gathering.rows)
            self._ahead = self._ahead or next(self._portions, None)
            gathering.pieces.append(_Piece(self.entry.name, portion.changes, portion.lines))
            gathering.dead_letters += portion.letters
            gathering.rows += portion.rows
            self._rows += portion.rows

    def cursor(self, gathering: _Gathering) -> FilePosition:
        """The position after the batch. Cost: O(rows of the batch)."""
        for piece in gathering.pieces:
            if piece.name == self.entry.name and self._prefix != UNSUMMED:
                self._prefix = _checksum(piece, self._prefix)
        return FilePosition(self.entry.name, self._rows, self.entry.size_bytes, self.entry.mtime_ns, self._checksum, self._prefix)


class _RemoteReading:
    """A large file in progress, which tasks read from row `start`."""

    def __init__(self, reader: FileReader, entry: Entry, checksum: int, keyed: bool, start: int) -> None:
        self.entry, self._reader, self._checksum, self._keyed, self._rows = entry, reader, checksum, keyed, start
        self._groups = reader.groups(entry)

    @property
    def over(self) -> bool:
        return self._rows >= sum(self._groups)

    @property
    def consumed(self) -> ConsumedFile:
        """As of _Reading."""
        assert self.over
        return ConsumedFile(self.entry.size_bytes, self.entry.mtime_ns, self._checksum, self._rows)

    def fill(self, gathering: _Gathering, limit: int) -> None:
        """Adds ranges of the next rows to the batch until it has `limit` rows or the file ends."""
        if self.entry.name not in gathering.files:
            gathering.files.append(self.entry.name)
        ranges = ranges_of(self.entry, self._groups, self._rows, gathering.rows, limit - gathering.rows)
        before = () if gathering.remote is None else gathering.remote.ranges
        gathering.remote = RemoteFiles(self._reader, (*before, *ranges), self._keyed)
        rows = sum(part.rows for part in ranges)
        gathering.rows, self._rows = gathering.rows + rows, self._rows + rows

    def cursor(self, _: _Gathering) -> FilePosition:
        """The position after the batch, without a checksum of the rows before."""
        return FilePosition(self.entry.name, self._rows, self.entry.size_bytes, self.entry.mtime_ns, self._checksum, UNSUMMED)


def _changed_ns(folder: Path) -> int:
    """The time at which a name in the folder last changed, in nanoseconds; 0 if the folder does not exist, which the listing reports."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _checksum(piece: _Piece, before: int) -> int:
    """CRC-32 of the rows' content and numbers as CSV, continuing `before`; independent of the split into portions."""
    out = pa.BufferOutputStream()
    rows = pa.Table.from_arrays([*map(_in_csv, piece.changes.columns), pa.array(piece.lines)], [*piece.changes.column_names, ""])
    csv.write_csv(rows, out, csv.WriteOptions(include_header=False))
    return zlib.crc32(out.getvalue(), before)


def _in_csv(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """A column that CSV can hold: nested values as JSON; bytes as text, in which those that are not UTF-8 are escaped."""
    if pa.types.is_nested(column.type):
        return json_text(column)
    if pa.types.is_binary(column.type):
        texts = [None if value is None else value.decode(errors="backslashreplace") for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return column
