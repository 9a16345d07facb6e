"""Room for arrays that kernels fill: large ones are mapped in small pages, and what is released is used again.

NumPy asks for huge pages for large arrays. The first access to one takes as long as 2 MB are zeroed, which is up to milliseconds where a
hypervisor gives memory on demand, and a third of a load. A large array is therefore mapped here, in small pages. The mapping is private:
the pages of a shared one cost a third more.

Merges release as much as they fill, and each page of new memory costs a fault, which takes longer than a merge takes to fill it. So
mappings whose arrays are gone are kept, up to a share of those in use, and lent again. A mapping is cut or extended to what is asked for,
which moves no page.
"""

from __future__ import annotations

import mmap
import sys
from bisect import bisect_left, insort
from collections import deque
from threading import Lock
from typing import Final, NamedTuple

import numpy as np

from deltic.kernels.memory import Words
from deltic.reentrant import free_after_fork

INT64: Final = np.dtype(np.int64)
LARGE_BYTES: Final = 1 << 22
"""Arrays of fewer bytes are NumPy's: the C library keeps their memory."""
KEPT_BYTES: Final = 1 << 26
"""So much is kept in any case."""
KEPT_SHARE: Final = 8
"""And as much as this part of what is lent."""
PAGE: Final = mmap.PAGESIZE
_RESIZABLE: Final = sys.platform == "linux"


class _Kept(NamedTuple):
    size: int
    number: int
    """The higher, the later it came back."""
    mapping: mmap.mmap


class _Loan:
    """Who owns a mapping while there are arrays over it."""

    __slots__ = ("__array_interface__", "_mapping", "_returned")

    def __init__(self, mapping: mmap.mmap, length: int, returned: deque[mmap.mmap]) -> None:
        address = np.frombuffer(mapping, INT64).__array_interface__["data"][0]
        self.__array_interface__ = {"data": (address, False), "shape": (length,), "typestr": INT64.str, "version": 3}
        self._mapping, self._returned = mapping, returned

    def __del__(self) -> None:
        self._returned.append(self._mapping)  # the garbage collector may call this at any point of any thread, so it takes no lock


class Room:
    """Mappings that are lent as arrays, and come back when these are gone. Safe for threads."""

    def __init__(self) -> None:
        self._lock = free_after_fork(Lock())
        self._kept: list[_Kept] = []
        """By size."""
        self._kept_bytes = self._lent_bytes = self._number = 0
        self._returned: deque[mmap.mmap] = deque()

    def lend(self, length: int) -> tuple[Words, bool]:
        """(int64[length] with any content, whether it is all zeros). Raises MemoryError."""
        size = -(-8 * length // PAGE) * PAGE
        with self._lock:
            self._take_back()
            mapping = self._fitting(size)
            used = mapping is not None
            mapping = mapping or mapped(size)
            self._lent_bytes += size
        return np.asarray(_Loan(mapping, length, self._returned)), not used

    def _fitting(self, size: int) -> mmap.mmap | None:
        """A mapping of this size that was kept: of at most twice the size, else the largest that can be extended."""
        at = bisect_left(self._kept, (size,))
        if at == len(self._kept) or self._kept[at].size > 2 * size:
            at -= 1
        if at < 0:
            return None
        kept = self._kept.pop(at)
        self._kept_bytes -= kept.size
        if kept.size != size:
            try:
                kept.mapping.resize(size)
            except OSError:
                return None
        return kept.mapping

    def _take_back(self) -> None:
        while self._returned:
            mapping = self._returned.popleft()
            self._lent_bytes -= len(mapping)
            self._keep(mapping)
        most = max(KEPT_BYTES, self._lent_bytes // KEPT_SHARE)
        while self._kept_bytes > most:
            oldest = min(self._kept, key=lambda each: each.number)
            self._kept.remove(oldest)
            self._kept_bytes -= oldest.size
            room = (most - self._kept_bytes) // PAGE * PAGE
            if room >= LARGE_BYTES:
                oldest.mapping.resize(room)
                self._keep(oldest.mapping)

    def _keep(self, mapping: mmap.mmap) -> None:
        self._number += 1
        self._kept_bytes += len(mapping)
        insort(self._kept, _Kept(len(mapping), self._number, mapping))


_ROOM: Final = Room()


def mapped(size: int) -> mmap.mmap:
    """New memory of so many bytes, all zeros. Raises MemoryError."""
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}  # Windows has no flags
    try:
        return mmap.mmap(-1, size, **private)
    except OSError as error:
        raise MemoryError(f"no room for {size} bytes: {error}") from None


def fresh(length: int) -> Words:
    """int64[length] with any content, for a kernel to fill. Raises MemoryError."""
    if 8 * length < LARGE_BYTES:
        return np.empty(length, INT64)
    return _ROOM.lend(length)[0] if _RESIZABLE else np.frombuffer(mapped(8 * length), INT64)


def zeros(length: int) -> Words:
    """int64[length] of zeros, as `fresh`."""
    if 8 * length < LARGE_BYTES:
        return np.zeros(length, INT64)
    if not _RESIZABLE:
        return np.frombuffer(mapped(8 * length), INT64)
    words, clean = _ROOM.lend(length)
    if not clean:
        words.fill(0)
    return words
