"""Recursions in one kernel: output and state equal those of the operators of their scope, to the row and the iteration."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_recursion import random_ticks

from deltic.circuit import stage
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators import loop as loop_module
from deltic.circuit.operators.loop import Loop
from deltic.circuit.operators.recursion import RecursiveScope
from deltic.errors import Divergence, WeightOverflow
from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation
from deltic.runtimes.embedded import Embedded
from deltic.trace import fixpoint
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.guard import Guard
from deltic.trace.spine import Spine
from engines import Engine, embedded
from recursive_plans import TABLES, plans
from scope_kernels import by_steps, kept, operator_by_operator, scopes

PLANS = plans()
PLANS = {**PLANS, "few_doublings": replace(PLANS["non_linear_closure"], limit=1)}
LOOPS = ("closure", "left_closure", "reachable", "both_ends", "connected", "few_steps", "paths_and_loops")
DIVISION = 9
"""The argument of the kernel that says which share it runs."""
RECURSIONS = ("non_linear_closure", "same_generation", "even_and_odd", "semi_and_anti", "few_doublings")


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_found(name: str) -> None:
    assert scopes(embedded(TABLES, {"v": PLANS[name]}), Loop) == 1


@pytest.mark.parametrize("name", RECURSIONS)
def test_recursions_that_are_not_linear_are_found(name: str) -> None:
    assert scopes(embedded(TABLES, {"v": PLANS[name]}), RecursiveScope) == 1


@pytest.mark.parametrize("name", ["shortest", "nested_closure", "derivations", "count_inside", "first_rows"])
def test_other_scopes_run_operator_by_operator(name: str) -> None:
    engine = embedded(TABLES, {"v": PLANS[name]})
    assert scopes(engine, Loop) == scopes(engine, RecursiveScope) == 0


@pytest.mark.parametrize("name", [*LOOPS, *RECURSIONS])
def test_a_kernel_keeps_the_state_of_the_operators(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        loop, stepped, plain, mixed = (embedded(TABLES, {"v": PLANS[name]}) for _ in range(4))
        table = Relation()
        for expected in random_ticks(rng, 8, rng.choice((4, 7, 12))):
            tick = {"edges": [(edge, w) for edge, w in expected.items() if table.get(edge, 0) + w >= 0]}
            outcomes = [_tick(loop, tick)]
            with by_steps(monkeypatch):
                outcomes.append(_tick(stepped, tick))
            with operator_by_operator(monkeypatch):
                outcomes.append(_tick(plain, tick))
            if rng.random() < 0.5:
                outcomes.append(_tick(mixed, tick))
            else:
                with operator_by_operator(monkeypatch):
                    outcomes.append(_tick(mixed, tick))
            assert len(set(outcomes)) == 1, f"seed {seed}: {outcomes}"
            if not outcomes[0]:
                table += Relation(tick["edges"])
            assert loop.view("v") == evaluate(PLANS[name], {"edges": table})
            assert kept(loop) == kept(stepped) == kept(plain) == kept(mixed), f"seed {seed}"
            assert outcomes[0] or _counts_of(loop) == _counts_of(stepped)


def _tick(engine: Engine, tick: dict[str, list[tuple[tuple[int, int], int]]]) -> str:
    """The errors."""
    try:
        engine.tick(tick)
    except Divergence as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("name", "passes_on"), [(name, name in ("closure", "left_closure", "few_steps", "paths_and_loops")) for name in LOOPS]
)
@pytest.mark.parametrize("most", [0, 5])
def test_shares_of_a_tick_keep_the_state_of_one(name: str, passes_on: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """most: rows before a tick is divided. A recursion that passes no word on is never divided."""
    monkeypatch.setattr(stage, "CORE", "python")
    divisions: list[tuple[int, int]] = []
    kernel = fixpoint.kernel.fixpoint

    def noted(*given: Any) -> Any:
        division = given[DIVISION]
        divisions.append((int(division[fixpoint.kernel.SHARE]), int(division[fixpoint.kernel.SHARES])))
        return kernel(*given)

    monkeypatch.setattr(fixpoint, "DIVIDED_ROWS", most)
    monkeypatch.setattr(fixpoint.kernel, "fixpoint", noted)
    for seed in range(6):
        rng = random.Random(seed)
        alone, *divided = (embedded(TABLES, {"v": PLANS[name]}, shards, threads=threads) for shards, threads in ((1, 1), (1, 3), (3, 2)))
        table = Relation()
        for expected in random_ticks(rng, 8, rng.choice((4, 7, 12))):
            tick = {"edges": [(edge, w) for edge, w in expected.items() if table.get(edge, 0) + w >= 0]}
            error = _tick(alone, tick)
            assert _tick(divided[0], tick) == error and bool(_tick(divided[1], tick)) == bool(error), f"seed {seed}"
            if not error:
                table += Relation(tick["edges"])
                assert _rows_of(divided[0]) == _rows_of(alone)
            assert [engine.view("v") for engine in divided] == [evaluate(PLANS[name], {"edges": table})] * 2
            assert kept(divided[0]) == kept(alone), f"seed {seed}"
    counts = [1, *(fixpoint.SHARES * threads for threads in (2, 3))] if passes_on else [1]
    assert set(divisions) == {(share, shares) for shares in counts for share in range(shares)}


def _counts_of(engine: Engine) -> dict[str, Counters]:
    """By node, all that the last tick has counted, without the times."""
    assert engine.runtime.committed.last is not None
    return {name: replace(each, seconds=0.0) for name, each in engine.runtime.committed.last.counters.items()}


def _rows_of(engine: Engine) -> dict[str, tuple[int, int]]:
    """By node, the rows that the last tick has brought it, and those that it has passed on."""
    assert engine.runtime.committed.last is not None
    return {name: (each.rows_in, each.rows_out) for name, each in engine.runtime.committed.last.counters.items()}


@pytest.mark.parametrize("name", ["closure", "non_linear_closure"])
def test_a_kernel_with_many_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    loop, plain = (embedded(TABLES, {"v": PLANS[name]}) for _ in range(2))
    ends = np.unique(np.sort(rng.integers(0, 300, (450, 2)), axis=1), axis=0)
    edges = [(int(a), int(b)) for a, b in ends]
    for tick in (
        [(e, 1) for e in edges],
        [(e, -1) for e in edges[100:200]],
        [(e, 1) for e in edges[150:180]],
        [(e, -1) for e in edges[:100]],
    ):
        loop.tick({"edges": tick})
        with operator_by_operator(monkeypatch):
            plain.tick({"edges": tick})
        assert kept(loop) == kept(plain)


@pytest.mark.parametrize(
    ("name", "kind", "core"),
    [(*scope, core) for scope in (("closure", Loop), ("non_linear_closure", RecursiveScope)) for core in ("native", "python")],
)
@pytest.mark.parametrize(("at_once", "runs"), [(1 << 26, 1), (0, 0)])
def test_mapped_state_is_verified_before_it_is_read(
    name: str, kind: type[Loop | RecursiveScope], core: str, at_once: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """runs: calls of `run` while it must be verified. Before and after that, the native core runs an instruction."""
    native = core == "native"
    monkeypatch.setattr(stage, "CORE", core)
    done: list[Loop | RecursiveScope] = []
    run = kind.run

    def noted(self: Any, inputs: Sequence[Delta], limit: int, context: Context) -> Delta:
        done.append(self)
        return run(self, inputs, limit, context)

    monkeypatch.setattr(kind, "run", noted)
    monkeypatch.setattr(loop_module, "VERIFIED_AT_ONCE", at_once)
    engine = embedded(TABLES, {"v": PLANS[name]})
    done.clear()
    engine.tick({"edges": [((i, i + 1), 1) for i in range(20)]})
    assert len(done) == (0 if native else 1)
    done.clear()
    assert isinstance(engine.runtime, Embedded)
    state, read = engine.runtime.committed.state[0], []
    assert isinstance(state, dict)
    for name, spine in state.items():
        state[name] = mapped(spine.scan(Counters()), read)
    engine.tick({"edges": [((9, 10), -1)]})
    assert sum(weight for _, weight in engine.view("v").pairs()) == 45 + 55
    assert read and len(done) == runs
    monkeypatch.setattr("deltic.trace.guard.OFTEN", 0)
    for tick in ([((9, 10), 1)], [((9, 10), -1)]):  # a state that is often read is verified to its end
        engine.tick({"edges": tick})
    assert sum(weight for _, weight in engine.view("v").pairs()) == 45 + 55
    assert len(done) == runs + (0 if native else 2)


def mapped(batch: Batch, read: list[int]) -> Spine:
    """The batch as if mapped from a file, recording the pages that are verified."""
    guard = Guard(batch.columns, batch.index, len(batch), read.extend, read.extend)
    batch = Batch.trusted(batch.columns, batch.weights, batch.index, guard=guard)
    spine = Spine(len(batch.columns), len(batch.weights)).appended(batch)
    spine.guards = (guard,)
    return spine


def test_a_weight_beyond_64_bits_is_an_error() -> None:
    engine = embedded(TABLES, {"v": PLANS["closure"]})
    engine.tick({"edges": [((0, 1), 2**62), ((1, 2), 2**62)]})
    with pytest.raises(WeightOverflow):
        engine.tick({"edges": [((2, 3), 2**62), ((0, 2), 2**62), ((0, 3), 2**62), ((1, 3), 2**62)]})


def test_a_change_touches_only_affected_rows() -> None:
    engine = embedded(TABLES, {"v": PLANS["reachable"]})
    side = 20_000
    engine.tick({"edges": [((0, 1), 1), *(((i, i + 1), 1) for i in range(2, side))]})
    result = engine.tick({"edges": [((1, 2), 1), ((100, 101), -1)]})
    affected = 99
    inside = [c for name, c in result.counters.items() if "." in name]
    assert len(result.changes["v"]) == affected
    assert 0 < sum(c.touched for c in inside) < 40 * affected
