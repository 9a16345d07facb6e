"""Sums of changes: what cancels is gone, whatever the type of a column."""

from __future__ import annotations

import math

import pyarrow as pa

from deltic.connectors.net import difference, net

ROWS = pa.table({"a": [1, 2, None], "x": [math.nan, -0.0, 0.0], "s": [[{"k": math.nan}], None, []]})


def test_changes_that_cancel_leave_nothing() -> None:
    assert difference(ROWS, ROWS).num_rows == 0
    assert difference(ROWS.slice(0, 0), ROWS).column("_weight").to_pylist() == [1, 1, 1]


def test_rows_come_once_in_order_of_their_first_change() -> None:
    added, gone = difference(ROWS.slice(0, 0), ROWS), difference(ROWS.slice(1, 1), ROWS.slice(0, 0))
    total = net([added, gone, added])
    assert total.column("a").to_pylist() == [1, 2, None]
    assert total.column("_weight").to_pylist() == [2, 1, 2]
