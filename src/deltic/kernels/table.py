"""Addresses of arrays and tables of column addresses: the one checked way from arrays to kernels.

Whoever calls a kernel takes the addresses here, and keeps the arrays until the kernel has returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from deltic.kernels import bounds, raw
from deltic.kernels.build import CHECKED
from deltic.kernels.compiler import kernel
from deltic.kernels.memory import HANDLES, Words
from deltic.kernels.room import fresh

INT64 = np.dtype(np.int64)


class Buffer(Protocol):
    """Memory of Arrow: where it begins, and its bytes."""

    @property
    def address(self) -> int: ...

    @property
    def size(self) -> int: ...


@kernel("int64(int64[::1])", "int64(Array(int64, 1, 'C', readonly=True))", sealed=True, nogil=False)
def start(words: Words) -> int:
    """The machine address of a contiguous int64 array; it accepts nothing else, and so checks dtype, dimension and contiguity."""
    return raw.address_of(words)


def _handle(words: Words) -> int:
    """The address of an array in the checked build, valid until its memory is released."""
    assert HANDLES is not None
    return HANDLES.enter(bounds.owner_of(words), start(words), words.nbytes)


address = _handle if CHECKED else start
"""The address of a contiguous int64[n]. Raises TypeError for any other array."""


def buffer_address(buffer: Buffer, owner: object) -> int:
    """The address of a buffer that `owner` keeps alive."""
    return buffer.address if HANDLES is None else HANDLES.enter(owner, buffer.address, buffer.size)


def addresses(arrays: Sequence[Words] | Words, length: int) -> Words:
    """int64[len(arrays)] addresses; TypeError or ValueError unless each is a contiguous int64[length]."""
    starts = []
    for array in arrays:
        if len(array) != length:
            raise ValueError(f"columns of {length} and {len(array)} words in one table")
        starts.append(address(array))
    return np.array(starts, INT64)


def block(columns: int, length: int) -> tuple[Words, Words]:
    """A new int64[columns, length] with any content, for a kernel to fill, and the addresses of its columns."""
    size = columns * length
    words = fresh(size)
    table = words.reshape(columns, length)
    if CHECKED:
        return table, addresses(table, length)
    first = start(words)
    return table, np.arange(first, first + 8 * size, 8 * length) if size else np.full(columns, first)


def cut(table: Words) -> Words | None:
    """The addresses of columns of which fewer rows are used than before; None in the checked build, where they have other bounds."""
    return None if CHECKED else table
