"""Paging: where state does not fit in memory, pages of mapped files that are about to be read are asked for together.

A process that reads mapped pages waits for the disk at each that is not in memory, and reads its neighbours too. Asked for together they
arrive in parallel, and alone. As long as the process does not wait for pages, asking costs nothing.
"""

from __future__ import annotations

import mmap
import time
from typing import Final

import numpy as np

from deltic.kernels.memory import Words

try:
    import resource
except ImportError:  # on Windows, where there are no mapped states
    resource = None  # type: ignore[assignment]

REMEMBERED_S: Final = 10.0
"""How long after it waited for pages the process asks for them."""
MANY: Final = 64
"""For so many pages within REMEMBERED_S a process waits that should ask for them."""
MOST_PAGES: Final = 1 << 14
"""More pages are not asked for at once: they would displace each other."""


def _faults() -> int:
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_majflt


class Paging:
    """Whether this process waits for pages. active: as of the last call of `observe`."""

    def __init__(self) -> None:
        self.active = False
        self._faults, self._since, self._until = _faults(), time.monotonic(), 0.0

    def observe(self) -> bool:
        """Whether the process has waited for many pages of late: for some each does when it begins. O(1), a microsecond."""
        faults, now = _faults(), time.monotonic()
        if faults - self._faults >= MANY:
            self._until = now + REMEMBERED_S
        if faults - self._faults >= MANY or now - self._since > REMEMBERED_S:
            self._faults, self._since = faults, now
        self.active = now < self._until
        return self.active


paging: Final = Paging()


def prefetch(content: mmap.mmap, starts: Words, ends: Words, *, alone: bool = False) -> None:
    """Asks the system to read the bytes starts[i] … ends[i] of a mapped file, and does not wait for them.

    alone: whoever reads another page of the file will not need its neighbours either; until many pages are asked for.
    """
    if not hasattr(content, "madvise"):
        return
    pages = distinct(pages_of(starts, ends, mmap.PAGESIZE))
    if len(pages) > MOST_PAGES:
        content.madvise(mmap.MADV_NORMAL)
        return
    if alone:
        content.madvise(mmap.MADV_RANDOM)
    breaks = (np.diff(pages) != 1).nonzero()[0]
    firsts, lasts = pages[np.append(0, breaks + 1)[: len(pages)]], pages[np.append(breaks, len(pages) - 1)[: len(pages)]]
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        content.madvise(mmap.MADV_WILLNEED, first * mmap.PAGESIZE, (last + 1 - first) * mmap.PAGESIZE)


def united(starts: Words, ends: Words) -> tuple[Words, Words]:
    """The items starts[i] … ends[i] as ranges that do not overlap, in order.

    >>> [ranges.tolist() for ranges in united(np.array([7, 0, 2, 0, 5]), np.array([9, 3, 4, 3, 5]))]
    [[0, 7], [4, 9]]
    """
    full = ends > starts
    order = np.argsort(starts[full], kind="stable")
    starts, ends = starts[full][order], np.maximum.accumulate(ends[full][order])
    begins = np.append(True, starts[1:] > ends[:-1])[: len(starts)].nonzero()[0]
    return starts[begins], ends[np.append(begins[1:], len(starts))[: len(begins)] - 1]


def pages_of(starts: Words, ends: Words, size: int) -> Words:
    """The pages, of `size` items each, that hold items starts[i] … ends[i]; some may repeat.

    >>> pages_of(np.array([0, 7, 9]), np.array([3, 12, 9]), 4)
    array([0, 1, 2])
    """
    first, last = starts // size, (ends - 1) // size
    counts = np.where(ends > starts, last - first + 1, 0)
    before = np.cumsum(counts) - counts
    pages: Words = np.repeat(first - before, counts) + np.arange(int(counts.sum()))
    return pages


def distinct(pages: Words) -> Words:
    """The pages in order, each once; several times faster than np.unique, which hashes them.

    >>> distinct(np.array([3, 1, 3, 2, 1]))
    array([1, 2, 3])
    """
    ordered = np.sort(pages)
    kept: Words = ordered[np.append(True, np.diff(ordered) != 0)[: len(ordered)]]
    return kept
