"""Triangles in SQL: counted, summed and listed under churn, equal to DuckDB's; the rows that a change reads; explain."""

from __future__ import annotations

from random import Random

import duckdb
import pytest

import deltic
from deltic.errors import Unsupported
from session_rows import rows_of_view

JOIN = "FROM g a JOIN g b ON a.dst = b.src JOIN g c ON c.src = a.src AND c.dst = b.dst"
VIEWS = {
    "listed": f"SELECT a.src AS x, a.dst AS y, b.dst AS z {JOIN}",
    "counted": f"SELECT count(*) AS n {JOIN}",
    "ordered": """SELECT count(*) AS n, sum(a.dst) AS s FROM g a, g b, g c
                  WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src AND a.src < b.src""",
    "summed": f"SELECT a.src AS x, count(*) AS n, sum(b.dst) AS zs, sum(c.weight) AS w, avg(a.weight) AS mean {JOIN} GROUP BY a.src",
    "named": f"SELECT a.src AS x, n.name AS name, b.dst AS z {JOIN} JOIN n ON n.id = a.src WHERE a.weight < c.weight",
}


def session_of(**views: str) -> deltic.Session:
    session = deltic.Session()
    session.sql("CREATE TABLE g (src BIGINT, dst BIGINT, weight INT); CREATE TABLE n (id BIGINT NOT NULL, name STRING, PRIMARY KEY (id))")
    for name, query in views.items():
        session.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return session


def test_views_are_what_duckdb_computes() -> None:
    rng = Random(5)
    there: list[tuple[int | None, int | None, int | None]] = []
    with session_of(**VIEWS) as session, duckdb.connect() as duck:
        duck.execute("CREATE TABLE g (src BIGINT, dst BIGINT, weight INT); CREATE TABLE n (id BIGINT, name VARCHAR)")
        for tick in range(6):
            with session.transaction() as tx:
                if not tick:
                    tx.insert("n", [{"id": i, "name": f"node {i % 3}"} for i in range(8)])
                    duck.executemany("INSERT INTO n VALUES (?, ?)", [(i, f"node {i % 3}") for i in range(8)])
                for row in rng.sample(there, len(there) // 4):
                    there.remove(row)
                    tx.delete("g", [dict(zip(("src", "dst", "weight"), row, strict=True))])
                fresh = [(some(rng, 12), some(rng, 12), some(rng, 4)) for _ in range(60 if not tick else 15)]
                tx.insert("g", [dict(zip(("src", "dst", "weight"), row, strict=True)) for row in fresh])
                there += fresh
            duck.execute("DELETE FROM g")
            duck.executemany("INSERT INTO g VALUES (?, ?, ?)", there)
            for view, query in VIEWS.items():
                expected = sorted(duck.execute(query).fetchall(), key=repr)
                assert rows_of_view(session, view) == expected, (tick, view)


def some(rng: Random, values: int) -> int | None:
    return None if rng.random() < 0.1 else rng.randrange(values)


@pytest.mark.parametrize(("call", "factor"), [("count(*)", 1.0), ("sum(a.dst)", 19.5), ("sum(b.dst)", 19.5)])
def test_an_aggregate_lists_no_triangle(call: str, factor: float) -> None:
    """Inserts an edge that completes all its triangles in a complete graph: each rule sums them into one row."""
    nodes = 40
    with session_of(counted=VIEWS["counted"].replace("count(*)", call)) as session:
        with session.transaction() as tx:
            tx.insert("g", [{"src": x, "dst": y, "weight": 1} for x in range(nodes) for y in range(nodes) if x != y and (x, y) != (0, 1)])
        with session.transaction() as tx:
            tx.insert("g", [{"src": 0, "dst": 1, "weight": 1}])
        assert rows_of_view(session, "counted") == [(factor * nodes * (nodes - 1) * (nodes - 2),)]
        joins = [operator for operator in session.explain().operators if operator.operator == "multiway_join"]
        assert [join.rows_out for join in joins] == [3], "one row for each rule"


def test_the_cost_of_an_edge_at_a_hub_does_not_grow_with_the_hub() -> None:
    """In rows touched; a binary plan costs the hub's degree."""
    query = VIEWS["counted"]
    costs: dict[str, list[int]] = {"multiway": [], "binary": []}
    for degree in (1_000, 8_000):
        with session_of(multiway=query, binary=query.replace("SELECT", "SELECT /*+ BINARY_JOIN */")) as session:
            with session.transaction() as tx:
                tx.insert("g", [{"src": i, "dst": 0, "weight": 1} for i in range(1, degree)])
                tx.insert("g", [{"src": 0, "dst": -i, "weight": 1} for i in range(1, 50)])
            with session.transaction() as tx:
                tx.insert("g", [{"src": 0, "dst": -60, "weight": 1}])
            for view, touched in costs.items():
                touched.append(sum(operator.rows_touched for operator in session.explain(view).operators))
    assert costs["multiway"][1] < 2 * costs["multiway"][0] < 2_000, costs
    assert costs["binary"][1] > 6 * costs["binary"][0] > 6_000, costs


def test_explain_shows_the_rules_and_the_bound() -> None:
    with session_of(counted=VIEWS["counted"], listed=VIEWS["listed"]) as session:
        with session.transaction() as tx:
            tx.insert("g", [{"src": x, "dst": y, "weight": 0} for x in range(10) for y in range(10)])
        explanation = session.explain("counted")
    (join,) = explanation.joins
    assert (len(join.rules), len(join.arrangements), len(join.shared)) == (3, 2, 2)
    assert [rule.order for rule in join.rules] == [("src", "dst", "dst2"), ("src", "dst", "src2"), ("src", "dst", "dst2")]
    assert (join.exponent, join.rows) == (1.5, 1000)
    assert "3 rules, 2 arrangements, 2 of them shared; at most n^1.5 rows from relations of n, 1,000 from these (AGM)" in str(explanation)
    assert explanation.json()["joins"][0]["exponent"] == 1.5


def test_the_bound_is_over_all_variables() -> None:
    path = "FROM g a JOIN g b ON a.dst = b.src JOIN g c ON b.dst = c.src"
    with session_of(path=f"SELECT /*+ MULTIWAY_JOIN */ a.src AS w, b.src AS x, c.src AS y, c.dst AS z {path}") as session:
        with session.transaction() as tx:
            edges = [(-i, 0) for i in range(1, 11)] + [(0, 1)] + [(1, i) for i in range(2, 12)]
            tx.insert("g", [{"src": src, "dst": dst, "weight": 0} for src, dst in edges])
        (join,) = session.explain("path").joins
        assert len(session.view("path").rows()) == 100
    assert (join.exponent, join.rows) == (2.0, 21 * 21)


def test_explain_shows_the_rules_within_recursions() -> None:
    step = "SELECT a.src, b.dst FROM p a JOIN p b ON a.dst = b.src JOIN g c ON c.src = b.dst AND c.dst = a.src"
    with session_of(closed=f"WITH RECURSIVE p AS (SELECT src, dst FROM g UNION {step}) SELECT src, dst FROM p") as session:
        explanation = session.explain("closed")
    (join,) = explanation.joins
    assert join.node in {operator.id for operator in explanation.operators if operator.operator == "multiway_join"}
    assert (len(join.rules), len(join.arrangements), len(join.shared), join.exponent) == (3, 4, 2, 1.5)
    assert [rule.order for rule in join.rules] == [("src", "dst", "dst2"), ("src", "dst", "src2"), ("dst", "src", "dst2")]


def test_explain_says_why_a_cycle_stays_binary() -> None:
    climbing = VIEWS["counted"].replace("c.dst = b.dst", "c.dst = b.dst + 1")
    computed = climbing.replace("b.dst + 1", "b.dst").replace("JOIN g b", "JOIN (SELECT src, dst + 1 AS dst FROM g) b")
    with session_of(climbing=climbing, computed=computed) as session:
        explanation = session.explain()
    assert len(explanation.joins) == 1
    (note,) = (line for line in str(explanation).splitlines() if "stay binary" in line)
    assert note.startswith("note: view climbing: joins that form a cycle stay binary: a condition can fail on rows")
    assert note.endswith("(compute it in a subquery of its relation)")


def test_hints_force_either_plan() -> None:
    path = "SELECT /*+ multiway_join */ a.src, b.dst FROM g a JOIN g b ON a.dst = b.src"
    with session_of(path=path, binary=VIEWS["counted"].replace("SELECT", "SELECT /*+ BINARY_JOIN, BROADCAST(a) */")) as session:
        plans = {view: [o.operator for o in session.explain(view).operators] for view in ("path", "binary")}
    assert "multiway_join" in plans["path"] and "multiway_join" not in plans["binary"]


def test_a_hint_that_cannot_be_followed_is_an_error_with_its_place() -> None:
    with session_of() as session, pytest.raises(Unsupported) as caught:
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT /*+ MULTIWAY_JOIN */ a.src FROM g a CROSS JOIN g b")
    assert "/*+ MULTIWAY_JOIN */" in str(caught.value) and "^^^^" in str(caught.value)
