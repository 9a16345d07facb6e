"""Recursions that read columns of the queries around them: unnested they denote what the oracle evaluates for each row, as DuckDB does."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import duckdb
import pytest
from test_correlated_random import nested

from correlated_queries import Catalog, Row, random_rows
from deltic.frontends.sql import bind_query
from deltic.plan.columns import agrees
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import DependentJoin
from deltic.plan.relation import Relation
from deltic.plan.walk import nodes
from parts import slow
from seeds import rotating

AROUND = (
    "SELECT t.a, t.b, (SELECT count(*) FROM ({}) AS q) AS n FROM t",
    "SELECT t.a, q.x FROM t, LATERAL ({}) AS q",
    "SELECT t.a, q.x FROM t LEFT JOIN LATERAL ({}) AS q ON TRUE",
    "SELECT t.a, t.b FROM t WHERE EXISTS (SELECT 1 FROM ({}) AS q WHERE q.x = t.b)",
    "SELECT t.a, t.b FROM t WHERE NOT EXISTS (SELECT 1 FROM ({}) AS q WHERE q.x > t.b)",
    "SELECT t.a, t.b FROM t WHERE t.b NOT IN ({})",
    "SELECT t.a, t.b FROM t WHERE t.b IN ({}) OR t.a > 2",
    "SELECT t.a, (SELECT max(q.x) FROM ({}) AS q WHERE q.x <> t.b) AS n FROM t",
    "SELECT t.a FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.a = t.b AND v.b IN ({}))",
    "SELECT t.a, (SELECT count(*) FROM v WHERE v.a IN ({})) AS n FROM t",
)
BASES = (
    "SELECT u.b FROM u WHERE u.a = t.a",
    "SELECT t.a",
    "SELECT u.a FROM u WHERE u.a < t.b",
    "SELECT 1",
    "SELECT u.b FROM u LEFT JOIN v AS w ON w.a = u.b AND w.b = t.b WHERE w.a IS NULL",
)
STEPS = (
    "SELECT u.b FROM r JOIN u ON u.a = r.x",
    "SELECT u.b FROM r JOIN u ON u.a = r.x WHERE u.b <> t.b",
    "SELECT w.b FROM r JOIN v AS w ON w.a = r.x WHERE w.b NOT IN (SELECT u.a FROM u WHERE u.b = t.b)",
    "SELECT r.x + 1 FROM r WHERE r.x < t.a",
    "SELECT q.b FROM r, LATERAL (SELECT u.b FROM u WHERE u.a = r.x AND u.b >= t.b) AS q",
    "SELECT u.b FROM r JOIN u ON u.a = r.x WHERE EXISTS (SELECT 1 FROM v AS w WHERE w.a = r.x AND w.b = t.a) OR u.b > t.b",
)
OWN_STEPS = (
    "SELECT q.x + 1 FROM r AS q JOIN r AS p ON q.x = p.x WHERE q.x < t.b",
    "SELECT u.b FROM u WHERE u.a IN (SELECT x FROM r) OR (u.a = t.b AND (SELECT count(*) FROM r) >= 2)",
    "SELECT x FROM (WITH RECURSIVE s (x) AS (SELECT x FROM r UNION SELECT u.b FROM s JOIN u ON u.a = s.x AND u.b <> t.a) "
    "SELECT x FROM s) AS s",
    "SELECT u.b FROM u LEFT JOIN (SELECT DISTINCT x FROM r) AS q ON q.x = u.a WHERE q.x IS NOT NULL OR u.b = t.a",
)
"""Those in which DuckDB reads only the rows of the previous iteration."""
WHOLE = (
    "WITH RECURSIVE r (x, k) AS (SELECT x, min(k) FROM (SELECT t.a AS x, 0 AS k UNION ALL SELECT u.b, k + 1 FROM r JOIN u ON u.a = r.x "
    "WHERE u.b IS DISTINCT FROM t.b) GROUP BY x) SELECT k AS x FROM r",
    "WITH RECURSIVE r (x) AS (SELECT t.a UNION ALL SELECT u.b FROM r JOIN u ON u.a = r.x AND u.b > u.a WHERE u.b <> t.b) SELECT x FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 0 UNION ALL SELECT r.x + 1 FROM r WHERE r.x < t.a) SELECT x FROM r WHERE x >= t.b",
    "WITH RECURSIVE r (x) AS (SELECT u.b FROM u WHERE u.a = t.a UNION SELECT u.b FROM r JOIN u ON u.a = r.x), "
    "s (x) AS (SELECT v.a FROM v WHERE v.a NOT IN (SELECT x FROM r WHERE x IS NOT NULL) UNION SELECT v.b FROM s JOIN v ON v.a = s.x "
    "AND v.b <> t.b) SELECT x FROM s",
    "WITH RECURSIVE r (x, y) AS (SELECT u.a, u.b FROM u UNION SELECT r.x, v.b FROM r JOIN v ON v.a = r.y AND t.a = v.b) "
    "SELECT y AS x FROM r",
)


def random_query(rng: Random, *, own: bool = True) -> str:
    if rng.random() < 0.3:
        return rng.choice(AROUND).format(rng.choice(WHOLE if own else WHOLE[1:]))
    steps = rng.sample(STEPS + OWN_STEPS * own, rng.choice((1, 1, 2)) if own else 1)
    union = " UNION ".join((rng.choice(BASES), *steps))
    return rng.choice(AROUND).format(f"WITH RECURSIVE r (x) AS ({union}) SELECT x FROM r")


def by_duckdb(sql: str, tables: Mapping[str, Mapping[Row, int]]) -> Relation:
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.execute(f"CREATE TABLE {name} (a INT, b INT)")
            for row, weight in rows.items():
                connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", [row] * weight)
        return Relation((row, 1) for row in connection.execute(sql).fetchall())


def check(seed: int, times: int = 3) -> None:
    rng = Random(f"recursion {seed}")
    sql = random_query(rng)
    plan = bind_query(sql, "test", Catalog())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("deltic.frontends.sql.bind_recursive.check_monotone", lambda _: None)  # it reads no dependent joins
        as_written = nested(sql)
    assert agrees(plan), sql
    assert not any(isinstance(node, DependentJoin) for node in nodes(plan)), sql
    for _ in range(times):
        tables = random_rows(rng)
        assert evaluate(plan, tables) == evaluate(as_written, tables), (sql, tables)


@pytest.mark.parametrize("seed", [*range(12), *slow(*rotating(120))])
def test_unnested_as_row_by_row(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", [*range(6), *slow(*rotating(60))])
def test_duckdb_agrees(seed: int) -> None:
    rng = Random(f"duckdb {seed}")
    sql = random_query(rng, own=False)
    for _ in range(3):
        tables = random_rows(rng)
        assert evaluate(bind_query(sql, "test", Catalog()), tables) == by_duckdb(sql, tables), (sql, tables)
