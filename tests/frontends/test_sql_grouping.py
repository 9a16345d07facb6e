"""Views by grouping sets, under changes: equal to the oracle, from one scan; and the sets that a clause lists."""

from __future__ import annotations

from random import Random

import pytest

import deltic
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Expand
from deltic.plan.relation import Relation
from deltic.plan.walk import nodes
from sql_data import TABLES, bound

QUERIES = (
    "SELECT k, b, count(*), sum(id), min(x), count(DISTINCT s), count(DISTINCT x), grouping_id() FROM t GROUP BY CUBE(k, b)",
    "SELECT x, sum(m), grouping(x), median(id), max(s) FROM t GROUP BY ROLLUP(x)",
    "SELECT t.k, s, sum(u.y), count(*), sum(t.x) FROM t JOIN u ON t.k = u.k GROUP BY ROLLUP(t.k, s) HAVING grouping(s) = 1",
    "SELECT b, k, avg(x), collect_list(id) FROM t GROUP BY GROUPING SETS ((b), (b), (), (k, b))",
    "SELECT count(*), sum(k), grouping_id() FROM t GROUP BY GROUPING SETS (())",
)
VALUES = {"k": (None, 1, 2, 3), "b": (None, True, False), "x": (None, 0.0, -0.0, 1.5), "s": (None, "", "a", "b")}


def test_views_by_grouping_sets_equal_the_oracle_under_changes() -> None:
    rng = Random(7)
    plans = [bound(query) for query in QUERIES]
    rows = {"t": list[tuple[object, ...]](), "u": list[tuple[object, ...]]()}
    with deltic.Session() as session:
        for name in rows:
            columns = ", ".join(f"{field.name} {field.type.sql}" for field in TABLES[name].schema)
            session.sql(f"CREATE TABLE {name} ({columns}, PRIMARY KEY (id))")
        for i, query in enumerate(QUERIES):
            names = ", ".join(f"c{j}" for j in range(len(plans[i].schema)))
            session.sql(f"CREATE MATERIALIZED VIEW v{i} ({names}) AS {query}")
        for tick in range(3):
            with session.transaction() as tx:
                for name, content in rows.items():
                    removed = [content.pop(rng.randrange(len(content))) for _ in range(len(content) // 2 if tick < 2 else len(content))]
                    tx.delete(name, [row[0] for row in removed])
                    added = [_row(rng, name, 10 * tick + i) for i in range(6 if tick < 2 else 0)]
                    tx.insert(name, [dict(zip(TABLES[name].schema.names, row, strict=True)) for row in added])
                    content += added
            tables = {name: Relation((row, 1) for row in content) for name, content in rows.items()}  # type: ignore[misc]
            for i, plan in enumerate(plans):
                actual = Relation((tuple(_hashable(value) for value in row.values()), 1) for row in session.view(f"v{i}").rows())
                assert actual == evaluate(plan, tables), QUERIES[i]


def _row(rng: Random, name: str, number: int) -> tuple[object, ...]:
    others = (rng.choice(VALUES.get(field.name, (None, number))) if field.name not in ("d", "ts", "m", "name") else None
              for field in TABLES[name].schema.fields[1:])  # fmt: skip
    return (number, *others)


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def test_all_sets_read_one_join_and_keep_one_arrangement_of_sums() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (k BIGINT NOT NULL, v BIGINT, g STRING); CREATE TABLE b (k BIGINT NOT NULL, h STRING)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT g, h, sum(v) AS total FROM a JOIN b ON a.k = b.k GROUP BY CUBE(g, h)")
        operators = [operator["operator"] for operator in session.explain("v").json()["operators"]]
    assert operators.count("join_trace") == operators.count("expand") == operators.count("aggregate") == 1


def test_several_distinct_counts_read_one_join() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (k BIGINT NOT NULL, v BIGINT, g STRING); CREATE TABLE b (k BIGINT NOT NULL, h STRING)")
        calls = "count(DISTINCT v) AS a, count(DISTINCT h) AS b, count(DISTINCT v, h) AS c, sum(DISTINCT v) FILTER (WHERE v > 1) AS d"
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT g, {calls} FROM a JOIN b ON a.k = b.k GROUP BY g")
        operators = [operator["operator"] for operator in session.explain("v").json()["operators"]]
        with session.transaction() as tx:
            tx.insert("a", [{"k": 1, "v": v, "g": "x"} for v in (1, 2, 2, None)])
            tx.insert("b", [{"k": 1, "h": h} for h in ("p", "q", "q", None)])
        assert session.view("v").rows() == [{"g": "x", "a": 2, "b": 2, "c": 4, "d": 2}]
    assert operators.count("aggregate") == 1
    assert operators.count("join_trace") <= 2  # that of the rows, and that of their number


@pytest.mark.parametrize(
    ("clause", "sets"),
    [
        ("ROLLUP (k, b)", (0, 1, 3)),
        ("k, b WITH CUBE", (0, 1, 2, 3)),
        ("k, ROLLUP (b, s)", (0, 1, 3)),
        ("ROLLUP ((k, b), s)", (0, 1, 7)),
        ("ROLLUP (k), CUBE (b)", (0, 1, 2, 3)),
        ("ROLLUP (k, k)", (0, 2, 1)),
        ("GROUPING SETS (b, (k, b), ())", (1, 0, 3)),
        ("k, b GROUPING SETS ((k), (b))", (1, 2)),
    ],
)
def test_the_sets_of_a_clause(clause: str, sets: tuple[int, ...]) -> None:
    (expand,) = (node for node in nodes(bound(f"SELECT count(*) FROM t GROUP BY {clause}")) if isinstance(node, Expand))
    assert expand.sets == sets
