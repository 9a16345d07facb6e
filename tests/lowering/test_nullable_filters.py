"""What a filter leaves out is not evaluated after it, also where the filter is NULL: an AND of both would evaluate it."""

from __future__ import annotations

from typing import Any

import pytest

import deltic

POSITIVE = "(SELECT * FROM t WHERE a > 0)"
ROWS = [(1, None, "x", 1), (2, 1, "7", 1), (3, -1, "x", 1)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT k FROM {POSITIVE} WHERE CAST(s AS INT) > 0", [{"k": 2}]),
        ("SELECT count(CAST(s AS INT)) FILTER (WHERE a > 0) AS n, y FROM t GROUP BY y", [{"n": 1, "y": 1}]),
        ("SELECT corr(CAST(s AS INT), y) FILTER (WHERE a > 0) AS n FROM t", [{"n": None}]),
        ("SELECT min(CAST(s AS INT)) FILTER (WHERE a > 0) AS n FROM t", [{"n": 7}]),
        ("SELECT collect_list(CAST(s AS INT)) FILTER (WHERE a > 0) AS n FROM t", [{"n": [7]}]),
        ("SELECT count(DISTINCT CAST(s AS INT)) FILTER (WHERE a > 0) AS n FROM t", [{"n": 1}]),
        ("SELECT max_by(k, CAST(s AS INT)) FILTER (WHERE a > 0) AS n FROM t", [{"n": 2}]),
        ("SELECT sum(CAST(s AS INT)) FILTER (WHERE a > 0) OVER (ORDER BY k) AS n FROM t", [{"n": None}, {"n": 7}, {"n": 7}]),
        (f"SELECT x.k, z.k AS l FROM {POSITIVE} x LEFT JOIN {POSITIVE} z ON CAST(x.s AS INT) = CAST(z.s AS INT)", [{"k": 2, "l": 2}]),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_rows_on_which_a_filter_is_null_are_left_out(query: str, expected: list[dict[str, Any]], at_once: bool) -> None:
    changes = [{"k": k, "a": a, "s": s, "y": y, "_weight": 1} for k, a, s, y in ROWS]
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (k INT NOT NULL, a INT, s STRING, y INT); CREATE MATERIALIZED VIEW v AS {query}")
        for tick in [changes] if at_once else [[change] for change in changes]:
            session.apply({"t": tick})
        assert sorted(session.view("v").rows(), key=str) == sorted(expected, key=str)
        assert sorted(session.query(query).rows(), key=str) == sorted(expected, key=str)
