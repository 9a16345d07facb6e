"""What the folders of a catalog's sources and sinks are for: each has one use, but tables may share one for their dead letters.

Folders are told apart by their paths as written; that two paths lead to one folder in some other way is not seen here.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from deltic.errors import CatalogError, Span
from deltic.frontends.sql import FileSink, FileSource

LETTERS: Final = "the dead letters of table"


@dataclass(frozen=True, slots=True)
class Use:
    """`kind` and `name` say whose folder it is: of a table, of its dead letters, of a sink."""

    kind: str
    name: str
    path: str
    span: Span

    @property
    def folder(self) -> str:
        """The path without what makes no difference."""
        path = self.path.removeprefix("file://")
        return path.rstrip("/") if "://" in path else os.path.normpath(path)


def source_uses(table: str, source: FileSource) -> list[Use]:
    """The folders of a table: of its files, and of its dead letters."""
    uses = [Use("table", table, source.path, source.span)]
    if source.dead_letter_path is not None:
        uses.append(Use(LETTERS, table, source.dead_letter_path, source.dead_letter_span or source.span))
    return uses


def sink_uses(name: str, sink: FileSink) -> list[Use]:
    """The folder of a sink."""
    return [Use("sink", name, sink.path, sink.span)]


def check_folders(new: Sequence[Use], old: Iterable[Use]) -> None:
    """Raises CatalogError at the first new use of a folder that has another use already."""
    known = {use.folder: use for use in reversed(list(old))}
    for use in new:
        other = known.setdefault(use.folder, use)
        if other is not use and not use.kind == other.kind == LETTERS:
            twice = use.kind == other.kind == "table"
            raise CatalogError(
                f"{use.kind} {use.name} and {other.kind} {other.name} have the same folder {use.path!r}",
                span=use.span,
                expected="a folder of its own for each source and each sink",
                remedy=f"CREATE VIEW {use.name} AS SELECT … FROM {other.name} reads a table again" if twice else "give it another path",
            )
