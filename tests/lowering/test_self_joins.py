"""Outer, semi and anti joins of a view with itself, whose sides are one plan: equal to DuckDB after every tick."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest

import deltic
from parts import slow

KINDS = ("LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
CONDITIONS = ("a.v > b.v", "a.v <> b.v", "a.v + b.v > 3", "a.v > 1", "b.v > 1")


def query(kind: str, condition: str, source: str) -> str:
    columns = "a.k, a.v" if kind.startswith("LEFT ") else "a.k, a.v, b.k AS k2, b.v AS v2"
    written = {"LEFT SEMI": "SEMI", "LEFT ANTI": "ANTI"}.get(kind, kind) if source == "duck" else kind
    return f"SELECT {columns} FROM t a {written} JOIN t b ON a.k = b.k AND {condition}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shards", [1, *slow(3)])
def test_joins_of_a_view_with_itself(kind: str, shards: int) -> None:
    rng, rows = random.Random(kind), Counter[tuple[int, int | None]]()
    with deltic.Session(shards=shards) as session, duckdb.connect() as duck:
        session.sql("CREATE TABLE stored (k INT, v INT); CREATE VIEW t AS SELECT k, v FROM stored WHERE k < 5 OR v < 5;")
        for number, condition in enumerate(CONDITIONS):
            session.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query(kind, condition, 'deltic')}")
        duck.execute("CREATE TABLE t (k INT, v INT)")
        for _ in range(4):
            new = [(rng.randrange(3), rng.choice([None, 0, 1, 2, 3])) for _ in range(5)]
            gone = rng.sample(sorted(rows.elements(), key=repr), min(3, rows.total()))
            with session.transaction() as tx:
                tx.insert("stored", [{"k": k, "v": v} for k, v in new])
                tx.delete("stored", [{"k": k, "v": v} for k, v in gone])
            rows.update(new)
            rows.subtract(gone)
            duck.execute("DELETE FROM t")
            duck.executemany("INSERT INTO t VALUES (?, ?)", list(rows.elements()))
            for number, condition in enumerate(CONDITIONS):
                content = Counter(tuple(row.values()) for row in session.view(f"v{number}").rows())
                assert content == Counter(duck.sql(query(kind, condition, "duck")).fetchall()), condition
