"""Reads the files of a folder as portions of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Final, Literal, Protocol

from deltic.connectors.files.csv import CsvFiles
from deltic.connectors.files.folder import Entry, Folder
from deltic.connectors.files.json import JsonFiles
from deltic.connectors.files.parquet import ParquetFiles
from deltic.connectors.files.portions import FIX_OR_SKIP, ParsedBlock, Portion, RowSplitter, fields_of
from deltic.errors import SourceError
from deltic.schema import Field, TableSchema

_NOT_TEXT: Final = {
    b"\x1f\x8b": "is compressed with gzip",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd",
    b"\xfd7zXZ": "is compressed with xz",
    b"\xff\xfe": "is in UTF-16",
    b"\xfe\xff": "is in UTF-16",
}
"""How files begin that are no text in UTF-8: none of it does."""


class _Format(Protocol):
    def blocks(self, file: IO[bytes], name: str, start: int, check: Callable[[], None]) -> Iterator[ParsedBlock]: ...


class FileReader:
    """Reads the files of a local folder as changes of `table`.

    format: parquet, csv or json (lines). path: a local path or a file:// URL.
    op_column: the column of operations; the last one in a CSV without a header. None: all rows are inserts.
    on_error: "fail" raises FrameError or ConstraintViolation for the first invalid row, "dead_letter" skips such
    rows and returns them as letters. remedy: what an error tells to do.
    header, sep, null_value: of CSV. Raises SourceError for a path that is not local.
    """

    def __init__(
        self,
        table: TableSchema,
        format: str,
        path: str,
        *,
        op_column: str | None = None,
        on_error: Literal["fail", "dead_letter"] | str = "fail",
        header: bool = False,
        sep: str = ",",
        null_value: str = "",
        remedy: str = FIX_OR_SKIP,
    ) -> None:
        assert on_error in ("fail", "dead_letter")
        fields = fields_of(table, op_column)
        self._table = table.name
        self._folder = Folder(path, table.name)
        self.folder = self._folder.path
        self.strict = on_error == "fail"
        self._splitter = RowSplitter(table, op_column, strict=self.strict, remedy=remedy)
        self._format = _format(format, table, fields, header=header, sep=sep, null_value=null_value)

    def listing(self) -> list[Entry]:
        """The files, by name. Raises SourceError if the folder does not exist."""
        return self._folder.listing()

    def read(self, entry: Entry, start: int = 0) -> Iterator[Portion]:
        """The rows after the first `start`, in order, in portions of at most 65,536. At the last one the file is verified to be unchanged
        since the listing. A new iterator skips the rows before `start` (in Parquet, whole row groups without decoding).

        Raises SourceError for what is wrong with the file, FrameError and ConstraintViolation (unless they are letters) with a row.
        """
        name = str(self._folder.file(entry))
        with self._folder.open(entry) as (file, check):
            if not self.reads_groups:
                self._check_text(file, name)
            for block in self._format.blocks(file, name, start, check):
                check()
                yield self._splitter.portion(name, block)
            check()

    def _check_text(self, file: IO[bytes], name: str) -> None:
        """Raises SourceError for a file whose lines would all be invalid. The file is then at its beginning."""
        begins = file.read(8)
        file.seek(0)
        if what := next((what for mark, what in _NOT_TEXT.items() if begins.startswith(mark)), None):
            raise SourceError(f"table {self._table}: the file {name} {what}", expected="text in UTF-8", remedy="write it again as such")

    @property
    def reads_groups(self) -> bool:
        """Whether files have row groups, so that a task can begin with any of them."""
        return isinstance(self._format, ParquetFiles)

    def groups(self, entry: Entry) -> list[int]:
        """The number of rows of each row group. Raises SourceError as `read`."""
        assert isinstance(self._format, ParquetFiles)
        with self._folder.open(entry) as (file, check):
            return self._format.groups(file, str(self._folder.file(entry)), check)

    def checksum(self, entry: Entry) -> int:
        """CRC-32 of the file's bytes. Raises SourceError as `read`."""
        return self._folder.checksum(entry)


def _format(format: str, table: TableSchema, fields: tuple[Field, ...], *, header: bool, sep: str, null_value: str) -> _Format:
    match format:
        case "parquet":
            return ParquetFiles(table, fields)
        case "csv":
            return CsvFiles(table, fields, header=header, sep=sep, null_value=null_value)
        case "json":
            return JsonFiles(table, fields)
    raise AssertionError(f"the format {format}")
