"""Joins by the branches of an OR: the rows of the oracle, what a new row costs, and what is still compared with all rows."""

from __future__ import annotations

import warnings
from pathlib import Path
from random import Random

import pytest

import deltic
from correlated_queries import Catalog
from deltic.frontends.sql import bind_query
from deltic.optimizer import optimize
from deltic.plan.alternative_keys import by_alternatives, has_alternatives
from deltic.plan.nodes import Join, Union
from deltic.plan.walk import nodes
from seeds import rotating
from sessions_of_queries import DEFINITIONS, check, check_looked_up, drawn, fails_or_rows
from tests.support.parts import slow

EITHER = "(t.a = u.a OR t.b = u.b)"
JOINS = {
    "two": f"SELECT t.a, t.b, u.a AS c, u.b AS d FROM t JOIN u ON {EITHER}",
    "comma": f"SELECT t.a, u.b FROM t, u WHERE {EITHER} AND t.b <> u.a",
    "in": "SELECT t.a, t.b, u.a AS c, u.b AS d FROM t JOIN u ON t.a IN (u.a, u.b)",
    "branches with more": "SELECT t.a, u.b FROM t JOIN u ON (t.a = u.a AND t.b <> u.b) OR (t.b = u.b AND t.a < u.a) OR t.a = u.b",
    "constant": "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a OR t.b = 1 OR u.b = 0",
    "null-safe": "SELECT t.a, u.b FROM t JOIN u ON t.a <=> u.a OR t.b = u.b",
    "wildcards": "SELECT t.a, t.b, u.a AS c, u.b AS d FROM t JOIN u ON (u.a IS NULL OR t.a = u.a) AND (u.b IS NULL OR t.b = u.b)",
    "wildcard on the left": "SELECT t.a, t.b, u.a AS c, u.b AS d FROM t JOIN u ON t.a = u.a OR t.a IS NULL",
    "first on the left": "SELECT t.a, t.b, u.a AS c, u.b AS d FROM t JOIN u ON t.a IS NULL OR t.a = u.a",
    "range": "SELECT t.a, t.b, u.a AS c, u.b AS d FROM t JOIN u ON t.a = u.a OR t.b < u.b",
    "open ends": "SELECT t.b, u.a, u.b AS c FROM t JOIN u ON (t.a >= u.a OR u.a IS NULL) AND (t.a <= u.b OR u.b IS NULL)",
    "errors": "SELECT t.a, u.b FROM t JOIN u ON (t.a = u.a AND t.a IS NOT NULL AND u.a IS NOT NULL AND t.a + 1 <> u.b) OR t.b = u.b",
    "left": f"SELECT t.a, t.b, u.b AS c FROM t LEFT JOIN u ON {EITHER}",
    "right": f"SELECT t.a, u.a AS b, u.b AS c FROM t RIGHT JOIN u ON {EITHER} AND t.b < 1",
    "full": f"SELECT t.a, t.b, u.a AS c, u.b AS d FROM t FULL JOIN u ON {EITHER}",
    "exists": f"SELECT a, b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE {EITHER})",
    "not exists": f"SELECT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE {EITHER})",
    "not in": f"SELECT a, b FROM t WHERE a NOT IN (SELECT u.b FROM u WHERE {EITHER})",
    "counted": f"SELECT t.b, count(*) AS n, sum(u.a) AS s FROM t, u WHERE {EITHER} GROUP BY t.b",
    "itself": "SELECT x.a, x.b, y.a AS c, y.b AS d FROM t x JOIN t y ON (x.a = y.a OR x.b = y.b) AND x.a <= y.a",
    "three": f"SELECT t.a, u.b, v.b AS c FROM t JOIN u ON {EITHER} JOIN v ON v.a = u.a",
    "recursive": (
        "WITH RECURSIVE r AS (SELECT a, b FROM t WHERE a = 0 UNION SELECT u.a, u.b FROM r JOIN u ON r.a = u.b OR r.b = u.a)"
        " SELECT a, b FROM r"
    ),
}
SEEDS = [(1, 1), (2, 3), *slow(*((seed, shards) for seed in rotating(12) for shards in (1, 3)))]


@pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")
@pytest.mark.parametrize(("seed", "shards"), SEEDS)
def test_joins_have_the_rows_of_the_oracle(seed: int, shards: int) -> None:
    plans = {name: bind_query(query, "test", Catalog()) for name, query in JOINS.items()}
    assert False in check(JOINS, plans, seed, shards, 8)


@pytest.mark.parametrize(("seed", "shards"), [(1, 1), *slow(*((seed, 2 + seed % 2) for seed in rotating(4)))])
def test_they_resume_after_a_restart_with_another_number_of_shards(seed: int, shards: int, tmp_path: Path) -> None:
    queries = {name: JOINS[name] for name in ("two", "wildcards", "not exists")}
    plans = {name: bind_query(query, "test", Catalog()) for name, query in queries.items()}
    check(queries, plans, seed, shards, 6, tmp_path)


@pytest.mark.parametrize(
    "name", ["two", "in", "branches with more", "constant", "wildcards", "first on the left", "range", "open ends", "errors"]
)
def test_the_parts_of_a_join_denote_it(name: str) -> None:
    (join,) = [node for node in nodes(optimize(bind_query(JOINS[name], "test", Catalog()))) if isinstance(node, Join)]
    parts = by_alternatives(join)
    assert parts is not None
    rng, found = Random(0), 0
    for _ in range(200):
        tables = drawn(rng)
        expected = fails_or_rows(join, tables)
        found += bool(expected)
        assert fails_or_rows(Union(parts), tables) == expected, tables
    assert found > 20


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1_000, *slow(100_000)])
def test_a_changed_row_is_looked_up(n: int) -> None:
    """That all rows of the other side are compared would be a warning, too."""
    for name, query in JOINS.items():
        if name not in ("constant", "range", "open ends", "itself", "recursive"):  # these have as many matches
            with deltic.Session() as session:
                check_looked_up(session, query, n, 250)


@pytest.mark.parametrize(
    "condition",
    [
        "t.a = u.a OR t.b <> u.b",
        "t.a = u.a OR t.b + u.b = 3",
        "t.a = u.a OR t.b / u.b = 1",
        "t.a IN (u.a, u.b, 1) OR t.b + u.b > 7",
        "t.a = u.a OR " + " OR ".join(f"t.b = u.b + {i}" for i in range(9)),
    ],
)
def test_other_conditions_are_compared_with_all_rows(condition: str) -> None:
    """Of which a warning says so."""
    (join,) = [node for node in nodes(bind_query(f"SELECT t.a FROM t JOIN u ON {condition}", "test", Catalog())) if isinstance(node, Join)]
    assert not has_alternatives(join)
    with deltic.Session() as session, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session.sql(f"{DEFINITIONS} CREATE MATERIALIZED VIEW answer AS SELECT t.a FROM t JOIN u ON {condition}")
    assert any("no equality joins u" in str(one.message) for one in caught)
