"""The benchmarks' comparison detects wrong answers, and their feeds have the stated properties."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks import checks, drive, workloads
from benchmarks.engine import CHANGE, SINGLE, Answer
from benchmarks.peers import numpy_join

ORDERS, CUSTOMERS = workloads.join_aggregate(orders=400, customers=60, ticks=6, changes=40)
TICKS = 7
LAST = list(checks.spend(ORDERS, CUSTOMERS))[-1]


def rows_of(view: tuple[checks.Words, ...]) -> Counter[tuple[int, ...]]:
    return Counter(zip(*(column.tolist() for column in view), strict=True))


def counted_row_by_row(orders: workloads.Feed, customers: workloads.Feed) -> Counter[tuple[int, ...]]:
    """The view over all rows of both feeds, by dictionaries."""
    held: Counter[tuple[int, ...]] = Counter()
    for _, weight, *row in orders.tolist():
        held[tuple(row)] += weight
    regions: Counter[tuple[int, ...]] = Counter()
    for _, weight, *row in customers.tolist():
        regions[tuple(row)] += weight
    region = {customer: where for (customer, where), weight in regions.items() if weight}
    counts: Counter[int] = Counter()
    sums: Counter[int] = Counter()
    for (_, customer, amount), weight in held.items():
        counts[region[customer]] += weight
        sums[region[customer]] += weight * amount
    return Counter((where, count, sums[where]) for where, count in counts.items() if count)


def test_the_independent_computation_agrees_with_dictionaries() -> None:
    assert rows_of(LAST) == counted_row_by_row(ORDERS, CUSTOMERS)


def test_a_view_with_the_same_rows_in_another_order_is_the_same() -> None:
    assert checks.Accumulated().replace([column[::-1] for column in LAST]) == checks.Accumulated().replace(LAST)


def test_a_view_with_one_row_more_is_wrong() -> None:
    more = [np.append(column, column[:1] + 1) for column in LAST]
    assert checks.Accumulated().replace(more) != checks.Accumulated().replace(LAST)


def test_a_view_with_a_row_twice_is_wrong() -> None:
    more = [np.append(column, column[:1]) for column in LAST]
    assert checks.Accumulated().replace(more) != checks.Accumulated().replace(LAST)


@pytest.mark.parametrize("off", [-1, 1])
def test_a_weight_that_is_off_is_wrong(off: int) -> None:
    weights = np.ones(len(LAST[0]), np.int64)
    weights[3] += off
    assert checks.checksum(LAST, weights) != checks.Accumulated().replace(LAST)


@pytest.mark.parametrize("column", range(3))
def test_a_value_that_is_off_is_wrong(column: int) -> None:
    changed = [values.copy() for values in LAST]
    changed[column][5] += 1
    assert checks.Accumulated().replace(changed) != checks.Accumulated().replace(LAST)


def test_values_that_change_places_are_wrong() -> None:
    region, count, amount = (column.copy() for column in LAST)
    amount[[0, 1]] = amount[[1, 0]]
    assert checks.Accumulated().replace([region, count, amount]) != checks.Accumulated().replace(LAST)


def test_changes_add_up_to_the_view() -> None:
    accumulated, held = checks.Accumulated(), None
    for view in checks.spend(ORDERS, CUSTOMERS):
        if held is not None:
            accumulated.add(held, -np.ones(len(held[0]), np.int64))
        accumulated.add(view, np.ones(len(view[0]), np.int64))
        held = view
        assert accumulated.value == checks.Accumulated().replace(view)


def test_single_changes_fit_in_anywhere() -> None:
    orders, customers = workloads.single_changes(ORDERS, CUSTOMERS, after=4, ticks=10)
    longer, views = list(checks.spend(orders, customers)), list(checks.spend(ORDERS, CUSTOMERS))
    assert [rows_of(view) for view in longer[:5] + longer[15:]] == [rows_of(view) for view in views]
    assert all(rows_of(longer[tick]) != rows_of(longer[tick - 1]) for tick in range(5, 15))
    assert np.bincount(orders[:, 0])[5:15].tolist() == [2] * 10


class OneRowMore(numpy_join.Recompute):
    """Gives the last row twice in its third tick."""

    ticks = 0

    def answer(self, read: numpy_join.View) -> Answer:
        self.ticks += 1
        return Answer([np.append(column, column[-1:]) for column in read] if self.ticks == 3 else read, None)


class AWeightOff(numpy_join.Recompute):
    """Gives the view as changes, the last one with a weight one too high."""

    ticks = 0

    def answer(self, read: numpy_join.View) -> Answer:
        self.ticks += 1
        before = getattr(self, "held", tuple(column[:0] for column in read))
        self.held = read
        weights = np.repeat([-1, 1], [len(before[0]), len(read[0])]).astype(np.int64)
        weights[-1] += self.ticks == TICKS
        return Answer([np.append(*pair) for pair in zip(before, read, strict=True)], weights)


@pytest.mark.parametrize(("engine", "correct"), [(numpy_join.Recompute, True), (OneRowMore, False), (AWeightOff, False)])
def test_a_run_says_whether_every_tick_was_right(engine: type[numpy_join.Recompute], correct: bool, tmp_path: Path) -> None:
    orders, customers = workloads.single_changes(ORDERS, CUSTOMERS, after=TICKS - 1, ticks=2)
    drive.save(tmp_path, orders[orders[:, 0] < TICKS], customers, [CHANGE] * TICKS)
    figures = drive.run(engine(), tmp_path)
    assert figures["correct"] is correct


def test_a_run_reports_each_kind_of_tick(tmp_path: Path) -> None:
    orders, customers = workloads.single_changes(ORDERS, CUSTOMERS, after=TICKS - 1, ticks=2)
    drive.save(tmp_path, orders, customers, [CHANGE] * TICKS + [SINGLE] * 2)
    figures = json.loads(json.dumps(drive.run(numpy_join.engine(), tmp_path)))
    assert set(figures) == {"load_s", "tick_ms", "peak_mb", "load_peak", "correct", "by_kind"}
    assert set(figures["tick_ms"]) == {"median", "p95", "max"}
    assert set(figures["by_kind"]) == {SINGLE}
    assert figures["peak_mb"] > 1
