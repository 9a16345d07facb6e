"""Circuits that read a session's views, and the nodes of a session's circuit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deltic
from deltic.errors import CatalogError, CircuitError
from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIR = {"src": int, "dst": int}
SQL = """
CREATE TABLE edges (src BIGINT NOT NULL, dst BIGINT NOT NULL);
CREATE VIEW turned AS SELECT dst AS src, src AS dst FROM edges;
CREATE MATERIALIZED VIEW both AS SELECT * FROM edges UNION SELECT * FROM turned;
"""


def closure(view: str, output: str) -> deltic.Circuit:
    circuit = deltic.Circuit()
    roads = circuit.view(view, schema=PAIR)

    @circuit.recursive("paths", schema=PAIR)
    def paths(paths: deltic.Stream) -> deltic.Stream:
        step = paths.index_with("dst").join(roads.index_with("src"), lambda key, path, road: (path.src, road.dst))
        return roads.plus(step).distinct()

    circuit.output(output, paths)
    return circuit


def change(session: deltic.Session, weight: int, *pairs: tuple[int, int]) -> None:
    session.apply({"edges": [{"src": src, "dst": dst, "_weight": weight} for src, dst in pairs]})


TICKS = ((1, [(1, 2), (2, 3), (7, 8)]), (-1, [(2, 3)]), (1, [(3, 1), (8, 9)]))


def levels() -> tuple[deltic.Circuit, deltic.Circuit]:
    """A recursion over a SQL view over a SQL view, and a function over that."""
    above = deltic.Circuit()
    ends = above.view("reached", schema=PAIR).index_with("src").count("n")
    above.output("ends", ends.map(lambda row: (row.src, row.n * 2), schema={"src": int, "n": int}))
    return closure("BOTH", "reached"), above


def expected(edges: Relation) -> dict[str, Relation]:
    """The content of both circuits' views by the oracle. edges: weights by pair."""
    both = Relation((pair, 1) for pair in {*edges, *((dst, src) for src, dst in edges)})
    first, second = levels()
    reached = evaluate(first.outputs["reached"], {}, relations={"BOTH": both})
    return {"reached": reached, "ends": evaluate(second.outputs["ends"], {}, relations={"reached": reached})}


def check(session: deltic.Session, edges: Relation) -> None:
    for name, relation in expected(edges).items():
        assert Relation((tuple(row.values()), 1) for row in session.view(name).rows()) == relation, name


def install(session: deltic.Session) -> None:
    session.sql(SQL)
    for circuit in levels():
        session.install(circuit)


@pytest.mark.parametrize("shards", [1, 3])
def test_a_circuit_over_views_over_views_is_what_the_oracle_says(shards: int) -> None:
    edges = Relation()
    with deltic.Session(shards=shards) as session:
        install(session)
        for weight, pairs in TICKS:
            change(session, weight, *pairs)
            edges += Relation((pair, weight) for pair in pairs)
            check(session, edges)


def over_restarts(folder: Path, engines: Sequence[Mapping[str, Any]]) -> None:
    """Opens a session for each tick, with these options in turn: no view is filled again, and all have the same circuit."""
    edges = Relation()
    circuits = set()
    for options, (weight, pairs) in zip(engines, TICKS, strict=True):
        with deltic.Session(state=folder, shards=2, **options) as session:
            session.program(deltic.Program(SQL, *levels()))
            assert session.last_tick is None or not session.last_tick.changes, "no view is filled again"
            check(session, edges)
            change(session, weight, *pairs)
            edges += Relation((pair, weight) for pair in pairs)
            check(session, edges)
            circuits.add(session.circuit)
    assert len(circuits) == 1


def test_circuits_over_views_keep_their_state_over_restarts(tmp_path: Path) -> None:
    over_restarts(tmp_path / "state", [{}, {}, {}])


@pytest.mark.spark
def test_circuits_over_views_go_from_one_engine_to_the_other_and_back(spark: SparkSession, tmp_path: Path) -> None:
    over_restarts(tmp_path / "state", [{"spark": spark}, {}, {"spark": spark}])


def test_what_a_circuit_reads_is_not_dropped_and_replaced_only_by_the_same_columns() -> None:
    with deltic.Session() as session:
        session.sql(SQL)
        session.install(closure("both", "reached"))
        with pytest.raises(CatalogError, match=r"view both is read by view reached[\s\S]*drop reached first"):
            session.sql("DROP VIEW both")
        with pytest.raises(CatalogError, match=r"view reached reads both and would no longer be valid[\s\S]*drop reached first"):
            session.sql("CREATE OR REPLACE MATERIALIZED VIEW both AS SELECT src FROM edges")
        change(session, 1, (1, 2))
        assert len(session.view("reached").rows()) == 4
        session.sql("CREATE OR REPLACE MATERIALIZED VIEW both AS SELECT * FROM edges")
        assert session.view("reached").rows() == [{"src": 1, "dst": 2}]
        session.sql("DROP VIEW reached; DROP VIEW both")


@pytest.mark.parametrize(
    ("view", "match"),
    [
        ("edges", r"reads the view edges, which is a table[\s\S]*circuit\.input\('edges'"),
        ("roads", r"reads the view roads, which does not exist"),
        (
            "counts",
            r"view counts with the columns \(src BIGINT NOT NULL, dst BIGINT NOT NULL\)\nexpected: its columns: \(n BIGINT NOT NULL\)",
        ),
    ],
)
def test_a_view_that_is_not_as_declared_is_refused_and_nothing_is_installed(view: str, match: str) -> None:
    with deltic.Session() as session:
        session.sql(SQL + "CREATE MATERIALIZED VIEW counts AS SELECT count(*) AS n FROM edges;")
        with pytest.raises(CircuitError, match=match):
            session.install(closure(view, "out"))
        assert session.views == ("both", "counts")


def test_names_within_a_circuit_differ() -> None:
    circuit = deltic.Circuit()
    circuit.view("v", schema=PAIR)
    with pytest.raises(CircuitError, match="V is already in use"):
        circuit.input("V", schema=PAIR)
    with pytest.raises(CircuitError, match="the name of a view"):
        circuit.recursive("v", schema=PAIR)(lambda v: v)
    circuit = closure("v", "out")
    with pytest.raises(CircuitError, match="the name of a recursion"):
        circuit.view("paths", schema=PAIR)


def test_the_nodes_of_a_session_have_kinds_ids_scopes_and_places() -> None:
    with deltic.Session(shards=3) as session:
        assert session.circuit == ()
        session.sql(SQL)
        session.install(closure("both", "reached"))
        nodes = {node.global_id: node for node in session.circuit}
        assert len(nodes) == len(session.circuit)
        assert {"source", "sink", "operator", "child", "import", "feedback"} == {node.kind for node in nodes.values()}
        for name, node in nodes.items():
            assert name == f"{node.scope}.{node.id}".lstrip(".")
            assert node.clock == ("iteration" if node.scope else "epoch")
            assert node.scope == "" or nodes[node.scope].kind == "child"
            assert all(nodes[before].scope == node.scope for before in node.inputs)
        assert {"shards"} <= {node.place for node in nodes.values()}
        assert {node.columns.names for node in nodes.values() if node.kind == "source"} == {("src", "dst")}


def test_a_consolidated_trace_is_the_content() -> None:
    circuit = deltic.Circuit()
    tags = circuit.input("tags", schema={"tag": str, "n": int})
    trace = tags.differentiate().index_with("tag").trace_append()
    circuit.output("content", trace.consolidate().rows())
    circuit.output("before", trace.delay_trace().consolidate().rows())
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"tags": [{"tag": "a", "n": 1, "_weight": 2}]})
        session.apply({"tags": [{"tag": "a", "n": 1, "_weight": -1}]})
        assert session.view("content").rows() == [{"tag": "a", "n": 1}]
        assert len(session.view("before").rows()) == 2
