"""Random programs of cyclic joins on the embedded runtime: whole ticks and row by row, on one to eight shards, and from reopened state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from cyclic_programs import consumed, cyclic, recursive
from deltic.circuit.nodes import Node
from deltic.circuit.operators.child import Child
from deltic.optimizer import optimize
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import MultiwayJoin
from deltic.plan.walk import nodes
from deltic.runtimes.embedded import DurableEmbedded
from engines import Engine, durable, embedded, restarts, run
from programs import KINDS, Case, Mix, Outcome, applied, empty, expected
from seeds import rotating
from shrink import shrinking

FAST = 5
FEW = 2
SLOW = 1_000
SHARDS = (1, 2, 3, 5, 8)


def check(program: Case, *, every: int = 4, mix: Mix | None = None) -> int:
    """The number of multiway joins in the circuit. every: one of so many programs runs row by row."""

    def checked(program: Case) -> tuple[list[Outcome], Engine]:
        outcomes = expected(program)
        engine = embedded(program.tables, program.views, SHARDS[program.seed % len(SHARDS)])
        run(engine, program, outcomes, row_by_row=program.seed % every == 0)
        return outcomes, engine

    outcomes, engine = shrinking(checked, program)
    if mix is not None:
        mix.record(program, outcomes)
    return sum(node.operator.name == "multiway_join" for node in all_nodes(engine.circuit.nodes))


def all_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes, and those of their scopes."""
    for node in nodes:
        yield node
        if isinstance(node.operator, Child):
            yield from all_nodes(node.operator.nodes)


def check_durable(program: Case, folder: Path) -> None:
    """With restarts at random ticks. A failing case is shrunk."""
    shrinking(lambda program: checked_durable(program, folder), program)


def checked_durable(program: Case, folder: Path) -> None:
    seed = program.seed
    state = Path(mkdtemp(dir=folder))

    def reopened(shards: int | None) -> DurableEmbedded:
        return DurableEmbedded(str(state), shards)

    engine = durable(program.tables, program.views, state, SHARDS[seed % len(SHARDS)])
    try:
        run(engine, program, expected(program), restarts=restarts(seed, len(program.ticks), reopened))
    finally:
        engine.runtime.close()


def test_cyclic_programs() -> None:
    joins = sum(check(cyclic(seed)) for seed in range(FAST))
    assert joins >= FAST, joins


def test_cyclic_programs_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(FEW):
        check_durable(cyclic(1000 + seed), tmp_path)


def test_cycles_in_recursions() -> None:
    joins = sum(check(recursive(seed)) for seed in range(FAST))
    assert joins >= FAST / 2, joins


def test_cycles_in_recursions_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(FEW):
        check_durable(recursive(1000 + seed), tmp_path)


def test_readers_of_cyclic_joins() -> None:
    joins = sum(check(consumed(seed)) for seed in range(FAST))
    assert joins >= FAST, joins


def test_readers_of_cyclic_joins_with_restarts_from_state(tmp_path: Path) -> None:
    for seed in range(FEW):
        check_durable(consumed(1000 + seed), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("made", [cyclic, recursive])
def test_many_cyclic_joins(made: Callable[[int], Case]) -> None:
    for seed in rotating(SLOW):
        check(made(seed), every=3)


@pytest.mark.slow
def test_many_readers_of_cyclic_joins() -> None:
    mix = Mix()
    for seed in rotating(SLOW):
        check(consumed(seed), every=3, mix=mix)
    rare = [kind for kind in KINDS if mix.shown[kind] < 0.05 * mix.cases]
    assert not rare and mix.retracting >= 0.3 * mix.ticks, f"{rare}: {mix}"


@pytest.mark.slow
@pytest.mark.parametrize("made", [cyclic, recursive, consumed])
def test_many_cyclic_joins_with_restarts_from_state(tmp_path: Path, made: Callable[[int], Case]) -> None:
    for seed in rotating(SLOW // 5):
        check_durable(made(seed), tmp_path)


def test_the_joins_of_cyclic_programs_have_rows() -> None:
    sizes = []
    for seed in range(20):
        program = cyclic(seed)
        tables = applied(empty(program.tables), program.ticks[0])
        joins = (node for plan in program.views.values() for node in nodes(optimize(plan)) if isinstance(node, MultiwayJoin))
        sizes += [len(evaluate(join, tables)) for join in joins]
    assert sum(rows > 0 for rows in sizes) > 0.7 * len(sizes) > 14, sizes
