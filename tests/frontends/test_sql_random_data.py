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

import pyarrow as pa
import pytest
from test_sql_spark import _multiset, spark  # noqa: F401  the fixture

import deltic
from deltic.errors import EvaluationError, QueryError
from linear_queries import linear_queries
from seeds import ROTATION, rotating
from sql_data import TABLES
from sql_queries import queries
from timed import QUERIES as TIMED
from timed import START, TABLE, Timed

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
FEW = VALUES | {"INT": (None, 0, 1, 2, 3, 4, -1), "BIGINT": (None, 0, 1, 2, 3, 5, -2)}
"""Values of which sequences are short."""
REWRITTEN = {
    "SELECT id FROM t LATERAL VIEW repeat_row(greatest(k, 0))": "SELECT id FROM t LATERAL VIEW explode(array_repeat(0, greatest(k, 0))) r",
    "SELECT k, z FROM w LATERAL VIEW repeat_row(2) UNION ALL SELECT k, z FROM w LATERAL VIEW repeat_row(-1)": "SELECT k, z FROM w",
    "SELECT k, count(*) AS n FROM (SELECT k FROM e LATERAL VIEW repeat_row(3)) r GROUP BY k": "SELECT k, 3 * count(*) FROM e GROUP BY k",
    "SELECT id, n FROM t LATERAL VIEW generate_series(1, k) g AS n": "SELECT id, n FROM t LATERAL VIEW "
    "explode(if(k >= 1, sequence(1, k), array())) g AS n",
    "SELECT id, n FROM u LATERAL VIEW OUTER generate_series(k, 1, -1) g AS n": "SELECT id, n FROM u LATERAL VIEW OUTER "
    "explode(if(k >= 1, sequence(k, 1, -1), array())) g AS n",
}
"""What only Deltic has, and the same in Spark's words."""
TIES = (
    *("ORDER BY y DESC LIMIT", "GROUP BY k ORDER BY n DESC LIMIT", "ORDER BY SUM(id) LIMIT", "ORDER BY gap LIMIT", "ORDER BY v LIMIT"),
    *("MAX_BY(x, s)", "first(id) FOR"),
)
"""Queries over rows that may tie: Spark takes any of them."""
SEEDS = 3
QUERIES = 120
TICKS = 4
MOST_TICKS = 80
"""With those that fail, since some query cannot compute a value: one in two."""


def random_row(rng: Random, name: str, number: int, values: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """A row of the table, its key `number`."""
    table = TABLES[name]
    return {f.name: number if i in table.key else rng.choice(values[f.type.name]) for i, f in enumerate(table.schema)}


def changed(
    rng: Random,
    session: deltic.Session,
    tables: dict[str, list[dict[str, Any]]],
    start: int,
    values: dict[str, tuple[Any, ...]] = VALUES,
) -> None:
    """One tick: rows that come, rows that go, rows that change."""
    with session.transaction() as tx:
        for name, rows in tables.items():
            removed = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), rng.randrange(4)))]
            tx.delete(name, removed)
            come = [random_row(rng, name, start + i, values) for i in range(rng.randrange(6))]
            tx.insert(name, come)
            rows += come
            if TABLES[name].key and rows:
                at = rng.randrange(len(rows))
                rows[at] = random_row(rng, name, rows[at]["id"], values)
                tx.upsert(name, [rows[at]])


def ddl(name: str) -> str:
    table = TABLES[name]
    columns = ", ".join(f"{f.name} {f.type.sql}" for f in table.schema)
    key = f", PRIMARY KEY ({', '.join(table.schema[i].name for i in table.key)})" if table.key else ""
    return f"CREATE TABLE {name} ({columns}{key})"


@pytest.mark.parametrize("seed", rotating(SEEDS))
def test_views_equal_spark_on_random_data(spark: Any, seed: int) -> None:  # noqa: F811
    rng = Random(seed)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    compared = 0
    with deltic.Session() as session:
        session.sql("; ".join(map(ddl, TABLES)))
        for tick in range(TICKS):
            changed(rng, session, tables, 100 * tick)
        views = {}
        compared_queries = [query for query in queries() if not any(tie in query for tie in TIES)]
        for number, query in enumerate(rng.sample(compared_queries, QUERIES)):
            try:
                session.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
                views[f"v{number}"] = query
            except (QueryError, EvaluationError):
                continue
        ticks = 0
        for tick in range(TICKS, MOST_TICKS):
            before = {name: list(rows) for name, rows in tables.items()}
            try:
                changed(rng, session, tables, 100 * tick)
                ticks += 1
            except EvaluationError:
                tables = before
            if ticks == TICKS:
                break
        assert ticks == TICKS
        give(spark, session)
        for view, query in views.items():
            compare(spark, session, view, query)
            compared += 1
    assert compared >= QUERIES // 2


def give(spark: Any, session: deltic.Session) -> None:  # noqa: F811
    """The session's tables, to Spark."""
    for name, table in TABLES.items():
        whole = session_content(session, name)
        schema = ", ".join(f"{f.name} {f.type.sql}" for f in table.schema)
        spark.createDataFrame(whole, schema).createOrReplaceTempView(name)


def as_in_spark(value: Any, type: pa.DataType) -> Any:
    """A value of Arrow as PySpark collects it: a struct is a tuple, and a map a dict."""
    if value is None:
        return None
    if pa.types.is_struct(type):
        return tuple(as_in_spark(value[field.name], field.type) for field in type)
    if pa.types.is_map(type):
        return {as_in_spark(key, type.key_type): as_in_spark(each, type.item_type) for key, each in value}
    if pa.types.is_list(type):
        return [as_in_spark(each, type.value_type) for each in value]
    return value


def compare(spark: Any, session: deltic.Session, view: str, query: str) -> int:  # noqa: F811
    """The view holds what Spark answers; how many rows."""
    actual = session.view(view).to_arrow()
    columns = [[as_in_spark(value, column.type) for value in column.to_pylist()] for column in actual.columns]
    rows = zip(*columns, strict=True) if columns else [()] * actual.num_rows
    expected = _multiset((unsigned(row), 1) for row in spark.sql(query).collect())
    assert _multiset((unsigned(row), 1) for row in rows) == expected, query
    return actual.num_rows


@pytest.mark.parametrize("seed", rotating(SEEDS))
def test_functions_that_make_rows_equal_spark_on_random_data(spark: Any, seed: int) -> None:  # noqa: F811
    rng = Random(seed)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    expected = {**{query: query for query in linear_queries()}, **REWRITTEN}
    with deltic.Session() as session:
        session.sql("; ".join(map(ddl, TABLES)))
        changed(rng, session, tables, 0, FEW)
        views, failed, seen = {}, 0, 0
        for number, query in enumerate(expected):
            try:
                session.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
                views[f"v{number}"] = expected[query]
            except (QueryError, EvaluationError):
                failed += 1
        for tick in range(1, 5):
            before = {name: list(rows) for name, rows in tables.items()}
            try:
                changed(rng, session, tables, 100 * tick, FEW)
            except EvaluationError:
                tables = before
            give(spark, session)
            seen += sum(compare(spark, session, view, query) for view, query in views.items())
    assert seen > 300
    assert failed <= 4, "two columns without a name, and sequences that do not get there"


def test_views_of_the_time_equal_spark_with_a_literal(spark: Any) -> None:  # noqa: F811
    rng = Random(ROTATION)
    with deltic.Session() as session:
        timed = Timed(session, TABLE + ";".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in TIMED.items()))
        seen = 0
        for _ in range(4):
            timed.step(rng)
            rows = [tuple(row.values()) for row in timed.rows.values()]
            spark.createDataFrame(rows, "id BIGINT, t TIMESTAMP, u TIMESTAMP, d DATE").createOrReplaceTempView("r")
            literal = f"TIMESTAMP '{session.now:%Y-%m-%d %H:%M:%S.%f}'"
            for name, query in TIMED.items():
                fixed = query.replace("current_timestamp()", literal).replace("current_timestamp", literal).replace("now()", literal)
                seen += compare(spark, session, name, fixed)
        assert seen > 50 and session.now is not None and session.now >= START


def unsigned(row: Iterable[Any]) -> tuple[Any, ...]:
    """0.0 for -0.0: of equal values MIN, MAX and top-k of Spark take the one that comes first."""
    return tuple(0.0 if isinstance(value, float) and value == 0 else value for value in row)


def session_content(session: deltic.Session, name: str) -> list[tuple[Any, ...]]:
    """The table as the session has it."""
    session.sql(f"CREATE MATERIALIZED VIEW IF NOT EXISTS all_{name} AS SELECT * FROM {name}")
    return [tuple(row.values()) for row in session.view(f"all_{name}").rows()]
