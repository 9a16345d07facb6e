"""The radix index over a batch's leading column: its layout, how it is built, row by row or at once, and how it is searched.

Words of an index: NULLS, BASE, SHIFT and BUCKETS; from INDEX_HEADER on the first row of each bucket; then twice the number of rows, so that
the bucket after the last is empty. A leading word x lies in bucket (x - base) >> shift, taken without sign: words outside of base to the
greatest lie in the last bucket or after it. There are no addresses in an index: it may be stored and mapped elsewhere.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import WORD_MIN, choose, load, store

NULLS, BASE, SHIFT, BUCKETS, INDEX_HEADER = range(5)
"""Words of an index: rows whose leading word is the NULL marker, which come first; the least other leading word; by how many bits buckets
are coarser than words; how many buckets. And how many words these are."""


def index_room(rows: int) -> int:
    """The most buckets of an index over so many rows. Small batches get more than rows: most keys sought in them are absent."""
    if rows <= 1 << 14:
        return 2 * max(rows, 1)
    return rows if rows <= 1 << 16 else rows // 2


@part
def index_words(buckets: int) -> int:
    """The length in words of an index with so many buckets."""
    return INDEX_HEADER + buckets + 2


@part
def one_word_each(index: int) -> bool:
    """Whether every bucket is of one leading word."""
    return load(index, SHIFT) == 0


@part
def count_nulls(column: int, n: int) -> int:
    """How many of the n sorted words are the NULL marker. O(log n)."""
    nulls = 0
    step = n
    while step > 0:
        while nulls + step <= n and load(column, nulls + step - 1) == WORD_MIN:
            nulls += step
        step >>= 1
    return nulls


@part
def index_header(index: int, low: int, high: int, room: int) -> None:
    """Chooses base, shift and number of buckets for leading words from low to high with at most `room` buckets."""
    span = np.uint64(high) - np.uint64(low)
    shift = 0
    while span >> np.uint64(shift) >= np.uint64(room):
        shift += 1
    store(index, BASE, low)
    store(index, SHIFT, shift)
    store(index, BUCKETS, np.int64(span >> np.uint64(shift)) + 1)


@part
def index_rows(index: int, column: int, start: int, end: int) -> None:
    """Enters rows start to end of the leading column: each writes the end of its bucket, where the last one counts."""
    base = np.uint64(load(index, BASE))
    shift = np.uint64(load(index, SHIFT))
    while start < end and load(column, start) == WORD_MIN:
        start += 1
    for i in range(start, end):
        bucket = np.int64((np.uint64(load(column, i)) - base) >> shift)
        store(index, INDEX_HEADER + 1 + bucket, i + 1)


@part
def index_end(index: int, column: int, n: int) -> None:
    """Completes the index over n rows: an empty bucket begins where the one before it ends."""
    position = count_nulls(column, n)
    store(index, NULLS, position)
    store(index, INDEX_HEADER, position)
    buckets = load(index, BUCKETS)
    for b in range(1, buckets + 1):
        end = load(index, INDEX_HEADER + b)
        position = choose(end > position, end, position)
        store(index, INDEX_HEADER + b, position)
    store(index, INDEX_HEADER + buckets + 1, n)


@kernel("int64(int64, int64, int64, int64)")
def build_index(column: int, n: int, index: int, room: int) -> int:
    """Fills `index`, zeros with room for `room` buckets, over the sorted leading column; returns its length in words."""
    first = count_nulls(column, n)
    low = load(column, first) if first < n else 0
    high = load(column, n - 1) if first < n else 0
    index_header(index, low, high, room)
    index_rows(index, column, first, n)
    index_end(index, column, n)
    return index_words(load(index, BUCKETS))
