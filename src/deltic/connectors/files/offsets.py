"""The offsets of a file source: the files that were read completely, and the position in the file in progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Final, TypeVar

from deltic.connectors.source import Json, Offsets
from deltic.errors import SourceError

_Record = TypeVar("_Record", "ConsumedFile", "FilePosition")


@dataclass(frozen=True, slots=True)
class ConsumedFile:
    """A file that was read completely. checksum: CRC-32 of its bytes. rows: the number of its rows."""

    size_bytes: int
    mtime_ns: int
    checksum: int
    rows: int

    def json(self) -> list[int]:
        return list(astuple(self))


UNSUMMED: Final = -1
"""The prefix of a file that tasks have read in part: the checksum of the file alone detects changes."""


@dataclass(frozen=True, slots=True)
class FilePosition:
    """A file that was read in part. rows: how many of its rows were read. prefix: CRC-32 of their content, which detects changes; or
    UNSUMMED."""

    name: str
    rows: int
    size_bytes: int
    mtime_ns: int
    checksum: int
    prefix: int

    def json(self) -> list[Json]:
        return list(astuple(self))


def consumed_files(table: str, parts: Mapping[str, Json]) -> dict[str, ConsumedFile]:
    """The files that were read completely, by name. Raises SourceError for malformed offsets."""
    return {name: _record(ConsumedFile, table, value) for name, value in parts.items() if value is not None}


def position_of(table: str, offsets: Offsets) -> FilePosition | None:
    """The position in the file in progress. Raises SourceError for malformed offsets."""
    return None if offsets.cursor is None else _record(FilePosition, table, offsets.cursor)


def _record(kind: type[_Record], table: str, value: Json) -> _Record:
    kinds = [str if field.name == "name" else int for field in fields(kind)]
    if not isinstance(value, list) or [type(part) for part in value] != kinds:
        raise SourceError(
            f"table {table}: the state's offset {value!r} is not an offset of files",
            expected="offsets that a source of files has committed",
            remedy="the table was read by another connector: name that one, or give the table a new name",
        )
    return kind(*value)
