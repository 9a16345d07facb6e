"""partition: rows to shards, by a hash of their key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.kernels import vector
from deltic.kernels.table import block
from deltic.trace.rows import Rows


def partition(rows: Rows, key: Sequence[int], shards: int) -> list[Rows]:
    """The rows of each shard, in their order. A row's shard depends on the words of its key columns and on `shards` alone, and is the
    same in every process; the NULL marker hashes as 0. O(rows); for one shard nothing is copied.
    """
    if shards == 1:
        return [rows]
    columns, width = len(rows.columns), len(rows.columns) + len(rows.weights)
    homes = np.empty(rows.length, np.int64)
    counts = np.zeros(shards, np.int64)
    vector.shard_rows(rows.table[list(key)], len(key), rows.length, shards, homes, counts)
    ends = np.cumsum(counts)
    words, target = block(width, rows.length)
    vector.scatter(rows.table, width, rows.length, homes, ends - counts, target)
    pieces = [tuple(words[:, end - count : end]) for end, count in zip(ends, counts, strict=True)]
    return [Rows(piece[:columns], piece[columns:]) for piece in pieces]
