"""Random programs of cyclic joins on the embedded runtime: whole ticks and row by row, on one shard and three, and from state reopened."""

from __future__ import annotations

from pathlib import Path

import pytest
from cyclic_programs import cyclic
from engines import durable, embedded, restarts, run
from programs import applied, empty, expected

from deltic.circuit.operators.multiway import MultiwayJoin
from deltic.optimizer import optimize
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import MultiwayJoin as MultiwayJoinPlan
from deltic.plan.walk import nodes
from deltic.runtimes.embedded import DurableEmbedded

FAST = 60
FEW = 16
SLOW = 2_000


def check(seed: int, *, row_by_row: bool, shards: int) -> int:
    """How many multiway joins the circuit has."""
    program = cyclic(seed)
    engine = embedded(program.tables, program.views, shards)
    run(engine, program, expected(program), row_by_row=row_by_row)
    return sum(isinstance(node.operator, MultiwayJoin) for node in engine.circuit.nodes)


def check_durable(seed: int, folder: Path) -> None:
    program = cyclic(seed)
    state = folder / f"state{seed}"

    def reopened(shards: int | None) -> DurableEmbedded:
        return DurableEmbedded(str(state), shards if seed % 2 else None)

    engine = durable(program.tables, program.views, state, 1 + seed % 3)
    try:
        run(engine, program, expected(program), restarts=restarts(seed, len(program.ticks), reopened))
    finally:
        engine.runtime.close()


def test_cyclic_programs() -> None:
    joins = sum(check(seed, row_by_row=seed % 4 == 0, shards=1 + 2 * (seed % 2)) for seed in range(FAST))
    assert joins >= FAST, joins


def test_cyclic_programs_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(FEW):
        check_durable(1000 + seed, tmp_path)


@pytest.mark.slow
def test_many_cyclic_programs() -> None:
    for seed in range(10_000, 10_000 + SLOW):
        check(seed, row_by_row=seed % 3 == 0, shards=1 + 2 * (seed % 2))


@pytest.mark.slow
def test_many_cyclic_programs_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(20_000, 20_000 + SLOW // 5):
        check_durable(seed, tmp_path)


def test_the_joins_of_cyclic_programs_have_rows() -> None:
    found = []
    for seed in range(40):
        program = cyclic(seed)
        tables = applied(empty(program.tables), program.ticks[0])
        joins = (node for plan in program.views.values() for node in nodes(optimize(plan)) if isinstance(node, MultiwayJoinPlan))
        found += [len(evaluate(join, tables)) for join in joins]
    assert sum(rows > 0 for rows in found) > 0.7 * len(found) > 28, found
