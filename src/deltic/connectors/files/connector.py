"""The connectors parquet, csv and json: the options of their sources and sinks.

An invalid option is an error at its place; no option is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from deltic.connectors.files.folder import under
from deltic.connectors.files.reader import FileReader
from deltic.connectors.files.sinks import ChangesSink, SnapshotSink
from deltic.connectors.files.source import FileSource
from deltic.connectors.sink import Mode, Owner
from deltic.connectors.source import Json
from deltic.errors import QueryError, Span
from deltic.options import Options
from deltic.schema import TableSchema

Format: TypeAlias = Literal["parquet", "csv", "json"]
OnError: TypeAlias = Literal["fail", "dead_letter"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
CSV: Final = ("header", "sep", "delimiter", "nullValue")
SOURCE: Final = ("path", "op_column", "append_only", "on_error", "dead_letter_path")
SINK: Final = ("path", "mode")
_ELSEWHERE: Final = {
    "mode": "mode is an option of sinks",
    **{name: f"{name} is an option of sources" for name in (*SOURCE[1:], "watermark", "watermark_delay")},
    "nullvalue": "a sink writes NULL as an empty field",
}


@dataclass(frozen=True, slots=True)
class FileSourceSpec:
    """The source of a table: the files of a folder.

    path: the folder as written, relative to the script's folder. op_column: the files' column of operations; None
    if every row is an insert. dead_letter_path: set if and only if on_error is dead_letter. header, sep and null_value: options of
    CSV. span, dead_letter_span: the places of path and dead_letter_path.
    """

    format: Format
    path: str
    op_column: str | None
    on_error: OnError
    dead_letter_path: str | None
    header: bool
    sep: str
    null_value: str
    span: Span = field(compare=False, repr=False)
    dead_letter_span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def location(self) -> str:
        return self.path

    def describe(self) -> str:
        operations = f"operations in {self.op_column}" if self.op_column else "append only"
        letters = f", dead letters in {self.dead_letter_path}" if self.dead_letter_path else ""
        return f"{self.format} {self.path}, {operations}{letters}"

    def facts(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in ("format", "path", "op_column", "on_error", "dead_letter_path")}

    def open(self, table: TableSchema, base: Path) -> FileSource:
        reader = FileReader(
            table,
            self.format,
            under(base, self.path),
            op_column=self.op_column,
            on_error=self.on_error,
            header=self.header,
            sep=self.sep,
            null_value=self.null_value,
        )
        return FileSource(table, reader)


@dataclass(frozen=True, slots=True)
class FileSinkSpec:
    """The sink of a view: files of a folder; format, path, header, sep and span as in FileSourceSpec.

    mode: changes adds a file for each tick that changes the view, snapshot replaces one file.
    """

    format: Format
    path: str
    mode: Mode
    header: bool
    sep: str
    span: Span = field(compare=False, repr=False)

    @property
    def location(self) -> str:
        return self.path

    def describe(self) -> str:
        return f"{self.format} {self.path}, {self.mode}"

    def facts(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in ("format", "path", "mode")}

    def open(self, owner: Owner, base: Path) -> ChangesSink | SnapshotSink:
        kind = SnapshotSink if self.mode == "snapshot" else ChangesSink
        return kind(under(base, self.path), self.format, owner, header=self.header, sep=self.sep)


@dataclass(frozen=True, slots=True)
class FileConnector:
    """The connector of one format."""

    format: Format

    def source(self, table: TableSchema, options: Options) -> FileSourceSpec:
        self._check_keys(options, SOURCE, CSV)
        op_column = _op_column(table, options)
        on_error: OnError = options.one_of("on_error", get_args(OnError), "fail")
        letters = options.text("dead_letter_path")
        _check_letters(options, on_error, letters)
        return FileSourceSpec(
            self.format,
            options.required("path", "no folder is given"),
            op_column,
            on_error,
            letters,
            options.flag("header"),
            _separator(options),
            options.text("nullvalue", blank=True) or "",
            options.place("path"),
            options.place("dead_letter_path") if letters is not None else None,
        )

    def sink(self, options: Options) -> FileSinkSpec:
        self._check_keys(options, SINK, CSV[:-1])
        path = options.required("path", "no folder is given")
        mode: Mode = options.one_of("mode", get_args(Mode))
        return FileSinkSpec(self.format, path, mode, options.flag("header"), _separator(options), options.place("path"))

    def _check_keys(self, options: Options, keys: Sequence[str], of_csv: Sequence[str]) -> None:
        if self.format != "csv":
            for key, option in options.given.items():
                if key in map(str.lower, of_csv):
                    message = f"{option.key} is an option of csv, and the format is {self.format}"
                    raise QueryError(message, span=option.key_span, remedy="leave it out")
        options.check_keys((*keys, *(of_csv if self.format == "csv" else ())), _ELSEWHERE)


def _op_column(table: TableSchema, options: Options) -> str | None:
    """The column of operations, which is not one of the table's."""
    op_column = options.text("op_column")
    if options.flag("append_only", default=op_column is None):
        options.refuse_both("append_only", "op_column", "append_only says that every row is an insertion")
    elif op_column is None:
        raise QueryError(
            "append_only is false, and no column says what each row does",
            span=options.place("append_only"),
            expected="op_column '_op' beside it",
            remedy="leave append_only out where every row is an insertion",
        )
    if op_column is not None and table.schema.find(op_column):
        raise QueryError(
            f"op_column is {op_column!r}, which is a column of table {table.name}",
            span=options.place("op_column"),
            expected="a column of the files that the table does not have",
            remedy="leave it out of the table's columns, or name another",
        )
    return op_column


def _separator(options: Options) -> str:
    """The separator of CSV: one ASCII character other than a quote or a line end."""
    if "sep" in options.given:
        options.refuse_both("delimiter", "sep", "they are two names of one option")
    option = options.given.get("delimiter" if "delimiter" in options.given else "sep")
    if option is None:
        return ","
    if len(option.value) != 1 or not option.value.isascii() or option.value in '"\r\n\0':
        raise QueryError(
            f"{option.key} is {option.value!r}",
            span=option.span,
            expected="one ASCII character, neither a quote nor the end of a line",
            remedy=f"{option.key} ',', for example",
        )
    return option.value


def _check_letters(options: Options, on_error: OnError, letters: str | None) -> None:
    """Raises QueryError unless dead_letter_path is given if and only if on_error is dead_letter."""
    if on_error == "dead_letter" and letters is None:
        message = "on_error is 'dead_letter', and no folder is given"
        raise QueryError(message, span=options.place("on_error"), expected="dead_letter_path '…'")
    if on_error == "fail" and letters is not None:
        raise QueryError(
            "dead_letter_path is given, and nothing would be written there",
            span=options.given["dead_letter_path"].key_span,
            expected="on_error 'dead_letter' beside it",
            remedy="leave it out where a bad row stops the pipeline",
        )
