"""The durable core: state in a folder; a tick writes files, then one manifest, whichever engine runs the levels.

The manifest is the commit: without it, files that a tick wrote are garbage. One thread ticks; any thread may read the last version.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Final

import numpy as np

from deltic.circuit.nodes import ArrangementSpec, Dataflow
from deltic.circuit.operator import Tick
from deltic.errors import StateError
from deltic.runtimes import RETAINED_EPOCHS, TickResult
from deltic.runtimes.durable.interrupts import uninterrupted
from deltic.runtimes.durable.merges import Group, Merged, Merger, adopted
from deltic.runtimes.durable.outcome import PerformedTick, change_of
from deltic.runtimes.durable.overdue import overdue
from deltic.runtimes.durable.partial import partial, with_scopes
from deltic.runtimes.durable.strings import HASH_VERSION, check_version, identity_of
from deltic.runtimes.durable.version import DurableVersion
from deltic.runtimes.program import Notes, backfill, described, next_tick, noted, shown_strings, with_prepared
from deltic.storage.dictionary import Dictionary, named
from deltic.storage.files import DataFile, FileRef, Origin
from deltic.storage.history import stored_manifest
from deltic.storage.manifest import Change, Manifest, SegmentRef
from deltic.storage.parsing import REMEDY
from deltic.storage.program import EMPTY, ON_TIME, STRINGS, VIEWS, ArrangementDescription
from deltic.storage.reader import manifest_at
from deltic.storage.reading import OpenFiles, shaped
from deltic.storage.reshard import SPREAD
from deltic.storage.state import State
from deltic.trace.batch import Batch
from deltic.trace.counters import summed
from deltic.trace.entries import MARKER
from deltic.trace.identity import Identity
from deltic.trace.merge import merge
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable, UnknownString

_log = logging.getLogger(__name__)

CROWDED: Final = 80
"""A tick waits for the running merge if an arrangement has this many batches."""

STRINGS_BYTES: Final = 1 << 28
"""Strings in memory above this size are dropped if they are in files."""


class Durable(ABC):
    """A runtime whose state is in the folder `root`. shards: of a new state (default 1); an existing state is resharded to it.

    logs: whether the state has a commit log.
    """

    strings: StringTable

    def __init__(self, root: str, shards: int | None, retain: int = RETAINED_EPOCHS, *, logs: bool = False) -> None:
        self._recovering = Lock()
        self._interrupted: DurableVersion | None = None
        """The version that an interrupted commit would have made, until the folder shows whether it did."""
        facts = {"hash": HASH_VERSION, STRINGS: Identity.drawn().note(), **EMPTY}
        self._state = State.open(root, shards=shards, facts=facts, retain=retain, logs=logs, check=lambda notes: check_version(notes, root))
        try:
            self.shards = self._state.manifest.shards
            self._files = OpenFiles(self._state.root)
            self._version = DurableVersion(Dataflow.empty(), self._state.manifest, ()).after(
                Dataflow.empty(), self._state.manifest, self._files
            )
            self._identity = identity_of(self._state.manifest.notes)
            self.strings = self._string_table(self._identity)
            self._merger = Merger(self._state, self._merge)
            self._unchanged = self._version.circuit, self._state.manifest.epoch
            """A circuit, and an epoch since which the views have been its own."""
        except BaseException:
            self._state.close()
            raise

    @abstractmethod
    def _string_table(self, identity: Identity) -> StringTable:
        """The table that interns users' strings; committed ones are looked up in `dictionaries`."""

    @abstractmethod
    def _perform(self, version: DurableVersion, changes: Mapping[str, Any], tick: Tick) -> PerformedTick:
        """Runs a tick on all shards and writes their files, or raises the first of the users' errors by rank. Commits nothing."""

    @abstractmethod
    def _merge(self, manifest: Manifest, groups: Sequence[Group], origin: Origin) -> list[Merged]:
        """Runs merges concurrently with ticks, on another thread; see merges.Perform."""

    @property
    def root(self) -> str:
        """See Runtime."""
        return self._state.root

    @property
    def inherited(self) -> bool:
        """See Runtime."""
        return self._state.inherited

    def check_process(self) -> None:
        """See Runtime."""
        self._state.check_process()

    @property
    def committed(self) -> DurableVersion:
        """See Runtime. After an interrupted commit it reads the folder, and raises StateError as long as that fails."""
        return self._version if self._interrupted is None else self._recovered()

    @property
    def epoch(self) -> int:
        return self.committed.epoch

    @property
    def notes(self) -> Notes:
        return self.committed.notes

    def install(
        self, circuit: Dataflow, *, dropped: Collection[str] = (), notes: Notes | None = None, definitions: object = None
    ) -> TickResult:
        """A new program; see Runtime. At most one commit, which backfills new arrangements."""
        before = self.committed
        manifest = before.manifest
        arrangements = manifest.program.arrangements
        program = described(circuit, manifest.program, dropped)
        notes = {**(notes or {}), **program.notes(), SPREAD: self.shards, ON_TIME: True}
        stale = partial(circuit) & arrangements.keys() if manifest.program.spread != self.shards else frozenset[str]()
        if not manifest.program.on_time:
            stale |= overdue(circuit, before.after(circuit, manifest, self._files))
        fresh = with_scopes(circuit, (circuit.arrangements.keys() - arrangements.keys()) | stale)
        stale = fresh & arrangements.keys()
        dropped_segments = tuple(s for s in manifest.segments() if s.arrangement not in program.arrangements or s.arrangement in stale)
        base = Change(dropped=dropped_segments, notes={name: note for name, note in notes.items() if note != manifest.notes.get(name)})
        version = replace(before.after(circuit, manifest, self._files), definitions=definitions)
        if fresh:
            tick = backfill(manifest.epoch, manifest.notes, notes, fresh)
            return self._run(version, {}, tick, base, stale, installs=True)
        if dropped_segments or base.notes or self._streams_have_rows(manifest):
            result = TickResult(circuit, manifest.epoch + 1, {}, {}, 0.0, installs=True)
            self._finish(replace(version, last=result), base)
        else:
            result = TickResult.of_definitions(circuit, manifest.epoch, before.last)
            self._version = replace(version, last=result)
        return result

    def _streams_have_rows(self, manifest: Manifest) -> bool:
        """Whether views over streams show readers the rows of the last tick. O(views), and reading at most one manifest."""
        streams = {name for name, described in manifest.program.arrangements.items() if described.ephemeral}
        if not streams or manifest.last_tick < manifest.oldest:
            return False
        last = manifest if manifest.last_tick == manifest.epoch else stored_manifest(self._state.folder, manifest.last_tick).change
        return any(segment.arrangement in streams for segment in last.views)

    def prepare(self, circuit: Dataflow, arrangements: Collection[str]) -> None:
        """See Runtime. One commit."""
        before = self.committed
        manifest = before.manifest
        notes = {"arrangements": with_prepared(circuit, manifest.program).notes()["arrangements"]}
        dropped = tuple(segment for segment in manifest.segments() if segment.arrangement in arrangements)
        tick = backfill(manifest.epoch, manifest.notes, {}, frozenset(arrangements))
        self._run(before.after(circuit, manifest, self._files), {}, tick, Change(dropped=dropped, notes=notes), arrangements, installs=True)

    def declare(self, definitions: object) -> None:
        """See Runtime."""
        self._version = replace(self.committed, definitions=definitions)

    def tick(self, changes: Mapping[str, Any], notes: Notes | None = None, *, amends: bool = False, listed: int = 0) -> TickResult:
        """One tick; see Runtime."""
        version = self.committed
        tick = next_tick(version.epoch, version.notes, notes or {}, amends=amends, listed=listed)
        return self._run(version, changes, tick, Change(notes=notes or {}))

    def note(self, notes: Notes) -> None:
        """See Runtime."""
        version = self.committed
        self._finish(version, Change(notes=noted(version.epoch, version.notes, notes)))

    def changes_at(self, view: str, epoch: int) -> Batch | None:
        """See Runtime. O(change), and reading one manifest; of those since the epoch, each is read once."""
        version = self.committed
        manifest = version.manifest
        if not manifest.oldest <= epoch <= manifest.epoch:
            raise StateError(
                f"the changes of epoch {epoch} are not retained",
                expected=f"epochs {manifest.oldest} to {manifest.epoch} are readable",
                remedy="read one of these; retain= sets how many epochs a session retains",
            )
        circuit = version.circuit
        arrangement = circuit.views[view]
        if epoch == manifest.epoch:
            return self._change_of(circuit, arrangement, manifest.views, manifest.files)
        self._check_defined(view, arrangement, epoch)
        change = stored_manifest(self._state.folder, epoch).change
        views = [segment for segment in change.views if segment.arrangement == arrangement]
        refs = {file.name: file for file in change.files}
        stored = self._change_of(circuit, arrangement, views, refs)
        return None if stored is None else self._recalled(stored, arrangement, [self._files[refs[s.file]] for s in views])

    def _check_defined(self, view: str, arrangement: str, epoch: int) -> None:
        """Raises StateError if a view did not exist after a past epoch, or had another arrangement."""
        version, folder = self.committed, self._state.folder
        circuit, since = self._unchanged if self._unchanged[0] is version.circuit else (version.circuit, self._state.manifest.epoch)
        while since > epoch and VIEWS not in stored_manifest(folder, since).change.notes:
            since -= 1
        self._unchanged = circuit, since
        if since <= epoch or (defined := manifest_at(folder, epoch).program.arrangement_of(view)) == arrangement:
            return
        raise StateError(
            f"view {view} {'did not exist' if defined is None else 'had another definition'} at epoch {epoch}",
            expected="an epoch at which it had its present definition",
            remedy="read later epochs, or its content",
        )

    def _recalled(self, change: Batch, arrangement: str, files: Sequence[DataFile]) -> Batch:
        """A past change with current string ids: the state may have dropped its strings and given their ids to others."""
        places = self._version.circuit.arrangements[arrangement].strings
        past = Dictionary.union([file.dictionary().restrict(named(change, places)) for file in files])
        ids = np.append(self.strings.intern(past.values), MARKER)
        columns = list(change.columns)
        for place in places:
            present, positions = past.find(columns[place])
            if not (present | (columns[place] == MARKER)).all():
                raise UnknownString(f"a change of {arrangement} names strings that its files do not have", remedy=REMEDY)
            columns[place] = ids[np.where(present, positions, len(past))]
        return Batch.trusted(columns, change.weights)

    def snapshot(self, arrangement: str) -> list[Spine]:
        """See Committed."""
        return self.committed.snapshot(arrangement)

    def statistics(self) -> Mapping[str, tuple[int, int]]:
        """(rows, bytes) of each arrangement; bytes of words, without indexes. Reads no state; a file listed twice counts once."""
        version = self.committed
        specs: Mapping[str, ArrangementDescription | ArrangementSpec] = {**version.program.arrangements, **version.circuit.arrangements}
        rows = self._rows(version, specs)
        return {name: (n, 8 * n * (specs[name].columns + specs[name].weights)) for name, n in rows.items()}

    def _rows(self, version: DurableVersion, arrangements: Iterable[str]) -> dict[str, int]:
        """How many rows each of the arrangements has, of which the circuit may not have all."""
        rows = dict.fromkeys(arrangements, 0)
        for arrangement, _, count in {(s.arrangement, s.file, s.rows) for s in version.manifest.segments()}:
            if arrangement in rows:
                rows[arrangement] += count
        return rows

    def fold(self) -> None:
        """See Runtime."""
        return  # every commit is a manifest

    @property
    def trim_is_due(self) -> bool:
        """See Runtime."""
        return self._has_many_strings

    def trim(self) -> None:
        """See Runtime."""
        if self._has_many_strings:
            version = self.committed
            self.strings.retain(() if version.last is None else shown_strings(version.circuit, version.last.changes))

    @property
    def _has_many_strings(self) -> bool:
        return self.strings.used_bytes > STRINGS_BYTES

    def settle(self) -> None:
        """Waits for the running merges and commits them in an epoch of their own."""
        version = self.committed
        if (change := adopted(Change(), self._merger.take(wait=True), version.manifest)).dropped:
            self._finish(version, replace(change, notes=noted(version.epoch, version.notes, change.notes)))

    def close(self) -> None:
        """Waits for the running merge, commits it if possible, and unlocks the state folder."""
        self._merger.stop()
        try:
            self.settle()
        except StateError as error:
            _log.warning("merges of the state folder %s are discarded: %s", self._state.root, error)
        finally:
            self._merger.close()
            self._state.close()
            self._files.keep(())

    def dictionaries(self) -> Iterable[Dictionary]:
        """Those of the last manifest, the newest first. A version may lag behind it, and a commit delete files of such a version."""
        manifest = self._state.manifest
        opened = (self._files[manifest.files[name]].dictionary() for name in sorted(manifest.files, reverse=True))
        return (dictionary for dictionary in opened if len(dictionary))

    def _run(
        self,
        version: DurableVersion,
        changes: Mapping[str, Any],
        tick: Tick,
        base: Change,
        unchanged: Collection[str] = (),
        *,
        installs: bool = False,
    ) -> TickResult:
        """version: the one that the tick starts from. unchanged: arrangements of views that are only filled again."""
        start = time.perf_counter()
        performed = self._perform(version, changes, tick)
        return self._commit_performed(version, performed, tick, base, start, unchanged, installs=installs)

    def _commit_performed(
        self,
        version: DurableVersion,
        performed: PerformedTick,
        tick: Tick,
        base: Change,
        start: float,
        unchanged: Collection[str] = (),
        *,
        installs: bool = False,
    ) -> TickResult:
        """start: when the tick began, by `perf_counter`. The rest is as in `_run`."""
        change = change_of(performed.outcomes, base, unchanged)
        views = self._view_changes(version.circuit, change, performed)
        counters = summed([outcome.counters for outcome in performed.outcomes])
        result = TickResult(version.circuit, tick.epoch, views, counters, time.perf_counter() - start, installs)
        self._commit(replace(version, last=result), change)
        result = replace(result, seconds=time.perf_counter() - start)  # of a small tick the commit is the larger part
        self._version = replace(self._version, last=result)
        return result

    def _view_changes(self, circuit: Dataflow, change: Change, performed: PerformedTick) -> dict[str, Batch]:
        """The change of each view that changed, its shards merged."""
        refs = {file.name: file for file in change.files}
        changes = {}
        for view, arrangement in circuit.views.items():
            if (batch := self._change_of(circuit, arrangement, change.views, refs, performed.changes)) is not None:
                changes[view] = batch
        return changes

    def _change_of(
        self,
        circuit: Dataflow,
        arrangement: str,
        segments: Iterable[SegmentRef],
        refs: Mapping[str, FileRef],
        batches: Mapping[tuple[int, str], Batch] | None = None,
    ) -> Batch | None:
        """The change of a view in an epoch; what is not in `batches` is read from the files."""
        parts = []
        for segment in sorted((s for s in segments if s.arrangement == arrangement), key=lambda s: s.shard):
            batch = None if batches is None else batches.get((segment.shard, arrangement))
            if batch is None:
                spec = circuit.arrangements[arrangement]
                batch = shaped(self._files[refs[segment.file]].change(arrangement), (spec.columns, spec.weights), segment.file)
            parts.append(batch)
        return merged if parts and len(merged := merge(parts)) else None

    def _commit(self, version: DurableVersion, change: Change) -> None:
        merges = self._merger.take(wait=self._crowded())
        self._finish(version, adopted(change, merges, self._state.manifest))

    def _crowded(self) -> bool:
        """Whether a running merge must be waited for."""
        return any(len(segments) >= CROWDED for shard_state in self._state.manifest.shard_states for segments in shard_state.values())

    def _finish(self, version: DurableVersion, change: Change) -> None:
        """Commits. version: with the result and definitions that are committed with the change."""
        if (identity := self.strings.identity) is not self._identity:
            change = replace(change, notes={**change.notes, STRINGS: identity.note()})
        with uninterrupted():
            try:
                manifest = self._state.commit(change)
                self._identity = identity
                self._version = version.after(version.circuit, manifest, self._files)
            except BaseException:
                self._interrupted = version
                raise
        self._merger.release()
        self._files.keep(manifest.files)
        self._merger.start()

    def _recovered(self) -> DurableVersion:
        """The last commit; the folder shows whether the interrupted one is real."""
        with self._recovering:
            if (version := self._interrupted) is not None:
                self._state.recover()
                manifest = self._state.manifest
                if manifest.epoch > self._version.epoch:
                    self._version = version.after(version.circuit, manifest, self._files)
                self._interrupted = None
            return self._version
