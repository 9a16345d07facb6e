"""NOT IN of several columns: the rows of the oracle and of DuckDB after every tick, and antijoins by keys instead of all pairs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import duckdb
import pytest

import deltic
from correlated_queries import TABLES, Catalog
from deltic.frontends.sql import bind_query
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Join
from deltic.plan.null_patterns import by_null_patterns, has_possible_keys
from deltic.plan.walk import nodes
from seeds import rotating
from session_rows import touched_rows
from tests.support.parts import slow

QUERIES = {
    "two": "SELECT a, b FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u)",
    "three": "SELECT a, b FROM t WHERE (a, b, a) NOT IN (SELECT a, b, b FROM u)",
    "four": "SELECT t.a, t.b FROM t, v WHERE (t.a, t.b, v.a, v.b) NOT IN (SELECT a, b, b, a FROM u)",
    "correlated": "SELECT a, b FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u WHERE u.a = t.b)",
    "by another condition": "SELECT a, b FROM t WHERE (a, b) NOT IN (SELECT b, a FROM u WHERE u.a <> t.b)",
    "by order": "SELECT a, b FROM t WHERE (a, b) NOT IN (SELECT b, a FROM u WHERE u.a > t.b)",
    "by groups": "SELECT a, b FROM t WHERE (a, b) NOT IN (SELECT a, max(b) FROM u GROUP BY a)",
    "one nullable": "SELECT a, b FROM t WHERE (a, b) NOT IN (SELECT a, count(*) FROM u GROUP BY a)",
    "as a value": "SELECT a, (a, b) NOT IN (SELECT a, b FROM u) AS n FROM t",
    "in a condition": "SELECT a FROM t WHERE a > 1 OR (a, b) NOT IN (SELECT a, b FROM u WHERE u.b = t.b)",
    "after a join": "SELECT t.a, v.b FROM t LEFT JOIN v ON t.a = v.a WHERE (t.a, v.b) NOT IN (SELECT a, b FROM u)",
    "can fail": "SELECT a, b FROM t WHERE (a + 1, b) NOT IN (SELECT a, b FROM u)",
}
RECURSIVE = (
    "WITH RECURSIVE r AS (SELECT a, b FROM t UNION SELECT r.b, v.b FROM r JOIN v ON r.a = v.a WHERE (r.b, v.b) NOT IN (SELECT a, b FROM u))"
    " SELECT a, b FROM r"
)


def definitions(constraint: str = "") -> str:
    return "".join(f"CREATE TABLE {name} (a INT {constraint}, b INT {constraint});" for name in TABLES)


def drawn(rng: Random, null: bool) -> dict[str, Counter[tuple[int | None, int | None]]]:
    values = (None, 0, 1, 2) if null and rng.random() < 0.7 else (0, 1, 2)
    return {name: Counter((rng.choice(values), rng.choice(values)) for _ in range(rng.choice((0, 1, 3, 8)))) for name in TABLES}


def check(queries: dict[str, str], seed: int, shards: int, null: bool, state: Path | None = None) -> None:
    """The views over changing tables, with a restart in between if they have a state."""
    rng, held = Random(seed), {name: Counter[tuple[int | None, int | None]]() for name in TABLES}
    plans = {name: bind_query(query, "test", Catalog()) for name, query in queries.items()}
    views = "".join(f"CREATE MATERIALIZED VIEW `{name}` AS {query};" for name, query in queries.items())
    script = definitions("" if null else "NOT NULL") + views
    session = deltic.Session(state=state, shards=shards)
    session.sql(script)
    for tick in range(10):
        if state is not None and tick == 5:
            session.close()
            session = deltic.Session(state=state, shards=shards + 1)
            session.sql(script)
        new = drawn(rng, null)
        with session.transaction() as tx:
            for table in TABLES:
                tx.delete(table, [{"a": a, "b": b} for a, b in (held[table] - new[table]).elements()])
                tx.insert(table, [{"a": a, "b": b} for a, b in (new[table] - held[table]).elements()])
        held = new
        for name, plan in plans.items():
            rows = Counter(tuple(row.values()) for row in session.view(name).rows())
            assert rows == dict(evaluate(plan, new).pairs()), (name, new)
    session.close()


@pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")
@pytest.mark.parametrize("null", [True, False])
@pytest.mark.parametrize(("seed", "shards"), [(1, 1), (2, 3), *slow(*((seed, shards) for seed in rotating(12) for shards in (1, 3)))])
def test_views_have_the_rows_of_the_oracle(seed: int, shards: int, null: bool) -> None:
    check(QUERIES | {"recursive": RECURSIVE}, seed, shards, null)


@pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")
@pytest.mark.parametrize("shards", [1, *slow(2, 3)])
def test_they_resume_after_a_restart_with_another_number_of_shards(shards: int, tmp_path: Path) -> None:
    check({name: QUERIES[name] for name in ("two", "correlated", "as a value")}, shards, shards, True, tmp_path / "state")


@pytest.mark.parametrize("seed", [1, *slow(*rotating(18))])
def test_the_oracle_is_right(seed: int) -> None:
    """As DuckDB, where that supports the query."""
    rng = Random(seed)
    for name in ("two", "three", "four", "by groups", "one nullable", "after a join", "can fail"):
        plan = bind_query(QUERIES[name], "test", Catalog())
        for _ in range(5):
            tables = drawn(rng, True)
            with duckdb.connect() as other:
                other.execute(definitions())
                for table, rows in tables.items():
                    for row in rows.elements():
                        other.execute(f"INSERT INTO {table} VALUES (?, ?)", row)
                expected = Counter(other.execute(QUERIES[name]).fetchall())
            assert expected == dict(evaluate(plan, tables).pairs()), (name, tables)


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in ("in a condition", "as a value")])
def test_the_antijoins_denote_the_join(name: str) -> None:
    (join,) = [node for node in nodes(bind_query(QUERIES[name], "test", Catalog())) if isinstance(node, Join) and node.kind == "anti"]
    divided = by_null_patterns(join)
    assert divided is not None
    assert not any(has_possible_keys(node) for node in nodes(divided) if isinstance(node, Join)) or name in ("three", "four")
    rng = Random(0)
    for _ in range(200):
        tables = drawn(rng, True)
        assert evaluate(divided, tables) == evaluate(join, tables), tables


def test_columns_that_are_not_null_are_keys() -> None:
    with deltic.Session() as session:
        session.sql(f"{definitions('NOT NULL')} CREATE MATERIALIZED VIEW answer AS {QUERIES['two']}")
        assert "Join anti on a#0 = a#0, b#1 = b#1\n" in str(session.explain("answer"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("constraint", ["NOT NULL", ""])
@pytest.mark.parametrize("n", [1_000, *slow(100_000)])
def test_a_changed_row_is_looked_up(n: int, constraint: str) -> None:
    """Of a row with NULLs, the rows that its other columns select; only the first and the last row of NULLs touch all others."""
    for name in ("two", "three", "correlated", "as a value", "by groups"):
        with deltic.Session() as session:
            session.sql(definitions(constraint))
            with session.transaction() as tx:
                tx.insert("t", [{"a": i, "b": i} for i in range(n)])
                tx.insert("u", [{"a": i, "b": -i} for i in range(n)])
            session.sql(f"CREATE MATERIALIZED VIEW answer AS {QUERIES[name]}")
            few = ["INSERT INTO t VALUES (-1, -1)", "INSERT INTO u VALUES (-1, -1)", "DELETE FROM u WHERE a = 7"]
            if not constraint:
                few += ["INSERT INTO t VALUES (NULL, 7)", "INSERT INTO t VALUES (NULL, NULL)", "INSERT INTO u VALUES (NULL, 9)"]
            for statement in few:
                session.sql(statement)
                assert touched_rows(session) < 150, (name, statement)
            if not constraint:
                session.sql("INSERT INTO u VALUES (NULL, NULL)")
                session.sql("INSERT INTO u VALUES (NULL, NULL)")
                assert touched_rows(session) < 150, name
