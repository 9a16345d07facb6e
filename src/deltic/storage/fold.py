"""Folding: logged epochs become data files and manifests, as if each had been committed by a manifest.

Epochs that need not be readable any more are folded together with the next one: their batches become one batch of each arrangement, and one
manifest holds the whole state. So a log of thousands of epochs costs as many files as epochs are retained. A fold can be stopped
anywhere: the log is needed until all manifests are durable, and the epochs that have none are folded later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from deltic.errors import WeightOverflow
from deltic.storage.appending import AppendedBatch, Words, WrittenFile, append_to_shard
from deltic.storage.dictionary import Dictionary
from deltic.storage.files import DataFile, Origin
from deltic.storage.logged_epoch import LoggedEpoch, LoggedShard
from deltic.storage.manifest import KEEP, Change, Manifest, SegmentRef
from deltic.storage.parsing import Json
from deltic.storage.reading import OpenFiles
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows


class EpochWriter(Protocol):
    """The writer of a state: a `State`."""

    manifest: Manifest
    generation: int

    @property
    def root(self) -> str: ...

    def oldest_at(self, epoch: int, keep: int | None) -> int:
        """The oldest epoch that may be opened once `epoch` is committed. keep: the note KEEP of then."""
        ...

    def floor_at(self, epoch: int, keep: int | None) -> int:
        """The oldest epoch that must be readable then, also for readers that follow."""
        ...

    def commit_in_order(self, epochs: Iterable[tuple[int, int, Callable[[Manifest], Change]]]) -> None:
        """Commits epochs: (epoch, commit time, its change of the state before it, whose files are written and not synced)."""
        ...


def fold(writer: EpochWriter, logged: Sequence[LoggedEpoch], files: OpenFiles, adopt: Callable[[Change], Change] | None = None) -> float:
    """Commits those epochs that the state lacks. files: the open files. adopt: adds merges to the first change.

    Returns the share of their manifests that would be there without readers that follow.
    Raises StateError, and StateTakenOver; then some epochs may be committed.
    """
    epochs = [each for each in logged if each.epoch > writer.manifest.epoch]
    if not epochs:
        return 1.0
    end = epochs[-1].epoch, _kept(epochs, writer.manifest.notes)
    floor, oldest = writer.floor_at(*end), writer.oldest_at(*end)
    first, later = epochs[0], epochs[1:]  # the first is never skipped: its name is what a newer writer would have taken
    skipped = [each for each in later if each.epoch <= floor]
    rest = later[len(skipped) :]
    try:
        together = [_together(skipped)] if skipped else []
    except WeightOverflow:  # the sum of some rows is beyond 64 bits: they stay apart
        together = skipped
    folded = [first, *together, *rest]

    def change_of(epoch: LoggedEpoch, manifest: Manifest) -> Change:
        change = _change(writer, manifest, epoch, files)
        return adopt(change) if adopt is not None and epoch is first else change

    writer.commit_in_order((each.epoch, each.at_us, partial(change_of, each)) for each in folded)
    return 1.0 - sum(each.epoch < oldest for each in rest) / len(folded)


def _kept(epochs: Sequence[LoggedEpoch], notes: Mapping[str, Json]) -> int | None:
    keep: int | None = notes.get(KEEP)
    for epoch in epochs:
        keep = epoch.notes.get(KEEP, keep)
    return keep


def _together(epochs: Sequence[LoggedEpoch]) -> LoggedEpoch:
    """These epochs as one, with the number and the changes of views of the last. Raises WeightOverflow."""
    last = epochs[-1]
    if len(epochs) == 1:
        return last
    shards: dict[int, list[LoggedShard]] = defaultdict(list)
    notes: dict[str, Json] = {}
    for epoch in epochs:
        notes |= epoch.notes
        for shard in epoch.shards:
            shards[shard.shard].append(shard)
    ends = {shard.shard: shard for shard in last.shards}
    return LoggedEpoch(last.epoch, last.at_us, notes, tuple(_summed(parts, ends.get(number)) for number, parts in sorted(shards.items())))


def _summed(parts: Sequence[LoggedShard], last: LoggedShard | None) -> LoggedShard:
    batches: dict[str, list[Batch]] = defaultdict(list)
    strings: dict[str, tuple[int, ...]] = {}
    for part in parts:
        for each in part.appended:
            strings[each.arrangement] = each.strings
            batches[each.arrangement] += [] if each.batch is None else [each.batch]
    changes = {} if last is None else {each.arrangement: each.change for each in last.appended}
    appended = [AppendedBatch(name, strings[name], _sum(batches[name]), changes.get(name)) for name in sorted(strings)]
    kept = tuple(each for each in appended if each.batch is not None or each.change is not None)
    return LoggedShard(parts[0].shard, kept, Dictionary.union([part.dictionary for part in parts]))


def _sum(batches: Sequence[Batch]) -> Batch | None:
    if len(batches) <= 1:
        return batches[0] if batches else None
    summed = consolidate(Rows.concat(batches))
    return summed if len(summed) else None


class _ShardFiles:
    """A shard's batches in the files of a state."""

    def __init__(self, manifest: Manifest, shard: int, files: OpenFiles) -> None:
        self._manifest, self._shard, self._files = manifest, shard, files

    def segments(self, arrangement: str) -> Sequence[SegmentRef]:
        return self._manifest.shard_states[self._shard].get(arrangement, ())

    def file(self, name: str) -> DataFile:
        return self._files[self._manifest.files[name]]


def _change(writer: EpochWriter, manifest: Manifest, epoch: LoggedEpoch, files: OpenFiles) -> Change:
    """The epoch's files, written and not synced, as a change of the state `manifest`."""
    change = Change(notes=epoch.notes)
    for shard in epoch.shards:
        written = _written(writer, manifest, epoch, shard, files)
        refs = () if written.file is None else (written.file,)
        name = "" if written.file is None else written.file.name
        added = tuple(SegmentRef(shard.shard, arrangement, name, rows) for arrangement, rows in written.added)
        views = tuple(SegmentRef(shard.shard, arrangement, name, rows) for arrangement, rows in written.views)
        dropped = (*change.dropped, *written.dropped)
        change = Change((*change.files, *refs), (*change.added, *added), dropped, (*change.views, *views), change.notes)
    return change


def _written(writer: EpochWriter, manifest: Manifest, epoch: LoggedEpoch, shard: LoggedShard, files: OpenFiles) -> WrittenFile:
    stored = _ShardFiles(manifest, shard.shard, files)

    def dictionary_of(ids: Words, replaced: Sequence[SegmentRef]) -> Dictionary:
        older = {segment.file for segment in replaced}
        return Dictionary.union([shard.dictionary, *(stored.file(name).dictionary() for name in sorted(older))]).restrict(ids)

    return append_to_shard(
        shard.appended,
        stored,
        dictionary_of,
        lambda name: manifest.program.arrangements[name].partition,
        root=writer.root,
        origin=Origin(writer.generation, epoch.epoch, shard.shard, 0),
        shards=manifest.shards,
        files=files,
        synced=False,
    )
