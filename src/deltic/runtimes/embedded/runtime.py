"""Runs a circuit in this process: each level on each shard, then one commit.

A tick first builds the next version beside the current one: the batches it appends, every arrangement's next spine, its result. The
commit then replaces one reference. So a tick in which anything is raised (a user's error, MemoryError, Ctrl-C) has not happened, and
readers on other threads, which take no lock, see whole epochs.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operator import Delta, Tick
from deltic.circuit.pending import PendingRows
from deltic.errors import StateError
from deltic.runtimes import TickResult
from deltic.runtimes.embedded.levels import routed, run_levels, view_changes
from deltic.runtimes.program import Notes, applied, backfill, described, next_tick, noted, shown_strings, with_prepared
from deltic.storage.program import EMPTY, ArrangementDescription, ProgramDescription
from deltic.trace.background import background
from deltic.trace.batch import Batch
from deltic.trace.counters import summed
from deltic.trace.entries import Words
from deltic.trace.identity import Identity
from deltic.trace.merge import Merge
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable
from deltic.trace.workers import Workers

COLLECT_BYTES: Final = 1 << 20
"""Strings in memory are not collected below this size."""

State = tuple[Mapping[str, Spine], ...]
"""The arrangements of each shard."""


class MemoryVersion(NamedTuple):
    """See Committed. changes: of the views' arrangements in the tick that made the epoch. program: the description in the notes."""

    circuit: Dataflow
    state: State
    epoch: int
    notes: Notes
    program: ProgramDescription
    changes: Mapping[str, Batch]
    last: TickResult | None = None
    definitions: object = None

    def snapshot(self, arrangement: str) -> list[Spine]:
        return [shard[arrangement] for shard in self.state]

    def after(self, tick: TickResult, state: State, notes: Notes, program: ProgramDescription) -> MemoryVersion:
        """The next epoch."""
        changes = {self.circuit.views[view]: change for view, change in tick.changes.items()}
        noted = applied(self.notes, notes) if notes else self.notes
        return MemoryVersion(self.circuit, state, tick.epoch, noted, program, changes, tick, self.definitions)


class Embedded:
    """shards: how many hash ranges the state is split into; one is fastest for small ticks. threads: that compute large ticks."""

    def __init__(self, shards: int = 1, threads: int = 1) -> None:
        assert shards >= 1
        self.workers = Workers(threads)
        self.shards = shards
        self.strings = StringTable(Identity.drawn())
        notes = {**EMPTY, "id": secrets.token_hex(16)}
        self._collect_bytes = COLLECT_BYTES
        self.committed = MemoryVersion(Dataflow.empty(), tuple({} for _ in range(shards)), 0, notes, ProgramDescription.of(notes), {})

    @property
    def root(self) -> None:
        """See Runtime."""
        return None

    @property
    def inherited(self) -> bool:
        """See Runtime. The memory of a process is its own."""
        return False

    def check_process(self) -> None:
        """See Runtime."""

    @property
    def epoch(self) -> int:
        return self.committed.epoch

    @property
    def notes(self) -> Notes:
        return self.committed.notes

    def install(
        self, circuit: Dataflow, *, dropped: Collection[str] = (), notes: Notes | None = None, definitions: object = None
    ) -> TickResult:
        """A new program; see Runtime. O(content) for what must be filled, O(1) for the rest."""
        before = self.committed
        program = described(circuit, before.program, dropped).after(notes or {})
        notes = {**(notes or {}), **program.notes()}
        fresh = frozenset(circuit.arrangements) - frozenset(before.state[0])
        state = tuple(_kept(shard, program.arrangements) for shard in before.state)
        installed = before._replace(circuit=circuit, state=state, definitions=definitions)
        if fresh:
            tick = backfill(before.epoch, before.notes, notes, fresh)
            return self._run(installed, tick, [{} for _ in range(self.shards)], notes, program, installs=True)
        result = TickResult.of_definitions(circuit, before.epoch, before.last)
        self.committed = installed._replace(notes=applied(before.notes, notes), program=program, last=result)
        return result

    def prepare(self, circuit: Dataflow, arrangements: Collection[str]) -> None:
        """See Runtime. O(content)."""
        before = self.committed
        program = with_prepared(circuit, before.program)
        empty = {name: Spine(program.arrangements[name].columns, program.arrangements[name].weights) for name in arrangements}
        version = before._replace(circuit=circuit, state=tuple({**shard, **empty} for shard in before.state))
        notes = {"arrangements": program.notes()["arrangements"]}
        tick = backfill(before.epoch, before.notes, {}, frozenset(arrangements))
        self._run(version, tick, [{} for _ in range(self.shards)], notes, program, installs=True)

    def declare(self, definitions: object) -> None:
        """See Runtime."""
        self.committed = self.committed._replace(definitions=definitions)

    def tick(
        self, changes: Mapping[str, PendingRows], notes: Mapping[str, Any] | None = None, *, amends: bool = False, listed: int = 0
    ) -> TickResult:
        """One tick; see Runtime."""
        version = self.committed
        arrived = routed(version.circuit, changes, self.shards, self.workers, frees=True)
        tick = next_tick(version.epoch, version.notes, notes or {}, amends=amends, listed=listed)
        return self._run(version, tick, arrived, notes or {}, version.program.after(notes or {}))

    def note(self, notes: Notes) -> None:
        """See Runtime."""
        version = self.committed
        changed = noted(version.epoch, version.notes, notes)
        after, program = applied(version.notes, changed), version.program.after(changed)
        self.committed = version._replace(epoch=version.epoch + 1, notes=after, program=program, changes={})

    def _run(
        self,
        version: MemoryVersion,
        tick: Tick,
        arrived: list[dict[str, Delta]],
        notes: Notes,
        program: ProgramDescription,
        *,
        installs: bool = False,
    ) -> TickResult:
        """version: the one that the tick starts from."""
        start = time.perf_counter()
        appended, counters = run_levels(version.circuit, version.state, self.strings, arrived, tick, self.workers)
        circuit, ephemeral = version.circuit, version.circuit.ephemeral
        changes = view_changes(circuit, appended)
        merges: list[Collection[Merge]] = []
        state = tuple([_grown(shard, batches, ephemeral, merges) for shard, batches in zip(version.state, appended, strict=True)])
        result = TickResult(circuit, tick.epoch, changes, summed(counters), time.perf_counter() - start, installs)
        self.committed = version.after(result, state, notes, program)
        for running in merges:
            background.offer(running)
        return result

    def changes_at(self, view: str, epoch: int) -> Batch | None:
        """See Runtime; in memory only the change of the last epoch is retained."""
        version = self.committed
        if epoch != version.epoch:
            raise StateError(
                f"the changes of epoch {epoch} are not retained",
                expected=f"epoch {version.epoch}, the last one" if version.epoch else "an epoch that was committed",
                remedy="give the session a state folder, which retains the changes of the last epochs",
            )
        return version.changes.get(version.circuit.views[view])

    def snapshot(self, arrangement: str) -> list[Spine]:
        """See Committed."""
        return self.committed.snapshot(arrangement)

    def statistics(self) -> Mapping[str, tuple[int, int]]:
        version = self.committed
        return {
            name: (sum(s[name].rows for s in version.state), sum(s[name].nbytes for s in version.state))
            for name in version.circuit.arrangements
        }

    def fold(self) -> None:
        """See Runtime. There is no folder."""

    @property
    def trim_is_due(self) -> bool:
        """See Runtime."""
        return self.strings.used_bytes >= self._collect_bytes

    def trim(self) -> None:
        """See Runtime. O(state), each time the strings take twice the memory of those in use before; drops a quarter or more, or none."""
        if self.trim_is_due:
            least = self.strings.used_bytes // 4
            self._collect_bytes = max(COLLECT_BYTES, 2 * self.strings.retain(_live(self.committed), least))

    def close(self) -> None:
        self.committed = self.committed._replace(state=tuple({} for _ in range(self.shards)))


def _kept(shard: Mapping[str, Spine], described: Mapping[str, ArrangementDescription]) -> dict[str, Spine]:
    """The arrangements of a new program: existing ones, and new empty ones."""
    return {name: shard[name] if name in shard else Spine(entry.columns, entry.weights) for name, entry in described.items()}


def _grown(
    shard: Mapping[str, Spine], batches: Mapping[str, Batch], ephemeral: Collection[str], merges: list[Collection[Merge]]
) -> Mapping[str, Spine]:
    """The next versions of a shard's arrangements. merges: gets the running merges of those that are appended to."""
    grown = {**shard}
    for name, batch in batches.items():
        if name not in ephemeral:
            spine = grown[name] = shard[name].appended(batch)
            if spine.merges:
                merges.append(spine.merges)
    return grown


def _live(version: MemoryVersion) -> Iterator[Words]:
    """The string ids in the version's state and changes, and all words of arrangements that are not in its circuit."""
    if version.last is not None:
        yield from shown_strings(version.circuit, version.last.changes)
    specs = version.circuit.arrangements
    held = [(name, batch) for shard in version.state for name, spine in shard.items() for batch in spine.batches]
    for name, batch in (*held, *version.changes.items()):
        for place in specs[name].strings if name in specs else range(len(batch.columns)):
            yield batch.columns[place]
