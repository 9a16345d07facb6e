"""Test support: runs random cases on the engines and compares every view after every tick with the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

import numpy as np
import pytest

from deltic.circuit.nodes import Dataflow
from deltic.circuit.pending import PendingRows
from deltic.lowering import lower
from deltic.optimizer import optimize
from deltic.plan.nodes import Plan
from deltic.plan.relation import Relation
from deltic.runtimes import Runtime, TickResult
from deltic.runtimes.embedded import DurableEmbedded, Embedded, LoggedEmbedded
from deltic.schema import Op, Schema, TableSchema
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.encoding import decode, encode_rows
from deltic.trace.merge import merge
from deltic.types import frozen_list
from programs import Case, Outcome, expected

Row = tuple[Any, ...]
Changes = Mapping[str, Iterable[tuple[Row, int]]]


class Engine:
    """Plans on a runtime, fed with weighted rows."""

    def __init__(self, runtime: Runtime, tables: Mapping[str, TableSchema], views: Mapping[str, Plan]) -> None:
        self.runtime, self.tables = runtime, tables
        self.plans = {name: optimize(plan) for name, plan in views.items()}
        self.circuit: Dataflow = lower(self.plans, tables, runtime.shards)
        self.runtime.install(self.circuit)

    def restart(self, reopened: Callable[[], Runtime]) -> None:
        """Closes the runtime, or every other time leaves its commit log as a kill does, and continues with a newly opened one."""
        if isinstance(self.runtime, LoggedEmbedded) and self.runtime.epoch % 2:
            abandon(self.runtime)
        else:
            self.runtime.close()
        self.runtime = reopened()
        self.circuit = lower(self.plans, self.tables, self.runtime.shards)
        result = self.runtime.install(self.circuit)
        assert not result.changes, "a view changed by a restart"

    def tick(self, changes: Changes, notes: Mapping[str, Any] | None = None) -> TickResult:
        """Weighted rows for each table, as one tick, with notes."""
        pending = {}
        for name, rows in changes.items():
            weighted = list(rows)
            if not weighted:
                continue
            schema = self.tables[name].schema
            words = encode_rows([row for row, _ in weighted], schema, self.runtime.strings)
            n = len(weighted)
            weights = np.array([w for _, w in weighted], np.int64)
            pending[name] = PendingRows.of(words, np.full(n, Op.WEIGHT, np.int64), np.arange(n), weights)
        return self.runtime.tick(pending, notes)

    def view(self, name: str) -> Relation:
        """The view's content."""
        spec = self.circuit.arrangements[self.circuit.views[name]]
        if spec.ephemeral:
            change = self.runtime.changes_at(name, self.runtime.epoch)
            return Relation() if change is None else self._decoded(name, change)
        whole = merge([spine.scan(Counters()) for spine in self.runtime.snapshot(spec.id)])
        return self._decoded(name, whole)

    def change(self, name: str, result: TickResult) -> Relation:
        """The view's change in a tick."""
        batch = result.changes.get(name)
        return Relation() if batch is None else self._decoded(name, batch)

    def _decoded(self, name: str, batch: Batch) -> Relation:
        spec = self.circuit.arrangements[self.circuit.views[name]]
        stored: Schema = spec.shape.schema
        layout = spec.shape.layout
        columns = [frozen_list(decode(batch.columns[s], f, self.runtime.strings)) for s, f in zip(layout.slices, stored, strict=True)]
        order = [spec.order.index(i) for i in range(len(stored))]
        rows = zip(*(columns[i] for i in order), strict=True) if columns else iter([()] * len(batch))
        return Relation(zip(rows, batch.weights[0].tolist(), strict=True))


def embedded(tables: Mapping[str, TableSchema], views: Mapping[str, Plan], shards: int = 1, threads: int = 1) -> Engine:
    """The case on the embedded runtime."""
    return Engine(Embedded(shards, threads), tables, views)


def durable(tables: Mapping[str, TableSchema], views: Mapping[str, Plan], folder: Path, shards: int = 1) -> Engine:
    """The case on the embedded runtime with its state in a folder."""
    return Engine(DurableEmbedded(str(folder), shards), tables, views)


def abandon(runtime: LoggedEmbedded) -> None:
    """Ends a runtime as a kill does: what is in its commit log stays there."""
    runtime._end_folding()
    runtime._merger.stop()
    runtime._merger.close()
    runtime._state.folder.unlock()


Restarts = Mapping[int, Callable[[], Runtime]]
"""Number of a tick → the runtime to open before it."""


def restarts(seed: int, ticks: int, *openers: Callable[[int | None], Runtime]) -> Restarts:
    """At random ticks one of the `openers`, with the same number of shards (None) or another."""
    rng = Random(f"restarts {seed}")
    chosen = {number: (rng.choice(openers), rng.choice((None, None, 1, 2, 3, 4, 5, 8))) for number in range(ticks) if rng.random() < 0.5}
    return {number: lambda opener=opener, shards=shards: opener(shards) for number, (opener, shards) in chosen.items()}


def run(engine: Engine, program: Case, outcomes: Sequence[Outcome], *, row_by_row: bool = False, restarts: Restarts | None = None) -> None:
    """Feeds the case's ticks and asserts, after each, that every view and its change equal the oracle's, or that both fail alike."""
    before = {name: engine.view(name) for name in program.views}
    for number, (tick, outcome) in enumerate(zip(program.ticks, outcomes, strict=True)):
        where = f"{program}, tick {number}"
        if restarts and number in restarts:
            engine.restart(restarts[number])
            for name in program.views:
                assert engine.view(name) == before[name], f"{where}, {name}: not as before the restart"
        if not isinstance(outcome, dict):
            _assert_fails(engine, tick, outcome, where)
            outcome = before
        elif row_by_row:
            for part in single_rows(tick):
                engine.tick(part)
        else:
            result = engine.tick(tick)
            for name in program.views:
                assert engine.change(name, result) == outcome[name] - before[name], f"{where}: change of {name}"
        for name in program.views:
            actual = engine.view(name)
            assert actual == outcome[name], f"{where}, {name}: more {actual - outcome[name]}"
        before = outcome


def _assert_fails(engine: Engine, tick: Changes, kind: type[Exception], where: str) -> None:
    try:
        engine.tick(tick)
    except kind:
        return
    raise AssertionError(f"{where}: no {kind.__name__}")


def single_rows(tick: Changes) -> Iterator[Changes]:
    """The tick's changes one by one, in order."""
    for name, rows in tick.items():
        for row, weight in rows:
            yield {name: [(row, weight)]}


def checked_durable(program: Case, folder: Path) -> tuple[list[Outcome], bool]:
    """With restarts at random ticks, in every second case with another number of shards; every third case merges in every tick.

    Also says whether it was restarted after a tick.
    """
    seed, outcomes = program.seed, expected(program)
    state = folder / f"state{seed}"

    def reopened(shards: int | None) -> DurableEmbedded:
        return DurableEmbedded(str(state), shards if seed % 2 else None)

    def logged(shards: int | None) -> DurableEmbedded:
        return LoggedEmbedded(str(state), shards if seed % 2 else None)

    with pytest.MonkeyPatch.context() as patched:
        if seed % 3 == 0:
            patched.setattr("deltic.storage.merging.RATIO", 2)
            patched.setattr("deltic.storage.merging.BASE_ROWS", 2)
            patched.setattr("deltic.storage.merging.TICK_ROWS", 16)
        engine = durable(program.tables, program.views, state, 1 + seed % 3)
        try:
            openers = restarts(seed, len(program.ticks), reopened, logged)
            run(engine, program, outcomes, restarts=openers)
        finally:
            engine.runtime.close()
            rmtree(state)
    return outcomes, any(number > 0 for number in openers)
