"""The comparison at the demo's end detects differences."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from deltic.examples.flights.compare import compare
from deltic.examples.flights.script import QUERIES, READS, TEXT

KEPT = pa.table({"origin": ["EWR", "JFK", "JFK", None], "flights": [3, 2, 2, 1], "mean": [0.1, 2.5, 2.5, None]})


def differing(reference: pa.Table, summands: int = 1_000) -> int:
    return compare("v", KEPT, reference, summands).differing


def test_rows_in_any_order_and_floats_within_the_bound_are_equal() -> None:
    assert differing(KEPT.take([3, 1, 0, 2])) == 0
    off = KEPT.set_column(2, "mean", pa.array([0.1 * (1 + 500 * 2.0**-52), 2.5, 2.5, None]))
    assert differing(off) == 0
    assert compare("v", KEPT, KEPT, 1).rows == 4


@pytest.mark.parametrize(
    ("reference", "count"),
    [
        (KEPT.slice(0, 3), 1),
        (pa.concat_tables([KEPT, KEPT.slice(0, 1)]), 2),
        (KEPT.take([0, 1, 3]), 2),
        (KEPT.set_column(1, "flights", pa.array([4, 2, 2, 1])), 2),
        (KEPT.set_column(2, "mean", pa.array([0.1 * (1 + 1e-9), 2.5, 2.5, None])), 1),
        (KEPT.set_column(2, "mean", pa.array([None, 2.5, 2.5, None], pa.float64())), 1),
        (KEPT.set_column(2, "mean", pa.array([math.nan, 2.5, 2.5, None])), 1),
        (KEPT.set_column(2, "mean", pa.array([0.1, 2.5, 2.5, 0.0])), 1),
    ],
)
def test_a_row_more_or_less_or_off_differs(reference: pa.Table, count: int) -> None:
    comparison = compare("v", KEPT, reference, 1_000)
    assert comparison.differing == count
    assert comparison.example


def test_the_script_gives_each_view_by_name() -> None:
    assert len(QUERIES) == TEXT.count("CREATE MATERIALIZED VIEW") == 6
    assert all(query.startswith("SELECT") for query in QUERIES.values())
    assert READS["punctual_carriers"] == ("flights", "flights")
    assert READS["weather_delays"] == ("flights", "weather")
    assert READS["plane_totals"] == ("flights", "planes")
