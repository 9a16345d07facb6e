"""Table functions that make rows of values, in every place where they are allowed: the rows are those of Spark 4.2."""

from __future__ import annotations

from typing import Any

import pytest

import deltic

CASES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT stack(2, 1, 2, 3)", [(1, 2), (3, None)]),
    ("SELECT stack(2, 1, 'a', 3, 'b')", [(1, "a"), (3, "b")]),
    ("SELECT stack(3, 1, 2)", [(1,), (2,), (None,)]),
    ("SELECT stack(1 + 1, 1, 2)", [(1,), (2,)]),
    ("SELECT a, stack(2, a, b, b, a) AS (x, y) FROM VALUES (1, 2) AS t(a, b)", [(1, 1, 2), (1, 2, 1)]),
    ("SELECT * FROM stack(2, 1, 2, 3, 4) AS t(a, b)", [(1, 2), (3, 4)]),
    ("SELECT * FROM VALUES (1) t(a) LATERAL VIEW stack(2, a, a + 1) s AS y", [(1, 1), (1, 2)]),
    ("SELECT * FROM VALUES (1) t(a), LATERAL stack(2, a, a + 1) s(y)", [(1, 1), (1, 2)]),
    ("SELECT explode(array(1, 2)) AS x, explode(array(3, 4)) AS y", [(1, 3), (1, 4), (2, 3), (2, 4)]),
    (
        "SELECT explode(array(1, 2)) AS x, posexplode(array(3, 4)) AS (p, q)",
        [(1, 0, 3), (1, 1, 4), (2, 0, 3), (2, 1, 4)],
    ),
    ("SELECT a, json_tuple(j, 'a') AS k, explode(array(1, 2)) AS x FROM VALUES (1, '{\"a\":1}') t(a, j)", [(1, "1", 1), (1, "1", 2)]),
    ("SELECT explode(array(1, 2)) AS x, x + 1", [(1, 2), (2, 3)]),
    ("SELECT explode(transform(array(1), x -> x + 1))", [(2,)]),
    ("SELECT explode(map_concat(map(1, 2), map(3, 4)))", [(1, 2), (3, 4)]),
    ("SELECT inline(array(struct(1, 'a'))), 2", [(1, "a", 2)]),
    ("SELECT explode(collect_list(id)) AS x, count(*) AS n FROM range(2)", [(0, 2), (1, 2)]),
    ("SELECT explode(v) AS x, sum(a) FROM VALUES (1, array(7, 8)), (2, array(7, 8)) t(a, v) GROUP BY ALL", [(7, 3), (8, 3)]),
    ("SELECT stack(2, b + 10L, count(a)) FROM VALUES (1, 1), (2, 1), (3, 2) t(a, b) GROUP BY b", [(11,), (2,), (12,), (1,)]),
    ("SELECT b, explode(array(1, count(*))) AS x FROM VALUES (1), (1), (2) t(b) GROUP BY 1 HAVING count(*) > 1", [(1, 1), (1, 2)]),
    ("SELECT explode(array(10, 20)) AS x, a, count(*) FROM VALUES (42) t(a) GROUP BY a", [(10, 42, 1), (20, 42, 1)]),
    ("SELECT array(1, 2) AS v, explode(v) AS x, count(*)", [([1, 2], 1, 1), ([1, 2], 2, 1)]),
    ("SELECT explode_outer(CAST(NULL AS ARRAY<INT>)), 1", [(None, 1)]),
    ("SELECT explode_outer(CAST(NULL AS ARRAY<INT>)) AS x, explode(array(5)) AS y", [(None, 5)]),
    (
        """SELECT json_tuple('{"a":1,"b":[1,2.50],"c":null,"d":{"x":"y"},"e":"q","f":1.10}', 'a', 'b', 'c', 'd', 'e', 'f', 'z')""",
        [("1", "[1,2.5]", None, '{"x":"y"}', "q", "1.1", None)],
    ),
    ("SELECT json_tuple('{', 'a')", [(None,)]),
    ("""SELECT json_tuple('{"a":1,"a":2}', 'a', 'a')""", [("2", "2")]),
    ("SELECT json_tuple(CAST(NULL AS STRING), 'a')", [(None,)]),
    ("""SELECT x, y FROM VALUES ('{"a":1,"b":2}') t(j) LATERAL VIEW json_tuple(j, 'a', 'b') v AS x, y""", [("1", "2")]),
    ("""SELECT * FROM json_tuple('{"a":1}', 'a')""", [("1",)]),
]


@pytest.mark.parametrize(("query", "rows"), CASES, ids=[query for query, _ in CASES])
def test_rows_are_those_of_spark(query: str, rows: list[tuple[Any, ...]]) -> None:
    session = deltic.Session()
    session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    found = [tuple(row.values()) for row in session.view("v").rows()]
    assert sorted(found, key=repr) == sorted(rows, key=repr)


LATERAL: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT a, x FROM t JOIN LATERAL explode(v) e(x) ON a = x", [(1, 1), (1, 1)]),
    ("SELECT a, x FROM t LEFT JOIN LATERAL explode(v) e(x) ON a = x", [(1, 1), (1, 1), (2, None), (3, None), (3, None)]),
    ("SELECT a, x FROM t LEFT JOIN LATERAL explode(v) e(x)", [(1, 1), (1, 1), (1, 2), (2, 5), (2, 6), (3, None), (3, None)]),
    (
        "SELECT a, p, x FROM t LEFT JOIN LATERAL posexplode(v) e(p, x) ON x > 5",
        [(1, None, None), (2, 1, 6), (3, None, None), (3, None, None)],
    ),
    ("SELECT a, y FROM t, LATERAL (SELECT a + x AS y FROM explode(v) e(x) WHERE a > 1)", [(2, 7), (2, 8)]),
    ("SELECT a, (SELECT max(x) FROM explode(v) e(x)) FROM t", [(1, 2), (2, 6), (3, None), (3, None)]),
    ("SELECT a FROM t WHERE 5 IN (SELECT x FROM explode(v) e(x))", [(2,)]),
    ("SELECT x, y FROM t, LATERAL (SELECT * FROM explode(array(a, v[0])) l(x) JOIN explode(array(5)) r(y) ON x = y)", [(5, 5)]),
]


@pytest.mark.parametrize(("query", "rows"), LATERAL, ids=[query for query, _ in LATERAL])
def test_columns_of_other_relations_are_arguments(query: str, rows: list[tuple[Any, ...]]) -> None:
    """The rows are Spark's; they are reached by changes too, and a query over stored rows has the same."""
    session = deltic.Session()
    session.sql(f"CREATE TABLE t (id INT PRIMARY KEY, a INT, v ARRAY<INT>); CREATE MATERIALIZED VIEW w AS {query}")
    stored = [(0, 7, [7, 5]), (1, 1, [1, 2, 1]), (2, 2, [6]), (3, 3, None), (4, 3, None), (5, 9, [9])]
    with session.transaction() as tx:
        tx.upsert("t", [{"id": i, "a": a, "v": v} for i, a, v in stored])
    with session.transaction() as tx:
        tx.upsert("t", [{"id": 2, "a": 2, "v": [5, 6]}])
        tx.delete("t", [{"id": 0}, {"id": 5}])
    for answer in (session.view("w").rows(), session.query(query).rows()):
        assert sorted((tuple(row.values()) for row in answer), key=repr) == sorted(rows, key=repr)


def test_several_table_functions_follow_changes() -> None:
    session = deltic.Session()
    session.sql("""
        CREATE TABLE t (id BIGINT PRIMARY KEY, v ARRAY<INT>, j STRING);
        CREATE MATERIALIZED VIEW s AS SELECT id, explode(v) AS x, stack(2, id, -id) AS y, json_tuple(j, 'k') AS k FROM t WHERE id > 0
    """)
    with session.transaction() as tx:
        tx.upsert("t", [{"id": 1, "v": [7, 8], "j": '{"k":"a"}'}, {"id": 2, "v": [], "j": None}, {"id": -1, "v": [1], "j": "x"}])
    assert sorted(tuple(row.values()) for row in session.view("s").rows()) == [
        (1, 7, -1, "a"),
        (1, 7, 1, "a"),
        (1, 8, -1, "a"),
        (1, 8, 1, "a"),
    ]
    with session.transaction() as tx:
        tx.upsert("t", [{"id": 1, "v": [9], "j": "{}"}])
    assert sorted(tuple(row.values()) for row in session.view("s").rows()) == [(1, 9, -1, None), (1, 9, 1, None)]
