"""Background merges: one run at a time, on a thread; a later commit adopts them if their inputs are still part of the state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from deltic.reentrant import ReentrantEvent
from deltic.runtimes.durable.interrupts import uninterrupted
from deltic.storage.files import FileRef, Origin
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.merging import large_merges, merge_segments
from deltic.storage.state import State

_log = logging.getLogger(__name__)

Group = tuple[SegmentRef, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """The inputs of a merge and its output; file and segment are None if all rows cancelled."""

    inputs: Group
    file: FileRef | None
    segment: SegmentRef | None


Perform = Callable[[Manifest, Sequence[Group], Origin], list[Merged]]
"""Runs merges and writes their files; those that fail are left out."""


class _Run:
    """Merges that a thread performs. merged: what it has returned, once it has ended."""

    def __init__(self) -> None:
        self.ended = ReentrantEvent()
        self.merged: list[Merged] = []

    def perform(self, perform: Callable[[], list[Merged]]) -> None:
        try:
            self.merged = perform()
        except Exception:
            # Ticks do not need merges; those that are due are retried after the next commit.
            _log.warning("a background merge of state failed", exc_info=True)
        finally:
            self.ended.set()


class Merger:
    """Starts merges and holds their results until a commit adopts them.

    An interrupt may come at any line of it. So it waits for no Future, whose lock an interrupt could leave held.
    """

    def __init__(self, state: State, perform: Perform) -> None:
        self._state, self._perform = state, perform
        self._pool = _pool()
        self._running: _Run | None = None
        self._pinned = ExitStack()
        self._stopped = False

    def start(self) -> None:
        """Starts the merges that are due, unless some are running. If it cannot, it tries again after the next commit."""
        if self._stopped or self._running is not None or not (groups := large_merges(self._state.manifest)):
            return
        manifest, run = self._state.manifest, _Run()
        with uninterrupted():
            origin = self._pinned.enter_context(self._state.merging())
            try:
                self._pool.submit(run.perform, lambda: self._perform(manifest, groups, origin))
            except RuntimeError as error:  # there may be no more threads
                _log.warning("no background merge of state can be started yet: %s", error)
                self._pinned.close()
                self._pool = _pool()  # the first one keeps what it was given
            else:
                self._running = run

    def take(self, wait: bool = False) -> list[Merged]:
        """Results not returned before. wait: wait for running merges."""
        run = self._running
        if run is None or not (run.ended.wait() if wait else run.ended.is_set()):
            return []
        self._running = None
        return run.merged

    def release(self) -> None:
        """Releases the inputs of finished merges to garbage collection: their results are committed or discarded."""
        if self._running is None:
            self._pinned.close()

    def stop(self) -> None:
        """Starts no more merges."""
        self._stopped = True

    def close(self) -> None:
        """Waits for running merges and discards their results."""
        self.take(wait=True)
        self.release()
        self._pool.shutdown()


def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "deltic-merge")


def merge_group(root: str, manifest: Manifest, group: Group, origin: Origin) -> Merged:
    """One merge, in this process. Raises WeightOverflow, StateError."""
    shard_origin = replace(origin, shard=group[0].shard)
    file, segment = merge_segments(
        root, manifest.files, group, shard_origin, partition=partition_of(manifest, group), shards=manifest.shards
    )
    return Merged(group, file, segment)


def partition_of(manifest: Manifest, group: Group) -> tuple[int, ...] | None:
    """The columns whose hash names the shard of a row in the group's arrangement."""
    return manifest.program.arrangements[group[0].arrangement].partition


def adopted(change: Change, merges: Sequence[Merged], manifest: Manifest) -> Change:
    """The change, with those merges whose inputs are all still part of the state and not dropped by the change itself."""
    for merged in merges:
        if not manifest.holds(merged.inputs) or set(merged.inputs) & set(change.dropped):
            continue
        files = () if merged.file is None else (merged.file,)
        added = () if merged.segment is None else (merged.segment,)
        change = Change((*change.files, *files), (*change.added, *added), (*change.dropped, *merged.inputs), change.views, change.notes)
    return change
