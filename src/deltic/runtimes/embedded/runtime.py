"""Runs a circuit in this process: each level on each shard, then one commit.

Until the commit nothing of the state is touched, so a tick that fails has not happened. Readers on other threads take snapshots
under the lock that a commit holds: they see an epoch as a whole.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Mapping
from threading import Lock
from typing import Any

from deltic.circuit.nodes import Circuit
from deltic.circuit.operator import Delta, Tick
from deltic.errors import StateError
from deltic.runtimes import TickResult
from deltic.runtimes.embedded.levels import routed, run_levels
from deltic.runtimes.program import EMPTY, Notes, applied, backfill, described, next_tick
from deltic.trace.batch import Batch
from deltic.trace.counters import summed
from deltic.trace.identity import Identity
from deltic.trace.merge import merge
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

State = list[dict[str, Spine]]


class Embedded:
    """shards: how many hash ranges the state is split into; one is fastest here."""

    def __init__(self, shards: int = 1) -> None:
        assert shards >= 1
        self.shards = shards
        self.strings = StringTable(Identity.drawn())
        self._circuit = Circuit.empty()
        self._state: State = [{} for _ in range(shards)]
        self._epoch = 0
        self._notes: Notes = {**EMPTY, "id": secrets.token_hex(16)}
        self._changes: tuple[int, Mapping[str, Batch]] = (0, {})
        self._lock = Lock()

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def notes(self) -> Notes:
        return self._notes

    def install(self, circuit: Circuit, *, dropped: Collection[str] = (), notes: Notes | None = None) -> TickResult:
        """A new program; see Runtime. O(content) for what has to be filled, O(1) for the rest."""
        notes = {**(notes or {}), **described(circuit, self._notes, dropped)}
        fresh = frozenset(circuit.arrangements) - frozenset(self._state[0])
        state: State = [
            {
                name: shard[name] if name in shard else Spine(entry["columns"], entry["weights"])
                for name, entry in notes["arrangements"].items()
            }
            for shard in self._state
        ]
        if not fresh:
            with self._lock:
                self._circuit, self._state, self._notes = circuit, state, applied(self._notes, notes)
            return TickResult(self._epoch, {}, {}, 0.0)
        tick = backfill(self._epoch, self._notes, notes, fresh)
        return self._run(circuit, state, tick, [{} for _ in range(self.shards)], notes)

    def tick(self, changes: Mapping[str, Rows], notes: Mapping[str, Any] | None = None) -> TickResult:
        """One tick; see Runtime."""
        arrived = routed(self._circuit, changes, self.shards)
        tick = next_tick(self._epoch, self._notes, notes or {})
        return self._run(self._circuit, self._state, tick, arrived, notes or {})

    def _run(self, circuit: Circuit, state: State, tick: Tick, arrived: list[dict[str, Delta]], notes: Notes) -> TickResult:
        start = time.perf_counter()
        appended, counters = run_levels(circuit, state, self.strings, arrived, tick)
        changes = _view_changes(circuit, appended)
        self._commit(circuit, state, appended, notes)
        self._changes = (self._epoch, changes)
        return TickResult(self._epoch, changes, summed(counters), time.perf_counter() - start)

    def _commit(self, circuit: Circuit, state: State, appended: list[dict[str, Batch]], notes: Notes) -> None:
        with self._lock:
            for shard, batches in zip(state, appended, strict=True):
                for name, batch in batches.items():
                    shard[name].append(batch)
            self._circuit, self._state = circuit, state
            self._notes = applied(self._notes, notes) if notes else self._notes
            self._epoch += 1

    def changes_at(self, view: str, epoch: int) -> Batch | None:
        """See Runtime; in memory only the last epoch's change is kept."""
        last, changes = self._changes
        if epoch != last:
            raise StateError(
                f"the changes of epoch {epoch} are not kept",
                expected=f"epoch {last}, the last one" if last else "an epoch that was committed",
                remedy="give the session a state folder, which keeps the changes of the last epochs",
            )
        return changes.get(view)

    def snapshot(self, arrangement: str) -> list[Spine]:
        with self._lock:
            return [shard[arrangement].snapshot() for shard in self._state]

    def statistics(self) -> Mapping[str, tuple[int, int]]:
        with self._lock:
            return {
                name: (sum(s[name].rows for s in self._state), sum(s[name].nbytes for s in self._state))
                for name in self._circuit.arrangements
            }

    def trim(self) -> None:
        """Nothing: there is no other place to find a string."""

    def close(self) -> None:
        self._state = [{} for _ in range(self.shards)]


def _view_changes(circuit: Circuit, appended: list[dict[str, Batch]]) -> dict[str, Batch]:
    """The change of each view that changed, its shards merged."""
    changes = {}
    for view, arrangement in circuit.views.items():
        parts = [batches[arrangement] for batches in appended if arrangement in batches]
        if parts and len(merged := parts[0] if len(parts) == 1 else merge(parts)):
            changes[view] = merged
    return changes
