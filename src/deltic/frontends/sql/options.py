"""What the options of sources and sinks are called, which formats have them, and what values they take.

What always holds: an option that does not fit is an error at its place; none is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar, get_args

from deltic.errors import QueryError, Span, Unsupported
from deltic.frontends.sql.clauses import Clauses, Option
from deltic.frontends.sql.delays import FORM, delay_us
from deltic.frontends.sql.scope import did_you_mean
from deltic.frontends.sql.statements import FileSink, FileSource, Format, Mode, OnError, Timed
from deltic.schema import TIMESTAMP, TableSchema

FORMATS: Final[tuple[Format, ...]] = get_args(Format)
CSV: Final = ("header", "sep", "delimiter", "nullValue")
WATERMARK: Final = ("watermark", "watermark_delay")
SOURCE: Final = ("path", "op_column", "append_only", "on_error", "dead_letter_path", *WATERMARK)
SINK: Final = ("path", "mode")
OF_OTHERS: Final = {
    "mode": "mode is an option of sinks",
    **{name: f"{name} is an option of sources" for name in SOURCE[1:]},
    "nullvalue": "a sink writes NULL as an empty field",
}
Known = TypeVar("Known", bound=str)


def source_of(clauses: Clauses) -> FileSource:
    """The source that USING and OPTIONS of CREATE TABLE say."""
    options = _Options(clauses, SOURCE, CSV)
    op_column = options.text("op_column")
    if options.flag("append_only", default=op_column is None):
        options.refuse_both("append_only", "op_column", "append_only says that every row is an insertion")
    elif op_column is None:
        raise QueryError(
            "append_only is false, and no column says what each row does",
            span=options.span("append_only"),
            expected="op_column '_op' beside it",
            remedy="leave append_only out where every row is an insertion",
        )
    on_error = options.one_of("on_error", get_args(OnError), "fail")
    letters = options.text("dead_letter_path")
    options.check_letters(on_error, letters)
    return FileSource(
        options.format,
        options.path(),
        op_column,
        on_error,
        letters,
        options.flag("header"),
        options.separator(),
        options.text("nullvalue", empty=True) or "",
        options.span("path"),
        options.span("dead_letter_path") if letters is not None else None,
        options.span("op_column") if op_column is not None else None,
    )


def sink_of(clauses: Clauses) -> FileSink:
    """The sink that USING and OPTIONS of CREATE SINK say."""
    options = _Options(clauses, SINK, CSV[:-1])
    path = options.path()
    mode: Mode = options.one_of("mode", get_args(Mode))
    return FileSink(options.format, path, mode, options.flag("header"), options.separator(), options.span("path"))


def timed_of(clauses: Clauses) -> Timed | None:
    """What OPTIONS of CREATE TABLE say of the time."""
    column, delay = (clauses.options.get(name) for name in WATERMARK)
    if column is None and delay is not None:
        raise QueryError("watermark_delay is given, and no watermark", span=delay.key_span, expected="watermark 'column' beside it")
    if column is None:
        return None
    lag = 0 if delay is None else delay_us(delay.value)
    if lag is None:
        assert delay is not None
        raise QueryError(f"watermark_delay is {delay.value!r}", span=delay.span, expected=FORM)
    return Timed(column.value, lag, column.span)


def check_timed(table: TableSchema, timed: Timed) -> None:
    """Raises QueryError if the column that tells the time is none of the table's, or no TIMESTAMP."""
    found = table.schema.find(timed.column)
    if not found:
        remedy = did_you_mean(timed.column, table.schema.names)
        raise QueryError(f"the watermark {timed.column!r} is no column of table {table.name}", span=timed.span, remedy=remedy)
    if (type_ := table.schema[found[0]].type) != TIMESTAMP:
        raise QueryError(f"the watermark {timed.column} is of type {type_.sql}", span=timed.span, expected="a column of type TIMESTAMP")


def check_op_column(table: TableSchema, source: FileSource) -> None:
    """Raises QueryError if the column that says what a row does is one of the table's."""
    if source.op_column is not None and table.schema.find(source.op_column):
        raise QueryError(
            f"op_column is {source.op_column!r}, which is a column of table {table.name}",
            span=source.op_span,
            expected="a column of the files that the table has not",
            remedy="leave it out of the table's columns, or name another",
        )


class _Options:
    """The options of one clause, each checked as it is asked for; their names and the format are checked first."""

    def __init__(self, clauses: Clauses, known: tuple[str, ...], of_csv: tuple[str, ...]) -> None:
        self.format, self._clauses = _format(clauses), clauses
        self._given: Mapping[str, Option] = clauses.options
        for key, option in self._given.items():
            if key in map(str.lower, known):
                continue
            if key not in map(str.lower, of_csv):
                raise _unknown(option, key, known + (of_csv if self.format == "csv" else ()))
            if self.format != "csv":
                raise QueryError(
                    f"{option.key} is an option of csv, and the format is {self.format}", span=option.key_span, remedy="leave it out"
                )

    def span(self, key: str) -> Span:
        """The place of an option's value; the format's where it is not given."""
        return self._given[key].span if key in self._given else self._clauses.span

    def text(self, key: str, *, empty: bool = False) -> str | None:
        """A value as it is; `empty` says whether it may be of blanks alone; it has no NUL."""
        option = self._given.get(key)
        if option is not None and not empty and not option.value.strip():
            raise QueryError(f"the option {option.key} is empty", span=option.span, remedy="give it a value, or leave it out")
        if option is not None and "\0" in option.value:
            raise QueryError(f"the option {option.key} has a character NUL", span=option.span, remedy="leave it out")
        return None if option is None else option.value

    def flag(self, key: str, *, default: bool = False) -> bool:
        """TRUE or FALSE."""
        if key not in self._given:
            return default
        return self.one_of(key, ("true", "false")) == "true"

    def one_of(self, key: str, values: tuple[Known, ...], default: Known | None = None) -> Known:
        """One of the values, without regard to case; required where there is no default."""
        expected = " or ".join(f"{key} '{value}'" for value in values)
        option = self._given.get(key)
        if option is None and default is not None:
            return default
        if option is None:
            raise QueryError(f"no {key} is given", span=self._clauses.span, expected=expected)
        found = next((value for value in values if value == option.value.lower()), None)
        if found is None:
            remedy = did_you_mean(option.value, values)
            message = f"{option.key} is {option.value!r}"
            raise QueryError(message, span=option.span, expected=expected, remedy=remedy if (remedy or "").startswith("did") else None)
        return found

    def path(self) -> str:
        """The folder, which must be given."""
        path = self.text("path")
        if path is None:
            raise QueryError("no folder is given", span=self._clauses.span, expected="OPTIONS (path '…')")
        return path

    def separator(self) -> str:
        """What stands between two fields of CSV: one character of ASCII that is no quote and ends no line."""
        if "sep" in self._given:
            self.refuse_both("delimiter", "sep", "they are two names of one option")
        key = "delimiter" if "delimiter" in self._given else "sep"
        option = self._given.get(key)
        if option is None:
            return ","
        if len(option.value) != 1 or not option.value.isascii() or option.value in '"\r\n\0':
            raise QueryError(
                f"{option.key} is {option.value!r}",
                span=option.span,
                expected="one ASCII character that is no quote and no end of line",
                remedy=f"{option.key} ',', for example",
            )
        return option.value

    def refuse_both(self, key: str, other: str, why: str) -> None:
        """Raises QueryError at `key` if both are given."""
        if key in self._given and other in self._given:
            names = f"{self._given[key].key} and {self._given[other].key}"
            raise QueryError(f"{names} do not go together: {why}", span=self._given[key].key_span, remedy="leave one of them out")

    def check_letters(self, on_error: OnError, letters: str | None) -> None:
        """dead_letter_path is there just where on_error is dead_letter."""
        if on_error == "dead_letter" and letters is None:
            raise QueryError(
                "on_error is 'dead_letter', and no folder is given", span=self.span("on_error"), expected="dead_letter_path '…'"
            )
        if on_error == "fail" and letters is not None:
            raise QueryError(
                "dead_letter_path is given, and nothing would be put there",
                span=self._given["dead_letter_path"].key_span,
                expected="on_error 'dead_letter' beside it",
                remedy="leave it out where a bad row stops the pipeline",
            )


def _format(clauses: Clauses) -> Format:
    found = next((known for known in FORMATS if known == clauses.format.lower()), None)
    if found is None:
        remedy = did_you_mean(clauses.format, FORMATS)
        told = remedy if (remedy or "").startswith("did") else None
        raise Unsupported(f"the format {clauses.format} is not supported", span=clauses.span, expected="parquet, csv or json", remedy=told)
    return found


def _unknown(option: Option, key: str, known: tuple[str, ...]) -> QueryError:
    expected = f"one of {', '.join(known)}"
    told = OF_OTHERS.get(key) or did_you_mean(option.key, known)
    remedy = told if told and (key in OF_OTHERS or told.startswith("did")) else None
    return QueryError(f"there is no option {option.key} here", span=option.key_span, expected=expected, remedy=remedy)
