"""Ranges of large Parquet files, which the tasks of a cluster read where they run; the driver reads only the files' metadata.

A range ends where a row group does, or its batch. What a task gives does not depend on how the batch was divided: rows are numbered by
their position in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import pyarrow as pa

from deltic.connectors.files.folder import Entry
from deltic.connectors.files.portions import Portion, cut
from deltic.connectors.files.reader import FileReader
from deltic.connectors.frames import OP
from deltic.connectors.source import POSITION, DeadLetter, Json, RemoteRows, Run
from deltic.errors import DataError

LARGE_BYTES: Final = 16 << 20
"""A Parquet file of at least so many bytes is read by tasks, where there are any."""
LEAST_ROWS: Final = 1 << 16
"""Small row groups are read together, at least so many rows by one task."""
_BEFORE_ROWS: Final = -(1 << 62)
"""Added to the position of an error found while reading, which comes before those that a tick finds in the rows."""


@dataclass(frozen=True, slots=True)
class FileRange:
    """Rows `start` + 1 to `start` + `rows` of a file. first: the position of the first one in its batch."""

    entry: Entry
    start: int
    rows: int
    first: int


@dataclass(frozen=True, slots=True)
class RemoteFiles(RemoteRows):
    """The rows of one batch. keyed: whether the table has a PRIMARY KEY."""

    reader: FileReader
    ranges: tuple[FileRange, ...]
    keyed: bool

    @property
    def parts(self) -> int:
        return len(self.ranges)

    @property
    def num_rows(self) -> int:
        return sum(part.rows for part in self.ranges)

    def frames(self, part: int) -> Iterator[pa.Table]:
        range_ = self.ranges[part]
        for portion in self._portions(range_):
            changes = portion.changes
            if self.keyed and OP not in changes.column_names:
                changes = changes.append_column(OP, pa.repeat("insert", changes.num_rows))
            if OP in changes.column_names:
                changes = changes.append_column(POSITION, pa.array(portion.lines + (range_.first - range_.start - 1), pa.int64()))
            if changes.num_rows:
                yield changes

    def letters(self, part: int) -> Json:
        """The dead letters of a range."""
        return [asdict(letter) for portion in self._portions(self.ranges[part]) for letter in portion.letters]

    def place(self, row: int) -> tuple[str, int]:
        """The file of a row by its position, and its number there."""
        range_ = self.ranges[bisect_right([part.first for part in self.ranges], row) - 1]
        return range_.entry.name, range_.start + 1 + row - range_.first

    def _portions(self, range_: FileRange) -> Iterator[Portion]:
        read, portions = 0, self.reader.read(range_.entry, range_.start)
        while read < range_.rows:
            try:
                portion = next(portions)
            except DataError as error:
                error.ordinal = _BEFORE_ROWS + range_.first + read
                raise
            portion, _ = cut(portion, range_.rows - read)
            read += portion.rows
            yield portion


def letters_of(rows: RemoteFiles, run: Run) -> list[DeadLetter]:
    """The dead letters of a batch, in order. Raises SourceError."""
    return [DeadLetter(**letter) for letters in run(rows.letters, rows.parts) for letter in letters]


@dataclass(frozen=True, slots=True)
class FileSums:
    """Computes the checksums of files in tasks."""

    reader: FileReader
    entries: Sequence[Entry]

    def __call__(self, number: int) -> Json:
        entry = self.entries[number]
        return self.reader.checksum(entry) if (self.reader.folder / entry.name).is_file() else None


def checksums(reader: FileReader, entries: Sequence[Entry], run: Run) -> list[int] | None:
    """The CRC-32 of each file; None if there are tasks that do not find one. Raises SourceError."""
    sums = run(FileSums(reader, entries), len(entries))
    return None if None in sums else sums


def ranges_of(entry: Entry, groups: Sequence[int], start: int, first: int, limit: int) -> list[FileRange]:
    """Ranges of the rows after the first `start`, at most `limit` rows. groups: the rows of each row group. first: the position of the
    first row in its batch.

    >>> [(part.start, part.rows, part.first) for part in ranges_of(Entry("a", 9, 0), [100_000, 40_000, 40_000, 90_000], 7, 0, 200_000)]
    [(7, 99993, 0), (100000, 80000, 99993), (180000, 20007, 179993)]
    """
    ranges: list[FileRange] = []
    end = 0
    for count in groups:
        end += count
        if limit > 0 and start < end:
            rows = min(limit, end - start)
            if ranges and ranges[-1].rows < LEAST_ROWS:
                ranges[-1] = replace(ranges[-1], rows=ranges[-1].rows + rows)
            else:
                ranges.append(FileRange(entry, start, rows, first))
            start, first, limit = start + rows, first + rows, limit - rows
    return ranges
