"""Test support: the answers of Nexmark's queries compared with DuckDB's, after a load and after changes."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

import deltic
from benchmarks.nexmark_events import Events
from benchmarks.queries import tables, texts

Row = tuple[Any, ...]
TICK, REFRESHES = 150, 5
STEP_US = 137_003
"""Between two events: 73 in ten seconds, and none exactly ten seconds apart."""
DIVISIBLE = 9 * 123
"""An auction that q2 takes."""
_FIXED: Final = "time_bucket(INTERVAL 10 seconds, dateTime)"
OTHERS: Final = {
    "q5": """
        WITH bids AS (
            SELECT auction, count(*) AS num, starttime
            FROM (
                SELECT auction, time_bucket(INTERVAL 2 seconds, dateTime) - to_seconds(2 * n) AS starttime
                FROM bid, range(5) AS r(n)) AS b
            GROUP BY auction, starttime)
        SELECT bids.auction, bids.num, bids.starttime
        FROM bids JOIN (SELECT max(num) AS maxn, starttime FROM bids GROUP BY starttime) AS most
            ON bids.starttime = most.starttime AND bids.num >= most.maxn""",
    "q7": f"""
        SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
        FROM bid AS b JOIN (SELECT max(price) AS maxprice, {_FIXED} AS starttime FROM bid GROUP BY 2) AS highest
            ON b.price = highest.maxprice AND {_FIXED} = highest.starttime""",
    "q8": f"""
        SELECT p.id, p.name, p.starttime
        FROM (SELECT DISTINCT id, name, {_FIXED} AS starttime FROM person) AS p
            JOIN (SELECT DISTINCT seller, {_FIXED} AS starttime FROM auction) AS a ON p.id = a.seller AND p.starttime = a.starttime""",
    "q11": """
        SELECT bidder, count(*), min(dateTime), max(dateTime) + INTERVAL 10 seconds
        FROM (
            SELECT *, sum(opens) OVER (PARTITION BY bidder ORDER BY dateTime) AS session
            FROM (
                SELECT *, (coalesce(dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime), INTERVAL 1 hour)
                    > INTERVAL 10 seconds)::INT AS opens
                FROM bid))
        GROUP BY bidder, session""",
    "q12": f"SELECT bidder, count(*), {_FIXED} AS starttime, {_FIXED} + INTERVAL 10 seconds FROM bid GROUP BY bidder, {_FIXED}",
}
"""Those with windows of event time, which DuckDB lacks."""


def compared(name: str, seed: int = 0, session: deltic.Session | None = None) -> list[int]:
    """The number of rows of each answer. Raises AssertionError where they differ."""
    text, rng = texts("nexmark")[name], np.random.default_rng(seed)
    source = Events(seed, STEP_US)
    reference = duckdb.connect(config={"threads": 1})
    counts = []
    with session or deltic.Session() as session:
        session.sql(tables("nexmark") + f"CREATE MATERIALIZED VIEW answer AS {text}")
        content = {"side_input": source.side_input(1100)}
        with session.transaction() as tx:
            tx.insert("side_input", content["side_input"])
        for tick in range(REFRESHES + 1):
            added = source.tables(tick * TICK, TICK)
            kept = {table: _without_some(rows, rng) for table, rows in content.items() if table != "side_input"}
            with session.transaction() as tx:
                for table, (_, removed) in kept.items():
                    tx.delete(table, removed)
                for table, (rest, removed) in kept.items():
                    updated = _updated(table, removed)
                    tx.insert(table, updated)
                    content[table] = pa.concat_tables([rest, updated])
                for table, rows in added.items():
                    tx.insert(table, rows)
                    content[table] = pa.concat_tables([*([content[table]] if table in content else []), rows])
            expected = _answer(reference, OTHERS.get(name) or spoken_by_duckdb(text), content)
            _check(session, expected, f"{name}, tick {tick}")
            counts.append(len(expected))
    reference.close()
    return counts


def spoken_by_duckdb(text: str) -> str:
    """The query in DuckDB's dialect."""
    for pattern, other in (("yyyy-MM-dd", "%Y-%m-%d"), ("HH:mm", "%H:%M")):
        text = text.replace(f"date_format(dateTime, '{pattern}')", f"strftime(dateTime, '{other}')")
    return text


def _without_some(rows: pa.Table, rng: np.random.Generator) -> tuple[pa.Table, pa.Table]:
    """(the rows that stay, a few that go)."""
    chosen = rng.random(rows.num_rows) < 0.05
    return rows.filter(pa.array(~chosen)), rows.filter(pa.array(chosen))


def _updated(table: str, rows: pa.Table) -> pa.Table:
    """Every second of the rows, changed; the others are deleted."""
    rows = rows.take(pa.array(range(0, rows.num_rows, 2), pa.int64()))
    if table != "bid":
        return _with(rows, *{"person": ("state", ["CA"] * len(rows)), "auction": ("category", [10] * len(rows))}[table])
    rows = _with(rows, "price", [price + 100_003 for price in rows["price"].to_pylist()])
    return _with(rows, "auction", [DIVISIBLE if i % 4 == 0 else auction for i, auction in enumerate(rows["auction"].to_pylist())])


def _with(rows: pa.Table, name: str, values: list[Any]) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), pa.array(values, rows.schema.field(place).type))


def _answer(reference: duckdb.DuckDBPyConnection, text: str, content: dict[str, pa.Table]) -> list[Row]:
    for table, rows in content.items():
        columns = [column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column for column in rows.columns]
        reference.register("rows", pa.table(columns, names=rows.column_names))
        reference.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM rows")
        reference.unregister("rows")
    answer: list[Row] = reference.execute(text).fetchall()
    return answer


def _check(session: deltic.Session, expected: list[Row], title: str) -> None:
    actual = [tuple(map(_plain, row.values())) for row in session.view("answer").rows()]
    assert len(actual) == len(expected), f"{title}: {len(actual)} rows, expected {len(expected)}"
    for ours, theirs in zip(sorted(actual, key=repr), sorted([tuple(map(_plain, row)) for row in expected], key=repr), strict=True):
        assert all(map(_same, ours, theirs)), f"{title}: {ours}, expected {theirs}"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    return round(float(value), 3) if isinstance(value, float | Decimal) else value


def _same(ours: Any, theirs: Any) -> bool:
    return math.isclose(ours, theirs, rel_tol=1e-9) if isinstance(ours, float) else bool(ours == theirs)
