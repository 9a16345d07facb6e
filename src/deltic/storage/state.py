"""State: the one writer of a state folder. It opens, commits epochs, and takes the garbage away.

Two things keep writers apart. On a file system a lock refuses the second while the first lives. Everywhere, an opener takes the next
generation and commits an empty epoch of its own: an older writer that still lives then finds the epoch that it wants to commit
taken, and gets StateTakenOver. So of two writers one always learns of the other, and no epoch has two manifests.

What an epoch no longer names stays until the epoch before it need not be readable: neither as one of the retained ones nor for a
reader's lease. A commit says first which epoch is the oldest to be read, and only then looks at leases and deletes.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from deltic.errors import CorruptState, StateError, StateTakenOver
from deltic.storage.files import Origin, origin_of
from deltic.storage.folder import StateFolder, open_folder
from deltic.storage.generations import mark, next_generation
from deltic.storage.history import LINK_BYTES, OBJECT_LINK_BYTES, WholeManifestSchedule, chain, committed_epochs, epochs_in, stored_manifest
from deltic.storage.leases import oldest_leased
from deltic.storage.manifest import KEEP, LAST_EPOCH, MOST_SHARDS, Change, Manifest, StoredManifest, encode, manifest_name
from deltic.storage.merging import merge_segments
from deltic.storage.names import DATA, GENERATIONS, MANIFESTS
from deltic.storage.notes import Notes
from deltic.storage.parsing import REMEDY, Json
from deltic.storage.reshard import SPREAD, partitions, resharded, superfluous, torn

RETAINED_EPOCHS: Final = 100
WHOLE_EVERY: Final = 50
SWEEP_EVERY: Final = 100
COLLECT_EVERY: Final = 16
"""Epochs between looks for garbage on an object store, where each costs a request or two."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Past:
    """A file that the state no longer names, and the first epoch that does not need it."""

    file: str
    free_from: int


class State:
    """An open state folder. Not for two threads at once, but `manifest` may be read by any."""

    manifest: Manifest

    def __init__(self, folder: StateFolder, *, retain: int, whole_every: int) -> None:
        """Use `open`."""
        self.folder = folder
        self.generation = 0
        self._retain = retain
        self._pace = WholeManifestSchedule(whole_every, LINK_BYTES if folder.local else OBJECT_LINK_BYTES)
        self._past: deque[_Past] = deque()
        self._wholes: list[int] = []
        self._merging: Counter[int] = Counter()
        self._uncertain = False
        """Whether a commit was interrupted, so that `manifest` may be older than the folder's."""

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str],
        *,
        shards: int | None = None,
        facts: Mapping[str, Json] | None = None,
        retain: int = RETAINED_EPOCHS,
        whole_every: int = WHOLE_EVERY,
        check: Callable[[Notes], None] = lambda notes: None,
    ) -> State:
        """Opens or makes a state folder, and takes it over from any older writer.

        shards: of a new state (default 1); an old one that has others is resharded, in an epoch of its own. facts: notes of a new state,
        such as the strings' key; it gets an `id` besides. retain: how many past epochs stay readable. whole_every: fewest epochs from a
        whole manifest to the next. check: raises if a state with such notes cannot be continued; its epochs are then left as they are.
        Raises StateInUse, StateTakenOver, CorruptState; StateError if it cannot be resharded.
        """
        if shards is not None and not 1 <= shards <= MOST_SHARDS:
            raise StateError(f"a state of {shards} shards", expected=f"1 to {MOST_SHARDS} shards")
        folder = open_folder(root)
        folder.make()
        folder.lock()
        try:
            state = cls(folder, retain=retain, whole_every=whole_every)
            state._take(shards, facts or {}, check)
        except BaseException:
            folder.unlock()
            raise
        return state

    @property
    def root(self) -> str:
        return self.folder.root

    @property
    def epoch(self) -> int:
        """The last one committed."""
        return self.manifest.epoch

    def origin(self, shard: int, level: int) -> Origin:
        """Whose files the next epoch's are."""
        return Origin(self.generation, self.epoch + 1, shard, level)

    def close(self) -> None:
        """Gives the folder back. The state stays readable."""
        if not self.folder.local:  # once, since it is a request of its own there
            mark(self.folder, self.generation, self.epoch)
        self.folder.unlock()

    def commit(self, change: Change) -> Manifest:
        """Makes the next epoch real. The files must have been written and synced.

        Raises StateTakenOver if a newer writer has the folder; then nothing has changed. After any other exception `recover` finds out
        whether the epoch is real. O(change), amortised.
        """
        self.recover()
        self._uncertain = True
        created = self._store(self.manifest.after(change, self.generation), change)
        self._uncertain = False
        if not created:
            raise self._taken_over()
        self._collect()
        return self.manifest

    def recover(self) -> None:
        """After a commit that was interrupted: reads from the folder what the state is. O(1) if none was.

        Raises StateTakenOver, CorruptState; StateError if the folder cannot be read now.
        """
        if not self._uncertain:
            return
        self._replay(committed_epochs(self.folder))
        if self.manifest.generation != self.generation:
            raise self._taken_over()
        self._uncertain = False

    def _taken_over(self) -> StateTakenOver:
        return StateTakenOver(
            f"the state folder {self.root} was taken over by a newer writer; epoch {self.epoch + 1} is not committed",
            remedy="end this process; the newer one goes on from the last committed epoch",
        )

    @contextmanager
    def merging(self) -> Iterator[Origin]:
        """While a merge runs beside the ticks: its inputs and its output are no garbage, whatever is committed meanwhile."""
        origin = self.origin(0, 0)
        self._merging[origin.epoch] += 1
        try:
            yield origin
        finally:
            self._merging[origin.epoch] -= 1
            self._merging += Counter()

    def _store(self, after: Manifest, change: Change, *, whole: bool = False) -> bool:
        """Makes `after`, that which `change` makes of the state, its next manifest; False if there is one already."""
        before = self.manifest
        if after.epoch > LAST_EPOCH:
            raise StateError(f"the state folder {self.root} has no epoch left", expected=f"at most {LAST_EPOCH}", remedy=REMEDY)
        whole = whole or self._pace.due
        oldest = min(after.epoch - self._retain, after.notes.get(KEEP, after.epoch))
        after = replace(after, at_us=time.time_ns() // 1000, oldest=max(before.oldest, oldest, 0))
        after, stored = encode(after, before, change, token := secrets.token_hex(8), whole=whole)
        name = manifest_name(after.epoch)
        if not self.folder.create(name, stored) and stored_manifest(self.folder, after.epoch).token != token:
            return False
        self._pace.wrote(len(stored), whole=whole)
        self._advance(after, change, whole=whole)
        if self.folder.local:
            mark(self.folder, self.generation, after.epoch)
        return True

    def _advance(self, after: Manifest, change: Change, *, whole: bool) -> None:
        """Takes `after` for the state, and notes what it made superfluous."""
        before, self.manifest = self.manifest, after
        if whole:
            self._wholes.append(after.epoch)
        self._past.extend(_Past(name, after.epoch) for name in after.superfluous(before, change))

    def _take(self, shards: int | None, facts: Mapping[str, Json], check: Callable[[Notes], None]) -> None:
        for prefix in (MANIFESTS, GENERATIONS):
            self.folder.sweep(prefix)
        epochs = epochs_in(self.folder)
        self.generation = next_generation(self.folder, stored_manifest(self.folder, epochs[-1]).generation if epochs else 0)
        while True:
            epochs = committed_epochs(self.folder)
            self.manifest = Manifest.before(shards or 1)
            if epochs:
                self._replay(epochs)
                check(self.manifest.notes)
            self._check(shards)
            named = {} if "id" in self.manifest.notes else {"id": secrets.token_hex(16)}
            change = Change(notes=named if epochs else {**facts, **named})
            if self._store(self.manifest.after(change, self.generation), change, whole=not epochs):
                break
        if shards is not None and shards != self.manifest.shards:
            self._reshard(shards)
        missing = set(self.manifest.files).difference(self.sweep())
        if missing:  # told now, and not in the midst of a tick
            raise CorruptState(f"{min(missing)}: the file is missing, though the manifest names it", remedy=REMEDY)

    def _check(self, shards: int | None) -> None:
        if self.manifest.generation > self.generation:
            raise StateTakenOver(f"the state folder {self.root} was taken over by a newer writer", remedy="end the other one first")
        if shards is not None and shards != self.manifest.shards:
            partitions(self.manifest)

    def _reshard(self, shards: int) -> None:
        """One epoch, or two if something has to be merged first."""
        if groups := list(torn(self.manifest)):
            spread = partitions(self.manifest)
            merged = [
                merge_segments(
                    self.root,
                    self.manifest.files,
                    group,
                    self.origin(group[0].shard, 0),
                    partition=spread[group[0].arrangement],
                    shards=self.manifest.shards,
                )
                for group in groups
            ]
            files = tuple(file for file, _ in merged if file is not None)
            added = tuple(segment for _, segment in merged if segment is not None)
            self.commit(Change(files, added, tuple(segment for group in groups for segment in group)))
        dropped = superfluous(self.manifest)
        after = resharded(self.manifest, shards).after(Change(notes={SPREAD: None}), self.generation)
        if not self._store(after, Change(dropped=dropped, notes={SPREAD: None}), whole=True):
            raise StateTakenOver(f"the state folder {self.root} was taken over by a newer writer", remedy="end this process")

    def _replay(self, epochs: list[int]) -> None:
        """Reads what is retained, from the last whole manifest before it on."""
        oldest = stored_manifest(self.folder, epochs[-1]).oldest
        leased = oldest_leased(self.folder)
        floor = oldest if leased is None else min(oldest, leased)
        links = chain(self.folder, epochs[0], epochs[-1], lambda stored: stored.epoch <= floor)
        self._past.clear()
        self._wholes.clear()
        self._pace = WholeManifestSchedule(self._pace.every, self._pace.link_bytes)
        for link in links:
            self._follow(link)
        while self._past and self._past[0].free_from <= floor:
            self._past.popleft()

    def _follow(self, link: StoredManifest) -> None:
        whole = link.whole is not None
        self._pace.wrote(link.size_bytes, whole=whole)
        if self._wholes:
            self._advance(link.onto(self.manifest), link.change, whole=whole)
        else:
            assert link.whole is not None
            self.manifest = link.whole
            self._wholes.append(link.epoch)

    def _collect(self) -> None:
        """Deletes what no retained epoch, lease or merge needs. What cannot be deleted now is tried again: a commit does not fail by it."""
        if not (self.folder.local or self.epoch % COLLECT_EVERY == 0):
            return
        try:
            if self._past and not self._merging and self._past[0].free_from <= self.manifest.oldest:
                self._free()
            if self.epoch % (SWEEP_EVERY if self.folder.local else SWEEP_EVERY * COLLECT_EVERY) == 0:
                self.sweep()
        except StateError as error:
            _log.warning("garbage of the state folder %s could not be deleted yet: %s", self.root, error)

    def _free(self) -> int:
        """Deletes past files that nothing retained, no lease and no merge needs. Returns the oldest epoch that is needed."""
        floor = self._floor()
        if self._merging:
            return floor
        free = [f"{DATA}/{past.file}" for past in takewhile(lambda past: past.free_from <= floor, self._past)]
        self.folder.delete(free)
        for _ in free:
            self._past.popleft()
        return floor

    def _floor(self) -> int:
        """The oldest epoch that must stay readable."""
        leased = oldest_leased(self.folder)
        return self.manifest.oldest if leased is None else min(self.manifest.oldest, leased)

    def sweep(self) -> list[str]:
        """Deletes all that nobody needs: also manifests that nothing retained builds on, and files that no manifest names. O(files).

        Returns the names of the data files that it found.
        """
        floor = self._free()
        base = max((epoch for epoch in self._wholes if epoch <= floor), default=0)
        self._wholes = [epoch for epoch in self._wholes if epoch >= base]
        old = [manifest_name(epoch) for epoch in epochs_in(self.folder) if epoch < base]
        needed = {*self.manifest.files, *(past.file for past in self._past)}
        found = self.folder.names(DATA)
        strays = [f"{DATA}/{name}" for name in found if name not in needed and self._is_stray(name)]
        self.folder.delete([*old, *strays])
        return found

    def _is_stray(self, name: str) -> bool:
        """Whether no tick or merge that still runs can have written a file that no manifest names."""
        origin = origin_of(name)
        if origin is None or origin.generation > self.generation:
            return False
        return origin.generation < self.generation or origin.epoch <= min(self._merging, default=self.epoch + 1) - 1
