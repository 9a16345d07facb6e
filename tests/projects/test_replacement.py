"""A source without changes becomes changes: the rows that it has now against the rows that the table holds."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import deltic


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    """The rows with their copies; -0.0 is 0.0, as in a key."""
    return Counter(repr(list(row.values())).replace("-0.0", "0.0") for row in rows)


def test_a_table_gets_exactly_the_rows_of_a_frame_with_duplicates_nulls_and_strings() -> None:
    draw = random.Random(5)
    floats: list[Any] = [None, 0.0, -0.0, float("nan"), 2.5]
    with deltic.Session() as session:
        session.sql(
            "CREATE TABLE t (a BIGINT, b STRING, c DOUBLE, d ARRAY<INT>);"
            "CREATE MATERIALIZED VIEW s AS SELECT b, count(*) AS n FROM t GROUP BY b;"
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM t"
        )
        rows: list[dict[str, Any]] = []
        for _ in range(6):
            rows = [
                {
                    "a": draw.choice([None, 1]),
                    "b": draw.choice([None, "x", "é"]),
                    "c": draw.choice(floats),
                    "d": draw.choice([None, [1], []]),
                }
                for _ in range(draw.randrange(40))
            ]
            counts: list[Any] = []
            held = session._rows_held("t")

            def before(changed: Any, counts: list[Any] = counts, seen: int = len(rows)) -> dict[str, Any]:
                counts.append(changed)
                return {"seen": seen}

            session._replace({"t": rows}, {}, before)
            assert counts[0].get("t", 0) >= abs(session._rows_held("t") - held)
            assert counted(session.view("v").rows()) == counted(rows)
            assert {row["b"]: row["n"] for row in session.view("s").rows()} == dict(Counter(row["b"] for row in rows))
            assert session.notes["seen"] == len(rows)
        session._replace({"t": rows}, {}, lambda changed: {})
        assert not session.view("v").changes().num_rows


def test_views_may_be_recomputed_by_the_tick_that_changes_their_tables() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")

        def leave_out(changed: Any) -> dict[str, Any]:
            session.sql("DROP VIEW v")
            return {"without": "v"}

        session._replace({"t": [{"a": 1}, {"a": 2}]}, {}, leave_out)
        assert session.notes["without"] == "v"
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
        assert session.view("v").rows() == [{"s": 3}]
