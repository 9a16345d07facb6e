"""partition: rows to shards, by a hash of their key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.kernels import vector
from deltic.kernels.room import fresh
from deltic.kernels.table import addresses
from deltic.reentrant import ReentrantEvent
from deltic.trace.rows import Rows
from deltic.trace.workers import ALONE, Workers


def partition(rows: Rows, key: Sequence[int], shards: int, workers: Workers = ALONE) -> list[Rows]:
    """The rows of each shard, in their order. A row's shard depends on the words of its key columns and on `shards` alone, and is the
    same in every process; the NULL marker hashes as 0. O(rows); for one shard nothing is copied. workers: divide many rows.
    """
    if shards == 1:
        return [rows]
    columns, width = len(rows.columns), len(rows.columns) + len(rows.weights)
    homes, ranges, table = np.empty(rows.length, np.int64), workers.ranges(rows.length), rows.table
    counts = np.zeros((len(ranges), shards), np.int64)
    words = [fresh(rows.length) for _ in range(width)]  # each alone: a column that is not kept is freed
    target = addresses(words, rows.length)

    def choose(number: int, _: ReentrantEvent) -> None:
        start, end = ranges[number]
        vector.shard_rows(table[list(key)] + 8 * start, len(key), end - start, shards, homes[start:end], counts[number])

    workers.map(choose, range(len(ranges)))
    ends = np.cumsum(counts.sum(0))
    begins = ends - counts.sum(0) + np.cumsum(counts, 0) - counts

    def move(number: int, _: ReentrantEvent) -> None:
        start, end = ranges[number]
        vector.scatter(table + 8 * start, width, end - start, homes[start:end], begins[number], target)

    workers.map(move, range(len(ranges)))
    pieces = [tuple(column[end - count : end] for column in words) for end, count in zip(ends, counts.sum(0), strict=True)]
    return [Rows(piece[:columns], piece[columns:]) for piece in pieces]
