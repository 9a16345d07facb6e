"""Rows of a stream in the windows of a relation: found by ranges, with the rows of the written query."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.plan.join_nodes import Join
from deltic.plan.ranges import Range
from session_rows import touched_rows
from tests.support.parts import slow

WINDOWS = 200_000
QUERIES = {
    "window": "SELECT id, at, v FROM windows JOIN events ON at >= low AND at < high",
    "between": "SELECT id, at, v FROM events, windows WHERE at BETWEEN low AND high AND v > 1",
    "within": "SELECT w.id, e.v FROM (SELECT at, v, at AS again FROM events) e JOIN windows w ON w.low < e.again AND w.high > e.again",
    "exists": "SELECT id, count(*) AS n, sum(v) AS total FROM windows JOIN events ON high >= at AND low <= at GROUP BY id",
    "widened": "SELECT id, at FROM windows JOIN (SELECT at, v FROM events WHERE v > 0) ON low <= at AND at <= high AND v < id",
}


def no_range(join: Join) -> Range | None:
    return None


def script(type: str, queries: dict[str, str]) -> str:
    tables = f"CREATE TABLE windows (id BIGINT, low {type}, high {type}, PRIMARY KEY (id)); CREATE STREAM events (at {type}, v BIGINT)"
    return "; ".join([tables, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in queries.items())])


def value(type: str, number: int) -> Any:
    match type:
        case "DATE":
            return date(1969, 12, 1) + timedelta(number)
        case "TIMESTAMP":
            return datetime(1969, 12, 31, tzinfo=UTC) + timedelta(minutes=number)
        case "TIMESTAMP_NTZ":
            return datetime(1969, 12, 31) + timedelta(minutes=number)
        case _:
            return number - 30


def contents(type: str, shards: int, seed: int) -> list[dict[str, list[str]]]:
    """The rows of all views after each of some random ticks."""
    rng, shown, live = Random(seed), [], set[int]()

    def some(number: int) -> Any:
        return value(type, number) if rng.random() < 0.95 else None

    with deltic.Session(shards=shards) as session:
        session.sql(script(type, QUERIES))
        for _ in range(6):
            gone = {id for id in live if rng.random() < 0.2}
            lows = {id: rng.randrange(60) for id in range(8) if rng.random() < 0.4}
            with session.transaction() as tx:
                tx.delete("windows", sorted(gone))
                tx.upsert("windows", [{"id": id, "low": some(low), "high": some(low + rng.randrange(-2, 30))} for id, low in lows.items()])
                tx.insert("events", [{"at": some(rng.randrange(70)), "v": rng.randrange(4)} for _ in range(12)])
            live = live - gone | set(lows)
            shown.append({name: sorted(map(repr, session.view(name).rows())) for name in QUERIES})
    return shown


@pytest.mark.parametrize(("type", "shards"), [("BIGINT", 1), ("TIMESTAMP", 3), *slow(("DATE", 1), ("TIMESTAMP_NTZ", 1), ("TINYINT", 2))])
def test_windows_have_their_rows(type: str, shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_ranges = contents(type, shards, 1)
    monkeypatch.setattr("deltic.lowering.ranges.range_of", no_range)
    assert by_ranges == contents(type, 1, 1)
    assert all(any(views[name] for views in by_ranges) for name in QUERIES)


def test_an_event_costs_the_logarithm_of_the_windows() -> None:
    with deltic.Session() as session:
        session.sql(script("BIGINT", {"hits": QUERIES["window"]}))
        assert "range_join" in str(session.explain("hits"))
        low = np.arange(WINDOWS) * 50
        session.apply(
            {"windows": pa.table({"id": np.arange(WINDOWS), "low": low, "high": low + 100, "_weight": np.ones(WINDOWS, np.int64)})}
        )
        session.apply({"events": [{"at": 1_000_025, "v": 1, "_weight": 1}]})
        assert [row["id"] for row in session.view("hits").rows()] == [19_999, 20_000]
        assert session.last_tick is not None
        assert touched_rows(session) < 80 * math.ceil(math.log2(WINDOWS))
