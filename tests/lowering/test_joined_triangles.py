"""Outer, semi and anti joins of a multiway join, whose shared variables are columns with and without NULLs: equal to DuckDB."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest

import deltic
from parts import slow

KINDS = ("LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
TRIANGLES = """SELECT a.x AS ax, a.y AS ay, b.x AS bx, b.y AS b_y, c.x AS cx, c.y AS cy
    FROM e a JOIN e b ON a.y = b.x JOIN e c ON b.y = c.x AND c.y = a.x"""


def query(kind: str, *, duck: bool = False) -> str:
    columns = "t.*" if kind.startswith("LEFT ") else "t.*, s.z"
    return f"SELECT {columns} FROM ({TRIANGLES}) t {kind.removeprefix('LEFT ') if duck else kind} JOIN s ON t.ay = s.z"


@pytest.mark.parametrize("type_", ["BIGINT", "INT"])
@pytest.mark.parametrize("shards", [1, *slow(3)])
def test_joins_of_triangles(type_: str, shards: int) -> None:
    rng, edges = random.Random(type_), Counter[tuple[int, int | None]]()
    with deltic.Session(shards=shards) as session, duckdb.connect() as duck:
        for connection in (session, duck):
            connection.sql(f"CREATE TABLE e (x {type_} NOT NULL, y {type_}); CREATE TABLE s (z {type_})")
        for kind in KINDS:
            session.sql(f"CREATE MATERIALIZED VIEW {kind.replace(' ', '_')} AS {query(kind)}")
        for tick in range(4):
            new = [(rng.randrange(4), rng.choice([None, 0, 1, 2, 3])) for _ in range(12)]
            gone = rng.sample(sorted(edges.elements(), key=repr), min(5, edges.total()))
            with session.transaction() as tx:
                tx.insert("e", [{"x": x, "y": y} for x, y in new])
                tx.delete("e", [{"x": x, "y": y} for x, y in gone])
                tx.insert("s", [{"z": tick % 2}])
            edges.update(new)
            edges.subtract(gone)
            duck.execute("DELETE FROM e")
            duck.executemany("INSERT INTO e VALUES (?, ?)", list(edges.elements()))
            duck.execute(f"INSERT INTO s VALUES ({tick % 2})")
            for kind in KINDS:
                content = Counter(tuple(row.values()) for row in session.view(kind.replace(" ", "_")).rows())
                assert content == Counter(duck.sql(query(kind, duck=True)).fetchall()), (kind, tick)
            assert content
