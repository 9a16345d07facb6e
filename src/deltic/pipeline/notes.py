"""What a pipeline notes in the state: the offsets of its sources and sinks.

The notes of a tick are committed with its changes, both or neither. Each part of a source, such as a file, has a note of its own, so an
epoch writes notes of the parts that it has read alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import quote

from deltic.connectors.source import Json, Offsets

SINKS: Final = "sinks"
LETTERS: Final = "letters"
_PART: Final = "taken:"
_CURSOR: Final = "cursor:"


@dataclass(frozen=True, slots=True)
class SinkOffset:
    """The offset of a sink. view: its view, in lower case; arrangement: the id of the view's arrangement.

    epoch: the last one that it has received, or that did not change its view.

    first: the epoch whose delivery is not its change but the whole content of the view after it, or, if the view was redefined, the
    difference between the content after epoch `base` and that after `first`.
    """

    view: str
    arrangement: str
    epoch: int
    first: int
    base: int | None = None

    @property
    def needs(self) -> int:
        """The first epoch that must stay readable."""
        return self.epoch if self.base is None or self.epoch >= self.first else min(self.base, self.epoch)

    def json(self) -> dict[str, Json]:
        return asdict(self)


def offsets_of(notes: Mapping[str, Json], table: str) -> Offsets:
    """The offsets of the source of a table. O(notes)."""
    prefix = _part_key(table, "")
    parts = {key.removeprefix(prefix): value for key, value in notes.items() if key.startswith(prefix)}
    return Offsets(notes.get(_cursor_key(table)), parts)


def offset_notes(table: str, offsets: Offsets) -> dict[str, Json]:
    """The notes of the offsets of a batch; None removes a note."""
    return {**{_part_key(table, name): value for name, value in offsets.parts.items()}, _cursor_key(table): offsets.cursor}


def sink_offsets(notes: Mapping[str, Json]) -> dict[str, SinkOffset]:
    """The offset of each sink, by name."""
    return {name: SinkOffset(**value) for name, value in notes.get(SINKS, {}).items()}


def forgotten(notes: Mapping[str, Json], tables: Collection[str]) -> dict[str, None]:
    """The notes on sources of tables other than `tables`, each to be removed."""
    quoted = {_quoted(table) for table in tables}
    return {key: None for key, table in _on_sources(notes) if table not in quoted}


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
