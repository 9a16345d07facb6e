"""Maintenance of a state folder: merging its batches and deleting past epochs. Both open the folder as ordinary writers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from deltic.storage.files import FileRef
from deltic.storage.folder import StateFolder, open_folder
from deltic.storage.history import epochs_in
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.merging import merge_segments
from deltic.storage.names import DATA, MANIFESTS
from deltic.storage.reader import no_state
from deltic.storage.reshard import partitions
from deltic.storage.state import State

_ALL: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a state folder: its data files and its manifests."""

    files: int
    data_bytes: int
    manifests: int
    manifest_bytes: int

    @property
    def bytes(self) -> int:
        return self.data_bytes + self.manifest_bytes


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """before, after: the size. epochs: those that can be read now. batches: their number before and after."""

    before: Size
    after: Size
    epochs: range
    batches: tuple[int, int]


def size_of(folder: StateFolder) -> Size:
    """One listing each."""
    data, manifests = folder.sizes(DATA), folder.sizes(MANIFESTS)
    return Size(len(data), sum(data.values()), len(manifests), sum(manifests.values()))


def gc(root: str | os.PathLike[str], keep: int | None = None) -> MaintenanceResult:
    """Deletes the files that no readable epoch needs.

    keep: how many past epochs stay readable; None keeps those that are readable now. Raises StateError if there is no state, StateInUse.
    """
    return _maintained(root, keep, lambda state: None)


def compact(root: str | os.PathLike[str], keep: int | None = None) -> MaintenanceResult:
    """Merges each arrangement of each shard into one batch, which drops rows that cancel. keep: as in `gc`. O(state).

    The replaced files are deleted with the last epoch that names them. Raises StateError if there is no state, StateInUse, CorruptState.
    """
    return _maintained(root, keep, _merge_all)


def _maintained(root: str | os.PathLike[str], keep: int | None, work: Callable[[State], None]) -> MaintenanceResult:
    folder = open_folder(root)
    if not epochs_in(folder):
        raise no_state(folder.root)
    before = size_of(folder)
    state = State.open(root, retain=_ALL if keep is None else keep, whole_every=0)
    try:
        batches = _batches(state.manifest)
        work(state)
        state.sweep()
        epochs = range(state.manifest.oldest, state.epoch + 1)
        return MaintenanceResult(before, size_of(folder), epochs, (batches, _batches(state.manifest)))
    finally:
        state.close()


def _batches(manifest: Manifest) -> int:
    return sum(1 for _ in manifest.segments())


def _merge_all(state: State) -> None:
    groups = [s for shard_state in state.manifest.shard_states for s in shard_state.values() if len(s) > 1 or s[0].ranged]
    if not groups:
        return
    change = Change(notes=state.manifest.without_tick)
    for group in groups:
        file, segment = _merged(state, group)
        files = () if file is None else (file,)
        added = () if segment is None else (segment,)
        change = replace(change, files=(*change.files, *files), added=(*change.added, *added), dropped=(*change.dropped, *group))
    state.commit(change)


def _merged(state: State, group: tuple[SegmentRef, ...]) -> tuple[FileRef | None, SegmentRef | None]:
    manifest = state.manifest
    spread = partitions(manifest)[group[0].arrangement] if any(s.ranged for s in group) else None
    origin = state.origin(group[0].shard, 0)
    return merge_segments(state.root, manifest.files, group, origin, partition=spread, shards=manifest.shards)
