"""What a state notes of the sources of its tables: their offsets.

The notes of a tick are committed with its changes, both or neither. Each part of a source, such as a file, has a note of its own, so an
epoch writes notes of the parts that it has read alone. The notes of a table go with its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final
from urllib.parse import quote

from deltic.connectors.source import Json, Offsets

_PART: Final = "taken:"
_CURSOR: Final = "cursor:"


def offsets_of(notes: Mapping[str, Json], table: str) -> Offsets:
    """The offsets of the source of a table. O(notes)."""
    prefix = _part_key(table, "")
    parts = {key.removeprefix(prefix): value for key, value in notes.items() if key.startswith(prefix)}
    return Offsets(notes.get(_cursor_key(table)), parts)


def offset_notes(table: str, offsets: Offsets) -> dict[str, Json]:
    """The notes of the offsets of a batch; None removes a note."""
    return {**{_part_key(table, name): value for name, value in offsets.parts.items()}, _cursor_key(table): offsets.cursor}


def without_offsets(notes: Mapping[str, Json], tables: Collection[str]) -> dict[str, None]:
    """The notes on the sources of `tables`, each to be removed. O(notes), unless there are no tables."""
    quoted = {_quoted(table) for table in tables}
    return {key: None for key, table in _on_sources(notes) if table in quoted} if quoted else {}


def _on_sources(notes: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for key in notes:
        if key.startswith((_PART, _CURSOR)):
            yield key, key.split(":", 2)[1]


def _part_key(table: str, name: str) -> str:
    return f"{_PART}{_quoted(table)}:{name}"


def _cursor_key(table: str) -> str:
    return f"{_CURSOR}{_quoted(table)}"


def _quoted(table: str) -> str:
    """The name of a table in keys: without colons, and in lower case, since names are compared without regard to case."""
    return quote(table.lower(), safe="")
