"""Room for arrays that kernels fill: large ones are mapped in small pages, and what is released is used again.

NumPy asks for huge pages for large arrays. The first access to one takes as long as 2 MB are zeroed, which is up to milliseconds where a
hypervisor gives memory on demand, and a third of a load. A large array is therefore mapped here, in small pages. The mapping is private:
the pages of a shared one cost a third more.

Merges release as much as they fill, and each page of new memory costs a fault, which takes longer than a merge takes to fill it. So
mappings whose arrays are gone are kept, up to a share of those in use, and lent again. Large ticks need more, again and again: up to
KEPT_RECENT is kept of what was lent at a time of late, until no loan has been made for IDLE_S. A mapping is cut or extended to what is
asked for, which moves no page.
"""

from __future__ import annotations

import mmap
import sys
from collections import deque
from math import inf
from threading import RLock
from time import monotonic
from typing import Final
from weakref import ref

import numpy as np
from numpy.lib.array_utils import byte_bounds

from deltic.kernels.memory import Words
from deltic.reentrant import free_after_fork

INT64: Final = np.dtype(np.int64)
LARGE_BYTES: Final = 1 << 22
"""Arrays of fewer bytes are NumPy's: the C library keeps their memory."""
KEPT_BYTES: Final = 1 << 26
"""So much is kept in any case."""
KEPT_SHARE: Final = 8
"""And as much as this part of what is lent."""
KEPT_RECENT: Final = 1 << 28
RECENT_LOANS: Final = 64
"""What the last RECENT_LOANS to 2 · RECENT_LOANS loans needed at a time is recent."""
IDLE_S: Final = 10.0
PAGE: Final = mmap.PAGESIZE
_RESIZABLE: Final = sys.platform == "linux"


class _Loan(ref[Words]):
    """The array over a mapping that is lent; slices of it keep it."""

    __slots__ = ("mapping",)

    mapping: mmap.mmap


class Room:
    """Mappings that are lent as arrays, and come back when these are gone. Safe for threads, and for signal handlers: nothing that could be
    left half done is more than one statement."""

    def __init__(self) -> None:
        self._lock = free_after_fork(RLock())
        self._kept: list[mmap.mmap] = []
        """Those that came back first are first."""
        self._lent_bytes = 0
        self._peaks, self._loans_since = (0, 0), 0
        """The most that was lent at a time, before the last RECENT_LOANS loans were complete and since; how many there are since."""
        self.idle_from = inf
        self._loans: dict[int, _Loan] = {}
        """By id(), those whose arrays live."""
        self._ended: deque[_Loan] = deque()
        """Those whose arrays are gone. The garbage collector may add some at any point of any thread, in no statement of Python's."""

    def lend(self, length: int) -> tuple[Words, int]:
        """(int64[length] with any content, how many of the first words may be other than zero). Raises MemoryError."""
        size = -(-8 * length // PAGE) * PAGE
        with self._lock:
            self._take_back()
            mapping = self._fitting(size)
            self._lent_bytes += size
            self._note_loan()
        used = 0 if mapping is None else min(len(mapping), size)
        try:
            if mapping is not None and len(mapping) != size:
                mapping.resize(size)
        except OSError:
            mapping, used = None, 0
        mapping = mapping or self._mapped(size)
        words = np.frombuffer(mapping, INT64, length)
        loan = _Loan(words, self._ended.append)
        loan.mapping, self._loans[id(loan)] = mapping, loan
        return words, min(used >> 3, length)

    def release_idle(self) -> None:
        """Keeps no more than a share if the last loan was IDLE_S ago."""
        if self.idle_from < monotonic():
            with self._lock:
                self._peaks, self._loans_since, self.idle_from = (0, 0), 0, inf
                self._take_back()

    def _note_loan(self) -> None:
        before, now = self._peaks
        self._peaks, self._loans_since, self.idle_from = (before, max(now, self._lent_bytes)), self._loans_since + 1, monotonic() + IDLE_S
        if self._loans_since >= RECENT_LOANS:
            self._peaks, self._loans_since = (self._peaks[1], self._lent_bytes), 0

    def _mapped(self, size: int) -> mmap.mmap:
        """A new mapping; if there is no room for it, what is kept is released first."""
        try:
            return mapped(size)
        except MemoryError:
            with self._lock:
                self._take_back()
                self._kept.clear()
            return mapped(size)

    def _fitting(self, size: int) -> mmap.mmap | None:
        """A mapping of those kept: of at most twice the size, else the largest one that can be extended."""
        fitting = [each for each in self._kept if size <= len(each) <= 2 * size]
        smaller = [each for each in self._kept if len(each) < size]
        chosen = min(fitting, key=len) if fitting else max(smaller, key=len, default=None)
        if chosen is not None:
            self._kept.remove(chosen)
        return chosen

    def _take_back(self) -> None:
        while self._ended:
            loan = self._ended.popleft()
            self._loans.pop(id(loan), None)
            if hasattr(loan, "mapping"):  # else it was interrupted before
                self._lent_bytes -= len(loan.mapping)
                self._kept.append(loan.mapping)
        recent = min(max(self._peaks) - self._lent_bytes, KEPT_RECENT)
        spare = sum(map(len, self._kept)) - max(KEPT_BYTES, self._lent_bytes // KEPT_SHARE, recent)
        while self._kept and spare > 0:
            oldest = self._kept.pop(0)
            left = (len(oldest) - spare) // PAGE * PAGE
            spare -= len(oldest)
            if left >= LARGE_BYTES:
                oldest.resize(left)
                self._kept.append(oldest)


_ROOM: Final = Room()
release_idle: Final = _ROOM.release_idle
"""Gives memory back to the system that large ticks have needed, some time after the last of them."""


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
    words, used = _ROOM.lend(length)
    words[:used] = 0
    return words


def discard(words: Words) -> None:
    """Gives the memory of a part of an array from `fresh` back to the system, but for the pages at its ends; nobody may read it again.

    Does nothing to arrays with other memory.
    """
    whole = words
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    mapping: object = whole.base.obj if isinstance(whole.base, memoryview) else None
    if not _RESIZABLE or not isinstance(mapping, mmap.mmap):
        return
    begin = byte_bounds(words)[0] - byte_bounds(whole)[0]
    first, end = -(-begin // PAGE) * PAGE, (begin + words.nbytes) // PAGE * PAGE
    if first < end:
        mapping.madvise(mmap.MADV_DONTNEED, first, end - first)
