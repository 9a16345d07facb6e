"""Joins in which NULL equals NULL: the answers of DuckDB after every tick, and rows that are looked up instead of compared."""

from __future__ import annotations

import warnings
from random import Random

import duckdb
import pytest

import deltic
from session_rows import touched_rows

TABLES = "CREATE TABLE t (id BIGINT{0}, n INT, s {1}, d DOUBLE); CREATE TABLE m (id BIGINT{0}, n INT, s {1}, d DOUBLE)"
QUERIES = {
    "inner": "SELECT t.id, m.id AS other FROM t JOIN m ON t.n <=> m.n",
    "left": "SELECT t.id, m.id AS other FROM t LEFT JOIN m ON t.s IS NOT DISTINCT FROM m.s",
    "full": "SELECT t.id, m.id AS other FROM t FULL JOIN m ON t.n = m.n OR (m.n IS NULL AND t.n IS NULL)",
    "where": "SELECT t.id, m.id AS other FROM t, m WHERE t.n <=> m.n AND m.s <=> t.s",
    "doubles": "SELECT t.id, m.id AS other FROM t, m WHERE t.d <=> m.d",
    "exists": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM m WHERE m.n <=> t.n)",
    "not exists": "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM m WHERE m.s <=> t.s AND m.n = t.n)",
    "three": "SELECT t.id, o.id AS other FROM t JOIN m ON t.n <=> m.n JOIN t o ON o.s <=> m.s AND o.n <=> t.n",
}


@pytest.mark.parametrize("shards", [1, 3])
def test_joins_are_those_of_duckdb(shards: int) -> None:
    rng = Random(shards)
    held: set[tuple[str, int]] = set()
    with duckdb.connect() as other, deltic.Session(shards=shards) as session, warnings.catch_warnings():
        warnings.simplefilter("error")  # that all pairs of rows are compared would be one
        session.sql(TABLES.format(" PRIMARY KEY", "STRING"))
        other.execute(TABLES.format("", "VARCHAR"))
        for name, query in QUERIES.items():
            session.sql(f"CREATE MATERIALIZED VIEW `{name}` AS {query}")
        for _ in range(8):
            with session.transaction() as tx:
                for table in "tm":
                    ids = rng.sample(range(40), 4)
                    rows = [
                        {
                            "id": id,
                            "n": rng.choice([None, 0, 1, 2]),
                            "s": rng.choice([None, "", "a", "b"]),
                            "d": rng.choice([None, 0.0, -0.0, float("nan"), 1.5]),
                        }
                        for id in ids
                    ]
                    tx.delete(table, [id for id in ids if (table, id) in held])
                    tx.insert(table, rows)
                    held |= {(table, id) for id in ids}
                    other.execute(f"DELETE FROM {table} WHERE id IN ({', '.join(map(str, ids))})")
                    other.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", [list(row.values()) for row in rows])
            for name, query in QUERIES.items():
                rows_of_view = sorted(repr(tuple(row.values())) for row in session.view(name).rows())
                expected = other.execute(query.replace("<=>", "IS NOT DISTINCT FROM")).fetchall()
                assert rows_of_view == sorted(map(repr, expected)), name


@pytest.mark.parametrize("n", [500, 5_000])
def test_a_changed_row_is_looked_up(n: int) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id BIGINT, n INT); CREATE TABLE m (id BIGINT, n INT)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT t.id FROM t JOIN m ON t.n <=> m.n")
        with session.transaction() as tx:
            tx.insert("t", [{"id": i, "n": i} for i in range(n)])
            tx.insert("m", [{"id": i, "n": i or None} for i in range(n)])
        session.apply({"t": [{"id": n, "n": None, "_op": "insert"}]})
        assert session.view("v").changes().num_rows == 1
        assert touched_rows(session) < 50
