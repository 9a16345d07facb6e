"""The locations of a catalog's sources and sinks: each has one use, but tables may share a folder for their dead letters.

Locations are compared as written: two names for one place, such as a symbolic link, are not noticed here.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from deltic.connectors.connector import SinkSpec, SourceSpec
from deltic.errors import CatalogError, Span

LETTERS: Final = "the dead letters of table"


@dataclass(frozen=True, slots=True)
class Use:
    """A location and its user: a table, the dead letters of a table, or a sink."""

    kind: str
    name: str
    location: str
    span: Span

    @property
    def normalized(self) -> str:
        """The location in a form in which equal ones compare equal."""
        path = self.location.removeprefix("file://")
        return path.rstrip("/") if "://" in path else os.path.normpath(path)


def source_uses(table: str, source: SourceSpec) -> list[Use]:
    """The locations of a table: of its source, and of its dead letters."""
    uses = [Use("table", table, source.location, source.span)]
    if source.dead_letter_path is not None:
        uses.append(Use(LETTERS, table, source.dead_letter_path, source.dead_letter_span or source.span))
    return uses


def sink_uses(name: str, sink: SinkSpec) -> list[Use]:
    """The location of a sink."""
    return [Use("sink", name, sink.location, sink.span)]


def check_locations(new: Sequence[Use], old: Iterable[Use]) -> None:
    """Raises CatalogError at the first new use of a location that has another use already."""
    uses = {use.normalized: use for use in reversed(list(old))}
    for use in new:
        other = uses.setdefault(use.normalized, use)
        if other is not use and not use.kind == other.kind == LETTERS:
            twice = use.kind == other.kind == "table"
            raise CatalogError(
                f"{use.kind} {use.name} and {other.kind} {other.name} have the same location {use.location!r}",
                span=use.span,
                expected="a location of its own for each source and each sink",
                remedy=f"CREATE VIEW {use.name} AS SELECT … FROM {other.name} reads a table again" if twice else "give it another one",
            )
