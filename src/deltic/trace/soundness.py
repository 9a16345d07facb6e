"""Checks the invariants of a stored batch that kernels rely on, once its checksum is verified.

A checksum says that the bytes are those that somebody wrote, not that Deltic wrote them; kernels read and write memory by these words. So
every row that an index names must be in the batch, and rows must strictly ascend. Costs less than the checksum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.kernels import sort, table
from deltic.kernels.index import BY_SECOND, INDEX_HEADER, SHIFT, SHIFT_BITS, index_words
from deltic.kernels.memory import WORD_MIN, Words
from deltic.trace.batch import Batch
from deltic.trace.guard import PAGE_WORDS


class RowOrder:
    """The order of the rows of a batch, page by page. columns, weights: int64[n] each."""

    __slots__ = ("_checked", "_columns", "_rows", "_table", "_weights")

    def __init__(self, batch: Batch) -> None:
        self._table = batch.table
        self._columns, self._weights, self._rows = len(batch.columns), len(batch.weights), len(batch)
        self._checked = np.zeros(-(-self._rows // PAGE_WORDS), bool)

    def check(self, pages: Sequence[int]) -> bool:
        """Whether the rows of these pages strictly ascend and have weights, also across the border to a page that was checked before.

        pages: ascending, each once.
        """
        if not len(pages):
            return True
        numbers = np.array(pages, np.int64)
        self._checked[numbers] = True
        borders = np.flatnonzero(np.diff(numbers) != 1)
        firsts, ends = numbers[np.append(0, borders + 1)], numbers[np.append(borders, len(numbers) - 1)] + 1
        starts = firsts * PAGE_WORDS - ((firsts > 0) & self._checked[firsts - 1])
        known = np.append(self._checked, False)
        stops = np.minimum(ends * PAGE_WORDS + known[ends], self._rows)
        ranges = table.address(starts), table.address(stops), len(starts)
        return bool(sort.ranges_ascend(self._table, self._columns, self._weights, *ranges))


def index_is_safe(index: Words, rows: int, pages: Sequence[int]) -> bool:
    """Whether these pages of a radix index name only rows from 0 to `rows`, and its header is valid. O(pages)."""
    if 0 in pages and not _header_is_safe(index, rows):
        return False
    end = len(index) - int(index[SHIFT] >= BY_SECOND)
    for page in pages:
        words = index[max(page * PAGE_WORDS, INDEX_HEADER) : min((page + 1) * PAGE_WORDS, end)]
        if len(words) and (words.min() < 0 or words.max() > rows):
            return False
    return True


def _header_is_safe(index: Words, rows: int) -> bool:
    if len(index) <= INDEX_HEADER:
        return False
    before, _, shift, buckets = (int(word) for word in index[:INDEX_HEADER])
    return 0 <= before <= rows and 0 <= shift < 2 * BY_SECOND and buckets >= 1 and len(index) == index_words(buckets, shift)


def index_is_right(batch: Batch) -> bool:
    """Whether the index of a batch, all of it verified, gives the rows of each bucket. O(rows + index)."""
    index, leading = batch.index, batch.columns[0]
    before, base, shift, buckets = (int(word) for word in index[:INDEX_HEADER])
    column, last = leading, [len(batch)]
    if shift < BY_SECOND:
        right = before == np.searchsorted(leading, WORD_MIN, "right")
    else:
        word = int(index[-1])
        last.append(word)
        right = len(batch.columns) > 1 and before == np.searchsorted(leading, word) and bool((leading[before:] == word).all())
        column = batch.columns[min(1, len(batch.columns) - 1)]
    if not right:
        return False
    offsets = (column[before:].view(np.uint64) - np.uint64(base % 2**64)) >> np.uint64(shift & SHIFT_BITS)
    if len(offsets) and offsets.max() >= buckets:
        return False
    ends = before + np.cumsum(np.bincount(offsets.astype(np.int64), minlength=buckets))
    return bool(index[INDEX_HEADER] == before and np.array_equal(index[INDEX_HEADER + 1 :], [*ends, *last]))
