"""Joins on inequalities over two tables, in the dialect of Spark that DuckDB shares, and random changes of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from random import Random
from typing import Any, Final

QUERIES: Final = {
    "less": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.x < b.y",
    "keyed": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.k = b.k AND a.x >= b.y",
    "between": "SELECT a.id AS i, b.id AS j, a.k FROM a JOIN b ON a.k = b.k AND a.x BETWEEN b.y AND b.z",
    "inside": "SELECT a.id AS i, b.id AS j, a.x, b.y FROM a JOIN b ON a.x > b.y AND a.x < b.z",
    "flipped": "SELECT a.id AS i, b.id AS j, a.x, b.y FROM b LEFT JOIN a ON a.x > b.y AND a.x <= b.z",
    "full": "SELECT a.id AS i, b.id AS j FROM a FULL JOIN b ON a.k = b.k AND b.z >= a.x AND a.x > b.y",
    "right": "SELECT a.id AS i, b.id AS j FROM a RIGHT JOIN b ON b.z > a.x",
    "semi": "SELECT a.id AS i FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.y < a.x AND b.k = a.k)",
    "anti": "SELECT a.id AS i FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.x BETWEEN b.y AND b.z)",
    "overlap": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.x <= b.z AND b.y <= a.w",
    "overlapping": "SELECT a.id AS i, b.id AS j FROM a LEFT JOIN b ON a.k = b.k AND a.x <= b.z AND b.y < a.w",
    "more": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.x < b.y AND a.id + b.id > 5",
    "counted": "SELECT b.k, count(*) AS n FROM a JOIN b ON a.x < b.y GROUP BY b.k",
    "threshold": "SELECT id, x FROM a WHERE x > (SELECT max(y) FROM b WHERE k = 1)",
    "thresholds": "SELECT id, x FROM a WHERE x >= (SELECT min(y) FROM b WHERE b.k = a.k)",
    "held": "SELECT id, y, z FROM b WHERE (SELECT max(x) FROM a WHERE k = 1) BETWEEN y AND z",
    "moving": "SELECT id, x FROM a WHERE x BETWEEN (SELECT min(y) FROM b) AND (SELECT max(z) FROM b WHERE k = 0)",
}

Change = tuple[str, list[int], list[tuple[Any, ...]]]
"""(table, ids of rows that go, rows that come)."""


def value(type: str, number: int) -> Any:
    """One of 20 ordered values."""
    match type:
        case "DATE":
            return date(1969, 12, 25) + timedelta(number)
        case "TIMESTAMP_NTZ":
            return datetime(1969, 12, 31, 12) + timedelta(hours=number)
        case "DOUBLE":
            return [float("-inf"), -1.5, -0.0, 0.0, 1e300, float("nan")][number % 6]
        case _:
            return number - 8


def changes(rng: Random, type: str, ticks: int) -> Iterator[list[Change]]:
    """Random ticks: rows of a (id, k, x, w) and of b (id, k, y, z)."""
    live: dict[str, set[int]] = {"a": set(), "b": set()}

    def some() -> Any:
        return None if rng.random() < 0.1 else value(type, rng.randrange(20))

    for _ in range(ticks):
        tick: list[Change] = []
        for table in "ab":
            gone = {i for i in live[table] if rng.random() < 0.4}
            come = {i for i in range(12) if rng.random() < 0.4 and i not in live[table] - gone}
            live[table] = live[table] - gone | come
            tick.append((table, sorted(gone), [(i, rng.choice((None, 0, 1, 2)), some(), some()) for i in sorted(come)]))
        yield tick


def tables(type: str) -> list[str]:
    return [f"CREATE TABLE {t} (id BIGINT, k BIGINT, {c} {type}, {d} {type}, PRIMARY KEY (id))" for t, c, d in ("axw", "byz")]
