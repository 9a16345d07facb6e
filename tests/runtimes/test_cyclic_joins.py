"""Random programs of cyclic joins on the embedded runtime: whole ticks and row by row, on one shard and three, and from state reopened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from cyclic_programs import cyclic, recursive
from engines import durable, embedded, restarts, run
from programs import Case, applied, empty, expected

from deltic.circuit.nodes import Node
from deltic.circuit.operators.child import Child
from deltic.optimizer import optimize
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import MultiwayJoin
from deltic.plan.walk import nodes
from deltic.runtimes.embedded import DurableEmbedded

FAST = 24
FEW = 6
SLOW = 2_000


def check(program: Case, *, row_by_row: bool, shards: int) -> int:
    """How many multiway joins the circuit has."""
    engine = embedded(program.tables, program.views, shards)
    run(engine, program, expected(program), row_by_row=row_by_row)
    return sum(node.operator.name == "multiway_join" for node in every(engine.circuit.nodes))


def every(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes, and those of their scopes."""
    for node in nodes:
        yield node
        if isinstance(node.operator, Child):
            yield from every(node.operator.nodes)


def check_durable(program: Case, folder: Path) -> None:
    seed = program.seed
    state = folder / f"state{seed}"

    def reopened(shards: int | None) -> DurableEmbedded:
        return DurableEmbedded(str(state), shards if seed % 2 else None)

    engine = durable(program.tables, program.views, state, 1 + seed % 3)
    try:
        run(engine, program, expected(program), restarts=restarts(seed, len(program.ticks), reopened))
    finally:
        engine.runtime.close()


def test_cyclic_programs() -> None:
    joins = sum(check(cyclic(seed), row_by_row=seed % 4 == 0, shards=1 + 2 * (seed % 2)) for seed in range(FAST))
    assert joins >= FAST, joins


def test_cyclic_programs_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(FEW):
        check_durable(cyclic(1000 + seed), tmp_path)


def test_cycles_in_recursions() -> None:
    joins = sum(check(recursive(seed), row_by_row=seed % 4 == 0, shards=1 + 2 * (seed % 2)) for seed in range(FAST))
    assert joins >= FAST / 2, joins


def test_cycles_in_recursions_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(FEW):
        check_durable(recursive(1000 + seed), tmp_path)


@pytest.mark.slow
def test_many_cycles_in_recursions() -> None:
    for seed in range(10_000, 10_000 + SLOW):
        check(recursive(seed), row_by_row=seed % 3 == 0, shards=1 + 2 * (seed % 2))


@pytest.mark.slow
def test_many_cyclic_programs() -> None:
    for seed in range(10_000, 10_000 + SLOW):
        check(cyclic(seed), row_by_row=seed % 3 == 0, shards=1 + 2 * (seed % 2))


@pytest.mark.slow
def test_many_cyclic_programs_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(20_000, 20_000 + SLOW // 5):
        check_durable(cyclic(seed), tmp_path)


def test_the_joins_of_cyclic_programs_have_rows() -> None:
    found = []
    for seed in range(40):
        program = cyclic(seed)
        tables = applied(empty(program.tables), program.ticks[0])
        joins = (node for plan in program.views.values() for node in nodes(optimize(plan)) if isinstance(node, MultiwayJoin))
        found += [len(evaluate(join, tables)) for join in joins]
    assert sum(rows > 0 for rows in found) > 0.7 * len(found) > 28, found
