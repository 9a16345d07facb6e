"""The protocol of connectors, which USING names.

A connector validates the options of a statement and returns a spec, which describes a source or sink and opens it. It is a module or an
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
        """The path or URL as written. No two sources or sinks may have the same one. span: its place."""

    @property
    def span(self) -> Span: ...

    @property
    def dead_letter_path(self) -> str | None:
        """The folder for rows that are not valid changes; None if such a row is an error."""

    @property
    def dead_letter_span(self) -> Span | None: ...

    def describe(self) -> str:
        """In one line, for `explain`."""

    def facts(self) -> dict[str, Json]:
        """As JSON, for `explain`."""

    def open(self, table: TableSchema, base: Path) -> Source:
        """Opens the source at its beginning. base: the folder of relative paths. Raises SourceError."""


@runtime_checkable
class SinkSpec(Protocol):
    """A sink as a statement declares it; see SourceSpec. mode: whether it receives the changes of its view or its content."""

    @property
    def location(self) -> str: ...

    @property
    def span(self) -> Span: ...

    @property
    def mode(self) -> Mode: ...

    def describe(self) -> str: ...

    def facts(self) -> dict[str, Json]: ...

    def open(self, owner: Owner, base: Path) -> Sink:
        """Opens the sink; writes nothing. Raises SinkError."""


class SourceConnector(Protocol):
    """A connector with sources."""

    def source(self, table: TableSchema, options: Options) -> SourceSpec:
        """The source of CREATE TABLE … USING … OPTIONS. Raises QueryError, with the place, for invalid options."""


class SinkConnector(Protocol):
    """A connector with sinks."""

    def sink(self, options: Options) -> SinkSpec:
        """The sink of CREATE SINK … USING … OPTIONS. Raises QueryError, with the place, for invalid options."""
