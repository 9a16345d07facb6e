"""Outer joins of which IS NULL keeps the rows without a match, over columns that are NULL in rows of their own side, too."""

from __future__ import annotations

from itertools import product

import duckdb
import pytest

import deltic
from session_rows import rows_of_view

ROWS = {"t": [(1, 1), (2, None), (3, 3)], "u": [(1, 1), (4, None), (5, 5)]}


@pytest.mark.parametrize(("kind", "column"), [*product(("LEFT", "RIGHT", "FULL"), ("t.k", "t.x", "u.k", "u.x"))])
def test_rows_without_a_match_as_duckdb(kind: str, column: str) -> None:
    query = f"SELECT t.k AS a, t.x AS b, u.k AS c, u.x AS d FROM t {kind} JOIN u ON t.x = u.x WHERE {column} IS NULL"
    with deltic.Session() as session, duckdb.connect() as other:
        for name, rows in ROWS.items():
            session.sql(f"CREATE TABLE {name} (k BIGINT NOT NULL, x BIGINT)")
            session.insert(name, [{"k": k, "x": x} for k, x in rows])
            other.execute(f"CREATE TABLE {name} (k BIGINT, x BIGINT)")
            other.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)
        session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        assert rows_of_view(session, "v") == sorted(other.execute(query).fetchall(), key=repr)
