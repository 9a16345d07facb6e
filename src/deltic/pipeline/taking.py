"""What is taken from a table's folder, and what comes next.

Files are taken by name, each once and whole before the next; one that comes late with a smaller name is the next. What was taken is in
the state's notes, and this module only remembers them: a tick that fails leaves a Source where it was. A file that was taken may go; it
may not change. Its note goes with the next tick that takes something, so that a folder that is away for a moment loses no notes.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import csv

from deltic.connectors.files import Entry, FileReader, Letter, Portion
from deltic.errors import SourceError
from deltic.pipeline.notes import Cursor, Json, Taken, cursor_key, cursor_of, taken_files, taken_key
from deltic.schema import TableSchema

_YOUNG_NS: Final = 2_000_000_000
"""A folder that changed so lately may change again within the same tick of the file system's clock."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one file in a load. lines: int64[n], the number of each row in its file, counted from 1."""

    name: str
    changes: pa.Table
    lines: np.ndarray


@dataclass(slots=True)
class Load:
    """What one tick takes of one table. rows: of the source, dead letters among them. notes: to be committed with the tick."""

    table: TableSchema
    folder: Path
    pieces: list[Piece] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    rows: int = 0
    notes: dict[str, Json] = field(default_factory=dict)

    def changes(self) -> pa.Table | None:
        """All rows, in order; None where there are none."""
        parts = [piece.changes for piece in self.pieces if piece.changes.num_rows]
        return pa.concat_tables(parts) if parts else None


class Source:
    """The folder of one table, which `reader` reads. rows_per_tick: how many rows of the source a tick takes at most."""

    def __init__(self, table: TableSchema, reader: FileReader, folder: Path, rows_per_tick: int) -> None:
        self.table, self.reader, self.folder, self._rows_per_tick = table, reader, folder, rows_per_tick
        self._taken: dict[str, Taken] = {}
        self._cursor: Cursor | None = None
        self._renewed: dict[str, Taken] = {}
        self._reading: _Reading | None = None
        self._listed: dict[str, Entry] = {}
        self._coming: deque[str] = deque()
        """Names of the files to come, in order; that of the one being taken is not among them."""
        self._gone: list[str] = []
        self._seen = (0, 0)
        """When the folder was listed, and when it had changed by then; nanoseconds."""

    def recall(self, notes: Mapping[str, Json]) -> None:
        """Takes the state's word for what was taken, whatever was begun since. O(files)."""
        self._taken, self._cursor = taken_files(notes, self.table.name), cursor_of(notes, self.table.name)
        self._renewed, self._reading = {}, None
        self._seen = (0, 0)

    def look(self, *, again: bool) -> None:
        """Lists the folder if it has changed, or `again`. Raises SourceError if a file that was taken is not what it was. O(files)."""
        now, changed = time.time_ns(), _changed_ns(self.folder)
        listed, before = self._seen
        if not again and before == changed and listed - before > _YOUNG_NS:
            return
        self._listed = {entry.name: entry for entry in self.reader.listing()}
        for name, entry in self._listed.items():
            known = self._renewed.get(name) or self._taken.get(name)
            if known is not None and (known.size_bytes, known.mtime_ns) != (entry.size_bytes, entry.mtime_ns):
                self._renewed[name] = self._renew(known, entry)
        if self._cursor is not None:
            self._check_split(self._cursor)
        split = self._cursor.name if self._cursor else None
        self._coming = deque(sorted(name for name in self._listed if name not in self._taken and name != split))
        self._gone = [name for name in self._taken if name not in self._listed]
        self._seen = (now, changed)

    def pending(self) -> list[Entry]:
        """What is there and was not taken whole, in order: a file of which a part was taken, then the others by name."""
        return [self._listed[name] for name in ([self._cursor.name] if self._cursor else []) + list(self._coming)]

    @property
    def begun(self) -> int:
        """How many rows of the first pending file were taken."""
        return self._cursor.rows if self._cursor else 0

    def take(self) -> Load | None:
        """The next rows; None if there are no more. Afterwards `commit` or `recall`. Raises SourceError, DataError."""
        load, done = Load(self.table, self.folder), dict[str, Taken]()
        while load.rows < self._rows_per_tick and (reading := self._reading or self._next(done)) is not None:
            self._reading = reading
            reading.fill(load, self._rows_per_tick)
            if reading.over:
                done[reading.entry.name] = reading.taken
                self._reading = None
        if not load.files:
            return None
        load.notes = self._notes(load, done)
        return load

    def commit(self, load: Load) -> None:
        """The load is part of the state."""
        for name in self._gone:
            del self._taken[name]
        self._gone = []
        self._taken |= taken_files({key: note for key, note in load.notes.items() if note is not None}, self.table.name)
        self._cursor = cursor_of(load.notes, self.table.name)
        self._renewed = {}

    def _next(self, done: Mapping[str, Taken]) -> _Reading | None:
        """The next file, opened where its taken part ends."""
        cursor = self._cursor
        if cursor is not None and cursor.name not in done:
            return _Reading(self.reader, self._listed[cursor.name], cursor.checksum, cursor.rows, cursor.prefix)
        if not self._coming:
            return None
        entry = self._listed[self._coming.popleft()]
        return _Reading(self.reader, entry, self.reader.checksum(entry))

    def _notes(self, load: Load, done: Mapping[str, Taken]) -> dict[str, Json]:
        table = self.table.name
        gone = {taken_key(table, name): None for name in self._gone}
        took = {taken_key(table, name): taken.json() for name, taken in (self._renewed | dict(done)).items()}
        cursor = None if self._reading is None else self._reading.cursor(load).json()
        return {**gone, **took, cursor_key(table): cursor}

    def _renew(self, known: Taken, entry: Entry) -> Taken:
        """The note of a file that has another time and, as it must, the same bytes."""
        found = self.reader.checksum(entry)
        if (known.size_bytes, known.checksum) != (entry.size_bytes, found):
            raise SourceError(
                f"{self._about(entry.name)} changed after it was taken ({known.size_bytes:,} bytes with the checksum {known.checksum:08x} "
                f"then, {entry.size_bytes:,} with {found:08x} now)",
                expected="files that stay as they were when they were taken",
                remedy="put the old file back, or take it away; what is to change goes into a new file",
            )
        return replace(known, mtime_ns=entry.mtime_ns)

    def _check_split(self, cursor: Cursor) -> None:
        """A file of which a part was taken may be corrected behind that part."""
        entry = self._listed.get(cursor.name)
        if entry is None:
            raise SourceError(
                f"{self._about(cursor.name)} vanished when {cursor.rows:,} of its rows had been taken",
                remedy="put it back, so that the others can be taken too",
            )
        if self._reading is None and (cursor.size_bytes, cursor.mtime_ns) != (entry.size_bytes, entry.mtime_ns):
            self._reading = self._resumed(cursor, entry)

    def _resumed(self, cursor: Cursor, entry: Entry) -> _Reading:
        reading = _Reading(self.reader, entry, self.reader.checksum(entry))
        again = Load(self.table, self.folder)
        while again.rows < cursor.rows and not reading.over:
            reading.fill(again, cursor.rows)
        if again.rows < cursor.rows or reading.cursor(again).prefix != cursor.prefix:
            raise SourceError(
                f"{self._about(entry.name)} changed in its first {cursor.rows:,} rows, which had been taken",
                expected="a file that changes, if at all, behind them",
                remedy="put them back as they were; what is to change of them goes into a new file",
            )
        return reading

    def _about(self, name: str) -> str:
        return f"table {self.table.name}: the file {self.folder / name}"


class _Reading:
    """A file that is being taken, from row `start` on. prefix: of the rows before."""

    def __init__(self, reader: FileReader, entry: Entry, checksum: int, start: int = 0, prefix: int = 0) -> None:
        self.entry, self._checksum, self._at, self._prefix = entry, checksum, start, prefix
        self._portions = reader.read(entry, start)
        self._ahead: Portion | None = next(self._portions, None)

    @property
    def over(self) -> bool:
        return self._ahead is None

    @property
    def taken(self) -> Taken:
        """The note of the file, once it is over."""
        assert self.over
        return Taken(self.entry.size_bytes, self.entry.mtime_ns, self._checksum, self._at)

    def fill(self, load: Load, limit: int) -> None:
        """Adds rows to the load, until it has `limit` or the file is over."""
        if self.entry.name not in load.files:
            load.files.append(self.entry.name)
        while self._ahead is not None and load.rows < limit:
            portion, self._ahead = _cut(self._ahead, limit - load.rows)
            self._ahead = self._ahead or next(self._portions, None)
            load.pieces.append(Piece(self.entry.name, portion.changes, portion.lines))
            load.letters += portion.letters
            load.rows += portion.rows
            self._at += portion.rows

    def cursor(self, load: Load) -> Cursor:
        """How far the file is after the load. O(rows of the load)."""
        for piece in load.pieces:
            if piece.name == self.entry.name:
                self._prefix = _checked(piece, self._prefix)
        return Cursor(self.entry.name, self._at, self.entry.size_bytes, self.entry.mtime_ns, self._checksum, self._prefix)


def _changed_ns(folder: Path) -> int:
    """When a name in the folder last changed; 0 if there is no folder, of which the listing will tell."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _cut(portion: Portion, rows: int) -> tuple[Portion, Portion | None]:
    """The portion's first rows, and the others."""
    if portion.rows <= rows:
        return portion, None
    middle = portion.first + rows
    at = int(np.searchsorted(portion.lines, middle))
    head = Portion(portion.changes.slice(0, at), rows, portion.first, [x for x in portion.letters if x.row < middle], portion.lines[:at])
    tail = [x for x in portion.letters if x.row >= middle]
    return head, Portion(portion.changes.slice(at), portion.rows - rows, middle, tail, portion.lines[at:])


def _checked(piece: Piece, before: int) -> int:
    """CRC-32 of what the rows say and where they stand, behind `before`; however they came in portions."""
    sink = pa.BufferOutputStream()
    csv.write_csv(piece.changes.append_column("", pa.array(piece.lines)), sink, csv.WriteOptions(include_header=False))
    return zlib.crc32(sink.getvalue(), before)
