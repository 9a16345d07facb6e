"""What a pipeline remembers in the state: how far its sources have been read, and its sinks written.

The notes of a tick are committed with its changes, so that both are real or neither. Each part of a source, such as a file, has a note of
its own, so an epoch writes only what it has read.
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
    """How far a sink is. view: what it reads, in lower case, kept as `arrangement`.

    epoch: the last that it has; those that did not change its view count too.

    first: the epoch whose delivery is not that epoch's change but all that its view then held, or, where the view was redefined,
    the difference between its content after epoch `base` and that after `first`.
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
    """How far the source of a table has been read. O(notes)."""
    prefix = _part_key(table, "")
    parts = {key.removeprefix(prefix): value for key, value in notes.items() if key.startswith(prefix)}
    return Offsets(notes.get(_cursor_key(table)), parts)


def offset_notes(table: str, offsets: Offsets) -> dict[str, Json]:
    """The notes of what a batch changes; None removes one."""
    return {**{_part_key(table, name): value for name, value in offsets.parts.items()}, _cursor_key(table): offsets.cursor}


def sink_offsets(notes: Mapping[str, Json]) -> dict[str, SinkOffset]:
    """How far each sink is, by name."""
    return {name: SinkOffset(**value) for name, value in notes.get(SINKS, {}).items()}


def forgotten(notes: Mapping[str, Json], tables: Collection[str]) -> dict[str, None]:
    """The notes on sources of tables other than `tables`, each to be removed."""
    known = {_quoted(table) for table in tables}
    return {key: None for key, table in _on_sources(notes) if table not in known}


def _on_sources(notes: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for key in notes:
        if key.startswith((_PART, _CURSOR)):
            yield key, key.split(":", 2)[1]


def _part_key(table: str, name: str) -> str:
    return f"{_PART}{_quoted(table)}:{name}"


def _cursor_key(table: str) -> str:
    return f"{_CURSOR}{_quoted(table)}"


def _quoted(table: str) -> str:
    """The name of a table as it stands in keys: without colons, and in lower case, as names are compared."""
    return quote(table.lower(), safe="")
