"""Linear operators one after the other run as one pass, also in the output of joins: each row once, each expression once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deltic
from deltic.circuit.operators import selection_vector
from deltic.circuit.operators.selection_vector import SelectionVector
from deltic.errors import EvaluationError
from deltic.lowering.fuse import Fusion
from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation
from deltic.schema import BIGINT, STRING, Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout
from deltic.trace.rows import Rows

START = datetime(2024, 5, 1, tzinfo=UTC)
DAY = timedelta(days=1)
TABLES = """
    CREATE TABLE r (id BIGINT PRIMARY KEY, a INT, s STRING, t TIMESTAMP, u TIMESTAMP);
    CREATE TABLE q (a INT, w STRING, v TIMESTAMP);
"""
PARTS = (
    "SELECT id, part, t FROM (SELECT id, concat(s, ',', s) AS both, t FROM r WHERE a > 0) x "
    "LATERAL VIEW explode(split(both, ',')) p AS part"
)
QUERIES = {
    "chain": f"SELECT id, upper(part) AS part FROM ({PARTS}) y WHERE part <> 'b'",
    "timed": f"SELECT id, part FROM ({PARTS}) y WHERE part <> 'b' AND t <= now()",
    "elements of elements": "SELECT id, n + m AS k FROM r LATERAL VIEW explode(sequence(1, a)) x AS n LATERAL VIEW OUTER "
    "posexplode(array(n, a)) y AS p, m WHERE p = 1 AND id < 9",
    "moments": "SELECT id, x FROM (SELECT id, x FROM r LATERAL VIEW explode(array(t, u, NULL)) e AS x) y WHERE x <= now() AND id <> 3",
    "counted": "SELECT id FROM r LATERAL VIEW repeat_row(greatest(a, 0)) WHERE id < 9",
    "counted and computed": "SELECT 100 / (k - 1) AS x FROM (SELECT a AS k FROM (SELECT id, abs(a) AS a FROM r UNION ALL "
    "SELECT id, abs(a) AS a FROM r LATERAL VIEW repeat_row(-1) WHERE abs(a) = 1) w) z",
    "joined": "SELECT r.id, q.w FROM r JOIN q ON r.a = q.a WHERE r.s < q.w",
    "joined and repeated": "SELECT id, x FROM (SELECT r.id, r.s, q.w FROM r JOIN q ON r.a = q.a WHERE r.s <> q.w) j "
    "LATERAL VIEW posexplode(array(s, w, concat(s, w))) e AS p, x",
    "joined for a time": "SELECT id, w FROM (SELECT r.id, coalesce(r.t, q.v) AS x, q.w FROM r JOIN q ON r.a = q.a) j WHERE x <= now()",
    "joined and computed": "SELECT r.id + q.a AS n, r.id + q.a > 5 AS large FROM r JOIN q ON r.a = q.a WHERE r.id + q.a <> 7",
    "crossed": "SELECT r.id, q.w FROM r CROSS JOIN q WHERE r.s > q.w",
    "summed": "SELECT x, count(*) AS n, sum(id) AS total "
    "FROM (SELECT r.id, q.w AS x FROM r JOIN q ON r.a = q.a WHERE r.s <> q.w) j GROUP BY x",
}
FUSED = {
    "chain": "map → flat_map → map",
    "moments": "filter → flat_map → map → temporal_filter",
    "joined": "join_trace → map",
    "joined and repeated": "join_trace → map → flat_map → map",
    "joined for a time": "join_trace → map → map → temporal_filter",
    "summed": "join_trace → explode",
}


def script(names: Iterator[str] | Mapping[str, str]) -> str:
    return TABLES + ";".join(f"CREATE MATERIALIZED VIEW `{name}` AS {QUERIES[name]}" for name in names)


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        session.advance_to(START)
        yield session


class Case:
    """A session with all queries over the same tables."""

    def __init__(self, session: deltic.Session) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {"r": [], "q": []}
        self.next, self.failed, self.seen = 0, 0, 0
        session.advance_to(START)
        self.open(session)

    def open(self, session: deltic.Session) -> None:
        self.session = session
        session.sql(script(QUERIES))
        self.check(self.session.now, self.rows)

    def check(self, now: datetime | None, rows: Mapping[str, list[dict[str, Any]]]) -> None:
        tables = {name: Relation((tuple(row.values()), 1) for row in content) for name, content in rows.items()}
        for name, plan in self.session._definitions.catalog.plans().items():
            expected = evaluate(plan, tables, now=now)
            assert Relation((tuple(row.values()), 1) for row in self.session.view(name).rows()) == expected, name
            self.seen += len(expected)

    def row(self, rng: random.Random, table: str) -> dict[str, Any]:
        def moment() -> datetime | None:
            return rng.choice((None, START + rng.randint(-3, 9) * DAY))

        a, s = rng.choice((None, 0, 2, 2, 3, -1)), rng.choice((None, "", "a", "b", "a,b", "c,,b"))
        self.next += 1
        return {"id": self.next, "a": a, "s": s, "t": moment(), "u": moment()} if table == "r" else {"a": a, "w": s, "v": moment()}

    def step(self, rng: random.Random) -> None:
        rows = {name: list(content) for name, content in self.rows.items()}
        assert self.session.now is not None
        now = self.session.now
        with self.session.transaction() as tx:
            for table, content in rows.items():
                removed = [content.pop(rng.randrange(len(content))) for _ in range(min(len(content), rng.randrange(3)))]
                come = [self.row(rng, table) for _ in range(rng.randrange(5))]
                tx.delete(table, removed)
                tx.insert(table, come)
                content += come
        self.rows = rows
        self.check(now, rows)
        self.session.advance_to(now + rng.choice((0, 1, 1, 2)) * DAY)
        self.check(self.session.now, rows)


@pytest.mark.parametrize("shards", [1, 3])
def test_views_equal_the_oracle(shards: int) -> None:
    case, rng = Case(deltic.Session(shards=shards)), random.Random(shards)
    for _ in range(8):
        case.step(rng)
    case.session.close()
    assert case.seen > 300


def test_a_state_is_the_same_however_operators_are_fused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, rng = Case(deltic.Session(state=str(tmp_path / "s"))), random.Random(5)
    for fused in (False, True, False):
        case.session.close()
        with monkeypatch.context() as patch:
            if not fused:
                patch.setattr(Fusion, "fused", lambda self, nodes: tuple(nodes))
            case.open(deltic.Session(state=str(tmp_path / "s")))
            assert any(" → " in node.operator.name for node in case.session._definitions.circuit.nodes) is fused
        for _ in range(3):
            case.step(rng)
    case.session.close()


@pytest.mark.parametrize("name", FUSED)
def test_a_chain_is_one_operator_and_touches_each_row_once(session: deltic.Session, name: str) -> None:
    session.sql(script(iter([name])))
    (node,) = (node for node in session._definitions.circuit.nodes if " → " in node.operator.name)
    assert node.operator.name == FUSED[name]
    rows = [{"id": i, "a": 2, "s": "b,a", "t": START, "u": START, "_op": "insert"} for i in range(50)]
    session.apply({"r": rows, "q": [{"a": 2, "w": "z", "v": None, "_weight": 1}]})
    assert session.last_tick is not None
    counters = session.last_tick.counters[node.name]
    if name.startswith(("joined", "summed")):
        assert counters.rows_in == 51 and counters.touched <= 4 * 51
    else:
        assert counters.rows_in == counters.touched == 50
    assert counters.rows_out >= 50


def test_a_stream_that_two_views_read_is_computed_once(session: deltic.Session) -> None:
    views = (f"CREATE MATERIALIZED VIEW {name} AS SELECT id, {name}(part) AS part FROM ({PARTS}) y" for name in ("upper", "lower"))
    session.sql(TABLES + ";".join(views))
    assert sorted(node.operator.name for node in session._definitions.circuit.nodes if "map" in node.operator.name) == [
        "map",
        "map",
        "map → flat_map",
    ]


def test_no_node_runs_for_nothing(session: deltic.Session) -> None:
    session.sql(script(QUERIES))
    nodes = session._definitions.circuit.nodes
    read = {i for node in nodes for i in node.inputs}
    assert all(node.id in read or node.owned for node in nodes)
    assert [node.id for node in nodes] == list(range(len(nodes)))


def test_each_expression_is_evaluated_once(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[str] = []
    evaluate_columns = selection_vector.evaluate_columns

    def noted(expr: Any, columns: Any, length: int, answers: Any) -> Any:
        evaluated.append(f"{getattr(expr, 'function', '')} of {length}")
        return evaluate_columns(expr, columns, length, answers)

    monkeypatch.setattr(selection_vector, "evaluate_columns", noted)
    session.sql(script(iter(["chain"])))
    evaluated.clear()
    session.apply({"r": [{"id": i, "a": i % 2, "s": "x,y", "t": None, "u": None, "_op": "insert"} for i in range(10)]})
    assert sum(name.startswith("concat") for name in evaluated) == 1
    assert len(session.view("chain").rows()) == 5 * 4


def test_expressions_that_can_fail_are_evaluated_on_existing_rows(session: deltic.Session) -> None:
    session.sql(TABLES + "CREATE MATERIALIZED VIEW v AS SELECT r.id, 10 / q.a AS x FROM r JOIN q ON r.id = q.a WHERE 10 / (q.a - 3) > -99")
    assert not [node for node in session._definitions.circuit.nodes if node.operator.name.startswith("join_trace →")]
    with session.transaction() as tx:
        tx.insert("r", [{"id": 3, "a": 1, "s": "a", "t": None, "u": None}])
    with pytest.raises(EvaluationError, match="division by zero"), session.transaction() as tx:
        tx.insert("q", [{"a": 3, "w": "w", "v": None}])
    with session.transaction() as tx:  # the rows meet in the change, and cancel
        tx.delete("r", [3])
        tx.insert("q", [{"a": 3, "w": "w", "v": None}])
    assert session.view("v").rows() == []


def test_a_selection_vector_equals_its_rows() -> None:
    schema = Schema((Field("a", BIGINT, False), Field("s", STRING)))
    rng = np.random.default_rng(1)
    rows = consolidate(Rows([rng.integers(0, 50, 40), rng.integers(0, 9, 40)], [rng.integers(1, 3, 40)]))
    whole = SelectionVector.of(rows, schema, Layout.of(schema))
    assert whole.rows() is rows
    some = whole.filtered(np.arange(0, len(rows), 2))
    assert isinstance(some.rows(), Batch)
    twice = some.take(np.repeat(np.arange(some.length), 2))
    assert not isinstance(twice.rows(), Batch) and twice.length == 2 * some.length
    there = np.repeat(np.arange(0, len(rows), 2), 2)
    assert [part.tolist() for part in (*twice.rows().columns, *twice.rows().weights)] == [
        part[there].tolist() for part in (*rows.columns, *rows.weights)
    ]
    none = whole.filtered(np.zeros(0, np.int64)).rows()
    assert len(none) == 0 and len(none.columns) == 2
