"""Subqueries in views under changes: values, marks and LATERAL rows; the error of a value with several rows; random queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import duckdb
import pytest

import deltic
from correlated_queries import TABLES, Catalog, Row, random_grouped_query, random_query, random_rows
from deltic.errors import EvaluationError
from deltic.frontends.sql import bind_query
from deltic.plan.evaluate import evaluate
from seeds import rotating
from sessions_of_queries import check, nested

DEFINITIONS = "".join(f"CREATE TABLE {name} (a INT, b INT);" for name in TABLES)


def _session(*queries: str) -> deltic.Session:
    session = deltic.Session()
    session.sql(DEFINITIONS + "".join(f"CREATE MATERIALIZED VIEW v{i} AS {query};" for i, query in enumerate(queries)))
    return session


def _rows(session: deltic.Session, view: str = "v0") -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in session.view(view).rows())


def _change(session: deltic.Session, old: dict[str, dict[Row, int]], new: dict[str, dict[Row, int]]) -> None:
    """One tick from one content of the tables to another."""
    with session.transaction() as tx:
        for name in TABLES:
            before, after = Counter(old.get(name, {})), Counter(new.get(name, {}))
            tx.delete(name, [{"a": a, "b": b} for a, b in (before - after).elements()])
            tx.insert(name, [{"a": a, "b": b} for a, b in (after - before).elements()])


def test_a_value_with_several_rows_rolls_the_tick_back_at_its_place() -> None:
    session = _session("SELECT a, CASE WHEN a > 0 THEN (SELECT b FROM u WHERE u.a = t.a) END AS c FROM t")
    _change(session, {}, {"t": {(0, 0): 1, (1, 0): 1}, "u": {(0, 5): 2, (1, 7): 1}})
    assert _rows(session) == {(0, None): 1, (1, 7): 1}, "CASE does not reach the two rows of 0"
    with pytest.raises(EvaluationError) as caught:
        _change(session, {}, {"u": {(1, 7): 1}})
    assert "the subquery is a value, and has 2 rows" in str(caught.value)
    assert "(SELECT b FROM u WHERE u.a = t.a)" in str(caught.value) and "^" in str(caught.value)
    assert _rows(session) == {(0, None): 1, (1, 7): 1}
    _change(session, {"u": {(1, 7): 1}}, {})
    assert _rows(session) == {(0, None): 1, (1, None): 1}


def test_the_oracle_has_the_same_error() -> None:
    plan = bind_query("SELECT (SELECT b FROM u) AS c FROM t", "test", Catalog())
    tables: dict[str, dict[Row, int]] = {"t": {(1, 1): 1}, "u": {(1, 1): 2}, "v": {}}
    with pytest.raises(EvaluationError, match="has 2 rows"):
        evaluate(plan, tables)
    assert not evaluate(plan, {**tables, "t": {}})


def test_counts_over_nothing_are_0_and_other_aggregates_null() -> None:
    session = _session("SELECT a, (SELECT count(*) + 1 FROM u WHERE u.a < t.a) AS n, (SELECT sum(b) FROM u WHERE u.a = t.a) AS s FROM t")
    _change(session, {}, {"t": {(None, 1): 2, (2, 1): 1}})
    assert _rows(session) == {(None, 1, None): 2, (2, 1, None): 1}
    _change(session, {}, {"u": {(1, 5): 1, (2, 6): 1}})
    assert _rows(session) == {(None, 1, None): 2, (2, 2, 6): 1}
    _change(session, {"u": {(1, 5): 1, (2, 6): 1}}, {})
    assert _rows(session) == {(None, 1, None): 2, (2, 1, None): 1}


def test_in_is_true_or_false_as_a_value_and_null_aware_when_negated() -> None:
    session = _session("SELECT a, a IN (SELECT b FROM u) AS i, a NOT IN (SELECT b FROM u) AS n FROM t")
    _change(session, {}, {"t": {(None, 1): 1, (1, 1): 1, (2, 1): 1}})
    assert _rows(session) == {(None, False, True): 1, (1, False, True): 1, (2, False, True): 1}
    _change(session, {}, {"u": {(0, 1): 1}})
    assert _rows(session) == {(None, False, False): 1, (1, True, False): 1, (2, False, True): 1}
    _change(session, {}, {"u": {(0, None): 1}})
    assert _rows(session) == {(None, False, False): 1, (1, True, False): 1, (2, False, False): 1}


def _check(seed: int, queries: int, ticks: int) -> None:
    """Views follow changes as the oracle says, to the end, when all tables are empty."""
    rng = Random(seed)
    texts = [random_query(rng) for _ in range(queries)] + [random_grouped_query(rng)]
    session, plans = _session(*texts), [bind_query(text, "test", Catalog()) for text in texts]
    old: dict[str, dict[Row, int]] = {}
    for tick in range(ticks):
        new = random_rows(rng) if tick + 1 < ticks else {name: {} for name in TABLES}
        _change(session, old, new)
        old = new
        for i, plan in enumerate(plans):
            assert _rows(session, f"v{i}") == dict(evaluate(plan, new).pairs()), (texts[i], new)


def test_random_queries_follow_changes() -> None:
    _check(0, 2, 3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")
@pytest.mark.parametrize("seed", rotating(59))
def test_more_random_queries_follow_changes(seed: int) -> None:
    _check(seed, 3, 5)


def _check_against_duckdb(seed: int, draw: Callable[[Random], str] = random_query) -> None:
    rng = Random(seed)
    text = draw(rng)
    plan, reference = bind_query(text, "test", Catalog()), duckdb.connect()
    for name in TABLES:
        reference.execute(f"CREATE TABLE {name} (a INT, b INT)")
    tables = random_rows(rng)
    for name, rows in tables.items():
        for row, weight in rows.items():
            reference.execute(f"INSERT INTO {name} SELECT ?, ? FROM range(?)", (*row, weight))
    assert Counter(reference.execute(text).fetchall()) == dict(evaluate(plan, tables).pairs()), (text, tables)


@pytest.mark.parametrize("seed", range(5))
def test_as_duckdb(seed: int) -> None:
    _check_against_duckdb(seed)
    _check_against_duckdb(seed, random_grouped_query)


WRONG_IN_DUCKDB = {1505}
"""LATERAL (SELECT DISTINCT max(b) …) over no rows: DuckDB 2.0 drops the row of the aggregate if DISTINCT is written."""


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 2000, 100))
def test_more_as_duckdb(start: int) -> None:
    for seed in sorted({*range(start, start + 100)} - WRONG_IN_DUCKDB):
        _check_against_duckdb(seed)


MAPPED = (
    "SELECT k FROM m WHERE EXISTS (SELECT 1 FROM u WHERE u.b > m.m['x'])",
    "SELECT k, (SELECT count(*) FROM u WHERE u.b > m.m['x']) AS n, EXISTS (SELECT 1 FROM u WHERE u.a < m.m['y']) AS e FROM m",
    "SELECT k, q.* FROM m, LATERAL (SELECT m.m['y'] AS y, u.b FROM u WHERE u.b < m.m['x'] ORDER BY u.b LIMIT 1) AS q",
    "SELECT k FROM m WHERE k NOT IN (SELECT u.a FROM u WHERE u.b <> m.m['y'])",
)


def test_subqueries_read_maps_as_they_read_columns() -> None:
    session = _session()
    session.sql("CREATE TABLE m (k INT, m MAP<STRING, INT>); CREATE TABLE p (k INT, x INT, y INT)")
    for i, query in enumerate(MAPPED):
        plain = query.replace("m.m['x']", "m.x").replace("m.m['y']", "m.y").replace("FROM m", "FROM p AS m")
        session.sql(f"CREATE MATERIALIZED VIEW v{i} AS {query}; CREATE MATERIALIZED VIEW p{i} AS {plain}")
    names = (
        "CREATE MATERIALIZED VIEW names AS SELECT q.* FROM m, LATERAL (SELECT map_keys(m.m) AS n FROM u WHERE u.b > m.m['x'] LIMIT 1) AS q"
    )
    session.sql(names)
    rng, old, entries = Random(5), dict[str, dict[Row, int]](), list[tuple[int, dict[str, int]]]()
    for _ in range(5):
        new = {"u": random_rows(rng)["u"]}
        _change(session, old, new)
        removed, entries = (
            entries,
            [(rng.randrange(3), dict(rng.sample([("x", rng.randrange(4)), ("y", rng.randrange(4))], 2))) for _ in range(3)],
        )
        with session.transaction() as tx:
            for rows, change in ((removed, tx.delete), (entries, tx.insert)):
                change("m", [{"k": k, "m": value} for k, value in rows])
                change("p", [{"k": k, **value} for k, value in rows])
        old = new
        for i in range(len(MAPPED)):
            assert _rows(session, f"v{i}") == _rows(session, f"p{i}"), MAPPED[i]
        passing = [value for _, value in entries if any(b is not None and b > value["x"] for _, b in new["u"])]
        assert sorted(row["n"] for row in session.view("names").rows()) == sorted(list(value) for value in passing)
    session.close()


def test_any_and_all_compare_values_of_one_type() -> None:
    session = _session("SELECT a, a > ALL (SELECT CAST(b AS STRING) FROM u) AS r FROM t")
    _change(session, {}, {"t": {(10, 0): 1, (None, 0): 1}, "u": {(0, 9): 1}})
    assert _rows(session) == {(10, True): 1, (None, None): 1}, "as numbers, not as texts"
    _change(session, {}, {"u": {(0, None): 1}})
    assert _rows(session) == {(10, None): 1, (None, None): 1}
    _change(session, {}, {"u": {(0, 11): 1}})
    assert _rows(session) == {(10, False): 1, (None, None): 1}
    _change(session, {"u": {(0, 9): 1, (0, None): 1, (0, 11): 1}}, {})
    assert _rows(session) == {(10, True): 1, (None, True): 1}


IN_WINDOWS = {
    "partition": "SELECT a, b, count(*) OVER (PARTITION BY (SELECT max(b) FROM u WHERE u.a = t.a)) AS n FROM t",
    "order": "SELECT a, b, rank() OVER (PARTITION BY a ORDER BY (SELECT sum(b) FROM u WHERE u.a = t.b) DESC, b) AS r FROM t",
    "argument": """
        SELECT a, sum((SELECT max(a) FROM u WHERE u.b = t.b)) OVER (ORDER BY a, b ROWS 1 PRECEDING) AS s, (SELECT max(a) FROM u) AS m FROM t
    """,
    "filter": """
        SELECT a, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)) OVER w AS n
        FROM t WINDOW w AS (PARTITION BY a IN (SELECT a FROM v))
    """,
    "groups": """
        SELECT a, rank() OVER (
            PARTITION BY EXISTS (SELECT 1 FROM u WHERE u.a = t.a) ORDER BY (SELECT max(b) FROM v WHERE v.a = count(t.b))
        ) AS r FROM t GROUP BY a
    """,
    "qualify": """
        SELECT a, b FROM t WHERE b >= (SELECT min(b) FROM v)
        QUALIFY row_number() OVER (ORDER BY (SELECT count(*) FROM u WHERE u.a = t.a), a, b) <= 2
    """,
}


@pytest.mark.parametrize("shards", [1, 3])
def test_subqueries_in_windows(shards: int, tmp_path: Path) -> None:
    check(IN_WINDOWS, {name: nested(query) for name, query in IN_WINDOWS.items()}, shards, shards, 6, tmp_path)
