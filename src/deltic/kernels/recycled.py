"""Memory that is used again: where a merge writes into pages that the process has not used before, these cost more than its rows.

Always: memory is lent to one array at a time, and comes back when nothing refers to that array or to a part of it. What has come back and
is not lent again takes at most MOST bytes. There is no lock, since memory may come back at any line of any thread.
"""

from __future__ import annotations

import mmap
from collections import deque
from typing import Final
from weakref import finalize

import numpy as np
import numpy.typing as npt

MOST: Final = 1 << 26
LEAST: Final = 1 << 19
"""Smaller arrays are left to malloc, which keeps their memory itself."""
_PRIVATE: Final = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}  # Windows has no flags


class Recycler:
    """Memory in small pages, which are mapped one by one as they are used: none of these steps takes long. most: see MOST."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._free: deque[tuple[int, mmap.mmap]] = deque()
        """The size of each and the memory, the oldest first."""

    @property
    def nbytes(self) -> int:
        """Bytes that are not lent."""
        return sum(size for size, _ in list(self._free))

    def words(self, length: int) -> npt.NDArray[np.int64]:
        """int64[length] of any content. Raises MemoryError."""
        size = _rounded(8 * length)
        memory = self._taken(size) or mapped(size)
        lent = np.frombuffer(memory, np.int64)  # all views, and their views, refer to this array
        finalize(lent, self._give_back, size, memory).atexit = False
        return lent[:length]

    def _taken(self, size: int) -> mmap.mmap | None:
        for entry in reversed(list(self._free)):
            if entry[0] == size:
                try:
                    self._free.remove(entry)
                except ValueError:  # another thread has taken it
                    continue
                return entry[1]
        return None

    def _give_back(self, size: int, memory: mmap.mmap) -> None:
        if size > self._most:
            return
        self._free.append((size, memory))
        while self.nbytes > self._most:
            try:
                self._free.popleft()
            except IndexError:
                return


def mapped(size: int) -> mmap.mmap:
    """New memory of zeros, private, since pages of a shared mapping cost a third more. Raises MemoryError."""
    try:
        return mmap.mmap(-1, size, **_PRIVATE)
    except OSError as error:
        raise MemoryError(f"no room for {size} bytes: {error}") from None


def _rounded(size: int) -> int:
    """The size of memory for so many bytes, at most a quarter more: there are few sizes, so that memory of one serves many arrays.

    >>> _rounded(1 << 20), _rounded((1 << 20) + 1), _rounded(1_900_000)
    (1048576, 1310720, 2097152)
    """
    step = 1 << max(size.bit_length() - 3, 12)
    return -(-size // step) * step


recycler: Final = Recycler()
