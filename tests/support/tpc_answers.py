"""Test support: the answers of TPC queries compared with DuckDB's, after a load and after changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import duckdb

import deltic
from benchmarks.queries import tables, texts
from benchmarks.queries.answers import Row, difference, spoken_by_duckdb
from tpc_rows import QueryRows, Shape

REFRESHES = 5
ATTEMPTS = 6


def answered(suite: str, name: str, shape: Shape, opened: Callable[[int], deltic.Session] = lambda _: deltic.Session()) -> bool:
    """Whether the query has an answer on the rows of one of a few seeds. All are compared. opened: the session of each attempt."""
    return any(any(compared(suite, name, replace(shape, seed=shape.seed + seed), opened(seed))) for seed in range(ATTEMPTS))


def compared(suite: str, name: str, shape: Shape, session: deltic.Session) -> list[int]:
    """The number of rows of each answer that have values, 0 and NULL aside. Raises AssertionError where they differ."""
    text = texts(suite)[name]
    with session:
        session.sql(tables(suite))
        content = QueryRows(text, {table: session.table(table) for table in session.tables}, shape)
        reference = duckdb.connect(config={"threads": 1})
        reference.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for table in set(session.tables) - set(content.tables):
            session.sql(f"DROP TABLE {table}")
        with session.transaction() as tx:
            for table in content.content:
                tx.insert(table, content.arrow(table))
        expected = _expected(reference, text, content)
        columns = ", ".join(f"c{i}" for i in range(len(reference.description)))
        session.sql(f"CREATE MATERIALIZED VIEW answer ({columns}) AS {text}")
        counts = [_checked(session, expected, name, 0)]
        for number, changes in enumerate(content.refreshes(REFRESHES), 1):
            with session.transaction() as tx:
                for table, (removed, added) in changes.items():
                    tx.delete(table, removed)
                    tx.insert(table, added)
            counts.append(_checked(session, _expected(reference, text, content), name, number))
        reference.close()
    return counts


def _expected(reference: duckdb.DuckDBPyConnection, text: str, content: QueryRows) -> list[Row]:
    for table in content.content:
        reference.register("rows", content.arrow(table))
        reference.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM rows")
        reference.unregister("rows")
    rows: list[Row] = reference.execute(spoken_by_duckdb(text)).fetchall()
    return rows


def _checked(session: deltic.Session, expected: Sequence[Row], name: str, tick: int) -> int:
    actual = [tuple(row.values()) for row in session.view("answer").rows()]
    unlike = difference(actual, expected)
    assert unlike is None, f"{name}, tick {tick}: {unlike}"
    return sum(any(row) for row in actual)
