"""Tables of column addresses: the one checked way from arrays to kernels.

Whoever calls a kernel makes its tables here, and holds the arrays until the kernel has returned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.kernels.memory import Words
from deltic.kernels.vector import address

INT64 = np.dtype(np.int64)


def addresses(arrays: Sequence[Words], length: int) -> Words:
    """int64[len(arrays)] addresses; TypeError or ValueError unless each is a contiguous int64[length]."""
    for array in arrays:
        if len(array) != length:
            raise ValueError(f"columns of {length} and {len(array)} words in one table")
    return np.array([address(array) for array in arrays], INT64)


def block(columns: int, length: int) -> tuple[Words, Words]:
    """A new int64[columns, length] for a kernel to fill, and the addresses of its columns."""
    words = np.empty((columns, length), INT64)
    start = address(words.reshape(-1))
    return words, np.array([start + 8 * length * c for c in range(columns)], INT64)
