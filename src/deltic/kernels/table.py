"""Tables of column addresses: the one checked way from arrays to kernels.

Whoever calls a kernel makes its tables here, and holds the arrays until the kernel has returned.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np

from deltic.kernels.memory import Words
from deltic.kernels.vector import address

INT64 = np.dtype(np.int64)
LARGE_BYTES = 1 << 22


def addresses(arrays: Sequence[Words], length: int) -> Words:
    """int64[len(arrays)] addresses; TypeError or ValueError unless each is a contiguous int64[length]."""
    for array in arrays:
        if len(array) != length:
            raise ValueError(f"columns of {length} and {len(array)} words in one table")
    return np.array([address(array) for array in arrays], INT64)


def zeros(length: int, gradual: bool = False) -> Words:
    """int64[length] of zeros. gradual: it will be filled little by little, and no step may pause.

    For large arrays NumPy asks for huge pages, which is fastest when all is written at once; but the first touch of each may take
    milliseconds. What is filled little by little is therefore mapped here, in small pages.
    """
    if not gradual or 8 * length < LARGE_BYTES:
        return np.zeros(length, INT64)
    try:
        return np.frombuffer(mmap.mmap(-1, 8 * length), INT64)
    except OSError as error:
        raise MemoryError(f"no room for {8 * length} bytes: {error}") from None


def block(columns: int, length: int, gradual: bool = False) -> tuple[Words, Words]:
    """A new int64[columns, length] for a kernel to fill, of any content, and the addresses of its columns. gradual: see `zeros`."""
    size = columns * length
    words = zeros(size, True) if gradual and 8 * size >= LARGE_BYTES else np.empty(size, INT64)
    start = address(words)
    return words.reshape(columns, length), np.array([start + 8 * length * c for c in range(columns)], INT64)
