"""Several values of one group beside each row, as correlated subqueries have them: the rows of the oracle, and what a change costs."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltic
from correlated_queries import Catalog
from deltic.frontends.sql import bind_query
from deltic.optimizer import optimize
from deltic.plan.nodes import Aggregate
from deltic.plan.walk import nodes
from seeds import rotating
from session_rows import touched_rows
from sessions_of_queries import check, nested
from tests.support.parts import slow


def of(call: str, condition: str = "u.a = t.a") -> str:
    return f"(SELECT {call} FROM u WHERE {condition})"


MOST, LEAST, MANY = of("max(b)"), of("min(b)"), of("count(*)")
MERGED = {
    "outside": f"SELECT a, b FROM t WHERE b > {MOST} OR b < {LEAST}",
    "outside or missing": f"SELECT a, b FROM t WHERE b > {MOST} OR b < {LEAST} OR b IS NULL",
    "with a default": f"SELECT a, b FROM t WHERE b > coalesce({MOST}, 0) OR b < {LEAST}",
    "with a count": f"SELECT a, b FROM t WHERE b >= {MANY} OR b < {LEAST} + 1",
    "no value": f"SELECT a, b FROM t WHERE {MOST} IS NULL OR b < {LEAST}",
    "values": f"SELECT a, b, {MOST} AS m, {MANY} AS n, {of('avg(b) + 0.5')} AS v, {MOST} AS again FROM t",
    "with errors": f"SELECT a, {of('max(a) + 1', 'u.b = t.b')} AS m, {of('count(*)', 'u.b = t.b')} AS n FROM t",
    "of two columns": f"SELECT a, {of('count(b)', 'u.a = t.a AND u.b = t.b')} AS m, {of('max(a)', 'u.a = t.a AND u.b = t.b')} AS n FROM t",
    "of an expression": f"SELECT a, {of('max(b)', 'u.a = abs(t.b)')} AS m, {of('count(*)', 'u.a = abs(t.b)')} AS n FROM t",
    "where one holds": f"SELECT a, {of('max(b)', 'u.a = t.a AND u.b = 0')} AS m, {of('count(*)', 'u.a = t.a AND u.b = 0')} AS n FROM t",
    "around another": f"SELECT a, {MOST} AS m, (SELECT count(*) FROM v WHERE v.b = t.b) AS n, {LEAST} AS l FROM t",
    "written": """SELECT t.a, p.m, q.n FROM t LEFT JOIN (SELECT a, max(b) AS m FROM u GROUP BY a) AS p ON p.a = t.a
        LEFT JOIN (SELECT a, coalesce(min(b), 7) AS n FROM u GROUP BY a) AS q ON q.a = t.a""",
    "of groups": f"SELECT a, max(b) AS m FROM t GROUP BY a HAVING max(b) > {MOST} OR count(*) > {MANY}",
}
TWO = {
    "between": f"SELECT a, b FROM t WHERE NOT (b > {MOST} OR b < {LEAST})",
    "of other rows": f"SELECT a, {MOST} AS m, {of('max(b)', 'u.a = t.a AND u.b = 0')} AS n FROM t",
    "of other keys": f"SELECT a, {MOST} AS m, {of('max(b)', 'u.a = t.b')} AS n FROM t",
    "each by itself": f"SELECT a, b FROM t WHERE (b > {MOST} OR b IS NULL) AND (b < {MANY} OR b IS NULL)",
    "by a column of the groups": """SELECT t.a, p.m, q.n FROM t LEFT JOIN (SELECT a, max(b) AS m FROM u GROUP BY a) AS p ON p.a = t.a
        LEFT JOIN (SELECT a, max(b) AS n FROM u GROUP BY a) AS q ON q.a = p.m""",
}
QUERIES = {**MERGED, **TWO}
SEEDS = [(1, 1, 3), (2, 3, 3), *slow(*((seed, shards, 8) for seed in rotating(12) for shards in (1, 3)))]


@pytest.mark.parametrize(("seed", "shards", "ticks"), SEEDS)
def test_queries_have_the_rows_of_the_oracle(seed: int, shards: int, ticks: int, tmp_path: Path) -> None:
    assert False in check(QUERIES, {name: nested(query) for name, query in QUERIES.items()}, seed, shards, ticks, tmp_path)


@pytest.mark.parametrize("name", QUERIES)
def test_groups_are_joined_once_if_they_are_the_same(name: str) -> None:
    plan = optimize(bind_query(QUERIES[name], "test", Catalog()))
    values = sum(bool(node.aggregates) for node in nodes(plan) if isinstance(node, Aggregate))
    assert values - (name in ("around another", "of groups")) == (1 if name in MERGED else 2)


WORK = {
    "outside": "SELECT id FROM t WHERE x > (SELECT max(y) FROM u WHERE u.g = t.g) OR x < (SELECT min(y) FROM u WHERE u.g = t.g)",
    "means": """SELECT id FROM t WHERE x > (SELECT avg(y) + 2 * stddev(y) FROM u WHERE u.g = t.g)
        OR x < (SELECT avg(y) - 2 * stddev(y) FROM u WHERE u.g = t.g)""",
    "with a default": """SELECT id FROM t WHERE x > (SELECT max(y) FROM u WHERE u.g = t.g)
        OR x < coalesce((SELECT min(y) FROM u WHERE u.g = t.g), 0) OR x IS NULL""",
    "not between": """SELECT id FROM t WHERE x NOT BETWEEN (SELECT min(y) FROM u WHERE u.g = t.g)
        AND (SELECT max(y) FROM u WHERE u.g = t.g)""",
    "of its own": """SELECT id FROM t WHERE x > (SELECT avg(x) FROM t AS o WHERE o.g = t.g)
        OR x < (SELECT avg(x) / 2 FROM t AS o WHERE o.g = t.g)""",
}


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("n", [4_000, *slow(400_000)])
def test_a_change_of_the_bounds_touches_the_rows_that_they_pass(name: str, n: int) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT NOT NULL, g INT, x BIGINT); CREATE TABLE u (g INT, y BIGINT)")
        session.sql(f"CREATE MATERIALIZED VIEW v AS {WORK[name]}")
        rows = [{"id": i, "g": i % 4, "x": None if i < 3 else i * n, "_weight": 1} for i in range(n)]
        session.apply({"t": rows, "u": [{"g": i % 4, "y": (n // 4 + i // 2) * n, "_weight": 1} for i in range(n)]})
        for y in (n * n // 2, n * n * 3 // 4 + n, n * n // 4 - n):
            session.apply({"u": [{"g": 1, "y": y, "_weight": 1}], "t": [{"id": n, "g": 1, "x": y, "_weight": 1}]})
            assert touched_rows(session) < 400
