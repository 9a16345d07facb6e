"""The kernel that finds the rows under a key whose values lie between two cuts, over all batches of a spine.

Directory, keys and hits are those of `read.py`. A value is one word or several; the rows of one key are sorted by it. A cut is a place
between values: before a value, after it, or at one of the two ends.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, load, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import BLOCK, HIT_BATCH, HIT_END, HIT_KEY, HIT_START, MATCHES, TOUCHED, seek_block

FIRST, BEFORE, AFTER, LAST = -1, 0, 1, 2
"""Kinds of a cut: before all values, before its value, after its value, after all values."""


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
        before = kind == AFTER
        for w in range(words):
            word, bound = load(directory[entry + DIRECTORY_HEADER + column + w], middle), load(cut[w], i)
            if word != bound:
                before = word < bound
                break
        if before:
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
