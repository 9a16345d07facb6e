"""Window functions in QUALIFY that read those of the select list by their names: the rows of Spark, and of the query in two levels."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltic
from correlated_queries import Catalog
from deltic.frontends.sql import bind_query
from deltic.plan.nodes import Window
from deltic.plan.walk import nodes
from sessions_of_queries import check

TABLES = "CREATE TABLE t (id INT, k INT); INSERT INTO t VALUES (1, 1), (2, 2), (3, NULL)"
OF_SPARK: dict[str, list[tuple[int | None, ...]]] = {
    "SELECT id, rank() OVER (ORDER BY id) AS k FROM t QUALIFY sum(k) OVER () > 3": [(1, 1), (2, 2), (3, 3)],
    "SELECT id, rank() OVER (ORDER BY id) AS k FROM t QUALIFY sum(k) OVER () = 3": [],
    "SELECT id, rank() OVER (ORDER BY id DESC) AS k FROM t QUALIFY row_number() OVER (ORDER BY k) <= 2": [(2, 2), (3, 1)],
    "SELECT id, rank() OVER (ORDER BY id) AS k FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1": [(1, 1), (2, 2), (3, 3)],
    "SELECT id, rank() OVER (ORDER BY id) AS n FROM t QUALIFY sum(n) OVER () = 6": [(1, 1), (2, 2), (3, 3)],
    "SELECT k % 2 AS g, count(*) AS n, rank() OVER (ORDER BY count(*), k % 2) AS r FROM t GROUP BY k % 2 QUALIFY max(r) OVER () = r": [
        (1, 1, 3)
    ],
}


@pytest.mark.parametrize("query", OF_SPARK)
def test_a_window_function_of_qualify_reads_one_of_the_select_list(query: str) -> None:
    with deltic.Session() as session:
        session.sql(TABLES)
        assert sorted(tuple(row.values()) for row in session.query(query).rows()) == OF_SPARK[query]


PAIRS = {
    "a sum": (
        "SELECT a, b, rank() OVER (ORDER BY a) AS r FROM t QUALIFY sum(r) OVER (PARTITION BY b) > 5",
        "SELECT a, b, r FROM (SELECT a, b, rank() OVER (ORDER BY a) AS r FROM t) QUALIFY sum(r) OVER (PARTITION BY b) > 5",
    ),
    "a name of a column": (
        "SELECT a, count(*) OVER (PARTITION BY a) AS b FROM t QUALIFY rank() OVER (ORDER BY b DESC) <= 3",
        "SELECT a, b FROM (SELECT a, count(*) OVER (PARTITION BY a) AS b FROM t) QUALIFY rank() OVER (ORDER BY b DESC) <= 3",
    ),
    "of groups": (
        "SELECT a, max(b) AS m, rank() OVER (ORDER BY max(b)) AS r FROM t GROUP BY a QUALIFY count(m) OVER (PARTITION BY r % 2) > 1",
        """SELECT a, m, r FROM (SELECT a, max(b) AS m, rank() OVER (ORDER BY max(b)) AS r FROM t GROUP BY a)
            QUALIFY count(m) OVER (PARTITION BY r % 2) > 1""",
    ),
    "a subquery": (
        "SELECT a, dense_rank() OVER (ORDER BY a) AS r FROM t QUALIFY bool_or(r IN (SELECT a FROM u WHERE a > 2)) OVER (PARTITION BY b)",
        """SELECT a, r FROM (SELECT a, b, dense_rank() OVER (ORDER BY a) AS r FROM t)
            QUALIFY bool_or(r IN (SELECT a FROM u WHERE a > 2)) OVER (PARTITION BY b)""",
    ),
}


@pytest.mark.parametrize("seed", [1, 2])
def test_rows_are_those_of_the_oracle_at_each_change(seed: int, tmp_path: Path) -> None:
    queries = {name: query for name, (query, _) in PAIRS.items()}
    check(queries, {name: bind_query(query, "test", Catalog()) for name, query in queries.items()}, seed, 1, 8, tmp_path)


@pytest.mark.parametrize("name", PAIRS)
def test_rows_are_those_of_two_levels(name: str) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT, b INT); CREATE TABLE u (a INT, b INT)")
        session.insert("t", [{"a": i * 7 % 5 or None, "b": i % 4} for i in range(30)])
        session.insert("u", [{"a": i, "b": i - 2} for i in range(6)])
        one, two = (sorted(map(str, session.query(query).rows())) for query in PAIRS[name])
        assert one == two != []


def test_functions_over_one_window_of_which_one_reads_another_are_two_nodes() -> None:
    query = "SELECT a, count(*) OVER () AS n, max(b) OVER () AS m FROM t QUALIFY sum(n) OVER () > m"
    assert sorted(len(node.calls) for node in nodes(bind_query(query, "test", Catalog())) if isinstance(node, Window)) == [1, 2]
