"""partition: rows to shards, by a hash of their key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from deltic.kernels import vector
from deltic.kernels.room import discard, fresh
from deltic.kernels.table import addresses
from deltic.reentrant import ReentrantEvent
from deltic.trace.rows import Rows
from deltic.trace.workers import ALONE, Workers

DISCARDED_ROWS: Final = 1 << 19
"""So many rows are moved before their memory is given back, if it may be."""


def partition(rows: Rows, key: Sequence[int], shards: int, workers: Workers = ALONE, *, moves: bool = False) -> list[Rows]:
    """The rows of each shard, in their order. A row's shard depends on the words of its key columns and on `shards` alone, and is the
    same in every process; the NULL marker hashes as 0. O(rows); for one shard nothing is copied. workers: divide many rows.

    moves: whether the memory of the rows is given back as they are copied. Nobody may read them afterwards.
    """
    if shards == 1:
        return [rows]
    columns, width = len(rows.columns), len(rows.columns) + len(rows.weights)
    ranges, table = workers.ranges(rows.length), rows.table
    keys = table[list(key)]
    counts = np.zeros((len(ranges), shards), np.int64)

    def count(number: int, _: ReentrantEvent) -> None:
        start, end = ranges[number]
        vector.count_shards(keys + 8 * start, len(key), end - start, shards, counts[number])

    workers.map(count, range(len(ranges)))
    begins = np.cumsum(counts, 0) - counts
    pieces = [[fresh(length) for _ in range(width)] for length in counts.sum(0).tolist()]  # each alone: what is not kept is freed
    target = np.concatenate([addresses(piece, len(piece[0])) for piece in pieces])

    def move(number: int, _: ReentrantEvent) -> None:
        start, end = ranges[number]
        step = DISCARDED_ROWS if moves else max(end - start, 1)
        for first in range(start, end, step):
            last = min(first + step, end)
            vector.scatter(keys + 8 * first, len(key), table + 8 * first, last - first, shards, begins[number], target)
            if moves:
                for column in (*rows.columns, *rows.weights):
                    discard(column[first:last])

    workers.map(move, range(len(ranges)))
    return [Rows(piece[:columns], piece[columns:]) for piece in pieces]
