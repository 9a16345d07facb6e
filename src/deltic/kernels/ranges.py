"""Kernels that read the rows under a key between two cuts, over all batches of a spine: all of them, or in order up to a row past cuts.

Directory, keys and hits are those of `read.py`. A value is one word or several; the rows of one key are sorted by it. A cut is a place
between values: before a value, after it, or at one of the two ends.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, load, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.ordered import BATCH, CURSOR, ROW, SPAN, gather_cursors, next_row, open_cursors, take_row
from deltic.kernels.read import BLOCK, HIT_BATCH, HIT_END, HIT_KEY, HIT_START, MATCHES, OVERFLOW, TOUCHED, seek_block

FIRST, BEFORE, AFTER, LAST = -1, 0, 1, 2
"""Kinds of a cut: before all values, before its value, after its value, after all values."""


@part
def is_before(directory: Words, entry: int, column: int, words: int, row: int, cut: Words, at: int, i: int) -> bool:
    """Whether the value of a row is before cut i. column: of its first word. at: where the addresses of the cuts are."""
    kind = load(cut[at + words], i)
    if kind in (FIRST, LAST):
        return kind == LAST
    for w in range(words):
        word, bound = load(directory[entry + DIRECTORY_HEADER + column + w], row), load(cut[at + w], i)
        if word != bound:
            return word < bound
    return kind == AFTER


@part
def rows_before(directory: Words, entry: int, column: int, words: int, low: int, high: int, cut: Words, i: int) -> tuple[int, int]:
    """(the first of the rows [low, high) that is not before cut i, the rows compared). column: of the first word of the value."""
    kind = load(cut[words], i)
    if kind == FIRST:
        return low, 0
    if kind == LAST:
        return high, 0
    touched = 0
    while low < high:
        middle = (low + high) >> 1
        touched += 1
        if is_before(directory, entry, column, words, middle, cut, 0, i):
            low = middle + 1
        else:
            high = middle
    return low, touched


@kernel(
    "int64(int64[::1], int64, int64, int64, int64[::1], int64, int64, int64[::1], int64[::1], int64[::1], int64, int64[::1], int64[::1])"
)
def seek_range(
    directory: Words,
    batches: int,
    columns: int,
    weights: int,
    keys: Words,
    width: int,
    words: int,
    places: Words,
    starts: Words,
    ends: Words,
    n: int,
    target: Words,
    report: Words,
) -> int:
    """Writes a hit for each batch with rows that begin with key i and lie between start i and end i.

    places: the columns of the values that starts and ends cut, each of `words` words; the rows of a key ascend by both.
    starts, ends: addresses of the words of the cuts, then of their kinds. target: addresses of HIT columns with room for n * batches.
    Hits are in order of blocks of keys, then of batches, then of keys. Returns their number; the report has the rows in them.
    """
    stride = DIRECTORY_HEADER + columns + weights
    hits = np.empty(BLOCK, np.int64)
    low = np.empty(BLOCK, np.int64)
    high = np.empty(BLOCK, np.int64)
    touched = total = matches = 0
    for first in range(0, n, BLOCK):
        count = min(BLOCK, n - first)
        for b in range(batches):
            entry = b * stride
            listed, inspected = seek_block(directory, entry, keys, width, first, count, hits, low, high)
            touched += inspected
            for h in range(listed):
                i = first + hits[h]
                start, compared = rows_before(directory, entry, places[0], words, low[h], high[h], starts, i)
                end, more = rows_before(directory, entry, places[1], words, start, high[h], ends, i)
                touched += compared + more
                if start < end:
                    store(target[HIT_KEY], total, i)
                    store(target[HIT_BATCH], total, b)
                    store(target[HIT_START], total, start)
                    store(target[HIT_END], total, end)
                    total += 1
                    matches += end - start
    report[TOUCHED] = touched + matches
    report[MATCHES] = matches
    return total


@kernel(
    "int64(int64[::1], int64, int64, int64, int64[::1], int64, int64[::1], int64, int64[::1], int64, int64[::1], int64, int64, int64[::1], "
    "int64, int64[::1])"
)
def first_before(
    directory: Words,
    batches: int,
    columns: int,
    weights: int,
    keys: Words,
    prefix: int,
    starts: Words,
    width: int,
    places: Words,
    words: int,
    cuts: Words,
    begin: int,
    end: int,
    target: Words,
    room: int,
    report: Words,
) -> int:
    """For the keys begin to end: the rows in order from start i on, up to the first that is not before one of its cuts.

    places: the columns of the values that the cuts cut, each of `words` words. cuts: for each place the addresses of the words of n cuts,
    then of their kinds. Rows and results are those of `first` (`ordered.py`).
    """
    stride = DIRECTORY_HEADER + columns + weights
    spans = np.empty((BLOCK, batches, SPAN), np.int64)
    cursors = np.empty((batches + 1, CURSOR), np.int64)
    sums = np.empty(2 * weights, np.int64)
    written = touched = 0
    for i in range(begin, end):
        if (i - begin) % BLOCK == 0:
            touched += open_cursors(directory, batches, stride, keys, prefix, starts, width, i, min(BLOCK, end - i), spans)
        active = gather_cursors(spans[(i - begin) % BLOCK], batches, cursors)
        kept, before = written, True
        while before:
            least = next_row(directory, stride, prefix, columns, cursors, active)
            if least < 0:
                break
            entry, row = cursors[least, BATCH] * stride, cursors[least, ROW]
            read, within = take_row(directory, stride, prefix, columns, weights, cursors, active, least, sums)
            touched += read
            if not within:
                report[OVERFLOW] = 1
                return i
            if sums[0] <= 0:
                continue
            for p in range(len(places)):
                before &= is_before(directory, entry, places[p], words, row, cuts, p * (words + 1), i)
            if not before:
                break
            if written == room:
                report[TOUCHED], report[MATCHES] = touched, kept
                return i
            store(target[0], written, i)
            for c in range(columns):
                store(target[1 + c], written, load(directory[entry + DIRECTORY_HEADER + c], row))
            for w in range(weights):
                store(target[1 + columns + w], written, sums[w])
            written += 1
    report[TOUCHED], report[MATCHES] = touched, written
    return end
