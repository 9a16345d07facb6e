"""LATENESS and window(): the groups that close are those of a table with the same rows, and the state is that of open windows."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from deltic import Session
from deltic.errors import Unsupported

DAY = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
STREAM = "CREATE STREAM r (at TIMESTAMP LATENESS INTERVAL 10 MINUTES, k BIGINT, v BIGINT);"
QUERIES = (
    "SELECT window.start AS s, k, count(*) AS n, max(v) AS top FROM {} GROUP BY window(at, '1 hour'), k",
    "SELECT window.end AS e, sum(v) AS total FROM {} WHERE v > 1 GROUP BY window(at, '1 hour', '20 minutes', '5 minutes')",
    "SELECT window AS w, count(*) AS n FROM {} GROUP BY k, window(at, '50 minutes', '20 minutes')",
    "SELECT DISTINCT window(at, '1 hour', '30 minutes').end AS e FROM {}",
    "SELECT w.start AS s, count(*) AS n FROM (SELECT window(at, '1 hour', '30 minutes') AS w FROM {}) GROUP BY w",
    "SELECT window_time(window) AS last, count(*) AS n FROM {} GROUP BY window(CAST(at AS TIMESTAMP), '1 hour')",
)


def test_every_window_comes_once_when_it_closes() -> None:
    rng = Random("closing")
    with Session() as session:
        session.sql(STREAM + "CREATE TABLE kept (at TIMESTAMP, k BIGINT, v BIGINT)")
        for i, query in enumerate(QUERIES):
            session.sql(f"CREATE MATERIALIZED VIEW closed{i} AS {query.format('r')} EMIT ON WINDOW CLOSE")
            session.sql(f"CREATE MATERIALIZED VIEW every{i} AS SELECT * FROM integrate(closed{i})")
            session.sql(f"CREATE MATERIALIZED VIEW open{i} AS {query.format('integrate(r) AS r')}")
            session.sql(f"CREATE MATERIALIZED VIEW expected{i} AS {query.format('kept')}")
        for minute in (*range(0, 200, 20), 1_000):
            time = DAY + datetime.timedelta(minutes=minute - rng.randint(0, 9))
            row = {"at": time, "k": rng.randint(0, 1), "v": rng.randint(0, 4), "_weight": 1}
            session.apply({"r": [row], "kept": [row]})
        for i in range(len(QUERIES)):
            expected = session.view(f"expected{i}").rows()
            assert texts(session.view(f"open{i}").rows()) == texts(expected)
            closed = [row for row in expected if moment(row) < DAY + datetime.timedelta(hours=10)]
            assert texts(session.view(f"every{i}").rows()) == texts(closed)


def texts(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def moment(row: dict[str, Any]) -> Any:
    """The row's time, or the start of its window."""
    first = next(iter(row.values()))
    return first["start"] if isinstance(first, dict) else first


@pytest.mark.parametrize("query", QUERIES)
def test_the_state_is_that_of_open_windows(query: str) -> None:
    with Session() as session:
        session.sql(f"{STREAM} CREATE MATERIALIZED VIEW v AS {query.format('r')} EMIT ON WINDOW CLOSE")
        assert not any(bound["grows"] for bound in session.explain("v").json()["bounds"])


@pytest.mark.parametrize(
    ("query", "feature"),
    [
        ("SELECT count(*) AS n FROM r GROUP BY session_window(at, '10 minutes')", r"session_window\(\)"),
        ("SELECT count(*) AS n FROM r JOIN names USING (k) GROUP BY window(at, '2 hours', '1 hour')", "sliding windows over a join"),
    ],
)
def test_windows_that_are_not_recognised_are_refused(query: str, feature: str) -> None:
    with Session() as session:
        session.sql(STREAM + "CREATE TABLE names (k BIGINT, name STRING)")
        with pytest.raises(Unsupported, match=feature):
            session.sql(f"CREATE MATERIALIZED VIEW v AS {query} EMIT ON WINDOW CLOSE")
