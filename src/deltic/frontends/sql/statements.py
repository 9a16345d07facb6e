"""The statements of a script, bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from deltic.errors import Span
from deltic.plan.nodes import Plan
from deltic.schema import Schema, TableSchema

Format = Literal["parquet", "csv", "json"]
OnError = Literal["fail", "dead_letter"]
Mode = Literal["changes", "snapshot"]


@dataclass(frozen=True, slots=True)
class FileSource:
    """Where a table's changes come from: the files of a folder.

    path: the folder as written; a relative one counts from where the script lies. op_column: the files' column that says what each row
    does; None where every row is an insertion. dead_letter_path: given just where on_error is dead_letter. header, sep and null_value
    are those of CSV. span, dead_letter_span, op_span: where path, dead_letter_path and op_column stand; two sources are equal whatever
    their places.
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
    op_span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Timed:
    """The column of a table that tells the time, which lags behind its greatest value by `delay_us`. span: of the column's name."""

    column: str
    delay_us: int
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FileSink:
    """Where a view's content goes: files of a folder of its own.

    mode: changes adds a file for each tick that changed the view, snapshot replaces one file. path, header, sep and span as in FileSource.
    """

    format: Format
    path: str
    mode: Mode
    header: bool
    sep: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE [IF NOT EXISTS].

    source: what USING and OPTIONS say; None for a table that is fed by hand. timed: what the option watermark says.
    """

    table: TableSchema
    if_not_exists: bool
    span: Span
    source: FileSource | None = None
    timed: Timed | None = None


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [MATERIALIZED | TEMPORARY] VIEW [IF NOT EXISTS].

    materialized: False for a plain or temporary view, which is only a name for its query.
    text: the statement as written; span: its name. depends_on: the catalog's relations that it reads, sorted.
    """

    name: str
    plan: Plan
    materialized: bool
    or_replace: bool
    if_not_exists: bool
    text: str
    span: Span
    depends_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeclareView:
    """DECLARE RECURSIVE VIEW: the columns of a view whose query comes later. limit: of iterations; span: its name."""

    name: str
    schema: Schema
    limit: int
    span: Span


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP [MATERIALIZED] VIEW [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class CreateSink:
    """CREATE SINK [IF NOT EXISTS] name FROM view. span: the sink's name; view_span: the view's."""

    name: str
    view: str
    sink: FileSink
    if_not_exists: bool
    span: Span
    view_span: Span


@dataclass(frozen=True, slots=True)
class DropSink:
    """DROP SINK [IF EXISTS]."""

    name: str
    if_exists: bool
    span: Span


Statement = CreateTable | CreateView | DeclareView | CreateSink | DropView | DropTable | DropSink
