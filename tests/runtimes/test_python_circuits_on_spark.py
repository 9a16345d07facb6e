"""Python circuits on Spark: functions are sent to the workers from the running program, and a restart finds their state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deltic
from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PAIR = {"src": int, "dst": int}


def program(modulus: int) -> deltic.Circuit:
    """A recursion through a function of rows with a closure, and a map by a function that is not a projection."""
    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema=PAIR)
    step: Callable[..., Any] = lambda key, row, edge: (key + edge.dst) % modulus  # noqa: E731

    @circuit.recursive("reached", schema={"node": int})
    def reached(reached):
        actual = reached.index_with("node").join(edges.index_with("src"), step, schema={"node": int})
        return edges.map(lambda row: row.src).plus(actual).distinct()

    circuit.output("reached", reached)
    circuit.output("texts", edges.map(lambda row: f"{row.src}-{row.dst}", schema={"text": str}))
    return circuit


def rows(*pairs: tuple[int, int]) -> list[dict[str, int]]:
    return [dict(zip(PAIR, pair, strict=True)) for pair in pairs]


def check(session: deltic.Session, circuit: deltic.Circuit, edges: set[tuple[int, int]]) -> None:
    for view, plan in circuit.outputs.items():
        actual = Relation((tuple(row.values()), 1) for row in session.view(view).rows())
        assert actual == evaluate(plan, {"edges": dict.fromkeys(edges, 1)})


def test_functions_reach_the_workers_and_a_restart_finds_their_state(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2) as session:
        circuit = program(7)
        session.install(circuit)
        with session.transaction() as tx:
            tx.insert("edges", rows((1, 2), (3, 4), (0, 5)))
        check(session, circuit, {(1, 2), (3, 4), (0, 5)})
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2) as session:
        circuit = program(7)
        epoch = session.epoch
        session.install(circuit)
        assert session.epoch == epoch
        with session.transaction() as tx:
            tx.delete("edges", rows((3, 4)))
        check(session, circuit, {(1, 2), (0, 5)})
    assert not [file for file in (tmp_path / "state").rglob("*") if file.is_file() and b"cloudpickle" in file.read_bytes()]


def test_a_different_function_is_a_different_view(spark: SparkSession, tmp_path: Path) -> None:
    edges = {(1, 2), (3, 4), (0, 5)}
    for modulus in (7, 5):
        with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2) as session:
            circuit = program(modulus)
            session.install(circuit)
            if modulus == 7:
                with session.transaction() as tx:
                    tx.insert("edges", rows(*edges))
            check(session, circuit, edges)
