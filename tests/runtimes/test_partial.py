"""Which state is found again after resharding, and which has to be filled again."""

from __future__ import annotations

from typing import Any

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operators.aggregate import AggregateOperator
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.reweigh import Reweigh
from deltic.circuit.operators.semijoin import SemiJoin
from deltic.circuit.operators.table import TableInput
from deltic.circuit.operators.top_k import TopKOperator
from deltic.lowering import lower
from deltic.optimizer import optimize
from deltic.runtimes.durable.partial import partial
from programs import case


def circuit_of(seed: int) -> Dataflow:
    program = case(seed)
    return lower({name: optimize(plan) for name, plan in program.views.items()}, program.tables)


def sought(operator: Any) -> int:
    """How many leading words its lookups name."""
    match operator:
        case JoinOperator() | SemiJoin() | AggregateOperator():
            return operator.key
        case Reweigh():
            return operator.width
        case TopKOperator():
            return 1
    raise AssertionError(f"{operator.name} looks something up")


def test_what_is_looked_up_is_spread_by_the_words_that_are_sought() -> None:
    """So the rows that a key finds are those whose shard the key itself says; what is not so is filled again, and not all is."""
    found, again = 0, 0
    for seed in range(100):
        circuit = circuit_of(seed)
        partials = partial(circuit)
        assert not partials & set(circuit.tables.values())
        again += len(partials)
        for node in circuit.nodes:
            if isinstance(node.operator, TableInput):
                assert node.partition == tuple(range(node.operator.key or len(node.operator.order)))
            for name in {*node.reads} - partials:
                partition = circuit.arrangements[name].partition
                assert partition is not None
                assert all(word < sought(node.operator) for word in partition)
                assert not node.owns or circuit.arrangements[node.owns].partition == partition
                found += 1
    assert found > 400
    assert again > 50


def test_a_circuit_without_partial_results_has_none() -> None:
    assert partial(lower({}, case(3).tables)) == partial(Dataflow.empty()) == frozenset()
