"""The files of a load, one after another, block by block: Parquet, CSV and JSON as sources read them, and Arrow's own files."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from deltic.connectors.files.folder import Entry, Folder, local_path
from deltic.connectors.files.reader import FileReader
from deltic.errors import SourceError, did_you_mean
from deltic.purity import shown
from deltic.schema import TableSchema

FORMATS: Final = ("parquet", "csv", "json", "arrow")
_BY_ENDING: Final = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".csv": "csv",
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), "arrow"),
}
_MAGIC: Final = b"ARROW1"


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How CSV files are written, as in the options of a source."""

    header: bool = False
    sep: str = ","
    null_value: str = ""


@dataclass(frozen=True, slots=True)
class LoadedFile:
    path: Path
    format: str


def files_at(paths: Sequence[str], table: str, format: str | None) -> list[LoadedFile]:
    """The files that paths, folders and patterns name, those of each by name. Raises SourceError if one names none."""
    if format is not None and format not in FORMATS:
        raise SourceError(f"invalid format {shown(format)}", expected=f"one of {', '.join(FORMATS)}", remedy=did_you_mean(format, FORMATS))
    return [LoadedFile(file, format or _format(file, table)) for path in paths for file in _files(path, table)]


def _files(path: str, table: str) -> list[Path]:
    at = local_path(path, SourceError)
    if at.is_dir():
        return [at / entry.name for entry in Folder(str(at), table).listing()]
    if at.exists():
        return [at]
    matches = sorted(file for name in glob.glob(str(at), recursive=True) if (file := Path(name)).is_file())
    if not matches:
        raise SourceError(f"table {table}: there is no file {path}", expected="a file, a folder, or a pattern such as 'orders/*.parquet'")
    return matches


def _format(file: Path, table: str) -> str:
    format = _BY_ENDING.get(file.suffix.lower())
    if format is None:
        raise SourceError(
            f"table {table}: the name of the file {file} does not say its format",
            expected=f"a name that ends in one of {', '.join(_BY_ENDING)}",
            remedy=f"format= says it: {', '.join(map(repr, FORMATS))}",
        )
    return format


class FileRows:
    """The rows of files as Arrow tables of the table's columns, each with the place of its i-th row.

    rows: of all files; None if that is not known before they are read. Raises SourceError, FrameError, ConstraintViolation.
    """

    def __init__(self, files: Sequence[LoadedFile], table: TableSchema, csv: CsvOptions) -> None:
        self._files, self._table, self._csv = files, table, csv
        self.rows = sum(map(_parquet_rows, files)) if all(file.format == "parquet" for file in files) else None

    def __iter__(self) -> Iterator[tuple[pa.Table, Callable[[int], str]]]:
        for file in self._files:
            yield from self._arrow(file.path) if file.format == "arrow" else self._portions(file)

    def _portions(self, file: LoadedFile) -> Iterator[tuple[pa.Table, Callable[[int], str]]]:
        csv = self._csv
        folder = str(file.path.parent)
        reader = FileReader(
            self._table, file.format, folder, header=csv.header, sep=csv.sep, null_value=csv.null_value, remedy="fix the file"
        )
        try:
            status = file.path.stat()
        except OSError as error:
            raise self._unread(file.path, error) from None
        entry = Entry(file.path.name, status.st_size, status.st_mtime_ns)
        for portion in reader.read(entry):
            yield portion.changes, lambda row, lines=portion.lines: f"file {file.path}, row {lines[row]}"  # type: ignore[misc]

    def _arrow(self, path: Path) -> Iterator[tuple[pa.Table, Callable[[int], str]]]:
        first = 1
        try:
            with pa.memory_map(os.fspath(path)) as file:
                start = file.read(len(_MAGIC))
                file.seek(0)
                if start == _MAGIC:
                    whole = pa.ipc.open_file(file)
                    batches = (whole.get_batch(i) for i in range(whole.num_record_batches))
                else:
                    batches = iter(pa.ipc.open_stream(file))
                for batch in batches:
                    yield pa.Table.from_batches([batch]), lambda row, first=first: f"file {path}, row {first + row}"  # type: ignore[misc]
                    first += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise self._unread(path, error) from None

    def _unread(self, path: Path, error: Exception) -> SourceError:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error).split("\n", 1)[0].removesuffix(".")
        return SourceError(f"table {self._table.name}: the file {path} cannot be read: {why}", expected="a complete, readable file")


def _parquet_rows(file: LoadedFile) -> int:
    """0 for a damaged file, which its reader refuses."""
    try:
        rows: int = pq.read_metadata(file.path).num_rows
    except (pa.ArrowException, OSError):
        return 0
    return rows
