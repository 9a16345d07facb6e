"""Manifests: which segments make up the state after an epoch, and what the epoch changed.

There is one per epoch, a JSON object that is created once and never altered. It names its parent and holds the epoch's change; some
hold the whole state as well (history.py says which), so that the chain to be read stays short.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from deltic.errors import CorruptState, StateError
from deltic.storage.files import FileRef
from deltic.storage.layout import REMEDY
from deltic.storage.names import MANIFESTS
from deltic.storage.notes import Notes

MANIFEST_VERSION: Final = 2
"""2: a segment may be ranged; `at` and `oldest`. Version 1 is read too."""
Json = Any


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """One arrangement's batch in a file.

    ranged: not 0 if the file also holds rows of other shards, since it was written when there were another number of them: of its rows
    only those belong here that trace.partition sends to `shard`. The number is the modulus by which all shards that have rows in it are
    equal. It is no part of what tells two segments apart.
    """

    shard: int
    arrangement: str
    file: str
    rows: int
    ranged: int = field(default=0, compare=False)


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
    """The state after `epoch`.

    shelves: one per shard. files: those that a segment names, or the epoch's change of a view, by name. uses: how many segments name each
    file. oldest: the first epoch that a reader may still ask for. at_us: when it was committed, by the writer's clock; 0 if unknown.
    """

    epoch: int
    generation: int
    shelves: tuple[Shelf, ...]
    files: Mapping[str, FileRef] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    views: tuple[SegmentRef, ...] = ()
    crc: int = 0
    uses: Mapping[str, int] = field(default_factory=dict)
    oldest: int = 0
    at_us: int = 0

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
        return all(s.shard < self.shards and s in self.shelves[s.shard].get(s.arrangement, ()) for s in segments)

    def after(self, change: Change, generation: int) -> Manifest:
        """The state when the change is done to this one. O(change + files), and what of the notes changes."""
        assert self.holds(change.dropped)
        shelves = {shard: dict(self.shelves[shard]) for shard in {s.shard for s in (*change.dropped, *change.added)}}
        gone = set(change.dropped)
        for shard, arrangement in {(segment.shard, segment.arrangement) for segment in gone}:
            left = tuple(s for s in shelves[shard].pop(arrangement) if s not in gone)
            shelves[shard].update({arrangement: left} if left else {})
        for segment in change.added:
            shelf = shelves[segment.shard]
            shelf[segment.arrangement] = (*shelf.get(segment.arrangement, ()), segment)
        uses = _counted(self.uses, change.added, gone)
        files = {**self.files, **{file.name: file for file in change.files}}
        for name in {segment.file for segment in (*gone, *self.views)} - {file.name for file in change.files}:
            if name not in uses:
                files.pop(name, None)
        kept = tuple(shelves.get(shard, shelf) for shard, shelf in enumerate(self.shelves))
        return replace(
            self,
            epoch=self.epoch + 1,
            generation=generation,
            shelves=kept,
            files=files,
            notes=self.notes.after(change.notes),
            views=change.views,
            crc=0,
            uses=uses,
        )

    def superfluous(self, before: Manifest, change: Change) -> list[str]:
        """The files that `before`, the state to which `change` was done, had and this one has not."""
        names = {segment.file for segment in (*change.dropped, *before.views)}
        return sorted(name for name in names if name not in self.files)


def _counted(uses: Mapping[str, int], added: Iterable[SegmentRef], gone: Iterable[SegmentRef]) -> dict[str, int]:
    result = dict(uses)
    for segment in added:
        result[segment.file] = result.get(segment.file, 0) + 1
    for segment in gone:
        result[segment.file] -= 1
        if not result[segment.file]:
            del result[segment.file]
    return result


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
        "at": manifest.at_us,
        "oldest": manifest.oldest,
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
        """Shard, arrangement, file, rows; and the modulus of those that are ranged."""
        return [
            [s.shard, self.arrangements[s.arrangement], self.names[s.file], s.rows, *([int(s.ranged)] if s.ranged else [])]
            for s in segments
        ]


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
    oldest: int
    at_us: int
    size_bytes: int

    def onto(self, parent: Manifest) -> Manifest:
        """The state after it, from that before it. Raises CorruptState if the chain does not fit."""
        if self.parent != (parent.epoch, parent.crc) or (self.shards != parent.shards and self.whole is None):
            raise CorruptState(f"{manifest_name(self.epoch)} does not follow the manifest before it", remedy=REMEDY)
        if self.whole is not None and self.shards != parent.shards:
            return self.whole
        return replace(parent.after(self.change, self.generation), crc=self.crc, oldest=self.oldest, at_us=self.at_us)


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
    epoch, oldest, at_us = body["epoch"], body.get("oldest", body["epoch"]), body.get("at", 0)
    whole = _whole(body, change, crc, oldest, at_us) if "whole" in body else None
    parent = (body["parent"][0], body["parent"][1])
    return Stored(epoch, body["generation"], body["shards"], parent, body["token"], change, whole, crc, oldest, at_us, len(stored))


def _split(stored: bytes, name: str) -> tuple[int, bytes]:
    line, _, text = stored.partition(b"\n")
    text = text.removesuffix(b"\n")
    crc = zlib.crc32(text)
    if line != b'{"crc":%d}' % crc or not stored.endswith(b"\n"):
        raise CorruptState(f"{name} is damaged", remedy=REMEDY)
    return crc, text


def _segments(body: Json, entries: Json) -> tuple[SegmentRef, ...]:
    names, arrangements = body["names"], body["arrangements"]
    return tuple(SegmentRef(shard, arrangements[a], names[f], rows, *ranged) for shard, a, f, rows, *ranged in entries)


def _whole(body: Json, change: Change, crc: int, oldest: int, at_us: int) -> Manifest:
    found = body["whole"]
    shelves: list[dict[str, list[SegmentRef]]] = [defaultdict(list) for _ in range(body["shards"])]
    segments = _segments(body, found["segments"])
    for segment in segments:
        shelves[segment.shard][segment.arrangement].append(segment)
    made = tuple({name: tuple(found) for name, found in shelf.items()} for shelf in shelves)
    files = {file[0]: FileRef(*file) for file in found["files"]}
    uses = _counted({}, segments, ())
    return Manifest(body["epoch"], body["generation"], made, files, Notes(found["notes"]), change.views, crc, uses, oldest, at_us)
