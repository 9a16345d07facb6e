"""The last row before a given one, in the order of a trace."""

from __future__ import annotations

import numpy as np

from deltic.trace.counters import Counters
from deltic.trace.probe import first, ranked
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]


def preceding(spine: Spine, prefixes: Words, starts: Words, counters: Counters) -> tuple[np.ndarray, Words, np.ndarray]:
    """(the keys whose prefix has a row before the start, the words after the prefix of the last such row, its copies).

    starts: a word for each column after the prefix. Weights must not be negative. O(n · (log state + cancelled rows skipped)).
    """
    source, columns, _ = first(spine, prefixes, None, 1, counters)
    before, tied = np.zeros(len(source), bool), np.ones(len(source), bool)
    for column, start in zip(columns[len(prefixes) :], starts, strict=True):
        before |= tied & (column < start[source])
        tied &= column == start[source]
    keys = source[before]
    if not keys.size:
        return keys, tuple(keys for _ in starts), keys
    # As if one copy were before each start: the row of rank 0 is then the last one, after which 1 - its copies were before.
    ones, zeros = np.ones(len(keys), np.int64), np.zeros(len(keys), np.int64)
    row, remaining, _ = ranked(spine, [w[keys] for w in prefixes], [w[keys] for w in starts], (ones, zeros, zeros), counters)
    return keys, row, 1 - remaining
