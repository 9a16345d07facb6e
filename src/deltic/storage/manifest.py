"""Manifests: which segments make up the state after an epoch, and what the epoch changed.

There is one per epoch, a JSON object that is created once and never altered. It names its parent and holds the epoch's change;
every so many epochs it holds the whole state as well, so that the chain to be read stays short.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from deltic.errors import CorruptState, StateError
from deltic.storage.files import FileRef
from deltic.storage.layout import REMEDY

MANIFESTS: Final = "manifests"
MANIFEST_VERSION: Final = 1
Json = Any


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """One arrangement's batch in a file."""

    shard: int
    arrangement: str
    file: str
    rows: int


@dataclass(frozen=True, slots=True)
class Change:
    """What one epoch does to the state.

    files: those that `added` and `views` name. added, dropped: batches of arrangements. views: the epoch's change of each view.
    notes: named JSON values, such as the program or how far a source was read; None removes one.
    """

    files: tuple[FileRef, ...] = ()
    added: tuple[SegmentRef, ...] = ()
    dropped: tuple[SegmentRef, ...] = ()
    views: tuple[SegmentRef, ...] = ()
    notes: Mapping[str, Json] = field(default_factory=dict)


Shelf = Mapping[str, tuple[SegmentRef, ...]]
"""A shard's batches by arrangement."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state after `epoch`. shelves: one per shard. files: those that a segment names, by name."""

    epoch: int
    generation: int
    shelves: tuple[Shelf, ...]
    files: Mapping[str, FileRef] = field(default_factory=dict)
    notes: Mapping[str, Json] = field(default_factory=dict)
    views: tuple[SegmentRef, ...] = ()
    crc: int = 0

    @property
    def shards(self) -> int:
        return len(self.shelves)

    @staticmethod
    def before(shards: int) -> Manifest:
        """The state before the first epoch."""
        return Manifest(-1, 0, tuple({} for _ in range(shards)))

    def segments(self) -> Iterable[SegmentRef]:
        """All batches."""
        return (segment for shelf in self.shelves for segments in shelf.values() for segment in segments)

    def holds(self, segments: Iterable[SegmentRef]) -> bool:
        """Whether all of these are part of the state, so that what replaces them may be adopted."""
        return all(segment in self.shelves[segment.shard].get(segment.arrangement, ()) for segment in segments)

    def after(self, change: Change, generation: int) -> Manifest:
        """The state when the change is done to this one."""
        assert self.holds(change.dropped)
        shelves = [dict(shelf) for shelf in self.shelves]
        gone = set(change.dropped)
        for shard, arrangement in {(segment.shard, segment.arrangement) for segment in gone}:
            left = tuple(s for s in shelves[shard].pop(arrangement) if s not in gone)
            shelves[shard].update({arrangement: left} if left else {})
        for segment in change.added:
            shelf = shelves[segment.shard]
            shelf[segment.arrangement] = (*shelf.get(segment.arrangement, ()), segment)
        notes = {key: value for key, value in {**self.notes, **change.notes}.items() if value is not None}
        files = self.files if not gone else self._named_files(shelves)
        files = {**files, **{file.name: file for file in change.files}}
        return Manifest(self.epoch + 1, generation, tuple(shelves), files, notes, change.views)

    def _named_files(self, shelves: Sequence[Shelf]) -> dict[str, FileRef]:
        names = {segment.file for shelf in shelves for segments in shelf.values() for segment in segments}
        return {name: file for name, file in self.files.items() if name in names}


def manifest_name(epoch: int) -> str:
    return f"{MANIFESTS}/{epoch:012d}.json"


def epoch_of(name: str) -> int:
    """The epoch that a manifest's name says."""
    return int(name.rsplit("/", 1)[-1].removesuffix(".json"))


def encode(manifest: Manifest, parent: Manifest, change: Change, token: str, *, whole: bool) -> tuple[Manifest, bytes]:
    """The manifest knowing its checksum, and as it is stored: a line that checks the rest, and one JSON object."""
    tables = _Tables()
    body: dict[str, Json] = {
        "version": MANIFEST_VERSION,
        "epoch": manifest.epoch,
        "generation": manifest.generation,
        "shards": manifest.shards,
        "parent": [parent.epoch, parent.crc],
        "token": token,
        "files": [[f.name, f.size_bytes, f.checksum] for f in change.files],
        "added": tables.entries(change.added),
        "dropped": tables.entries(change.dropped),
        "views": tables.entries(change.views),
        "notes": dict(change.notes),
    }
    if whole:
        files = [[f.name, f.size_bytes, f.checksum] for f in manifest.files.values()]
        body["whole"] = {"files": files, "segments": tables.entries(manifest.segments()), "notes": dict(manifest.notes)}
    body["names"], body["arrangements"] = list(tables.names), list(tables.arrangements)
    text = json.dumps(body, separators=(",", ":")).encode()
    crc = zlib.crc32(text)
    return replace(manifest, crc=crc), b'{"crc":%d}\n%s\n' % (crc, text)


class _Tables:
    """Files and arrangements are named once, and elsewhere by number."""

    def __init__(self) -> None:
        self.names: dict[str, int] = defaultdict(lambda: len(self.names))
        self.arrangements: dict[str, int] = defaultdict(lambda: len(self.arrangements))

    def entries(self, segments: Iterable[SegmentRef]) -> list[list[int]]:
        return [[s.shard, self.arrangements[s.arrangement], self.names[s.file], s.rows] for s in segments]


@dataclass(frozen=True, slots=True)
class Stored:
    """A manifest as it was read. whole: the state after it, where it holds that."""

    epoch: int
    generation: int
    shards: int
    parent: tuple[int, int]
    token: str
    change: Change
    whole: Manifest | None
    crc: int

    def onto(self, parent: Manifest) -> Manifest:
        """The state after it, from that before it. Raises CorruptState if the chain does not fit."""
        if self.parent != (parent.epoch, parent.crc):
            raise CorruptState(f"{manifest_name(self.epoch)} does not follow the manifest before it", remedy=REMEDY)
        return replace(parent.after(self.change, self.generation), crc=self.crc)


def decode(stored: bytes, name: str) -> Stored:
    """Raises CorruptState, or StateError for a newer format."""
    crc, text = _split(stored, name)
    body = json.loads(text)
    if body["version"] > MANIFEST_VERSION:
        raise StateError(f"{name}: format version {body['version']}", expected=f"at most {MANIFEST_VERSION}", remedy="use a newer Deltic")
    change = Change(
        tuple(FileRef(*file) for file in body["files"]),
        _segments(body, body["added"]),
        _segments(body, body["dropped"]),
        _segments(body, body["views"]),
        body["notes"],
    )
    whole = _whole(body, change, crc) if "whole" in body else None
    parent = body["parent"]
    return Stored(body["epoch"], body["generation"], body["shards"], (parent[0], parent[1]), body["token"], change, whole, crc)


def _split(stored: bytes, name: str) -> tuple[int, bytes]:
    line, _, text = stored.partition(b"\n")
    text = text.removesuffix(b"\n")
    crc = zlib.crc32(text)
    if line != b'{"crc":%d}' % crc or not stored.endswith(b"\n"):
        raise CorruptState(f"{name} is damaged", remedy=REMEDY)
    return crc, text


def _segments(body: Json, entries: Json) -> tuple[SegmentRef, ...]:
    names, arrangements = body["names"], body["arrangements"]
    return tuple(SegmentRef(shard, arrangements[a], names[f], rows) for shard, a, f, rows in entries)


def _whole(body: Json, change: Change, crc: int) -> Manifest:
    found = body["whole"]
    shelves: list[dict[str, tuple[SegmentRef, ...]]] = [{} for _ in range(body["shards"])]
    for segment in _segments(body, found["segments"]):
        shelf = shelves[segment.shard]
        shelf[segment.arrangement] = (*shelf.get(segment.arrangement, ()), segment)
    files = {file[0]: FileRef(*file) for file in found["files"]}
    return Manifest(body["epoch"], body["generation"], tuple(shelves), files, found["notes"], change.views, crc)
