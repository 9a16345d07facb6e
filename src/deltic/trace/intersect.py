"""intersect: what several sorted columns have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.kernels import vector
from deltic.kernels.memory import Words


def intersect(columns: Sequence[Words]) -> Words:
    """The words that one or more strictly ascending int64 columns all have, ascending.

    Leapfrogs by galloping: costs the least length times the logarithm of the gaps, however long the others are.
    """
    lengths = np.array([len(column) for column in columns], np.int64)
    table = np.array([vector.address(column) for column in columns], np.int64)
    target = np.empty(int(lengths.min()), np.int64)
    return target[: vector.intersect(table, lengths, len(columns), vector.address(target))]
