"""The radix index over a batch's leading column: its layout, how it is built, row by row or at once, and how it is searched.

Words of an index: BEFORE, BASE, SHIFT and BUCKETS; from INDEX_HEADER on the first row of each bucket; then twice the number of rows, so
that the bucket after the last is empty. A leading word x lies in bucket (x - base) >> shift, taken without sign: words outside of base to
the greatest lie in the last bucket or after it. There are no addresses in an index: it may be stored and mapped elsewhere.

Where half of the rows or more have the greatest leading word, as with the flag of a nullable BIGINT, or the high word of a DECIMAL, the
second column is indexed instead, for these rows alone; SHIFT then has the bit BY_SECOND, and the leading word is the last of the index.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import WORD_MIN, Words, choose, load, store

BEFORE, BASE, SHIFT, BUCKETS, INDEX_HEADER = range(5)
"""Words of an index: rows before those that are indexed, whose leading word is the NULL marker, or another one if the second column is
indexed; the least word of the indexed column; by how many bits buckets are coarser than words; how many buckets. And how many words these
are."""
BY_SECOND = 64
SHIFT_BITS = 63
SHORT = 64
"""In batches of fewer rows the leading column is indexed in any case."""


def index_room(rows: int) -> int:
    """The most buckets of an index over so many rows. Small batches get more than rows: most keys sought in them are absent."""
    if rows <= 1 << 14:
        return 2 * max(rows, 1)
    return rows if rows <= 1 << 16 else rows // 2


@part
def index_words(buckets: int, shift: int) -> int:
    """The length in words of an index with so many buckets, and this word SHIFT."""
    return INDEX_HEADER + buckets + 2 + (shift >> 6)


@part
def index_length(index: int) -> int:
    """The length in words of an index."""
    return index_words(load(index, BUCKETS), load(index, SHIFT))


def cut_index(words: Words) -> Words:
    """The index at the start of these words."""
    return words[: index_words(int(words[BUCKETS]), int(words[SHIFT]))]


@part
def by_second(index: int) -> bool:
    """Whether the second column is indexed."""
    return load(index, SHIFT) >= BY_SECOND


@part
def indexed_word(index: int) -> int:
    """The leading word of the rows that are indexed by their second."""
    return load(index, INDEX_HEADER + load(index, BUCKETS) + 2)


@part
def one_word_each(index: int) -> bool:
    """Whether every bucket is of one word of the indexed column."""
    return load(index, SHIFT) & SHIFT_BITS == 0


@part
def bucket_of(word: int, base: int, shift: int, buckets: int) -> int:
    """The bucket of a word of the indexed column; `buckets` itself, which is empty, for one above the greatest. All are unsigned."""
    return np.int64(min((np.uint64(word) - base) >> shift, buckets))


@part
def rows_below(column: int, n: int, word: int) -> int:
    """How many of the n sorted words are below `word`. O(log of the result)."""
    rows, step = 0, 1
    while rows + step <= n and load(column, rows + step - 1) < word:
        rows += step
        step *= 2
    while step > 0:
        if rows + step <= n and load(column, rows + step - 1) < word:
            rows += step
        step >>= 1
    return rows


@part
def count_nulls(column: int, n: int) -> int:
    """How many of the n sorted words are the NULL marker. O(log of the result)."""
    return rows_below(column, n, WORD_MIN + 1)


@part
def second_serves(rows: int, greatest: int) -> bool:
    """Whether the second column is to be indexed, where so many of the rows have the greatest leading word."""
    return rows >= SHORT and 2 * greatest >= rows


@part
def index_header(index: int, low: int, high: int, room: int, second: bool, leading: int) -> None:
    """Chooses base, shift and number of buckets for words from low to high with at most `room` buckets.

    second: whether they are of the second column, of rows with this leading word.
    """
    span = np.uint64(high) - np.uint64(low)
    shift = 0
    while span >> np.uint64(shift) >= np.uint64(room):
        shift += 1
    buckets = np.int64(span >> np.uint64(shift)) + 1
    store(index, BASE, low)
    store(index, BUCKETS, buckets)
    if second:
        shift += BY_SECOND
        store(index, INDEX_HEADER + buckets + 2, leading)
    store(index, SHIFT, shift)


@part
def index_rows(index: int, leading: int, second: int, start: int, end: int) -> None:
    """Enters rows start to end of the first two columns: each writes the end of its bucket, where the last one counts."""
    base = np.uint64(load(index, BASE))
    shift = np.uint64(load(index, SHIFT) & SHIFT_BITS)
    if by_second(index):
        word, column = indexed_word(index), second
        while start < end and load(leading, start) < word:
            start += 1
    else:
        column = leading
        while start < end and load(leading, start) == WORD_MIN:
            start += 1
    for i in range(start, end):
        bucket = np.int64((np.uint64(load(column, i)) - base) >> shift)
        store(index, INDEX_HEADER + 1 + bucket, i + 1)


@part
def index_end(index: int, leading: int, n: int) -> None:
    """Completes the index over n rows: an empty bucket begins where the one before it ends."""
    position = rows_below(leading, n, indexed_word(index)) if by_second(index) else count_nulls(leading, n)
    store(index, BEFORE, position)
    store(index, INDEX_HEADER, position)
    buckets = load(index, BUCKETS)
    for b in range(1, buckets + 1):
        end = load(index, INDEX_HEADER + b)
        position = choose(end > position, end, position)
        store(index, INDEX_HEADER + b, position)
    store(index, INDEX_HEADER + buckets + 1, n)


@kernel("int64(int64, int64, int64, int64, int64)")
def build_index(leading: int, second: int, n: int, index: int, room: int) -> int:
    """Fills `index`, zeros with room for `room` buckets and BY_SECOND, over the first two sorted columns; returns its length in words.

    second: 0 if there is one column.
    """
    greatest = load(leading, n - 1) if n > 0 else 0
    before = rows_below(leading, n, greatest) if second != 0 else n
    if second_serves(n, n - before):
        index_header(index, load(second, before), load(second, n - 1), room, True, greatest)
        index_rows(index, leading, second, before, n)
    else:
        first = count_nulls(leading, n)
        low = load(leading, first) if first < n else 0
        high = greatest if first < n else 0
        index_header(index, low, high, room, False, 0)
        index_rows(index, leading, 0, first, n)
    index_end(index, leading, n)
    return index_length(index)
