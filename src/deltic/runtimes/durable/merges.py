"""Merges beside the ticks: from a thread, at most one run at a time, adopted by a later commit if their inputs are still there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from deltic.storage.files import FileRef, Origin
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.merging import large_merges, merge_segments
from deltic.storage.state import State

_log = logging.getLogger(__name__)

Group = tuple[SegmentRef, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """The inputs of a merge and what it wrote; nothing if all cancelled."""

    inputs: Group
    file: FileRef | None
    segment: SegmentRef | None


Perform = Callable[[Manifest, Sequence[Group], Origin], list[Merged]]
"""Makes merges and writes their files; those that fail are left out."""


class Merger:
    """Starts merges and keeps their results until a commit takes them."""

    def __init__(self, state: State, perform: Perform) -> None:
        self._state, self._perform = state, perform
        self._pool = ThreadPoolExecutor(1, "deltic-merge")
        self._running: Future[list[Merged]] | None = None
        self._pinned = ExitStack()
        self._stopped = False

    def start(self) -> None:
        """Starts the merges that are due, unless some run already."""
        if self._stopped or self._running is not None or not (groups := large_merges(self._state.manifest)):
            return
        origin = self._pinned.enter_context(self._state.merging())
        self._running = self._pool.submit(self._perform, self._state.manifest, groups, origin)

    def take(self, wait: bool = False) -> list[Merged]:
        """Results that have not been taken. wait: for those of merges that still run."""
        if self._running is None or not (wait or self._running.done()):
            return []
        try:
            return self._running.result()
        except Exception:
            # Ticks do not need merges; what is due is tried again after the next commit.
            _log.warning("merging state beside the ticks failed", exc_info=True)
            return []
        finally:
            self._running = None

    def release(self) -> None:
        """Lets garbage collection have what the finished merges used: their results are committed, or given up."""
        if self._running is None:
            self._pinned.close()

    def stop(self) -> None:
        """No merge is started from now on."""
        self._stopped = True

    def close(self) -> None:
        """Waits for what runs, and gives its results up."""
        self.take(wait=True)
        self.release()
        self._pool.shutdown()


def merge_group(root: str, manifest: Manifest, group: Group, origin: Origin) -> Merged:
    """One merge, here. Raises WeightOverflow, StateError."""
    mine = replace(origin, shard=group[0].shard)
    file, segment = merge_segments(root, manifest.files, group, mine, partition=partition_of(manifest, group), shards=manifest.shards)
    return Merged(group, file, segment)


def partition_of(manifest: Manifest, group: Group) -> tuple[int, ...] | None:
    """The columns that say which shard a row of the group's arrangement is of."""
    return manifest.program.arrangements[group[0].arrangement].partition


def adopted(change: Change, merges: Sequence[Merged], manifest: Manifest) -> Change:
    """The change, with those merges whose inputs are all still part of the state and not touched by the change itself."""
    for merged in merges:
        if not manifest.holds(merged.inputs) or set(merged.inputs) & set(change.dropped):
            continue
        files = () if merged.file is None else (merged.file,)
        added = () if merged.segment is None else (merged.segment,)
        change = Change((*change.files, *files), (*change.added, *added), (*change.dropped, *merged.inputs), change.views, change.notes)
    return change
