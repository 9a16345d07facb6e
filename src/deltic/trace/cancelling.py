"""Neighbours among rows that cancel for a reader, who does not read the words in which they differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.kernels import vector
from deltic.kernels.memory import Words
from deltic.kernels.table import address, addresses


def uncancelled(words: Sequence[Words], weights: Sequence[Words]) -> Words | None:
    """The positions of the rows, but for neighbours with the same words and opposite weights; None if that is all of them. O(rows).

    words, weights: int64[n] each. Rows of one key are neighbours in a batch: of an update those are the old row and the new one.

    >>> uncancelled([np.array([1, 1, 2, 2])], [np.array([-1, 1, 1, 1])])
    array([2, 3])
    """
    n = len(weights[0])
    if not any((weight < 0).any() for weight in weights):
        return None
    kept = np.empty(n, np.int64)
    rows = vector.uncancelled_rows(addresses(words, n), addresses(weights, n), n, address(kept))
    return None if rows == n else kept[:rows]
