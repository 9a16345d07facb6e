"""Equalities that can fail look rows up where they are no keys, and fail where the oracle says; subqueries against dependent joins."""

from __future__ import annotations

import warnings
from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from correlated_queries import Catalog
from deltic.errors import EvaluationError
from deltic.expr.functions import failures
from deltic.frontends.sql import bind_query
from deltic.plan.guarded_keys import by_guarded_key, guarded_key
from deltic.plan.nodes import Filter, Join, Union
from deltic.plan.walk import nodes
from seeds import rotating
from sessions_of_queries import DEFINITIONS, MOST, check, check_isolated, check_looked_up, drawn, fails_or_rows, nested
from tests.support.parts import slow

JOINS = {
    "comma": "SELECT t.a, u.b FROM t, u WHERE t.a + 1 = u.a",
    "guarded": "SELECT t.a, t.b, u.b AS c FROM t JOIN u ON t.b <> u.b AND t.a + 1 = u.a",
    "right side": "SELECT t.a, u.b FROM t JOIN u ON t.b <> u.b AND t.a = u.a + 1",
    "both sides": "SELECT t.a, u.b FROM t JOIN u ON t.b <> u.b AND u.a + 1 = t.a - 1 + 2",
    "two": "SELECT t.a, u.b FROM t JOIN u ON t.b <> u.b AND t.a + 1 = u.a AND t.b = u.b + 1",
    "null-safe": "SELECT t.a, u.b FROM t JOIN u ON t.b <> u.b AND t.a + 1 <=> u.a",
    "range": "SELECT t.a, u.b FROM t JOIN u ON t.b < u.b AND t.a + 1 = u.a",
    "left": "SELECT t.a, u.b FROM t LEFT JOIN u ON t.b <> u.b AND t.a + 1 = u.a",
    "full": "SELECT t.a, u.b FROM t FULL JOIN u ON t.b <> u.b AND t.a + 1 = u.a",
    "exists": "SELECT a, b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.b <> u.b AND t.a + 1 = u.a)",
    "not exists": "SELECT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE t.b <> u.b AND t.a = u.a + 1)",
    "in": "SELECT a, b FROM t WHERE a + 1 IN (SELECT a FROM u WHERE t.b <> u.b)",
    "counted": "SELECT t.b, count(*) AS n FROM t, u WHERE t.a + 1 = u.a GROUP BY t.b",
}
OF_THREE = {
    "chain": "SELECT t.a, u.b, v.b AS c FROM t, u, v WHERE t.a + 1 = u.a AND u.b + 1 = v.a",
    "another order": "SELECT t.a, u.b, v.b AS c FROM t, v, u WHERE t.a + 1 = u.a + 1 AND u.b + 1 = v.a",
    "a key": "SELECT t.a, u.b FROM t, u JOIN v ON u.b = v.b, t AS w WHERE t.a + 1 = u.a AND v.a = w.a + 1 AND w.b = t.b",
    "filtered": "SELECT t.a, u.b FROM t, u, v WHERE t.b > 0 AND t.a + 1 = u.a AND u.a - 1 = v.a AND v.b <> 1 AND t.b + u.b > v.b",
}
SUBQUERIES = {
    "value": "SELECT a, (SELECT max(b) FROM u WHERE u.a = t.a + 1) AS m FROM t",
    "other side": "SELECT a, (SELECT sum(b) FROM u WHERE u.a + 1 = t.a) AS s FROM t",
    "both sides": "SELECT a, (SELECT count(*) FROM u WHERE u.a + 1 = t.a + 2) AS n FROM t",
    "more": "SELECT a, (SELECT count(*) FROM u WHERE u.b <> t.b AND u.a = t.a + 1) AS n FROM t",
    "compared": "SELECT a FROM t WHERE b > (SELECT avg(b) FROM u WHERE u.a = t.a + 1)",
    "lateral": "SELECT t.a, q.m FROM t LEFT JOIN LATERAL (SELECT max(b) AS m FROM u WHERE u.a = t.a + 1) AS q ON TRUE",
    "first rows": "SELECT t.a, q.b FROM t, LATERAL (SELECT b FROM u WHERE u.a = t.a + 1 ORDER BY b LIMIT 1) AS q",
    "joined": "SELECT a, (SELECT sum(u.b) FROM u JOIN v ON u.b = v.b WHERE v.a = t.a + 1) AS s FROM t",
}
SEEDS = [(1, 1), (2, 3), *slow(*((seed, shards) for seed in rotating(12) for shards in (1, 3)))]


@pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")
@pytest.mark.parametrize(("seed", "shards"), SEEDS)
def test_joins_have_the_rows_and_errors_of_the_oracle(seed: int, shards: int) -> None:
    plans = {name: bind_query(query, "test", Catalog()) for name, query in JOINS.items()}
    assert False in (outcomes := check(JOINS, plans, seed, shards, 8)) and (True in outcomes or seed > 2)


@pytest.mark.parametrize(("seed", "shards"), SEEDS)
def test_joins_of_three_have_the_rows_of_the_oracle_and_no_other_errors(seed: int, shards: int) -> None:
    """A pair of which another equality is not TRUE raises no error."""
    plans = {name: bind_query(query, "test", Catalog()) for name, query in OF_THREE.items()}
    check(OF_THREE, plans, seed, shards, 8, exact=False)


@pytest.mark.parametrize(("seed", "shards"), SEEDS)
def test_subqueries_have_the_rows_and_errors_of_dependent_joins(seed: int, shards: int) -> None:
    plans = {name: nested(query) for name, query in SUBQUERIES.items()}
    assert False in (outcomes := check(SUBQUERIES, plans, seed, shards, 8)) and (True in outcomes or seed > 2)


@pytest.mark.parametrize(("seed", "shards"), [(1, 1), *slow(*((seed, 2 + seed % 2) for seed in rotating(4)))])
def test_they_resume_after_a_restart_with_another_number_of_shards(seed: int, shards: int, tmp_path: Path) -> None:
    queries = {name: JOINS[name] for name in ("guarded", "both sides", "not exists")}
    plans = {name: bind_query(query, "test", Catalog()) for name, query in queries.items()}
    check(queries, plans, seed, shards, 6, tmp_path)


@pytest.mark.parametrize("name", ["guarded", "right side", "both sides", "two", "null-safe", "range"])
def test_the_parts_of_a_join_denote_it(name: str) -> None:
    (join,) = [node for node in nodes(bind_query(JOINS[name], "test", Catalog())) if isinstance(node, Join)]
    parts = by_guarded_key(join)
    assert parts is not None and len(parts) == 2 + (name == "both sides")
    assert all(guarded_key(node) is None for part in parts for node in nodes(part) if isinstance(node, Join))
    rng, outcomes = Random(0), set()
    for _ in range(200):
        tables = drawn(rng)
        expected = fails_or_rows(join, tables)
        outcomes.add(expected is None)
        assert fails_or_rows(Union(parts), tables) == expected, tables
    assert outcomes == {True, False}


def test_what_fails_is_the_written_equality() -> None:
    with deltic.Session() as session:
        session.sql(f"{DEFINITIONS} CREATE MATERIALIZED VIEW answer AS {JOINS['guarded']}")
        session.sql(f"INSERT INTO t VALUES ({MOST}, 1)")
        session.sql("INSERT INTO u VALUES (1, 1)")
        with pytest.raises(EvaluationError, match=r"INT addition(.|\n)*t\.a \+ 1"):
            session.sql("INSERT INTO u VALUES (1, 2)")
        assert session.view("answer").rows() == []


LOOKED_UP = [
    *JOINS.values(),
    *SUBQUERIES.values(),
    "SELECT t.a, u.b FROM t JOIN u ON t.b <> u.b AND CAST(CAST(t.a AS STRING) AS INT) = u.a",
    "WITH RECURSIVE r AS (SELECT 0 AS n UNION SELECT u.a FROM r, u WHERE r.n + 1 = u.a AND u.a < 5) SELECT n FROM r",
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1_000, *slow(100_000)])
def test_a_changed_row_is_looked_up(n: int) -> None:
    """That all rows of the other side are compared would be a warning, too."""
    for query in (*LOOKED_UP, *OF_THREE.values()):
        with deltic.Session() as session:
            check_looked_up(session, query, n, 150)


@pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")
@pytest.mark.parametrize(("seed", "shards"), [(1, 1), *slow(*((seed, shards) for seed in rotating(10) for shards in (1, 3)))])
def test_where_errors_are_isolated_a_view_fails_where_the_oracle_does(seed: int, shards: int) -> None:
    """It has its rows again after every tick without an error."""
    outcomes = set[bool]()
    joins = [JOINS[name] for name in ("comma", "both sides", "left", "not exists")]
    subqueries = [SUBQUERIES[name] for name in ("value", "joined")]
    for query in (*joins, *subqueries):
        plan = bind_query(query, "test", Catalog()) if query in joins else nested(query)
        outcomes |= check_isolated(query, plan, seed, shards)
    assert False in outcomes and (True in outcomes or seed > 2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1_000, *slow(100_000)])
def test_where_errors_are_isolated_a_changed_row_is_looked_up(n: int) -> None:
    for query in LOOKED_UP[:-1]:
        with deltic.Session(on_view_error="isolate") as session:
            check_looked_up(session, query, n, 200)


def test_functions_of_users_are_not_called_again() -> None:
    """Their results are no keys where a condition guards them."""
    with deltic.Session() as session, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session.sql(DEFINITIONS)
        calls: list[int | None] = []

        def successor(n: int | None) -> int | None:
            calls.append(n)
            return None if n is None else n + 1

        session.register("successor", successor, "INT")
        session.sql("CREATE MATERIALIZED VIEW answer AS SELECT t.a FROM t JOIN u ON t.b <> u.b AND successor(t.a) = u.a")
        assert any("no equality joins u" in str(one.message) for one in caught)
        session.sql("INSERT INTO t VALUES (1, 1)")
        assert not calls
        session.sql("INSERT INTO u VALUES (2, 2)")
        assert session.view("answer").rows() == [{"a": 1}] and calls == [1]


def test_an_equality_that_is_guarded_by_nothing_is_a_key() -> None:
    plan = bind_query("SELECT t.a FROM t JOIN u ON t.a + 1 = u.a", "test", Catalog())
    assert [len(node.keys) for node in nodes(plan) if isinstance(node, Join)] == [1]
    assert not any(isinstance(node, Filter) for node in nodes(plan))


def test_rows_that_fail_for_good_cost_as_others() -> None:
    """Half of the rows would fail on the equality, but a condition before it is FALSE: each is evaluated a few times, in its tick alone."""
    rows, few = [{"kind": "nw"[i % 2], "s": f"{'' if i % 2 == 0 else 'w'}{i}"} for i in range(2_000)], [{"k": i} for i in range(50)]
    evaluated = 0
    error = failures._error

    def counted(expr: Any, row: Any) -> Any:
        nonlocal evaluated
        evaluated += 1
        return error(expr, row)

    with deltic.Session() as session, pytest.MonkeyPatch.context() as patch:
        patch.setattr(failures, "_error", counted)
        session.sql("CREATE TABLE t (kind STRING, s STRING); CREATE TABLE u (k INT)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT s, k FROM t LEFT JOIN u ON kind = 'n' AND CAST(s AS INT) = k")
        with session.transaction() as tx:
            tx.insert("u", few)
            tx.insert("t", rows)
        assert len(session.view("v").rows()) == 2_000 and sum(row["k"] is not None for row in session.view("v").rows()) == 25
        assert 0 < evaluated < 10 * len(rows)
