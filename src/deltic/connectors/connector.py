"""The protocol of connectors: what a name after USING stands for.

A connector validates the options of a statement and returns a spec: what the statement says, and how to open it. It is a module or an
object with a function `source`, a function `sink`, or both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from deltic.connectors.sink import Mode, Owner, Sink
from deltic.connectors.source import Json, Source
from deltic.errors import Span
from deltic.options import Options
from deltic.schema import TableSchema


@runtime_checkable
class SourceSpec(Protocol):
    """A source as a statement declares it. Immutable."""

    @property
    def location(self) -> str:
        """Where it reads from, as written: a path or a URL. Two sources or sinks cannot have the same. span: its place."""

    @property
    def span(self) -> Span: ...

    @property
    def dead_letter_path(self) -> str | None:
        """The folder for rows that are not changes; None if such a row is an error."""

    @property
    def dead_letter_span(self) -> Span | None: ...

    def describe(self) -> str:
        """In one line, for `explain`."""

    def facts(self) -> dict[str, Json]:
        """As JSON, for `explain`."""

    def open(self, table: TableSchema, base: Path) -> Source:
        """The source, at its beginning. base: the folder that relative paths count from. Raises SourceError."""


@runtime_checkable
class SinkSpec(Protocol):
    """A sink as a statement declares it; as SourceSpec. mode: whether it receives the changes of its view, or its content."""

    @property
    def location(self) -> str: ...

    @property
    def span(self) -> Span: ...

    @property
    def mode(self) -> Mode: ...

    def describe(self) -> str: ...

    def facts(self) -> dict[str, Json]: ...

    def open(self, owner: Owner, base: Path) -> Sink:
        """The sink; nothing is written yet. Raises SinkError."""


class SourceConnector(Protocol):
    """A connector with sources."""

    def source(self, table: TableSchema, options: Options) -> SourceSpec:
        """What USING and OPTIONS of CREATE TABLE say. Raises QueryError, with the place, for options that it does not take."""


class SinkConnector(Protocol):
    """A connector with sinks."""

    def sink(self, options: Options) -> SinkSpec:
        """What USING and OPTIONS of CREATE SINK say. Raises QueryError, with the place, for options that it does not take."""
