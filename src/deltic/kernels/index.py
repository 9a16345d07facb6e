"""The radix index over a batch's leading column: its layout, how it is built, row by row or at once, and how it is searched.

Words of an index: [0] rows whose leading word is the NULL marker (they come first), [1] base: the least other leading word,
[2] shift, [3] number of buckets, [4 + b] the first row of bucket b, [4 + buckets] the number of rows.
A leading word x lies in bucket (x - base) >> shift. There are no addresses in it: it may be stored and mapped elsewhere.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import WORD_MIN, load, store

INDEX_HEADER = 4


def index_room(rows: int) -> int:
    """The most buckets that an index over so many rows gets: small batches are searched most often for rows they lack."""
    return max(1, 2 * rows if rows <= 1 << 16 else rows // 2)


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
def index_rows(index: int, column: int, start: int, end: int, cursor: int) -> int:
    """Enters rows start to end of the leading column; buckets below `cursor` have their start already. Returns the new cursor."""
    base = np.uint64(load(index, 1))
    shift = np.uint64(load(index, 2))
    for i in range(start, end):
        word = load(column, i)
        if word == WORD_MIN:
            continue
        bucket = np.int64((np.uint64(word) - base) >> shift)
        while cursor <= bucket:
            store(index, INDEX_HEADER + cursor, i)
            cursor += 1
    return cursor


@part
def index_end(index: int, column: int, n: int, cursor: int) -> None:
    """Closes the index over n rows: what follows the last row, and how many leading NULL markers there are."""
    buckets = load(index, 3)
    while cursor <= buckets:
        store(index, INDEX_HEADER + cursor, n)
        cursor += 1
    store(index, 0, count_nulls(column, n))


@kernel("int64(int64, int64, int64, int64)")
def build_index(column: int, n: int, index: int, room: int) -> int:
    """Fills `index` over the sorted leading column; returns the words used."""
    first = count_nulls(column, n)
    low = load(column, first) if first < n else 0
    high = load(column, n - 1) if first < n else 0
    index_header(index, low, high, room)
    index_end(index, column, n, index_rows(index, column, 0, n, 0))
    return INDEX_HEADER + load(index, 3) + 1


@part
def bucket(index: int, word: int) -> tuple[int, int]:
    """The rows [start, end) among which those with this leading word must be."""
    if word == WORD_MIN:
        return 0, load(index, 0)
    base = load(index, 1)
    if word < base:
        return 0, 0
    b = (np.uint64(word) - np.uint64(base)) >> np.uint64(load(index, 2))
    if b >= np.uint64(load(index, 3)):
        return 0, 0
    b_signed = np.int64(b)
    return load(index, INDEX_HEADER + b_signed), load(index, INDEX_HEADER + b_signed + 1)
