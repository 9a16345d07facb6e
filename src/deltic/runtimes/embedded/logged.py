"""The embedded runtime with a commit log: a tick is durable after one record of the log, and becomes files and a manifest later.

Ticks of several threads can share one sync: each is computed on top of the one before it, and none is shown before all are durable.

Readers of the folder see the manifests. So a thread folds the log within about a second, or, if folding takes long, so seldom that it takes
at most a tenth of the time; ticks go on meanwhile. Whatever commits a manifest (definitions, adopted merges, a tick of many rows) folds
first.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from queue import SimpleQueue
from threading import RLock, Thread
from typing import Final, NamedTuple

from deltic.circuit.nodes import Dataflow
from deltic.circuit.pending import PendingRows
from deltic.errors import StateError, WeightOverflow
from deltic.reentrant import ReentrantEvent
from deltic.runtimes import RETAINED_EPOCHS, TickResult
from deltic.runtimes.durable.interrupts import uninterrupted
from deltic.runtimes.durable.logged import LoggedArrangements, stored_part
from deltic.runtimes.durable.merges import adopted
from deltic.runtimes.durable.version import DurableVersion
from deltic.runtimes.durable.writing import appended_to
from deltic.runtimes.embedded.durable import DurableEmbedded
from deltic.runtimes.embedded.levels import view_changes
from deltic.runtimes.program import Notes, next_tick
from deltic.storage.commit_log import LARGEST_BYTES, CommitLog
from deltic.storage.dictionary import Dictionary
from deltic.storage.logged_epoch import LoggedEpoch, LoggedShard
from deltic.storage.manifest import Change
from deltic.storage.merging import TICK_ROWS
from deltic.storage.program import STRINGS
from deltic.trace.batch import Batch
from deltic.trace.counters import summed
from deltic.trace.identity import Identity
from deltic.trace.merge import cancels, merge

FOLD_AFTER_S: Final = 1.0
"""About how long an epoch is in the log alone."""
FOLD_SHARE: Final = 10
"""The time between two folds is at least this many times what the last one took, without what it wrote for readers that follow: each
epoch costs as much in any fold, so that waiting would only make them wait for more."""
FOLDING_THREAD: Final = "deltic-fold"
SHOWN_AFTER_S: Final = 0.001
"""About how long after a group is durable all its ticks are shown."""
FREED_AT_ONCE: Final = 100
"""Epochs."""
_logger = logging.getLogger(__name__)


class _Computed(NamedTuple):
    """A tick that is not durable yet: the version that it makes, and its record."""

    version: DurableVersion
    epoch: LoggedEpoch
    content: bytes
    identity: Identity


class _FoldBeside:
    """A fold beside the ticks that has not ended.

    written: set once all its files are, or it has failed. done: the former. version: the last one, above the files, with the epochs of the
    log up to `last`.
    """

    __slots__ = ("done", "last", "version", "written")

    def __init__(self) -> None:
        self.done, self.written = False, ReentrantEvent()
        self.version: DurableVersion | None = None
        self.last: LoggedEpoch | None = None


class LoggedEmbedded(DurableEmbedded):
    """See DurableEmbedded. Only for a folder on a file system."""

    def __init__(self, state: str, shards: int | None = None, *, retain: int = RETAINED_EPOCHS, threads: int = 1) -> None:
        super().__init__(state, shards, retain=retain, logs=True, threads=threads)
        self._log = CommitLog(self._state)
        self._turn = RLock()
        """Held while anything is committed, and while a fold begins or ends."""
        self._computed: list[_Computed] = []
        """The ticks of the group that is being computed."""
        self._durable: deque[DurableVersion] = deque()
        """The versions of a group that are durable and not shown yet."""
        self._is_due, self._closing = False, ReentrantEvent()
        self._wake: SimpleQueue[None] = SimpleQueue()
        """Wakes the thread that folds: an entry each time that something is due, and at the end."""
        self._fold_s, self._failure = 0.0, ""
        self._beside: _FoldBeside | None = None
        self._folding: Thread | None = None

    def install(
        self, circuit: Dataflow, *, dropped: Collection[str] = (), notes: Notes | None = None, definitions: object = None
    ) -> TickResult:
        """See Runtime."""
        with self._turn:
            self.fold()
            return super().install(circuit, dropped=dropped, notes=notes, definitions=definitions)

    def prepare(self, circuit: Dataflow, arrangements: Collection[str]) -> None:
        """See Runtime."""
        with self._turn:
            self.fold()
            super().prepare(circuit, arrangements)

    def declare(self, definitions: object) -> None:
        """See Runtime."""
        with self._turn:
            super().declare(definitions)

    def tick(self, changes: Mapping[str, PendingRows], notes: Notes | None = None, *, amends: bool = False, listed: int = 0) -> TickResult:
        """One tick; see Runtime."""
        with self.group():
            self._show_all()
            assert self.join(changes, notes, amends=amends, listed=listed)
            self.commit_group()
            result = self.committed.last
            assert result is not None
            return result

    def note(self, notes: Notes) -> None:
        """See Runtime."""
        with self._turn:
            self.fold()
            super().note(notes)

    @property
    def newest(self) -> DurableVersion:
        """See GroupingRuntime."""
        if self._computed:
            return self._computed[-1].version
        return self._durable[-1] if self._durable else self.committed

    @property
    def pending(self) -> bool:
        """See GroupingRuntime."""
        return bool(self._computed)

    @property
    def unshown(self) -> bool:
        """See GroupingRuntime."""
        return bool(self._durable)

    @contextmanager
    def group(self) -> Iterator[None]:
        """See GroupingRuntime."""
        with self._turn:
            try:
                yield
            finally:
                self._computed = []

    def join(self, changes: Mapping[str, PendingRows], notes: Notes | None = None, *, amends: bool = False, listed: int = 0) -> bool:
        """See GroupingRuntime."""
        start, version = time.perf_counter(), self.newest
        self._log.forget_after(version.epoch - len(self._computed))
        tick = next_tick(version.epoch, version.notes, notes or {}, amends=amends, listed=listed)
        appended, counters = self._ran(version, changes, tick)
        identity = self.strings.identity
        epoch = self._logged(version.circuit, tick.epoch, notes or {}, appended, identity)
        content = epoch.encoded()
        large = len(content) > LARGEST_BYTES or _cancels_files(version, appended)
        if large or not self._log.has_room([*(len(each.content) for each in self._computed), len(content)]):
            if self._computed:
                return False
            self.fold()
            version = self.committed
        if large:
            performed = self._written(version, appended, counters, tick)
            self._commit_performed(version, performed, tick, Change(notes=notes or {}), start)
            return True
        changed, counted = view_changes(version.circuit, appended), summed(counters)
        result = TickResult(version.circuit, tick.epoch, changed, counted, time.perf_counter() - start)
        self._computed.append(_Computed(version.logged(epoch, appended, self._state.oldest_at, result), epoch, content, identity))
        return True

    def commit_group(self) -> None:
        """See GroupingRuntime."""
        if not self._computed:
            return
        with uninterrupted():
            self._log.append([(each.epoch, each.content) for each in self._computed])
            first, *others = self._computed
            self._identity, self._version, self._computed = self._computed[-1].identity, first.version, []
            self._durable.extend(each.version for each in others)
        self._fold_soon()

    def show_next(self) -> bool:
        """See GroupingRuntime."""
        if not self._durable:
            return False
        self._version = self._durable[0]
        self._durable.popleft()
        return True

    def _show_all(self) -> None:
        while self.show_next():
            pass

    def changes_at(self, view: str, epoch: int) -> Batch | None:
        """See Runtime."""
        with self._turn:
            readable = self.committed.manifest.oldest <= epoch <= self.epoch
            logged = next((each for each in self._log.epochs if each.epoch == epoch), None) if readable else None
            if logged is None:
                return super().changes_at(view, epoch)
            arrangement = self.committed.circuit.views[view]
            appended = [each for shard in logged.shards for each in shard.appended if each.arrangement == arrangement]
            changes = [each.change for each in appended if each.change is not None]
            return merged if changes and len(merged := merge(changes)) else None

    def _rows(self, version: DurableVersion, arrangements: Iterable[str]) -> dict[str, int]:
        logged = [shard for shard in version.shards if isinstance(shard, LoggedArrangements)]
        return {name: rows + sum(shard.above(name) for shard in logged) for name, rows in super()._rows(version, arrangements).items()}

    def trim(self) -> None:
        """See Runtime. The strings of epochs in the log are in no file. If these cannot be folded, a later tick tries again."""
        if self._has_many_strings:
            with self._turn:
                try:
                    self.fold()
                except StateError as error:
                    self._fold_failed(error)
                    return
                if not self._durable:
                    super().trim()

    def settle(self) -> None:
        """See Durable. Above a log that is left to the next writer, merges cannot be committed; it makes them again."""
        with self._turn:
            if not self._log.is_left:
                self.fold()
                super().settle()

    def fold(self) -> None:
        """Turns the epochs of the log into manifests, which readers of the folder see. Raises StateError."""
        with self._turn:
            if self._durable:  # they are shown soon, by the next turn at the latest
                self._fold_soon()
                return
            self._end_fold_beside()
            version = self.committed
            self._log.forget_after(version.epoch)
            self._log.cut()
            if self._log.is_empty and not version.is_logged:  # an interrupted fold may have emptied the log alone
                return
            start = time.perf_counter()
            self._log.fold(self._files, self._adopting())
            self._version = self._above_files(version)
            self._after_fold()
            self._fold_s = time.perf_counter() - start

    def _fold_beside(self) -> None:
        """As `fold`, but other threads commit meanwhile: they wait for its beginning and its end alone."""
        with self._turn:
            if self._durable:
                self._fold_soon()
                return
            self._end_fold_beside()
            self._log.forget_after(self.epoch)
            if not self._log.begin_fold():
                return
            self._beside = fold = _FoldBeside()
        start, share = time.perf_counter(), 1.0
        try:
            share = self._log.fold_begun(self._files, self._adopting())
            fold.done = True
            with suppress(WeightOverflow):  # then it is met again where it is handled
                fold.version, fold.last = self._caught_up(self._above_files(self._version))
        finally:
            self._fold_s = share * (time.perf_counter() - start)
            fold.written.set()
            folded = self._end_once_shown(fold)
            while folded:  # not at once: that takes long, and meanwhile no other thread runs
                del folded[-FREED_AT_ONCE:]
        if not self._log.is_empty:  # what was committed meanwhile
            self._fold_soon()

    def _end_once_shown(self, fold: _FoldBeside) -> list[LoggedEpoch]:
        """Ends a fold beside the ticks, unless another thread has, once no tick is durable and not shown. Returns what the log had."""
        wait_s = SHOWN_AFTER_S
        while not self._closing.is_set():  # else `close` ends it
            with self._turn:
                if self._beside is fold and not self._durable:
                    return self._end_fold_beside()
                if self._beside is not fold:
                    break
            self._closing.wait(wait_s)
            wait_s = min(2 * wait_s, FOLD_AFTER_S)  # the thread that shows them may have been interrupted: then the next turn ends this
        return []

    def _end_fold_beside(self) -> list[LoggedEpoch]:
        """Ends the fold beside the ticks, if there is one: what it has written becomes the state below the log. In a turn.

        Returns the epochs that the log no longer has.
        """
        if (fold := self._beside) is None:
            return []
        fold.written.wait()
        version = self.committed
        self._log.forget_after(version.epoch)
        if not fold.done:
            self._beside = None
            return []
        folded = self._log.end_fold()
        try:
            after, _ = self._caught_up(self._prepared(fold) or self._above_files(version))
            self._version = replace(after, last=version.last, definitions=version.definitions)
            self._beside = None
        except WeightOverflow:  # the sum of what the log still has is beyond 64 bits, which that with the files was not
            self._beside = None
            self.fold()
            return folded
        self._state.collect()
        self._after_fold()
        return folded

    def _above_files(self, version: DurableVersion) -> DurableVersion:
        """A version as of the last manifest."""
        return version.after(version.circuit, self._state.manifest, self._files)

    def _prepared(self, fold: _FoldBeside) -> DurableVersion | None:
        """The version of a fold, unless the log has forgotten an epoch of it since."""
        if fold.version is None or fold.last is None:
            return fold.version
        there = self._log.after(fold.last.epoch - 1)[:1]
        return fold.version if there and there[0] is fold.last else None

    def _caught_up(self, version: DurableVersion) -> tuple[DurableVersion, LoggedEpoch | None]:
        """A version with the epochs of the log after it, and the last of these. Raises WeightOverflow."""
        epochs = self._log.after(version.epoch)
        for epoch in epochs:
            version = version.logged(epoch, _batches(epoch, self.shards), self._state.oldest_at)
        return version, epochs[-1] if epochs else None

    def _adopting(self) -> Callable[[Change], Change]:
        """What adds the merges that have been made to the first change of a fold."""
        merges = self._merger.take(wait=self._crowded())
        return lambda change: adopted(change, merges, self._state.manifest)

    def _after_fold(self) -> None:
        self._merger.release()
        self._files.keep(self._state.manifest.files)
        self._merger.start()

    def close(self) -> None:
        """See Durable. What cannot be folded, or is not since Ctrl-C ended that, stays in the log, for the next writer."""
        try:
            self._end_folding()
        finally:  # also after Ctrl-C in the wait
            with self._turn:
                self._show_all()
                try:
                    if not self._log.is_left:  # as it is if this is called again after Ctrl-C
                        self.fold()
                except StateError as error:
                    _logger.warning("the commit log of %s is left to its next writer: %s", self._state.root, error)
                finally:
                    self._log.close()
                    super().close()

    def _end_folding(self) -> None:
        self._closing.set()
        self._wake.put(None)
        if self._folding is not None:
            self._folding.join()

    def _logged(
        self, circuit: Dataflow, epoch: int, notes: Notes, appended: Sequence[Mapping[str, Batch]], identity: Identity
    ) -> LoggedEpoch:
        if identity is not self._identity:
            notes = {**notes, STRINGS: identity.note()}
        shards = []
        for shard, batches in enumerate(appended):
            if parts := tuple(appended_to(circuit, batches)):
                dictionary = Dictionary.naming([(batches[each.arrangement], each.strings) for each in parts], self.strings)
                shards.append(LoggedShard(shard, parts, dictionary))
        return LoggedEpoch(epoch, time.time_ns() // 1000, notes, tuple(shards))

    def _fold_soon(self) -> None:
        if self._folding is None:
            folding = Thread(target=self._fold_regularly, name=FOLDING_THREAD, daemon=True)
            try:
                with uninterrupted():  # `close` joins it, which must have started
                    folding.start()
                    self._folding = folding
            except RuntimeError as error:  # there may be no more threads; what is committed stays so, and the next commit tries again
                self._fold_failed(error)
                return
        if not self._is_due:
            self._is_due = True
            self._wake.put(None)

    def _fold_regularly(self) -> None:
        while True:
            self._wake.get()
            if self._closing.wait(max(FOLD_AFTER_S, FOLD_SHARE * self._fold_s)):
                return
            self._is_due = False  # what is committed from now on is due again, and wakes this thread again
            try:
                self._fold_beside()
                self._failure = ""
            except Exception as error:  # also MemoryError: readers would see nothing more
                self._fold_failed(error)
                self._fold_soon()

    def _fold_failed(self, error: Exception) -> None:
        """Warns, once of each failure: it is tried again and again."""
        if (failure := str(error) or type(error).__name__) != self._failure:
            self._failure = failure
            _logger.warning("the commit log of %s cannot be folded yet: %s", self._state.root, failure)


def _cancels_files(version: DurableVersion, appended: Sequence[Mapping[str, Batch]]) -> bool:
    """Whether a tick cancels many rows of the files, most of those of their arrangements: once written, they are not read any more."""
    if 2 * sum([batch.length for batches in appended for batch in batches.values()]) < TICK_ROWS:
        return False
    cancelled = 0
    for shard, batches in zip(version.shards, appended, strict=True):
        for name, batch in batches.items():
            rows = stored_part(shard)[name].rows
            cancelled += rows if cancels(batch, rows) else 0
    return cancelled >= TICK_ROWS


def _batches(epoch: LoggedEpoch, shards: int) -> list[dict[str, Batch]]:
    """What an epoch appends, by shard and arrangement."""
    batches: list[dict[str, Batch]] = [{} for _ in range(shards)]
    for shard in epoch.shards:
        batches[shard.shard] = {each.arrangement: each.batch for each in shard.appended if each.batch is not None}
    return batches
