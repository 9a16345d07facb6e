"""State that is kept after resharding, and state that must be filled again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltic.circuit.builder import CircuitBuilder
from deltic.circuit.nodes import Dataflow
from deltic.circuit.operators.aggregate import AggregateOperator
from deltic.circuit.operators.extreme_levels import ExtremeLevels
from deltic.circuit.operators.frame_entries import FrameEntries
from deltic.circuit.operators.frame_extremes import FrameExtremes
from deltic.circuit.operators.frame_sums import FrameSums
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.neighbours import NeighboursOperator
from deltic.circuit.operators.number_copies import NumberCopies
from deltic.circuit.operators.positions import PositionsOperator
from deltic.circuit.operators.range_join import RangeJoin
from deltic.circuit.operators.reweigh import Reweigh
from deltic.circuit.operators.row_frame_sums import RowFrameSums
from deltic.circuit.operators.semijoin import SemiJoin
from deltic.circuit.operators.sessions import SessionsOperator
from deltic.circuit.operators.skip_list import SkipListOperator
from deltic.circuit.operators.table import TableInput
from deltic.circuit.operators.top_k import TopKOperator
from deltic.lowering import lower
from deltic.optimizer import optimize
from deltic.runtimes.durable.partial import partial
from deltic.runtimes.embedded import DurableEmbedded
from engines import durable, run
from programs import case, expected, mixed


def circuit_of(seed: int) -> Dataflow:
    program = case(seed)
    return lower({name: optimize(plan) for name, plan in program.views.items()}, program.tables)


def sought(operator: Any) -> int:
    """The number of leading words of its lookup key."""
    match operator:
        case JoinOperator() | SemiJoin() | AggregateOperator() | RangeJoin():
            return operator.key
        case (
            PositionsOperator()
            | NeighboursOperator()
            | FrameSums()
            | RowFrameSums()
            | SkipListOperator()
            | ExtremeLevels()
            | FrameEntries()
            | FrameExtremes()
            | SessionsOperator()
            | TopKOperator()
        ):
            return operator.key
        case Reweigh() | NumberCopies():
            return operator.width
    raise AssertionError(f"{operator.name} looks something up")


def test_arrangements_are_partitioned_by_the_words_that_are_looked_up() -> None:
    """A lookup key determines the shard of its rows; other arrangements are filled again, and they are not all.

    Range joins without keys read one side that is on every shard, and one of which they leave out the rows of other shards.
    """
    actual, again, spread = 0, 0, 0
    for seed in range(100):
        circuit = circuit_of(seed)
        partials = partial(circuit)
        assert not partials & set(circuit.tables.values())
        again += len(partials)
        for node in circuit.nodes:
            if isinstance(node.operator, TableInput):
                assert node.partition == tuple(range(node.operator.key or len(node.operator.order)))
            if isinstance(node.operator, RangeJoin) and node.operator.spread is not None:
                side, words = node.operator.spread
                sides = [circuit.arrangements[name] for name in (node.operator.left, node.operator.right)]
                assert sides[side].partition == words and not sides[side].replicated
                assert sides[1 - side].partition is None and sides[1 - side].replicated
                spread += 1
                continue
            for name in {*node.reads} - partials:
                partition = circuit.arrangements[name].partition
                assert partition is not None
                assert all(word < sought(node.operator) for word in partition)
                assert not node.owns or circuit.arrangements[node.owns].partition == partition
                actual += 1
    assert actual > 400
    assert again > 50
    assert spread


def test_a_circuit_without_partial_results_has_none() -> None:
    assert partial(lower({}, case(3).tables)) == partial(Dataflow.empty()) == frozenset()


@pytest.mark.parametrize("seed", [8, 46, 59, 118, 227])
def test_the_state_of_a_scope_does_not_depend_on_the_number_of_shards(tmp_path: Path, seed: int) -> None:
    """Inner scopes import from outer ones: the numbers of imports differ, since one shard shares more arrangements."""
    program = mixed(seed)
    plans = {name: optimize(plan) for name, plan in program.views.items()}
    one, two = (lower(plans, program.tables, shards) for shards in (1, 2))
    assert scoped(one) == scoped(two) and any(scoped(one))
    engine = durable(program.tables, program.views, tmp_path / "state", 2)
    folder = str(tmp_path / "state")
    run(engine, program, expected(program), restarts={1: lambda: DurableEmbedded(folder, 1), 2: lambda: DurableEmbedded(folder, 3)})
    engine.runtime.close()


def scoped(circuit: Dataflow) -> list[tuple[str, ...]]:
    """The arrangements of each scope."""
    return [node.inner for node in circuit.nodes if node.inner]


def test_a_scope_with_some_new_arrangements_is_filled_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scope with new ids, as after an upgrade."""
    program, name = mixed(59), CircuitBuilder.name

    def name_before(builder: CircuitBuilder, role: str, *parts: object) -> str:
        now = name(builder, role, *parts)
        return name(builder, role, "before", *parts) if role == "trace" and now[-1] in "02468ace" else now

    with monkeypatch.context() as patch:
        patch.setattr(CircuitBuilder, "name", name_before)
        engine = durable(program.tables, program.views, tmp_path / "state", 2)
        before = scoped(engine.circuit)
    reopened = []

    def reopen() -> DurableEmbedded:
        reopened.append(True)
        return DurableEmbedded(str(tmp_path / "state"))

    run(engine, program, expected(program), restarts={2: reopen})
    assert reopened and any(0 < len({*inner} & {*same}) < len(inner) for inner, same in zip(before, scoped(engine.circuit), strict=True))
    engine.runtime.close()
