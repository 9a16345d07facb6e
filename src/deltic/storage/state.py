"""State: the writer of a state folder. It opens the folder, commits epochs, and deletes garbage.

Two mechanisms keep writers apart. On a file system, a lock refuses the second writer while the first lives. Everywhere, opening takes the
next generation and commits an empty epoch: an older writer that still lives then finds its next epoch already committed, and gets
StateTakenOver. So of two writers one always detects the other, and no epoch has two manifests.

A file that the state no longer names is kept as long as an earlier epoch must be readable, whether retained or leased by a reader. A
commit first records the oldest readable epoch, and only then reads leases and deletes.

A writer with a commit log makes epochs durable there (log_file.py) and turns them into manifests from time to time (fold.py). The next
writer folds what is left.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Final

from deltic.errors import StateError, StateTakenOver
from deltic.storage.files import Origin, origin_of
from deltic.storage.fold import fold
from deltic.storage.folder import StateFolder, open_folder
from deltic.storage.generations import generation_name, mark, next_generation
from deltic.storage.history import LINK_BYTES, OBJECT_LINK_BYTES, WholeManifestSchedule, chain, committed_epochs, epochs_in, stored_manifest
from deltic.storage.leases import LEASE_S, oldest_leased
from deltic.storage.local import LocalFolder
from deltic.storage.log_file import LogWriter, log_name, records
from deltic.storage.logged_epoch import logged_epochs, logs_of
from deltic.storage.manifest import LAST_EPOCH, MOST_SHARDS, Change, Manifest, StoredManifest, encode, manifest_name
from deltic.storage.merging import merge_segments
from deltic.storage.names import DATA, GENERATIONS, LEASES, MANIFESTS
from deltic.storage.notes import Notes
from deltic.storage.parsing import REMEDY, Json, missing_file
from deltic.storage.reading import OpenFiles
from deltic.storage.reshard import SPREAD, partitions, resharded, superfluous, torn

RETAINED_EPOCHS: Final = 100
WHOLE_EVERY: Final = 50
SWEEP_EVERY: Final = 100
COLLECT_EVERY: Final = 16
"""Epochs between garbage collections on an object store, where each costs one or two requests."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Superseded:
    """A file that the state no longer names, and the first epoch that does not need it."""

    file: str
    free_from: int


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A manifest that is not written yet: the state after its change, and its stored form. whole: whether that holds the whole state."""

    after: Manifest
    change: Change
    content: bytes
    token: str
    whole: bool


class State:
    """An open state folder. Not thread-safe, except that any thread may read `manifest`, and that while one thread commits epochs in order,
    another may append to the log: `check_owner`, `check_newest`, `oldest_at` and `new_log` change nothing here.

    It is that of the process that opened it: in one that was forked from it, what would change the folder raises StateError.
    """

    manifest: Manifest

    def __init__(self, folder: StateFolder, *, retain: int, whole_every: int, logs: bool) -> None:
        """Use `open`."""
        self.folder = folder
        self.logs = logs and folder.local
        """Whether this writer may have a commit log."""
        self.generation = 0
        self._process = os.getpid()
        self._retain = retain
        self._pace = WholeManifestSchedule(whole_every, LINK_BYTES if folder.local else OBJECT_LINK_BYTES)
        self._superseded: deque[_Superseded] = deque()
        self._wholes: list[int] = []
        self._merging: Counter[int] = Counter()
        self._swept = 0
        """The epoch at which garbage was last swept."""
        self._torn_fold = False
        """Whether `commit_in_order` may have left files that no manifest names."""
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
        logs: bool = False,
        check: Callable[[Notes], None] = lambda notes: None,
    ) -> State:
        """Opens or creates a state folder, and takes it over from any older writer.

        shards: the number of shards (new states: 1 by default); an existing state with another number is resharded, in an epoch of its own.
        facts: notes of a new state, such as the strings' key; an `id` is added. retain: how many past epochs stay readable. whole_every:
        the least number of epochs between whole manifests. logs: this writer has a commit log; no effect on an object store. check: raises
        if a state with such notes cannot be continued; the state then stays unchanged. What another writer has logged is folded.
        Raises StateInUse, StateTakenOver, CorruptState; StateError if it cannot be resharded.
        """
        if shards is not None and not 1 <= shards <= MOST_SHARDS:
            raise StateError(f"a state of {shards} shards", expected=f"1 to {MOST_SHARDS} shards")
        folder = open_folder(root)
        folder.make()
        folder.lock()
        try:
            state = cls(folder, retain=retain, whole_every=whole_every, logs=logs)
            state._take_over(shards, facts or {}, check)
        except BaseException:
            folder.unlock()
            raise
        return state

    @property
    def root(self) -> str:
        return self.folder.root

    @property
    def epoch(self) -> int:
        """The last committed epoch."""
        return self.manifest.epoch

    def origin(self, shard: int, level: int) -> Origin:
        """The origin of the next epoch's files."""
        return Origin(self.generation, self.epoch + 1, shard, level)

    @property
    def inherited(self) -> bool:
        """Whether this process was forked from the one that opened the state."""
        return os.getpid() != self._process

    def check_process(self) -> None:
        """Raises StateError if the state is inherited."""
        if os.getpid() != self._process:  # as `inherited`; each commit asks four times
            raise StateError(
                f"the state folder {self.root} was opened by process {self._process}, from which this process was forked",
                expected="changes in the process that opened it",
                remedy="open a session in this process, over another folder or once that process has closed its own",
            )

    def close(self) -> None:
        """Releases the folder. The state stays readable."""
        if not self.inherited and not self.folder.local:  # only now, since it is an extra request there
            mark(self.folder, self.generation, self.epoch)
        self.folder.unlock()

    def commit(self, change: Change) -> Manifest:
        """Commits the next epoch. The files must have been written and synced.

        Raises StateTakenOver if a newer writer has the folder; then nothing has changed. After any other exception `recover` determines
        whether the epoch was committed. O(change), amortised.
        """
        self.check_process()
        self.recover()
        self._uncertain = True
        created = self._store(self.manifest.after(change, self.generation), change)
        self._uncertain = False
        if not created:
            raise self.taken_over()
        self._collect()
        return self.manifest

    def commit_in_order(self, epochs: Iterable[tuple[int, int, Callable[[Manifest], Change]]]) -> None:
        """See fold.EpochWriter. Deletes nothing: `collect` does, after the fold."""
        assert isinstance(self.folder, LocalFolder)
        self.check_process()
        self.recover()
        if self._torn_fold:  # at once: it is tried again and again, and the disk may be full
            self._sweep_strays(any_epoch=True)
        self._uncertain = self._torn_fold = True
        before, stored = self.manifest, list[_Prepared]()
        for epoch, at_us, change_of in epochs:
            change = change_of(before)
            skips = epoch > before.epoch + 1
            after = replace(before.after(change, self.generation), epoch=epoch)
            stored.append(self._prepared(before, after, change, whole=skips, at_us=at_us, oldest=epoch if skips else 0))
            before = stored[-1].after
        self.folder.sync_data([file.name for each in stored for file in each.change.files])
        contents = [(manifest_name(each.after.epoch).removeprefix(f"{MANIFESTS}/"), each.content) for each in stored]
        created = self.folder.create_in_order(MANIFESTS, contents)
        for each in stored[:created]:
            self._advance(each.after, each.change, whole=each.whole)
        self._uncertain = created < len(stored)
        if self._uncertain:
            raise self.taken_over()
        self._torn_fold = False
        mark(self.folder, self.generation, self.epoch)

    def oldest_at(self, epoch: int, keep: int | None) -> int:
        """The oldest epoch that may be opened once `epoch` is committed. keep: the note KEEP of then."""
        return max(self.manifest.oldest, min(epoch - self._retain, epoch if keep is None else keep))

    def floor_at(self, epoch: int, keep: int | None) -> int:
        """See fold.EpochWriter."""
        oldest = self.oldest_at(epoch, keep)
        leased = oldest_leased(self.folder, following=True)
        return oldest if leased is None else min(oldest, leased)

    def collect(self) -> None:
        """Deletes what a fold made superfluous, as each commit does."""
        self._collect()

    def recover(self) -> None:
        """After an interrupted commit, reads the state from the folder. O(1) if no commit was interrupted.

        Raises StateTakenOver, CorruptState; StateError if the folder cannot be read now.
        """
        if not self._uncertain:
            return
        if not (epochs := committed_epochs(self.folder)):
            raise self._gone()
        self._replay(epochs)
        if self.manifest.generation != self.generation:
            raise self.taken_over()
        self._uncertain = False

    def check_owner(self) -> None:
        """Raises StateTakenOver if a newer writer has opened the folder, and StateError if it no longer has a state. O(1)."""
        self.check_newest()
        if not self._writers[0]():  # so many have followed that it was deleted, or all is
            raise self.taken_over() if epochs_in(self.folder) else self._gone()

    def check_newest(self) -> None:
        """As `check_owner` within a moment of it."""
        self.check_process()
        if self._writers[1]():
            raise self.taken_over()

    @cached_property
    def _writers(self) -> tuple[Callable[[], bool], Callable[[], bool]]:
        """Whether the folder has this writer, and the next one."""
        assert isinstance(self.folder, LocalFolder)
        return self.folder.presence(generation_name(self.generation)), self.folder.presence(generation_name(self.generation + 1))

    def new_log(self, number: int) -> LogWriter:
        """Creates a file of this writer's commit log, the first or the second. Raises StateError."""
        assert self.logs and isinstance(self.folder, LocalFolder)
        self.check_process()
        return self.folder.new_log(log_name(self.generation, number))

    def _gone(self) -> StateError:
        message = f"the state folder {self.root} no longer has a state"
        return StateError(message, expected="the folder that was opened", remedy="move it back, or open it where it is now")

    def taken_over(self) -> StateTakenOver:
        return StateTakenOver(
            f"the state folder {self.root} was taken over by a newer writer; epoch {self.epoch + 1} is not committed",
            remedy="end this process; the newer one resumes from the last committed epoch",
        )

    @contextmanager
    def merging(self) -> Iterator[Origin]:
        """Protects the inputs and the output of a merge that runs beside the ticks from garbage collection."""
        origin = self.origin(0, 0)
        self._merging[origin.epoch] += 1
        try:
            yield origin
        finally:
            self._merging[origin.epoch] -= 1
            self._merging += Counter()

    def _store(self, after: Manifest, change: Change, *, whole: bool = False) -> bool:
        """Writes `after`, the state after `change`, as the next manifest; False if that epoch exists already."""
        prepared = self._prepared(self.manifest, after, change, whole=whole, at_us=time.time_ns() // 1000)
        name = manifest_name(after.epoch)
        if not self.folder.create(name, prepared.content) and stored_manifest(self.folder, after.epoch).token != prepared.token:
            return False
        self._advance(prepared.after, change, whole=prepared.whole)
        if self.folder.local:
            mark(self.folder, self.generation, after.epoch)
        return True

    def _prepared(self, before: Manifest, after: Manifest, change: Change, *, whole: bool, at_us: int, oldest: int = 0) -> _Prepared:
        """The manifest of `after`, the state after `change`. oldest: no epoch before it is readable any more."""
        if after.epoch > LAST_EPOCH:
            raise StateError(f"the state folder {self.root} has no epoch left", expected=f"at most {LAST_EPOCH}", remedy=REMEDY)
        whole = whole or self._pace.due
        oldest = max(oldest, before.oldest, min(after.epoch - self._retain, after.needs))
        after = replace(after, at_us=at_us, oldest=oldest)
        after, content = encode(after, before, change, token := secrets.token_hex(8), whole=whole, logged=self.logs)
        self._pace.wrote(len(content), whole=whole)
        return _Prepared(after, change, content, token, whole)

    def _advance(self, after: Manifest, change: Change, *, whole: bool) -> None:
        """Makes `after` the current state, and records the files that it no longer names."""
        before, self.manifest = self.manifest, after
        if whole:
            self._wholes.append(after.epoch)
        self._superseded.extend(_Superseded(name, after.epoch) for name in after.superfluous(before, change))

    def _take_over(self, shards: int | None, facts: Mapping[str, Json], check: Callable[[Notes], None]) -> None:
        for prefix in (MANIFESTS, GENERATIONS):
            self.folder.sweep(prefix)
        self.folder.sweep(LEASES, older_s=LEASE_S)  # what is younger, a reader that lives may still write
        self._remove_torn_folds()
        epochs = epochs_in(self.folder)
        self.generation = next_generation(self.folder, stored_manifest(self.folder, epochs[-1]).generation if epochs else 0)
        while True:
            epochs = committed_epochs(self.folder)
            self.manifest = Manifest.before(shards or 1)
            if epochs:
                self._replay(epochs)
                check(self.manifest.notes)
                self._fold_logs()
            self._check(shards)
            named = {} if "id" in self.manifest.notes else {"id": secrets.token_hex(16)}
            change = Change(notes={**named, **(self.manifest.without_tick if epochs else facts)})
            if self._store(self.manifest.after(change, self.generation), change, whole=not epochs):
                break
        if shards is not None and shards != self.manifest.shards:
            self._reshard(shards)
        missing = set(self.manifest.files).difference(self.sweep())
        self._swept = self.epoch
        if missing:  # reported on opening, not in the middle of a tick
            raise missing_file(min(missing))

    def _remove_torn_folds(self) -> None:
        """Deletes manifests of which a power failure, while a log was being folded, has left only some: the log has all of these epochs."""
        epochs = epochs_in(self.folder)
        for name, content in logs_of(self.folder).items():
            logged = records(content, name, epochs[-1] if epochs else -1)
            if not logged or not epochs or epochs[-1] > logged[-1].epoch:
                continue  # manifests have been committed since: the log is folded
            after = [epoch for epoch in epochs if epoch > logged[0].base]
            if after and not self._continues(after, logged[0].base):
                self.folder.delete(map(manifest_name, after))

    def _continues(self, epochs: list[int], base: int) -> bool:
        """Whether manifests lead to the last one: from that of `base`, or from a whole one before which no epoch is readable."""
        start = epochs[-1]
        while start - 1 in epochs:
            start -= 1
        first = stored_manifest(self.folder, start)
        return start == base + 1 or (first.whole is not None and first.oldest == start)

    def _fold_logs(self) -> None:
        """Folds what earlier writers logged, and deletes their logs."""
        logs = logs_of(self.folder)
        for name, content in logs.items():
            fold(self, logged_epochs(content, name, self.manifest), OpenFiles(self.root))
        self.folder.delete(logs)

    def _check(self, shards: int | None) -> None:
        if self.manifest.generation > self.generation:
            raise StateTakenOver(f"the state folder {self.root} was taken over by a newer writer", remedy="end the other one first")
        if shards is not None and shards != self.manifest.shards:
            partitions(self.manifest)

    def _reshard(self, shards: int) -> None:
        """Commits one epoch, or two if torn batches must be merged first."""
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
            merged_all = tuple(segment for group in groups for segment in group)
            self.commit(Change(files, added, merged_all, notes=self.manifest.without_tick))
        dropped, notes = superfluous(self.manifest), {SPREAD: None, **self.manifest.without_tick}
        after = resharded(self.manifest, shards).after(Change(notes=notes), self.generation)
        if not self._store(after, Change(dropped=dropped, notes=notes), whole=True):
            raise StateTakenOver(f"the state folder {self.root} was taken over by a newer writer", remedy="end this process")

    def _replay(self, epochs: list[int]) -> None:
        """Reads the retained epochs, starting at the last whole manifest before them."""
        oldest = stored_manifest(self.folder, epochs[-1]).oldest
        leased = oldest_leased(self.folder)
        floor = oldest if leased is None else min(oldest, leased)
        links = chain(self.folder, epochs[0], epochs[-1], lambda stored: stored.epoch <= floor)
        self._superseded.clear()
        self._wholes.clear()
        self._pace = WholeManifestSchedule(self._pace.every, self._pace.link_bytes)
        for link in links:
            self._follow(link)
        while self._superseded and self._superseded[0].free_from <= floor:
            self._superseded.popleft()

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
        """Deletes what no retained epoch, lease or merge needs. A failure is logged and retried later; it does not fail the commit."""
        if not (self.folder.local or self.epoch % COLLECT_EVERY == 0):
            return
        try:
            if self._superseded and not self._merging and self._superseded[0].free_from <= self.manifest.oldest:
                self._free()
            if self.epoch - self._swept >= (SWEEP_EVERY if self.folder.local else SWEEP_EVERY * COLLECT_EVERY):
                self._swept = self.epoch  # also if it fails
                self.sweep()
        except StateError as error:
            _log.warning("garbage of the state folder %s could not be deleted yet: %s", self.root, error)

    def _free(self) -> int:
        """Deletes superseded files that no retained epoch, lease or merge needs. Returns the oldest needed epoch."""
        floor = self._floor()
        if self._merging:
            return floor
        free = [f"{DATA}/{entry.file}" for entry in takewhile(lambda entry: entry.free_from <= floor, self._superseded)]
        self.folder.delete(free)
        for _ in free:
            self._superseded.popleft()
        return floor

    def _floor(self) -> int:
        """The oldest epoch that must stay readable."""
        leased = oldest_leased(self.folder)
        return self.manifest.oldest if leased is None else min(self.manifest.oldest, leased)

    def sweep(self) -> list[str]:
        """Deletes all garbage, including manifests that no retained epoch builds on and files that no manifest names. O(files).

        Returns the names of the data files listed before deletion.
        """
        floor = self._free()
        base = max((epoch for epoch in self._wholes if epoch <= floor), default=0)
        self._wholes = [epoch for epoch in self._wholes if epoch >= base]
        old = [manifest_name(epoch) for epoch in epochs_in(self.folder) if epoch < base]
        self.folder.delete(old)
        return self._sweep_strays()

    def _sweep_strays(self, *, any_epoch: bool = False) -> list[str]:
        """Deletes files that no manifest names. any_epoch: no tick is running. Returns the names listed before deletion."""
        needed = {*self.manifest.files, *(entry.file for entry in self._superseded)}
        listed = self.folder.names(DATA)
        end = LAST_EPOCH + 1 if any_epoch else self.epoch + 1
        self.folder.delete([f"{DATA}/{name}" for name in listed if name not in needed and self._is_stray(name, end)])
        return listed

    def _is_stray(self, name: str, end: int) -> bool:
        """Whether a file that no manifest names cannot belong to a running merge, or to a tick of the epoch `end` or a later one."""
        origin = origin_of(name)
        if origin is None or origin.generation > self.generation:
            return False
        return origin.generation < self.generation or origin.epoch < min(self._merging, default=end)
