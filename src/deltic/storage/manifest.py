"""Manifests: which segments make up the state after an epoch, and what the epoch changed.

There is one per epoch, a JSON object that is created once and never altered. It names its parent and holds the epoch's change; some
hold the whole state as well (history.py says which), so that the chain to be read stays short.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from deltic.errors import CorruptState, StateError
from deltic.storage.files import FileRef
from deltic.storage.names import MANIFESTS
from deltic.storage.notes import Notes
from deltic.storage.parsing import REMEDY, Json, Malformed, count, counts, items, mapping, member, parsed, reading, string
from deltic.storage.program import ProgramDescription

MANIFEST_VERSION: Final = 2
"""2: a segment may be ranged; `at` and `oldest`. Version 1 is read too."""
LAST_EPOCH: Final = 999_999_999_999
"""As many digits as a manifest's name has."""
MOST_SHARDS: Final = 99_999
"""As many digits as a data file's name has for them."""
LAST_US: Final = 253_402_300_799_999_999
"""The end of the year 9999."""
KEEP: Final = "keep"
"""The note that keeps the epochs from it on readable, however many are retained: somebody has yet to read them."""
_SEGMENTS: Final = ("added", "dropped", "views")


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


ShardState = Mapping[str, tuple[SegmentRef, ...]]
"""A shard's batches by arrangement."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state after `epoch`.

    shard_states: one per shard. files: those that a segment or the epoch's change of a view names, by name. uses: by file, how many
    segments name it. oldest: the first epoch that a reader may open. at_us: the commit time by the writer's clock, 0 if unknown.
    program: the program that the notes describe.
    """

    epoch: int
    generation: int
    shard_states: tuple[ShardState, ...]
    files: Mapping[str, FileRef] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    views: tuple[SegmentRef, ...] = ()
    crc: int = 0
    uses: Mapping[str, int] = field(default_factory=dict)
    oldest: int = 0
    at_us: int = 0
    program: ProgramDescription = field(default_factory=ProgramDescription)

    @property
    def shards(self) -> int:
        return len(self.shard_states)

    @staticmethod
    def before(shards: int) -> Manifest:
        """The state before the first epoch."""
        return Manifest(-1, 0, tuple({} for _ in range(shards)))

    def segments(self) -> Iterable[SegmentRef]:
        """All batches."""
        return (segment for shard_state in self.shard_states for segments in shard_state.values() for segment in segments)

    def holds(self, segments: Iterable[SegmentRef]) -> bool:
        """Whether all of these are part of the state, so that what replaces them may be adopted."""
        return all(s.shard < self.shards and s in self.shard_states[s.shard].get(s.arrangement, ()) for s in segments)

    def after(self, change: Change, generation: int) -> Manifest:
        """The state when the change is done to this one. O(change + files), and what of the notes changes.

        Raises CorruptState if the notes describe no program.
        """
        assert self.holds(change.dropped)
        shard_states = {shard: dict(self.shard_states[shard]) for shard in {s.shard for s in (*change.dropped, *change.added)}}
        gone = set(change.dropped)
        for shard, arrangement in {(segment.shard, segment.arrangement) for segment in gone}:
            left = tuple(s for s in shard_states[shard].pop(arrangement) if s not in gone)
            shard_states[shard].update({arrangement: left} if left else {})
        for segment in change.added:
            shard_state = shard_states[segment.shard]
            shard_state[segment.arrangement] = (*shard_state.get(segment.arrangement, ()), segment)
        uses = _counted(self.uses, change.added, gone)
        files = {**self.files, **{file.name: file for file in change.files}}
        for name in {segment.file for segment in (*gone, *self.views)} - {file.name for file in change.files}:
            if name not in uses:
                files.pop(name, None)
        kept = tuple(shard_states.get(shard, shard_state) for shard, shard_state in enumerate(self.shard_states))
        return replace(
            self,
            epoch=self.epoch + 1,
            generation=generation,
            shard_states=kept,
            files=files,
            notes=self.notes.after(change.notes),
            program=self.program.after(change.notes),
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
class StoredManifest:
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
        named = {segment.file for segment in (*self.change.added, *self.change.views)}
        if not parent.holds(self.change.dropped) or not (named - {file.name for file in self.change.files}) <= parent.files.keys():
            raise CorruptState(f"{manifest_name(self.epoch)} names what the state before it does not have", remedy=REMEDY)
        return replace(parent.after(self.change, self.generation), crc=self.crc, oldest=self.oldest, at_us=self.at_us)


def decode(stored: bytes, name: str) -> StoredManifest:
    """Raises CorruptState, or StateError for a newer format."""
    crc, text = _split(stored, name)
    with reading(name):
        body = parsed(text)
        version = count(member(body, "version"), "version")
        if version > MANIFEST_VERSION:
            raise StateError(f"{name}: format version {version}", expected=f"at most {MANIFEST_VERSION}", remedy="use a newer Deltic")
        return _stored(body, crc, len(stored))


def _stored(body: Json, crc: int, size_bytes: int) -> StoredManifest:
    epoch = count(member(body, "epoch"), "epoch", LAST_EPOCH)
    shards = count(member(body, "shards"), "shards", MOST_SHARDS)
    if not shards:
        raise Malformed("a state without shards")
    added, dropped, views = (_segments(body, member(body, kind), shards if kind == "added" else MOST_SHARDS) for kind in _SEGMENTS)
    change = Change(_files(member(body, "files")), added, dropped, views, _notes(body))
    head = Manifest(
        epoch,
        count(member(body, "generation"), "generation"),
        ({},) * shards,
        views=change.views,
        crc=crc,
        oldest=count(body.get("oldest", epoch), "oldest", epoch),
        at_us=count(body.get("at", 0), "at", LAST_US),
    )
    parent = items(member(body, "parent"), "parent")
    if len(parent) != 2 or not all(isinstance(value, int) for value in parent):
        raise Malformed("parent: expected an epoch and a checksum")
    whole = _whole(body, head) if "whole" in body else None
    token = string(member(body, "token"), "token")
    return StoredManifest(
        epoch, head.generation, shards, (parent[0], parent[1]), token, change, whole, crc, head.oldest, head.at_us, size_bytes
    )


def _split(stored: bytes, name: str) -> tuple[int, bytes]:
    line, _, text = stored.partition(b"\n")
    text = text.removesuffix(b"\n")
    crc = zlib.crc32(text)
    if line != b'{"crc":%d}' % crc or not stored.endswith(b"\n"):
        raise CorruptState(f"{name} is damaged", remedy=REMEDY)
    return crc, text


def _notes(body: Json) -> Mapping[str, Json]:
    notes = mapping(member(body, "notes"), "notes")
    if notes.get(KEEP) is not None:
        count(notes[KEEP], f"the note {KEEP}")
    return notes


def _files(entries: Json) -> tuple[FileRef, ...]:
    return tuple(FileRef(*_file(entry)) for entry in items(entries, "files"))


def _file(entry: Json) -> tuple[str, int, int]:
    match entry:
        case [str(name), size, crc]:
            return name, count(size, f"the size of {name}"), count(crc, f"the checksum of {name}", 2**32 - 1)
    raise Malformed("files: expected a name, a size and a checksum")


def _segments(body: Json, entries: Json, shards: int) -> tuple[SegmentRef, ...]:
    """shards: those of the state that they are of."""
    names, arrangements = (items(member(body, kind), kind) for kind in ("names", "arrangements"))
    if not all(isinstance(name, str) for name in (*names, *arrangements)):
        raise Malformed("names, arrangements: expected strings")
    return tuple(_segment(counts(entry, "a segment"), names, arrangements, shards) for entry in items(entries, "segments"))


def _segment(entry: Sequence[int], names: Sequence[str], arrangements: Sequence[str], shards: int) -> SegmentRef:
    match entry:
        case (shard, a, f, rows, *ranged) if shard < shards and a < len(arrangements) and f < len(names) and len(ranged) <= 1:
            return SegmentRef(shard, arrangements[a], names[f], rows, *ranged)
    raise Malformed(f"segments: there is none {list(entry)} in {shards} shards")


def _whole(body: Json, head: Manifest) -> Manifest:
    found = member(body, "whole")
    segments = _segments(body, member(found, "segments"), head.shards)
    files = {file.name: file for file in _files(member(found, "files"))}
    if missing := {segment.file for segment in (*segments, *head.views)} - files.keys():
        raise Malformed(f"{min(missing)} is not among the files")
    shard_states: list[dict[str, list[SegmentRef]]] = [defaultdict(list) for _ in range(head.shards)]
    for segment in segments:
        shard_states[segment.shard][segment.arrangement].append(segment)
    made = tuple({name: tuple(found) for name, found in shard_state.items()} for shard_state in shard_states)
    notes = _notes(found)
    program = ProgramDescription.of(notes)
    return replace(head, shard_states=made, files=files, notes=Notes(notes), uses=_counted({}, segments, ()), program=program)
