"""NumPy: the tables as dense arrays, the view counted from scratch after every tick. No engine at all could be simpler."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.checks import Change, Words
from benchmarks.engine import Answer

Tick = tuple[Change, Change]
View = tuple[Words, Words, Words]
Dense = npt.NDArray[Any]


class Recompute:
    """Keys are small non-negative numbers, so that a row stands at its key. Customer 0 and region 0 stand for "none", others count from 1.

    Amounts are doubles, as bincount adds them; their sums are whole and below 2^53, hence exact.
    """

    def __init__(self) -> None:
        self.buyer = np.zeros(1, np.int64)
        self.amount = np.zeros(1, np.float64)
        self.region = np.zeros(1, np.int64)
        self.orders = 0

    def prepare(self, orders: Change, customers: Change) -> Tick:
        return orders, customers

    def tick(self, prepared: Tick) -> View:
        (weight, order, customer, amount), (moved, who, region) = prepared
        old, new = weight < 0, weight > 0
        self.buyer, self.amount = _grown(self.buyer, order), _grown(self.amount, order)
        self.region = _grown(self.region, who + 1)
        self.buyer[order[old]] = 0
        self.buyer[order[new]], self.amount[order[new]] = customer[new] + 1, amount[new]
        self.region[who[moved > 0] + 1] = region[moved > 0] + 1
        self.orders = max(self.orders, int(order.max(initial=-1)) + 1)
        group = self.region.take(self.buyer[: self.orders])
        counts, sums = np.bincount(group)[1:], np.bincount(group, self.amount[: self.orders])[1:]
        rows = np.flatnonzero(counts)
        return rows, counts[rows], sums[rows].astype(np.int64)

    def answer(self, read: View) -> Answer:
        return Answer(read, None)


def _grown(array: Dense, keys: Words) -> Dense:
    """The array, or a copy of twice the length or more in which every key has a place."""
    last = int(keys.max(initial=0))
    if last < len(array):
        return array
    grown = np.zeros(max(last + 1, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown


def engine() -> Recompute:
    return Recompute()
