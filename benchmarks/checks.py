"""Is a view right? A checksum of its rows and weights, and the same from an independent computation with NumPy.

The checksum is linear in the weights, modulo 2^64: that of a view is the sum of those of its changes, so that engines which give
changes and engines which give whole views are compared with the same number. It shares no code with Deltic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import Feed

Words = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]
Change = tuple[Words, ...]

MODULUS = 1 << 64


def checksum(columns: Sequence[Words], weights: Words) -> int:
    """Σ weight · mix(row) modulo 2^64 over rows given as columns of int64[n]."""
    mixed = np.full(len(weights), 0x9E3779B97F4A7C15, np.uint64)
    for column in columns:
        mixed = _mix(mixed ^ _mix(column.astype(np.uint64)))
    return int((mixed * weights.astype(np.uint64)).sum(dtype=np.uint64))


def _mix(x: Unsigned) -> Unsigned:
    """The finaliser of splitmix64 (Steele, Lea and Flood, 2014), which is a bijection without linear structure over sums."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Accumulated:
    """The checksum of a view that arrives whole or as changes."""

    def __init__(self) -> None:
        self.value = 0

    def replace(self, columns: Sequence[Words]) -> int:
        """A whole view, each row once."""
        self.value = checksum(columns, np.ones(len(columns[0]), np.int64))
        return self.value

    def add(self, columns: Sequence[Words], weights: Words) -> int:
        """A view's change."""
        self.value = (self.value + checksum(columns, weights)) % MODULUS
        return self.value


def split(feed: Feed, ticks: int) -> list[Change]:
    """The first so many ticks of a feed (0 is the load), each as contiguous columns without the tick: weight, then the row."""
    bounds = np.searchsorted(feed[:, 0], np.arange(ticks + 1))
    return [tuple(np.ascontiguousarray(column) for column in feed[start:stop, 1:].T) for start, stop in pairwise(bounds)]


def spend(orders: Feed, customers: Feed) -> Iterator[tuple[Words, Words, Words]]:
    """The rows (region, count, sum of amounts) of the view after every tick, each counted from scratch from the rows present."""
    buyer, amount, alive = (np.zeros(int(orders[:, 2].max()) + 1, np.int64) for _ in range(3))
    region = np.zeros(int(customers[:, 2].max()) + 1, np.int64)
    ticks = int(max(orders[-1, 0], customers[-1, 0])) + 1
    for order, customer in zip(split(orders, ticks), split(customers, ticks), strict=True):
        weight, ids, who, paid = order
        new = weight > 0
        np.add.at(alive, ids, weight)
        buyer[ids[new]], amount[ids[new]] = who[new], paid[new]
        moved = customer[0] > 0
        region[customer[1][moved]] = customer[2][moved]
        there = np.flatnonzero(alive)
        assert alive[there].max(initial=1) == 1 == alive[there].min(initial=1), "the feed holds a row twice, or deletes an absent one"
        yield _totals(region[buyer[there]], amount[there])


def _totals(region: Words, amount: Words) -> tuple[Words, Words, Words]:
    counts = np.bincount(region)
    sums = np.bincount(region, weights=amount)
    assert sums.max(initial=0) < 2**53, "bincount adds in floating point: it is exact up to 2^53 only"
    rows = np.flatnonzero(counts)
    return rows.astype(np.int64), counts[rows].astype(np.int64), sums[rows].astype(np.int64)
