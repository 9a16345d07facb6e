"""Values outside of two bounds, comparisons that are not TRUE, and missing bounds: the rows of the oracle, and what a change costs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import deltic
from correlated_queries import Catalog
from deltic.frontends.sql import bind_query
from deltic.optimizer import optimize
from deltic.plan.divided_joins import divided
from deltic.plan.nodes import Join, Union
from deltic.plan.walk import nodes
from seeds import rotating
from session_rows import touched_rows
from sessions_of_queries import check, drawn, fails_or_rows, nested
from tests.support.parts import slow

ENDS = "(SELECT min(a) AS lo, max(b) AS hi FROM u)"
BY_KEY = "(SELECT b AS k, 2.5D - avg(a) AS lo, avg(a) AS hi FROM u GROUP BY b)"
QUERIES = {
    "outside": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE t.a > q.hi OR t.a < q.lo",
    "crossed": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE t.a > q.lo OR t.a < q.hi",
    "at the ends": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE t.a >= q.hi OR q.lo >= t.a",
    "one end": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE t.a > q.hi OR t.a <= q.lo",
    "not between": f"SELECT t.a, q.hi FROM {ENDS} AS q, t WHERE t.a NOT BETWEEN q.lo AND q.hi",
    "with more": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE (t.a > q.hi OR t.a < q.lo) AND (t.b = 1 OR q.hi = 0)",
    "by a key": f"SELECT t.a, t.b FROM t JOIN {BY_KEY} AS q ON t.b = q.k WHERE t.a > q.hi OR t.a < q.lo",
    "by a key, at the ends": f"SELECT t.a, q.lo FROM {BY_KEY} AS q JOIN t ON t.b = q.k WHERE t.a <= q.hi OR t.a >= q.lo",
    "counted": f"SELECT t.b, count(*) AS n FROM t JOIN {BY_KEY} AS q ON t.b = q.k WHERE t.a > q.hi OR t.a < q.lo GROUP BY t.b",
    "of a partition": "SELECT a, b FROM t QUALIFY a > avg(a) OVER (PARTITION BY b) OR a < 2.5D - avg(a) OVER (PARTITION BY b)",
    "correlated": "SELECT a, b FROM t WHERE a > (SELECT avg(a) FROM u WHERE u.b = t.b) OR a < (SELECT min(a) FROM u WHERE u.b = t.b)",
    "between types": "SELECT t.a, t.b FROM t, (SELECT avg(a) AS lo, max(b) AS hi FROM u) AS q WHERE t.a > q.lo AND t.a <= q.hi",
    "is true": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE (t.a > q.hi) IS TRUE",
    "is not true": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE (t.a > q.hi) IS NOT TRUE",
    "neither is true": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE (t.a > q.hi) IS NOT TRUE AND (t.a < q.lo) IS NOT TRUE",
    "or false": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE coalesce(t.a > q.hi, FALSE)",
    "not or false": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE NOT coalesce(t.a > q.hi, FALSE)",
    "or true": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE ifnull(t.a > q.hi, TRUE)",
    "or false, and an error": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE coalesce(t.a > q.hi, FALSE) AND t.a + 1 > t.b",
    "is not true, and a value": f"SELECT t.a, q.hi FROM t, {ENDS} AS q WHERE (coalesce(t.a, 1) >= q.hi) IS NOT TRUE",
    "no bound": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE q.hi IS NULL OR t.a <= q.hi",
    "no bound after": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE t.a > q.hi OR q.hi IS NULL",
    "no value": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE t.a > q.hi OR t.a IS NULL",
    "neither": f"SELECT t.a, t.b, q.hi FROM t, {ENDS} AS q WHERE t.a IS NULL OR q.hi IS NULL OR t.a < q.hi",
    "other sides": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE t.b = 1 OR q.lo = 0 OR t.a < q.hi",
    "with errors": f"SELECT t.a, t.b FROM t, {ENDS} AS q WHERE t.a + 1 > q.hi OR q.hi IS NULL OR t.b = 0",
}
SEEDS = [(1, 1), (2, 3), *slow(*((seed, shards) for seed in rotating(12) for shards in (1, 3)))]


@pytest.mark.filterwarnings("ignore:.*equality")
@pytest.mark.parametrize(("seed", "shards"), SEEDS)
def test_queries_have_the_rows_of_the_oracle(seed: int, shards: int, tmp_path: Path) -> None:
    plans = {name: nested(query) if name == "correlated" else bind_query(query, "test", Catalog()) for name, query in QUERIES.items()}
    assert False in check(QUERIES, plans, seed, shards, 8, tmp_path)


NOT_DIVIDED = ("of a partition", "between types", "is true", "neither is true", "or false", "or false, and an error")


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in NOT_DIVIDED])
def test_the_parts_of_a_join_denote_it(name: str) -> None:
    joins = [node for node in nodes(optimize(bind_query(QUERIES[name], "test", Catalog()))) if isinstance(node, Join)]
    parts = [(join, split) for join in joins if join.kind == "inner" and (split := divided(join)) is not None]
    assert parts
    rng, found = Random(0), 0
    for join, split in parts:
        for _ in range(300):
            tables = drawn(rng)
            expected = fails_or_rows(join, tables)
            found += bool(expected)
            assert fails_or_rows(Union(split), tables) == expected, tables
    assert found > 20


MEAN = "SELECT avg(x) AS m, stddev(x) AS s FROM t"
BY_GROUP = "SELECT g, avg(x) AS m, stddev(x) AS s FROM t GROUP BY g"
WORK = {
    "outside": f"SELECT id FROM t, ({MEAN}) AS q WHERE x > m + s OR x < m - s",
    "outside of a group": f"SELECT id FROM t JOIN ({BY_GROUP}) AS q ON t.g = q.g WHERE x > m + s OR x < m - s",
    "counted": f"SELECT t.g, count(*) AS n FROM t JOIN ({BY_GROUP}) q ON t.g = q.g WHERE x NOT BETWEEN m - s AND m + s GROUP BY t.g",
    "of a partition": """SELECT id FROM t
        QUALIFY x > avg(x) OVER (PARTITION BY g) + stddev(x) OVER (PARTITION BY g) OR x < avg(x) OVER (PARTITION BY g)""",
    "of other types": """SELECT id FROM t WHERE y > (SELECT avg(y) FROM t AS o WHERE o.g = t.g)
        OR y < (SELECT max(y) / 4 FROM t AS o WHERE o.g = t.g)""",
    "is not true": f"SELECT id FROM t, ({MEAN}) AS q WHERE (x > m) IS NOT TRUE",
    "is true": f"SELECT id FROM t, ({MEAN}) AS q WHERE (x > m) IS TRUE",
    "no bound": f"SELECT id FROM t, ({MEAN}) AS q WHERE m IS NULL OR x <= m",
    "or false": f"SELECT id FROM t, ({MEAN}) AS q WHERE coalesce(x > m, FALSE)",
    "or true": f"SELECT id FROM t, ({MEAN}) AS q WHERE coalesce(x > m, TRUE)",
    "or another condition": f"SELECT id FROM t, ({MEAN}) AS q WHERE x > m OR g = 2",
    "no bound after": f"SELECT id FROM t, ({MEAN}) AS q WHERE x > m + s OR m IS NULL",
    "no value": f"SELECT id FROM t, ({MEAN}) AS q WHERE x < m OR x IS NULL",
}


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("n", [5_000, *slow(1_000_000)])
def test_a_change_of_the_bounds_touches_the_rows_that_they_pass(name: str, n: int) -> None:
    """Values are as far apart as rows are many, so that a new row moves the bounds by less than their distance."""
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (id INT NOT NULL, g INT, x BIGINT, y INT); CREATE MATERIALIZED VIEW v AS {WORK[name]}")
        session.apply({"t": [{"id": i, "g": i % 4, "x": None if i < 3 else i * n, "y": i * 2_000, "_weight": 1} for i in range(n)]})
        for step in range(3):
            session.apply({"t": [{"id": n + step, "g": 1, "x": n * n // 3 + step, "y": n * 900 + step, "_weight": 1}]})
            assert touched_rows(session) < 300


def test_values_between_bounds_of_two_types_are_looked_up_in_the_interval() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT NOT NULL, x INT); CREATE TABLE u (x INT)")
        session.apply({"t": [{"id": i, "x": i, "_weight": 1} for i in range(20_000)], "u": [{"x": i, "_weight": 1} for i in range(20_000)]})
        bounds = "SELECT avg(x) AS m, max(x) AS s FROM u"
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id FROM t, ({bounds}) AS q WHERE x > m AND x < s")
        session.apply({"u": [{"x": 15_000, "_weight": 1}]})
        assert len(session.view("v").rows()) == 9_999
        assert touched_rows(session) < 300


def test_rows_that_another_condition_leaves_out_are_not_between_the_bounds() -> None:
    """The condition is below the join of the rows with their partitions, in which the average looks them up."""
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT NOT NULL, g INT, x BIGINT, y INT)")
        session.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT id FROM t "
            "QUALIFY x > avg(x) OVER (PARTITION BY g) AND y = 3 AND count(*) OVER (PARTITION BY g) > 1"
        )
        session.apply({"t": [{"id": i, "g": 1, "x": i, "y": i % 1_000, "_weight": 1} for i in range(4_000)]})
        assert sorted(row["id"] for row in session.view("v").rows()) == [2_003, 3_003]
        session.apply({"t": [{"id": 4_000, "g": 1, "x": 4_001 * 3_500 - 3_999 * 2_000, "y": 0, "_weight": 1}]})
        assert session.view("v").rows() == []
        assert touched_rows(session) < 200
