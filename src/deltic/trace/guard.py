"""Guards: verify every page of a mapped batch before a kernel first reads it.

A probe reads only the buckets of its keys. The guard computes their pages from the index and verifies the new ones; for a reader of all
rows it verifies all pages. So opening a batch takes constant time, and verification costs in proportion to what is read.

Of a bucket of many rows, as where words are distributed unevenly, a probe reads a logarithm. There the guard searches as the probe will and
notes the rows that it reads: if their pages turn out to be sound, so was the way, and the probe will take the same.

As long as pages are left, a probe has to ask the guard first, which takes longer than to look up one row. So a guard that is often asked
whether it can be passed verifies some pages ahead each time, unless the process waits for the disk; once none is left, it can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

import numpy as np

from deltic.errors import CorruptState
from deltic.kernels import read, table
from deltic.kernels.index import BASE, BEFORE, BY_SECOND, INDEX_HEADER, SHIFT, SHIFT_BITS
from deltic.kernels.memory import WORD_MIN, Words
from deltic.trace.paging import distinct, pages_of, paging, united

PAGE_BYTES = 4096
PAGE_WORDS = PAGE_BYTES // 8

WIDE: Final = 4 * PAGE_WORDS
"""Buckets of more rows are searched by the guard."""
OFTEN: Final = 64
"""After so many calls of `passes`, each verifies AHEAD pages of the file."""
AHEAD: Final = 64
_AT_ONCE: Final = 512
"""Keys that are searched together, which takes a megabyte for each of their words."""

Verify = Callable[[list[int]], None]
"""Verifies pages by number, or raises."""
Fetch = Callable[[Words, Words], None]
"""Asks for items starts[i] … ends[i] to be read from the disk, and does not wait for them."""


class Guard:
    """columns, index: those of the batch, not verified yet. verify_index: of pages of the index. verify_rows: of pages of all columns and
    weights.

    fetch_index, fetch_rows: of words of the index and of rows, used where the process waits for pages (`trace/paging.py`).
    """

    __slots__ = ("_calls", "_columns", "_fetch_index", "_fetch_rows", "_index", "_index_pages", "_lock", "_row_pages", "_rows", "done")

    def __init__(
        self,
        columns: Sequence[Words],
        index: Words,
        rows: int,
        verify_index: Verify,
        verify_rows: Verify,
        fetch_index: Fetch | None = None,
        fetch_rows: Fetch | None = None,
    ) -> None:
        self._columns, self._index, self._rows, self._fetch_index, self._fetch_rows = columns, index, rows, fetch_index, fetch_rows
        self._index_pages = Pages(-(-len(index) // PAGE_WORDS), verify_index)
        self._row_pages = Pages(-(-rows // PAGE_WORDS), verify_rows)
        self._lock, self._calls = Lock(), 0
        self.done = False
        """Whether all pages are verified."""

    def passes(self) -> bool:
        """Whether readers need not call `sought`. O(1): a later call may find that they need not."""
        if self._waits():
            return False
        if not self.done:
            with self._lock:
                self._calls += 1
                if not self.done and self._calls > OFTEN:  # unless another thread has verified all of it meanwhile
                    words = len(self._columns) + 1
                    self.done = self._row_pages.none_left(max(AHEAD // words, 1)) and self._index_pages.none_left(AHEAD)
        return self.done

    def _waits(self) -> bool:
        return self._fetch_rows is not None and paging.observe()

    def sought(self, keys: Sequence[Words]) -> None:
        """Verifies the rows that begin with the words of a key; keys are columns of words. O(n log n + new pages)."""
        waits = self._waits()
        if self.done and not waits:
            return
        with self._lock:
            starts, ends = united(*self._inspected(keys, *self._buckets(keys)))
            if waits and self._fetch_rows is not None:
                self._fetch_rows(starts, ends)
            if not self.done:
                self._row_pages.need(pages_of(starts, ends, PAGE_WORDS))

    def between(self, after: int, until: int) -> tuple[int, int]:
        """Verifies rows start … end, among them all with after < leading word ≤ until; returns (start, end)."""
        with self._lock:
            return self._verified(*self._between(after, until))

    def after(self, after: int, count: int) -> tuple[int, int]:
        """Verifies rows start … end, among them the first `count` with after < leading word; returns (start, end)."""
        with self._lock:
            return self._verified(*self._after(after, count))

    def _between(self, after: int, until: int) -> tuple[int, int]:
        before, base, second = self._header()
        if second is not None and until >= second:
            return self._narrowed(0, before, after)[0] if after < second else self._rows, self._rows
        if second is not None:
            return self._narrowed(0, before, after)[0], self._narrowed(0, before, until)[1]
        if until < base:
            return 0, 0
        starts, ends, _ = self._buckets([np.array([max(after, base), until], np.int64)])
        return self._narrowed(int(starts[0]), int(ends[0]), after)[0], self._narrowed(int(starts[1]), int(ends[1]), until)[1]

    def _after(self, after: int, count: int) -> tuple[int, int]:
        before, base, second = self._header()
        if second is not None and after >= second:
            return self._rows, self._rows
        if second is not None:
            start, end = self._narrowed(0, before, after)
        else:
            starts, ends, _ = self._buckets([np.array([max(after, base)], np.int64)])
            start, end = self._narrowed(int(starts[0]), int(ends[0]), after)
        return start, min(end + count, self._rows)

    def _narrowed(self, start: int, end: int, word: int) -> tuple[int, int]:
        """A range of few rows within start … end: those before it have leading words up to `word`, and those after it greater ones.

        Verifies a logarithm of the rows.
        """
        while end - start > WIDE:
            middle = (start + end) // 2
            self._row_pages.need(np.array([middle // PAGE_WORDS]))
            if self._columns[0][middle] <= word:
                start = middle + 1
            else:
                end = middle
        return start, end

    def _verified(self, start: int, end: int) -> tuple[int, int]:
        if not self.done:
            self._row_pages.need(pages_of(np.array([start]), np.array([end]), PAGE_WORDS))
        return start, end

    def _header(self) -> tuple[int, int, int | None]:
        """(rows before those that are indexed, the least indexed word, the leading word of those indexed by their second if they are)."""
        self._index_pages.need(np.zeros(1, np.int64))
        if self._index[SHIFT] < BY_SECOND:
            return int(self._index[BEFORE]), int(self._index[BASE]), None
        self._index_pages.need(np.array([(len(self._index) - 1) // PAGE_WORDS]))
        return int(self._index[BEFORE]), int(self._index[BASE]), int(self._index[-1])

    def rows(self, start: int, end: int) -> None:
        """Verifies rows start … end."""
        if not self.done:
            with self._lock:
                self._row_pages.need(np.arange(start // PAGE_WORDS, -(-end // PAGE_WORDS)))

    def everything(self) -> None:
        """Verifies all rows. O(batch) the first time."""
        if not self.done:
            with self._lock:
                self._index_pages.need_all()
                self._row_pages.need_all()
                self.done = True

    def _buckets(self, keys: Sequence[Words]) -> tuple[Words, Words, Words]:
        """(starts, ends: the rows among which kernels look for these keys; by how many words of a key they have been found).

        See `kernels/index.py`.
        """
        before, _, second = self._header()
        if second is None:
            outside = keys[0] == WORD_MIN
            known = np.full(len(outside), int(self._index[SHIFT] == 0))
        else:
            outside = keys[0] != second
            known = 1 - outside
        if second is not None and len(keys) == 1:
            return np.where(outside, 0, before), np.where(outside, before, self._rows), known
        starts, ends = self._rows_of(keys[0 if second is None else 1])
        return np.where(outside, 0, starts), np.where(outside, before, ends), known

    def _inspected(self, keys: Sequence[Words], starts: Words, ends: Words, known: Words) -> tuple[Words, Words]:
        """Ranges of the rows that kernels read to find these keys, and of those that begin with one."""
        wide = ends - starts > WIDE
        if not wide.any():
            return starts, ends
        spans = [(starts[~wide], ends[~wide])]
        columns, places = table.addresses(self._columns, self._rows), wide.nonzero()[0]
        changes = [np.diff(words[places]) != 0 for words in keys]
        places = places[np.append(True, np.logical_or.reduce(changes))]
        for first in range(0, len(places), _AT_ONCE):
            chosen = places[first : first + _AT_ONCE]
            sought = [words[chosen] for words in keys]
            by, low, high = known[chosen], starts[chosen], ends[chosen]
            trail = np.zeros(1 + read.MOST_NOTED * len(keys) * len(chosen), np.int64)
            addresses = [table.address(array) for array in (by, low, high, trail)]
            count = read.inspect(columns, table.addresses(sought, len(chosen)), len(keys), len(chosen), *addresses)
            rows = distinct(trail[1 : count + 1] // PAGE_WORDS) * PAGE_WORDS
            spans += [(low, high), (rows, rows + 1)]
        return np.concatenate([low for low, _ in spans]), np.concatenate([high for _, high in spans])

    def _rows_of(self, words: Words) -> tuple[Words, Words]:
        """The rows of the buckets of these words of the indexed column."""
        _, base, shift, buckets = (int(word) for word in self._index[:INDEX_HEADER])
        offsets = (words.view(np.uint64) - np.uint64(base % 2**64)) >> np.uint64(shift & SHIFT_BITS)
        entries = np.minimum(offsets, np.uint64(buckets)).astype(np.int64) + INDEX_HEADER
        if paging.active and self._fetch_index is not None:
            self._fetch_index(entries, entries + 2)
        self._index_pages.need(pages_of(entries, entries + 2, PAGE_WORDS))
        return self._index[entries], self._index[entries + 1]


class Pages:
    """The pages of one block, or of several blocks read together; each is verified once."""

    __slots__ = ("_ends", "_next", "_verify", "seen")

    def __init__(self, count: int, verify: Verify) -> None:
        self.seen = np.zeros(count, bool)
        """Which have been verified."""
        self._verify = verify
        self._next, self._ends = 0, False
        """All before it have been verified. Whether no more are verified ahead."""

    def need(self, pages: Words) -> None:
        """Verifies these pages, which may repeat."""
        new = pages[~self.seen[pages]]
        if len(new):
            new = distinct(new)
            self._verify(new.tolist())
            self.seen[new] = True

    def none_left(self, ahead: int) -> bool:
        """Verifies so many pages more; whether all are verified then. A damaged one ends that, and is left to who reads it."""
        if self._ends:
            return False
        end = self._next + ahead
        try:
            self.need(self._next + np.flatnonzero(~self.seen[self._next : end]))
        except (CorruptState, OSError):
            self._ends = True
            return False
        self._next = end
        return end >= len(self.seen)

    def need_all(self) -> None:
        """Verifies all pages."""
        self.need(np.flatnonzero(~self.seen))
