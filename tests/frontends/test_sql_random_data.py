"""Views of a session over random data under changes, at the end equal to the same SQL on Spark.

The data has NULLs, -0.0, NaN, infinities, empty strings, extreme integers, and dates before 1970. Doubles are such that their sums are
exact in any order, since Spark's own depend on it.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from sql_data import TABLES
from sql_queries import queries
from test_sql_spark import _multiset, spark  # noqa: F401  the fixture

import deltic
from deltic.errors import EvaluationError, QueryError

pytestmark = [pytest.mark.slow, pytest.mark.spark]

VALUES: dict[str, tuple[Any, ...]] = {
    "INT": (None, 0, 1, 2, 3, 4, -1, 2**31 - 1, -(2**31)),
    "BIGINT": (None, 0, 1, 2, 3, 2**63 - 1, -(2**63)),
    "DOUBLE": (None, 0.0, -0.0, 1.5, -7.25, 0.25, math.nan, math.inf, -math.inf),
    "STRING": (None, "", "a", "b", "B", "ab", "a%c", "é", "a long string that goes on and on 1", "a long string that goes on and on 2"),
    "DATE": (None, datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(2020, 1, 31), datetime.date(2024, 2, 29)),
    "TIMESTAMP": (None, *(datetime.datetime(y, 1, 31, 10, tzinfo=datetime.UTC) for y in (1969, 1970, 2020))),
    "DECIMAL": (None, Decimal("0.00"), Decimal("1.10"), Decimal("-2.50"), Decimal("99999999.99")),
    "BOOLEAN": (None, True, False),
}
SEEDS = 3
QUERIES = 120
TICKS = 4


def random_row(rng: Random, name: str, number: int) -> dict[str, Any]:
    """A row of the table, its key `number`."""
    table = TABLES[name]
    return {f.name: number if i in table.key else rng.choice(VALUES[f.type.name]) for i, f in enumerate(table.schema)}


def changed(rng: Random, session: deltic.Session, tables: dict[str, list[dict[str, Any]]], start: int) -> None:
    """One tick: rows that come, rows that go, rows that change."""
    with session.transaction() as tx:
        for name, rows in tables.items():
            gone = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), rng.randrange(4)))]
            tx.delete(name, gone)
            come = [random_row(rng, name, start + i) for i in range(rng.randrange(6))]
            tx.insert(name, come)
            rows += come
            if TABLES[name].key and rows:
                at = rng.randrange(len(rows))
                rows[at] = random_row(rng, name, rows[at]["id"])
                tx.upsert(name, [rows[at]])


def ddl(name: str) -> str:
    table = TABLES[name]
    columns = ", ".join(f"{f.name} {f.type.sql}" for f in table.schema)
    key = f", PRIMARY KEY ({', '.join(table.schema[i].name for i in table.key)})" if table.key else ""
    return f"CREATE TABLE {name} ({columns}{key})"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_views_equal_spark_on_random_data(spark: Any, seed: int) -> None:  # noqa: F811
    rng = Random(seed)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    compared = 0
    with deltic.Session() as session:
        session.sql("; ".join(map(ddl, TABLES)))
        for tick in range(TICKS):
            changed(rng, session, tables, 100 * tick)
        views = {}
        for number, query in enumerate(rng.sample(queries(), QUERIES)):
            try:
                session.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
                views[f"v{number}"] = query
            except (QueryError, EvaluationError):
                continue
        for tick in range(TICKS, 2 * TICKS):
            try:
                changed(rng, session, tables, 100 * tick)
            except EvaluationError:
                break
        for name, table in TABLES.items():
            whole = session_content(session, name)
            schema = ", ".join(f"{f.name} {f.type.sql}" for f in table.schema)
            spark.createDataFrame(whole, schema).createOrReplaceTempView(name)
        for view, query in views.items():
            found = session.view(view).to_arrow()
            rows = zip(*(column.to_pylist() for column in found.columns), strict=True) if found.num_columns else [()] * found.num_rows
            assert _multiset((unsigned(row), 1) for row in rows) == _multiset((unsigned(row), 1) for row in spark.sql(query).collect()), (
                query
            )
            compared += 1
    assert compared >= QUERIES // 2


def unsigned(row: Iterable[Any]) -> tuple[Any, ...]:
    """0.0 for -0.0: of equal values MIN, MAX and top-k of Spark take the one that comes first."""
    return tuple(0.0 if isinstance(value, float) and value == 0 else value for value in row)


def session_content(session: deltic.Session, name: str) -> list[tuple[Any, ...]]:
    """The table as the session has it."""
    session.sql(f"CREATE MATERIALIZED VIEW all_{name} AS SELECT * FROM {name}")
    return [tuple(row.values()) for row in session.view(f"all_{name}").rows()]
