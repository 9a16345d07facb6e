"""Test support: the answers of TPC queries compared with DuckDB's, after a load and after changes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import duckdb

import deltic
from benchmarks.queries import tables, texts
from tpc_rows import QueryRows, Shape

Row = tuple[Any, ...]
REFRESHES = 5
ATTEMPTS = 6


def spoken_by_duckdb(text: str) -> str:
    """The query in DuckDB's dialect. Its quotients and means are DOUBLEs, and its casts of them to INT round."""
    text = text.replace("(revenue / 50)", "trunc(revenue / 50)")
    return re.sub(r"\) at,", ') "at",', text.replace("`", '"'))


def answered(suite: str, name: str, shape: Shape, **options: Any) -> bool:
    """Whether the query has an answer on the rows of one of a few seeds. All are compared."""
    return any(any(compared(suite, name, replace(shape, seed=shape.seed + seed), options)) for seed in range(ATTEMPTS))


def compared(suite: str, name: str, shape: Shape, options: Mapping[str, Any]) -> list[int]:
    """The number of rows of each answer that have values, 0 and NULL aside. Raises AssertionError where they differ."""
    text = texts(suite)[name]
    with deltic.Session(**options) as session:
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
    difference = _difference(actual, expected)
    assert difference is None, f"{name}, tick {tick}: {difference}"
    return sum(any(row) for row in actual)


def _difference(actual: Sequence[Row], expected: Sequence[Row]) -> str | None:
    """What distinguishes the rows as multisets; numbers are equal up to the rounding of DOUBLEs and of decimal quotients."""
    if len(actual) != len(expected):
        return f"{len(actual)} rows, expected {len(expected)}"
    pairs = zip(sorted(actual, key=_order), sorted(expected, key=_order), strict=True)
    for ours, theirs in pairs:
        if len(ours) != len(theirs) or not all(map(_same, ours, theirs)):
            return f"{ours}, expected {theirs}"
    return None


def _order(row: Row) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, f"{float(value):.1f}" if isinstance(value, int | float | Decimal) else str(value)) for value in row)


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, int | float | Decimal) and isinstance(theirs, int | float | Decimal):
        return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-4)
    return bool(ours == theirs)
