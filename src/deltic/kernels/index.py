"""The radix index over a batch's leading column: its layout, how it is built, row by row or at once, and how it is searched.

Words of an index: [0] rows whose leading word is the NULL marker (they come first), [1] base: the least other leading word,
[2] shift, [3] number of buckets, [4 + b] the first row of bucket b, [4 + buckets] and [5 + buckets] the number of rows, so that the
bucket after the last is empty. A leading word x lies in bucket (x - base) >> shift, taken without sign: words outside of base to the
greatest lie in the last bucket or behind it. There are no addresses in it: it may be stored and mapped elsewhere.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import WORD_MIN, load, store

INDEX_HEADER = 4


def index_room(rows: int) -> int:
    """The most buckets that an index over so many rows gets: small batches are searched most often for rows that they lack."""
    if rows <= 1 << 14:
        return 2 * max(rows, 1)
    return rows if rows <= 1 << 16 else rows // 2


@part
def index_words(buckets: int) -> int:
    """The length of an index with so many buckets."""
    return INDEX_HEADER + buckets + 2


@part
def one_word_each(index: int) -> bool:
    """Whether no bucket holds two leading words, so that all rows of a bucket have the word that led there."""
    return load(index, 2) == 0


@part
def count_nulls(column: int, n: int) -> int:
    """How many of the n sorted words are the NULL marker."""
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
    store(index, 1, low)
    store(index, 2, shift)
    store(index, 3, np.int64(span >> np.uint64(shift)) + 1)


@part
def index_rows(index: int, column: int, start: int, end: int) -> None:
    """Enters rows start to end of the leading column; every row writes the end of its bucket so far, and so the last one holds."""
    base = np.uint64(load(index, 1))
    shift = np.uint64(load(index, 2))
    while start < end and load(column, start) == WORD_MIN:
        start += 1
    for i in range(start, end):
        bucket = np.int64((np.uint64(load(column, i)) - base) >> shift)
        store(index, INDEX_HEADER + 1 + bucket, i + 1)


@part
def index_end(index: int, column: int, n: int) -> None:
    """Closes the index over n rows: empty buckets begin where the one before them ends."""
    position = count_nulls(column, n)
    store(index, 0, position)
    store(index, INDEX_HEADER, position)
    buckets = load(index, 3)
    for b in range(1, buckets + 1):
        position = max(position, load(index, INDEX_HEADER + b))
        store(index, INDEX_HEADER + b, position)
    store(index, INDEX_HEADER + buckets + 1, n)


@kernel("int64(int64, int64, int64, int64)")
def build_index(column: int, n: int, index: int, room: int) -> int:
    """Fills `index`, all zeros before, over the sorted leading column; returns the words used."""
    first = count_nulls(column, n)
    low = load(column, first) if first < n else 0
    high = load(column, n - 1) if first < n else 0
    index_header(index, low, high, room)
    index_rows(index, column, first, n)
    index_end(index, column, n)
    return index_words(load(index, 3))
