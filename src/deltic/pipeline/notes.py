"""What a pipeline remembers in the state: which files were taken, how far a split file is, what its sinks have had.

The notes of a tick are committed with its changes, so that both are real or neither. Each file has a note of its own, and so an epoch
writes down what it took and not all that was ever taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote

Json: TypeAlias = Any
SINKS: Final = "sinks"
LETTERS: Final = "letters"
_TAKEN: Final = "taken:"
_CURSOR: Final = "cursor:"


@dataclass(frozen=True, slots=True)
class Taken:
    """A file that was taken whole. checksum: CRC-32 of its bytes. rows: of the source."""

    size_bytes: int
    mtime_ns: int
    checksum: int
    rows: int

    def json(self) -> list[int]:
        return list(astuple(self))


@dataclass(frozen=True, slots=True)
class Cursor:
    """A file of which a part was taken. rows: how many of its rows. prefix: CRC-32 of what they said, by which it is seen whether they
    have changed when the file has.
    """

    name: str
    rows: int
    size_bytes: int
    mtime_ns: int
    checksum: int
    prefix: int

    def json(self) -> list[Json]:
        return list(astuple(self))


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a sink is. view: what it reads, in lower case, kept as `arrangement`.

    epoch: the last that it has had; those that did not change its view count too.

    first: the epoch whose delivery is not that epoch's change but all that its view then held, or, where the view was defined anew,
    what made of its content after epoch `base` that after `first`.
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


def taken_key(table: str, name: str) -> str:
    return f"{_TAKEN}{_quoted(table)}:{name}"


def cursor_key(table: str) -> str:
    return f"{_CURSOR}{_quoted(table)}"


def taken_files(notes: Mapping[str, Json], table: str) -> dict[str, Taken]:
    """The files of a table that were taken, by name."""
    prefix = taken_key(table, "")
    return {key.removeprefix(prefix): Taken(*value) for key, value in notes.items() if key.startswith(prefix)}


def cursor_of(notes: Mapping[str, Json], table: str) -> Cursor | None:
    """How far the table's split file is."""
    found = notes.get(cursor_key(table))
    return None if found is None else Cursor(*found)


def standings(notes: Mapping[str, Json]) -> dict[str, Standing]:
    """How far each sink is, by name."""
    return {name: Standing(**value) for name, value in notes.get(SINKS, {}).items()}


def forgotten(notes: Mapping[str, Json], tables: Collection[str]) -> dict[str, None]:
    """The notes on files of tables that are none of `tables`, each to be removed."""
    known = {_quoted(table) for table in tables}
    return {key: None for key, table in _on_files(notes) if table not in known}


def _on_files(notes: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for key in notes:
        if key.startswith((_TAKEN, _CURSOR)):
            yield key, key.split(":", 2)[1]


def _quoted(table: str) -> str:
    """The name of a table as it stands in keys: without colons, and in lower case, as names are compared."""
    return quote(table.lower(), safe="")
