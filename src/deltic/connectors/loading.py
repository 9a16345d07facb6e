"""What a load reads: files, frames, readers and iterators, in chunks of at most so many rows.

A source is never read whole: files block by block, readers and iterators batch by batch. Only a frame that is in memory already is
divided. Every row has a place for errors: its file and number there, counted from 1, or its number in the load, counted from 0.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, Final

import pyarrow as pa

from deltic.connectors.file_loads import CsvOptions, FileRows, files_at
from deltic.connectors.recognise import is_pandas, is_spark, not_a_frame, of_spark
from deltic.errors import DataError, FrameError
from deltic.schema import TableSchema

_DICTS: Final = 1 << 16
"""How many dicts of an iterator are one frame."""


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """Consecutive rows. place: of the i-th row, such as "file a.csv, row 7"."""

    frame: Any
    rows: int
    place: Callable[[int], str]

    def slice(self, start: int, end: int) -> NumberedRows:
        frame = self.frame
        part = frame.slice(start, end - start) if isinstance(frame, pa.Table) else (frame.iloc if is_pandas(frame) else frame)[start:end]
        return NumberedRows(part, end - start, lambda row: self.place(start + row))

    def located(self, error: DataError, table: TableSchema) -> DataError:
        """An error of the frame, which numbers its own rows, with the place of the row."""
        begin = f"table {table.name}, row "
        if not error.message.startswith(begin):
            return error
        rest = error.message.removeprefix(begin)
        digits = len(rest) - len(rest.lstrip("0123456789"))
        return _copied(error, f"table {table.name}, {self.place(int(rest[:digits]))}{rest[digits:]}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows of one tick."""

    pieces: Sequence[NumberedRows]

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    def located(self, error: DataError, table: TableSchema) -> DataError:
        """An error of the tick, whose ordinal is the position in the chunk, with the place of its row."""
        ends = list(accumulate(piece.rows for piece in self.pieces))
        if error.table != table.name or not 0 <= error.ordinal < ends[-1]:
            return error
        number = bisect_right(ends, error.ordinal)
        piece = self.pieces[number]
        return _copied(error, f"{piece.place(error.ordinal - ends[number] + piece.rows)}: {error.message}")


def _copied(error: DataError, message: str) -> DataError:
    other = type(error)(message, span=error.span, expected=error.expected, remedy=error.remedy)
    other.table, other.ordinal, other.row = error.table, error.ordinal, error.row
    return other


class ChunkedSource:
    """What `source` yields, for a table. rows: how many in all, if that is known before they are read.

    Raises FrameError for what is no source, SourceError for files that cannot be read.
    """

    def __init__(self, source: Any, table: TableSchema, format: str | None, csv: CsvOptions) -> None:
        self._table = table
        self.rows: int | None = None
        files = _paths(source)
        if files is not None:
            read = FileRows(files_at(files, table.name, format), table, csv)
            self.rows = read.rows
            self._pieces: Iterator[NumberedRows] = (NumberedRows(frame, frame.num_rows, place) for frame, place in read)
        else:
            source = of_spark(source, f"table {table.name}") if is_spark(source) else source
            self.rows = _length(source)
            self._pieces = _numbered(self._frames(source))

    def chunks(self, rows: int, skipped: int) -> Iterator[Chunk]:
        """The rows after the first `skipped`, in chunks of exactly `rows` and a last one."""
        gathered: list[NumberedRows] = []
        room = rows
        for whole in self._pieces:
            left = min(skipped, whole.rows)
            skipped -= left
            piece = whole.slice(left, whole.rows) if left else whole
            while piece.rows >= room:
                yield Chunk(_joined([*gathered, piece.slice(0, room)]))
                piece, gathered, room = piece.slice(room, piece.rows), [], rows
            if piece.rows:
                gathered.append(piece)
                room -= piece.rows
        if gathered:
            yield Chunk(_joined(gathered))

    def _frames(self, source: Any) -> Iterator[Any]:
        """Arrow tables, pandas frames and lists of dicts."""
        if isinstance(source, pa.Table) or is_pandas(source) or _is_rows(source):
            return iter([source])
        if hasattr(source, "__arrow_c_stream__"):
            return _of_stream(source)
        if isinstance(source, str | bytes | Mapping) or not isinstance(source, Iterable):
            raise not_a_frame(source, f"table {self._table.name}")
        return self._of_each(iter(source))

    def _of_each(self, items: Iterator[Any]) -> Iterator[Any]:
        """Of an iterator of frames or dicts."""
        for item in items:
            if isinstance(item, Mapping):
                dicts = [item, *islice(items, _DICTS - 1)]
                if not all(isinstance(one, Mapping) for one in dicts):
                    raise FrameError(f"table {self._table.name}: the iterator mixes dicts and frames", expected="dicts, or frames")
                yield dicts
            else:
                yield from self._frames(item)


def _numbered(frames: Iterable[Any]) -> Iterator[NumberedRows]:
    first = 0
    for frame in frames:
        rows = frame.num_rows if isinstance(frame, pa.Table) else len(frame)
        if rows:
            yield NumberedRows(frame, rows, lambda row, first=first: f"row {first + row}")  # type: ignore[misc]
        first += rows


def _is_rows(source: Any) -> bool:
    return isinstance(source, list) and (not source or isinstance(source[0], Mapping))


def _length(source: Any) -> int | None:
    """How many rows a frame in memory has; None for others."""
    in_memory = isinstance(source, pa.RecordBatch) or is_pandas(source) or _is_rows(source)
    return len(source) if in_memory or (hasattr(source, "__arrow_c_stream__") and hasattr(source, "__len__")) else None


def _paths(source: Any) -> Sequence[str] | None:
    """The paths that it is, if it is one or a list of them."""
    if isinstance(source, str | os.PathLike):
        return [os.fspath(source)]
    if isinstance(source, list | tuple) and source and all(isinstance(one, str | os.PathLike) for one in source):
        return [os.fspath(one) for one in source]
    return None


def _of_stream(source: Any) -> Iterator[pa.Table]:
    reader = source if isinstance(source, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(source)
    return (pa.Table.from_batches([batch]) for batch in reader)


def _joined(pieces: Sequence[NumberedRows]) -> Sequence[NumberedRows]:
    """As one piece, if their frames are Arrow's and have the same columns: one call encodes it."""
    frames = [piece.frame for piece in pieces]
    if len(frames) < 2 or not all(isinstance(frame, pa.Table) and frame.schema.equals(frames[0].schema) for frame in frames):
        return pieces
    ends = list(accumulate(piece.rows for piece in pieces))

    def place(row: int) -> str:
        number = bisect_right(ends, row)
        return pieces[number].place(row - ends[number] + pieces[number].rows)

    return [NumberedRows(pa.concat_tables(frames), ends[-1], place)]
