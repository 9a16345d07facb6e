"""State: the one writer of a state folder. It opens, commits epochs, and takes the garbage away.

Two things keep writers apart. On a file system a lock refuses the second while the first lives. Everywhere, an opener takes the next
generation and commits an empty epoch of its own: an older writer that still lives then finds the epoch that it wants to commit
taken, and gets StateTakenOver. So of two writers one always learns of the other, and no epoch has two manifests.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from deltic.errors import CorruptState, StateError, StateTakenOver
from deltic.storage.files import Origin, origin_of
from deltic.storage.folder import Folder, open_folder
from deltic.storage.layout import REMEDY
from deltic.storage.manifest import MANIFESTS, Change, Json, Manifest, Stored, decode, encode, epoch_of, manifest_name
from deltic.storage.names import DATA

GENERATIONS: Final = "generations"
RETAINED_EPOCHS: Final = 100
WHOLE_EVERY: Final = 50
SWEEP_EVERY: Final = 100
KEPT_GENERATIONS: Final = 64


@dataclass(slots=True)
class _Past:
    """A file that the state no longer names, and the first epoch that does not need it."""

    file: str
    free_from: int


class State:
    """An open state folder. Not for two threads at once, but `manifest` may be read by any."""

    manifest: Manifest

    def __init__(self, folder: Folder, *, retain: int, whole_every: int) -> None:
        self.folder = folder
        self.generation = 0
        self._retain, self._whole_every = retain, whole_every
        self._past: deque[_Past] = deque()
        self._wholes: list[int] = []
        self._views: deque[tuple[int, frozenset[str]]] = deque()
        self._merging: Counter[int] = Counter()

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str],
        *,
        shards: int | None = None,
        facts: Mapping[str, Json] | None = None,
        retain: int = RETAINED_EPOCHS,
        whole_every: int = WHOLE_EVERY,
    ) -> State:
        """Opens or makes a state folder, and takes it over from any older writer.

        shards: of a new state (default 1); an old one must have as many, if it is given. facts: notes of a new state, such as the
        strings' seed. retain: how many past epochs stay readable. Raises StateInUse, CorruptState, StateTakenOver.
        """
        folder = open_folder(root)
        folder.make()
        folder.lock()
        try:
            state = cls(folder, retain=retain, whole_every=whole_every)
            state._take(shards, facts or {})
        except BaseException:
            folder.unlock()
            raise
        return state

    @property
    def root(self) -> str:
        return str(self.folder.root)

    @property
    def epoch(self) -> int:
        """The last one committed."""
        return self.manifest.epoch

    def origin(self, shard: int, level: int) -> Origin:
        """Whose files the next epoch's are."""
        return Origin(self.generation, self.epoch + 1, shard, level)

    def close(self) -> None:
        """Gives the folder back. The state stays readable."""
        self.folder.unlock()

    def commit(self, change: Change) -> Manifest:
        """Makes the next epoch real, or raises and changes nothing. The files must have been written and synced.

        Raises StateTakenOver if a newer writer has the folder.
        """
        before = self.manifest
        epoch = before.epoch + 1
        whole = epoch % self._whole_every == 0
        after, stored = encode(before.after(change, self.generation), before, change, token := secrets.token_hex(8), whole=whole)
        if not self.folder.create(manifest_name(epoch), stored) and self._stored(epoch).token != token:
            raise StateTakenOver(
                f"the state folder {self.root} was taken over by a newer writer; epoch {epoch} is not committed",
                remedy="end this process; the newer one goes on from the last committed epoch",
            )
        self._advance(before, after, change, whole=whole)
        self._collect()
        return after

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

    def _advance(self, before: Manifest, after: Manifest, change: Change, *, whole: bool) -> None:
        """Takes `after` for the state, and notes what it made superfluous."""
        self.manifest = after
        if whole:
            self._wholes.append(after.epoch)
        self._views.append((after.epoch, frozenset(segment.file for segment in change.views)))
        gone = before.files.keys() - after.files.keys() if change.dropped else set[str]()
        self._past.extend(_Past(name, after.epoch) for name in sorted(gone))

    def _take(self, shards: int | None, facts: Mapping[str, Json]) -> None:
        for prefix in (MANIFESTS, GENERATIONS):
            self.folder.sweep(prefix)
        self.generation = self._next_generation()
        while True:
            epochs = [epoch_of(name) for name in self.folder.names(MANIFESTS)]
            new = not epochs
            self.manifest = Manifest.before(shards or 1)
            if not new:
                self._replay(epochs, epochs[-1])
            self._check(shards)
            change = Change(notes=facts) if new else Change()
            before = self.manifest
            after, stored = encode(before.after(change, self.generation), before, change, secrets.token_hex(8), whole=True)
            if self.folder.create(manifest_name(after.epoch), stored):
                self._advance(before, after, change, whole=True)
                break
        self.sweep()

    def _check(self, shards: int | None) -> None:
        if self.manifest.generation > self.generation:
            raise StateTakenOver(f"the state folder {self.root} was taken over by a newer writer", remedy="end the other one first")
        if shards is not None and shards != self.manifest.shards:
            raise StateError(
                f"the state folder {self.root} has {self.manifest.shards} shards",
                expected=f"{shards} shards",
                remedy="open it with the number of shards that it was made with",
            )

    def _next_generation(self) -> int:
        taken = self.folder.names(GENERATIONS)
        generation = int(taken[-1], 16) + 1 if taken else 1
        while not self.folder.create(f"{GENERATIONS}/{generation:08x}", b"{}\n"):
            generation += 1
        # Far behind, so that an opener which has listed them already cannot take a number that was deleted meanwhile.
        self.folder.delete([f"{GENERATIONS}/{name}" for name in taken if int(name, 16) < generation - KEPT_GENERATIONS])
        return generation

    def _replay(self, epochs: list[int], last: int) -> None:
        """Reads what is retained, from the last whole manifest before it on."""
        chain: list[Stored] = []
        for epoch in range(last, -1, -1):
            chain.append(self._stored(epoch))
            if chain[-1].whole is not None and (epoch <= last - self._retain or epoch == epochs[0]):
                break
        self._past.clear()
        self._views.clear()
        self._wholes = [stored.epoch for stored in reversed(chain) if stored.whole is not None]
        base = chain.pop().whole
        assert base is not None
        self.manifest = base
        self._views.append((base.epoch, frozenset(segment.file for segment in base.views)))
        for stored in reversed(chain):
            self._advance(self.manifest, stored.onto(self.manifest), stored.change, whole=False)

    def _stored(self, epoch: int) -> Stored:
        name = manifest_name(epoch)
        if (found := self.folder.read(name)) is None:
            raise CorruptState(f"{name} is missing", remedy=REMEDY)
        return decode(found, name)

    def _collect(self) -> None:
        """Deletes what no retained epoch needs."""
        oldest = self.epoch - self._retain
        if self._merging:
            return
        free = []
        while self._past and self._past[0].free_from <= oldest:
            free.append(f"{DATA}/{self._past.popleft().file}")
        self.folder.delete(free)
        if self.epoch % SWEEP_EVERY == 0:
            self.sweep()

    def sweep(self) -> None:
        """Deletes manifests that nothing retained builds on, and data files that no manifest names. O(files)."""
        oldest = self.epoch - self._retain
        base = max((epoch for epoch in self._wholes if epoch <= oldest), default=0)
        self._wholes = [epoch for epoch in self._wholes if epoch >= base]
        self.folder.delete([f"{MANIFESTS}/{name}" for name in self.folder.names(MANIFESTS) if epoch_of(name) < base])
        while self._views and self._views[0][0] < oldest:
            self._views.popleft()
        needed = {*self.manifest.files, *(past.file for past in self._past)}.union(*(files for _, files in self._views))
        self.folder.delete([f"{DATA}/{name}" for name in self.folder.names(DATA) if name not in needed and self._is_stray(name)])

    def _is_stray(self, name: str) -> bool:
        """Whether no tick or merge that still runs can have written a file that no manifest names."""
        origin = origin_of(name)
        if origin is None or origin.generation > self.generation:
            return False
        return origin.generation < self.generation or origin.epoch <= min(self._merging, default=self.epoch + 1) - 1
