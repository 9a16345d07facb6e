"""Manifests: which segments make up the state after an epoch, and what the epoch changed.

There is one per epoch, a JSON object that is created once and never altered. It names its parent and holds the epoch's change. Some also
hold the whole state (history.py decides which), so that opening reads a short chain.
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
"""2: a segment may be ranged; `at` and `oldest`. Version 1 is also read."""
LOGGED_VERSION: Final = 3
"""Of manifests whose writer has a commit log, which earlier versions of Deltic would not read; otherwise as 2."""
LAST_EPOCH: Final = 999_999_999_999
"""The greatest number that fits a manifest's name."""
MOST_SHARDS: Final = 99_999
"""The greatest number that fits a data file's name."""
LAST_US: Final = 253_402_300_799_999_999
"""The end of the year 9999."""
KEEP: Final = "keep"
"""The note of the first epoch that must stay readable for a sink, regardless of the number of retained epochs."""
NO_TICK: Final = "no_tick"
"""The note of a commit that is no tick: [its epoch, that of the last tick], whose rows are still the content of streams."""
_SEGMENTS: Final = ("added", "dropped", "views")


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """One arrangement's batch in a file.

    ranged: 0, or a modulus if the file was written under another number of shards and also holds rows of other shards. Then only the rows
    that trace.partition sends to `shard` belong here; the shards with rows in the file are congruent by the modulus. Not compared.
    """

    shard: int
    arrangement: str
    file: str
    rows: int
    ranged: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one epoch to the state.

    files: those that `added` and `views` name. added, dropped: batches of arrangements. views: the epoch's change of each view.
    notes: named JSON values, such as the program or the position in a source; None removes one.
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

    @property
    def without_tick(self) -> dict[str, Json]:
        """The notes of a commit after it that is no tick; without streams none, since they keep the epoch of the last tick readable."""
        streams = any(described.ephemeral for described in self.program.arrangements.values())
        return without_tick(self.epoch, self.notes) if streams else {}

    @property
    def last_tick(self) -> int:
        """The epoch of the last tick, whose rows are the content of streams; its own if that is not known to be none."""
        return last_tick(self.epoch, self.notes)

    @property
    def needs(self) -> int:
        """The first epoch that must stay readable, however few are retained."""
        kept: int = self.notes.get(KEEP, self.epoch)
        return min(self.last_tick, kept)

    @staticmethod
    def before(shards: int) -> Manifest:
        """The state before the first epoch."""
        return Manifest(-1, 0, tuple({} for _ in range(shards)))

    def segments(self) -> Iterable[SegmentRef]:
        """All batches."""
        return (segment for shard_state in self.shard_states for segments in shard_state.values() for segment in segments)

    def holds(self, segments: Iterable[SegmentRef]) -> bool:
        """Whether all of these segments are part of the state."""
        return all(s.shard < self.shards and s in self.shard_states[s.shard].get(s.arrangement, ()) for s in segments)

    def logged(self, epoch: int, at_us: int, changed: Mapping[str, Json], oldest: int) -> Manifest:
        """The state after an epoch that is in the commit log alone, with the files as they are. changed: its notes."""
        notes, program = self.notes.after(changed), self.program.after(changed)
        return Manifest(  # `replace` takes as long again
            epoch, self.generation, self.shard_states, self.files, notes, (), self.crc, self.uses, oldest, at_us, program
        )

    def after(self, change: Change, generation: int) -> Manifest:
        """The state after applying the change. O(change + files).

        Raises CorruptState if the notes do not describe a valid program.
        """
        assert self.holds(change.dropped)
        shard_states = {shard: dict(self.shard_states[shard]) for shard in {s.shard for s in (*change.dropped, *change.added)}}
        dropped = set(change.dropped)
        for shard, arrangement in {(segment.shard, segment.arrangement) for segment in dropped}:
            remaining = tuple(s for s in shard_states[shard].pop(arrangement) if s not in dropped)
            shard_states[shard].update({arrangement: remaining} if remaining else {})
        for segment in change.added:
            shard_state = shard_states[segment.shard]
            shard_state[segment.arrangement] = (*shard_state.get(segment.arrangement, ()), segment)
        uses = _counted(self.uses, change.added, dropped)
        files = {**self.files, **{file.name: file for file in change.files}}
        for name in {segment.file for segment in (*dropped, *self.views)} - {file.name for file in change.files}:
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
        """The files of the state `before` that `change` made superfluous."""
        names = {segment.file for segment in (*change.dropped, *before.views)}
        return sorted(name for name in names if name not in self.files)


def _counted(uses: Mapping[str, int], added: Iterable[SegmentRef], dropped: Iterable[SegmentRef]) -> dict[str, int]:
    result = dict(uses)
    for segment in added:
        result[segment.file] = result.get(segment.file, 0) + 1
    for segment in dropped:
        result[segment.file] -= 1
        if not result[segment.file]:
            del result[segment.file]
    return result


def last_tick(epoch: int, notes: Mapping[str, Json]) -> int:
    """See Manifest.last_tick. notes: of the commit `epoch`."""
    match notes.get(NO_TICK):
        case [int(noted), int(tick)] if noted == epoch and 0 <= tick < epoch:
            return tick
        case _:  # also what a user has noted under that name before it was reserved
            return epoch


def without_tick(epoch: int, notes: Mapping[str, Json]) -> dict[str, Json]:
    """The note of a commit after `epoch` that is no tick. notes: those of the commit `epoch`."""
    return {NO_TICK: [epoch + 1, last_tick(epoch, notes)]}


def manifest_name(epoch: int) -> str:
    return f"{MANIFESTS}/{epoch:012d}.json"


def epoch_of(name: str) -> int:
    """The epoch in a manifest's name."""
    return int(name.rsplit("/", 1)[-1].removesuffix(".json"))


def encode(
    manifest: Manifest, parent: Manifest, change: Change, token: str, *, whole: bool, logged: bool = False
) -> tuple[Manifest, bytes]:
    """(the manifest with its checksum; its stored form: a line with the checksum of the rest, and one JSON object).

    logged: whether its writer has a commit log.
    """
    tables = _Tables()
    body: dict[str, Json] = {
        "version": LOGGED_VERSION if logged else MANIFEST_VERSION,
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
    """Numbers for files and arrangements, so that a manifest spells each name once."""

    def __init__(self) -> None:
        self.names: dict[str, int] = defaultdict(lambda: len(self.names))
        self.arrangements: dict[str, int] = defaultdict(lambda: len(self.arrangements))

    def entries(self, segments: Iterable[SegmentRef]) -> list[list[int]]:
        """[shard, arrangement, file, rows] for each segment, and the modulus if it is ranged."""
        return [
            [s.shard, self.arrangements[s.arrangement], self.names[s.file], s.rows, *([int(s.ranged)] if s.ranged else [])]
            for s in segments
        ]


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest as read. whole: the state after it, if it holds the whole state."""

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
        """The state after it, given the state before it. Raises CorruptState if it does not follow that state."""
        if self.parent != (parent.epoch, parent.crc) or (self.shards != parent.shards and self.whole is None):
            raise CorruptState(f"{manifest_name(self.epoch)} does not follow the manifest before it", remedy=REMEDY)
        if self.whole is not None and self.shards != parent.shards:
            return self.whole
        named = {segment.file for segment in (*self.change.added, *self.change.views)}
        if not parent.holds(self.change.dropped) or not (named - {file.name for file in self.change.files}) <= parent.files.keys():
            raise CorruptState(f"{manifest_name(self.epoch)} names segments or files that the state before it does not have", remedy=REMEDY)
        after = parent.after(self.change, self.generation)
        return replace(after, epoch=self.epoch, crc=self.crc, oldest=self.oldest, at_us=self.at_us)


def decode(stored: bytes, name: str) -> StoredManifest:
    """Parses a stored manifest. Raises CorruptState; StateError for a newer format."""
    crc, text = _split(stored, name)
    with reading(name):
        body = parsed(text)
        version = count(member(body, "version"), "version")
        if version > LOGGED_VERSION:
            raise StateError(f"{name}: format version {version}", expected=f"at most {LOGGED_VERSION}", remedy="use a newer Deltic")
        return _stored(body, crc, len(stored))


def _stored(body: Json, crc: int, size_bytes: int) -> StoredManifest:
    epoch = count(member(body, "epoch"), "epoch", LAST_EPOCH)
    shards = count(member(body, "shards"), "shards", MOST_SHARDS)
    if not shards:
        raise Malformed("a state has no shards")
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
    """shards: the number of shards of their state."""
    names, arrangements = (items(member(body, kind), kind) for kind in ("names", "arrangements"))
    if not all(isinstance(name, str) for name in (*names, *arrangements)):
        raise Malformed("names, arrangements: expected strings")
    return tuple(_segment(counts(entry, "a segment"), names, arrangements, shards) for entry in items(entries, "segments"))


def _segment(entry: Sequence[int], names: Sequence[str], arrangements: Sequence[str], shards: int) -> SegmentRef:
    match entry:
        case (shard, a, f, rows, *ranged) if shard < shards and a < len(arrangements) and f < len(names) and len(ranged) <= 1:
            return SegmentRef(shard, arrangements[a], names[f], rows, *ranged)
    raise Malformed(f"segments: invalid segment {list(entry)} in {shards} shards")


def _whole(body: Json, head: Manifest) -> Manifest:
    content = member(body, "whole")
    segments = _segments(body, member(content, "segments"), head.shards)
    files = {file.name: file for file in _files(member(content, "files"))}
    if missing := {segment.file for segment in (*segments, *head.views)} - files.keys():
        raise Malformed(f"{min(missing)} is not among the files")
    shard_states: list[dict[str, list[SegmentRef]]] = [defaultdict(list) for _ in range(head.shards)]
    for segment in segments:
        shard_states[segment.shard][segment.arrangement].append(segment)
    complete = tuple({name: tuple(refs) for name, refs in shard_state.items()} for shard_state in shard_states)
    notes = _notes(content)
    program = ProgramDescription.of(notes)
    return replace(head, shard_states=complete, files=files, notes=Notes(notes), uses=_counted({}, segments, ()), program=program)
