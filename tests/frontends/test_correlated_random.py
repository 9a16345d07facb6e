"""Random queries with subqueries in any place: unnested they denote what dependent joins denote, which the oracle evaluates row by row."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from correlated_queries import Catalog, random_grouped_query, random_query, random_rows
from deltic.frontends.sql import bind_query
from deltic.plan.columns import agrees
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import DependentJoin
from deltic.plan.walk import nodes
from seeds import rotating
from sessions_of_queries import nested


def _check(seed: int, draw: Callable[[Random], str] = random_query) -> None:
    rng = Random(seed)
    sql = draw(rng)
    as_written, plan = nested(sql), bind_query(sql, "test", Catalog())
    assert agrees(plan), sql
    assert not any(isinstance(node, DependentJoin) for node in nodes(plan)), sql
    for _ in range(3):
        tables = random_rows(rng)
        assert evaluate(plan, tables) == evaluate(as_written, tables), (sql, tables)


@pytest.mark.parametrize("seed", range(12))
def test_unnested_as_row_by_row(seed: int) -> None:
    _check(seed)


@pytest.mark.parametrize("seed", range(12))
def test_aggregates_of_the_outer_query_are_those_of_its_groups(seed: int) -> None:
    _check(seed, random_grouped_query)


WINDOWED = (
    "SELECT a, (SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY a ORDER BY b) AS n FROM u WHERE u.b <> t.a) q) AS m FROM t",
    "SELECT t.a, q.* FROM t, LATERAL (SELECT u.b, rank() OVER (ORDER BY u.b DESC) AS r FROM u WHERE u.a <= t.a) AS q",
    "SELECT t.a, q.* FROM t, LATERAL (SELECT u.b FROM u WHERE u.a = t.a QUALIFY row_number() OVER (ORDER BY u.b) <= t.b) AS q",
    "SELECT a, row_number() OVER (ORDER BY a, b) AS n, (SELECT count(*) FROM u WHERE u.a < t.a) AS c FROM t",
    "SELECT a FROM t WHERE b IN (SELECT sum(u.b) OVER (PARTITION BY u.a) FROM u WHERE u.a > t.a)",
)


@pytest.mark.parametrize("sql", WINDOWED)
def test_windows_are_evaluated_for_each_outer_row(sql: str) -> None:
    rng = Random(0)
    for _ in range(10):
        tables = random_rows(rng)
        assert evaluate(bind_query(sql, "test", Catalog()), tables) == evaluate(nested(sql), tables), tables


@pytest.mark.slow
@pytest.mark.parametrize("start", rotating(2_000)[::200])
def test_more_unnested_as_row_by_row(start: int) -> None:
    for seed in range(start, start + 200):
        _check(seed)
        _check(seed, random_grouped_query)
