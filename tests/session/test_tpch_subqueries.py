"""The queries of TPC-H with subqueries, as Spark's tests write them: accepted, and DuckDB's answers after a load and after changes."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pytest

import deltic
from tpch_subqueries import QUERIES, TABLES, refreshes

DEFINITIONS = "".join(f"CREATE TABLE {name} ({columns});" for name, columns in TABLES.items())


def _rounded(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Means and quotients are DECIMALs in Spark and DOUBLEs in DuckDB."""
    return Counter(tuple(round(float(value), 2) if isinstance(value, float | Decimal) else value for value in row) for row in rows)


def test_all_are_accepted() -> None:
    session = deltic.Session()
    session.sql(DEFINITIONS)
    for name, query in QUERIES.items():
        session.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    assert len(session.views) == len(QUERIES)


@pytest.mark.slow
def test_as_duckdb() -> None:
    answered = sum(map(_answered, range(3)), Counter[str]())
    assert set(answered) == set(QUERIES), answered


def _answered(seed: int) -> Counter[str]:
    """How many answers of each query were the same, and not empty."""
    session, reference, names = deltic.Session(), duckdb.connect(), list(TABLES)
    reference.execute(DEFINITIONS)
    session.sql(DEFINITIONS + "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in QUERIES.items()))
    columns = {name: [one.split()[0] for one in TABLES[name].replace("15, 2", "15").split(", ")] for name in names}
    answered = Counter[str]()
    for changes in refreshes(Random(seed), 5):
        with session.transaction() as tx:
            for name, (added, removed) in changes.items():
                tx.delete(name, [dict(zip(columns[name], row, strict=True)) for row in removed])
                tx.insert(name, [dict(zip(columns[name], row, strict=True)) for row in added])
        for name, (added, removed) in changes.items():
            marks = ", ".join("?" * len(columns[name]))
            for row in removed:
                condition = " AND ".join(f"{column} = ?" for column in columns[name])
                reference.execute(f"DELETE FROM {name} WHERE rowid = (SELECT min(rowid) FROM {name} WHERE {condition})", row)
            for row in added:
                reference.execute(f"INSERT INTO {name} VALUES ({marks})", row)
        for name, query in QUERIES.items():
            actual = [tuple(row.values()) for row in session.view(name).rows()]
            assert _rounded(actual) == _rounded(reference.execute(query).fetchall()), name
            answered[name] += bool(actual)
    return answered
