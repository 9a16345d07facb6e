"""The kernel that reads rows in order: the first ones of each prefix, over all batches of a spine.

Directory, keys and report are those of `read.py`. The batches are merged row by row, only as far as is asked for.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, load, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import BLOCK, MATCHES, OVERFLOW, TOUCHED, seek_block


@part
def below_start(directory: Words, at: int, row: int, prefix: int, starts: Words, width: int, i: int) -> bool:
    """Whether a row's columns after the prefix are below start i."""
    for c in range(width):
        x = load(directory[at + DIRECTORY_HEADER + prefix + c], row)
        y = load(starts[c], i)
        if x != y:
            return x < y
    return False


@part
def compare_suffix(directory: Words, at: int, i: int, other: int, j: int, prefix: int, columns: int) -> int:
    """-1, 0 or 1: row i of one batch against row j of another by the columns after the prefix."""
    for c in range(prefix, columns):
        x = load(directory[at + DIRECTORY_HEADER + c], i)
        y = load(directory[other + DIRECTORY_HEADER + c], j)
        if x != y:
            return -1 if x < y else 1
    return 0


@part
def open_cursors(
    directory: Words, batches: int, stride: int, keys: Words, prefix: int, starts: Words, width: int, first: int, count: int, spans: Words
) -> int:
    """spans[i, b] = (next row, end) in each batch for prefix first + i from its start on; returns what it inspected."""
    who = np.empty(BLOCK, np.int64)
    low = np.empty(BLOCK, np.int64)
    high = np.empty(BLOCK, np.int64)
    touched = 0
    for i in range(count):
        for b in range(batches):
            spans[i, b, 0] = spans[i, b, 1] = 0
    for b in range(batches):
        at = b * stride
        found, inspected = seek_block(directory, at, keys, prefix, first, count, who, low, high)
        touched += inspected
        for h in range(found):
            start, end = low[h], high[h]
            spans[who[h], b, 1] = end
            while width > 0 and start < end:
                middle = (start + end) >> 1
                touched += 1
                if below_start(directory, at, middle, prefix, starts, width, first + who[h]):
                    start = middle + 1
                else:
                    end = middle
            spans[who[h], b, 0] = start
    return touched


@part
def gather_cursors(span: Words, batches: int, cursors: Words) -> int:
    """cursors[k] = (batch, next row, end) for the batches that have rows; returns how many."""
    count = 0
    for b in range(batches):
        cursors[count, 0] = b
        cursors[count, 1] = span[b, 0]
        cursors[count, 2] = span[b, 1]
        count += np.int64(span[b, 0] < span[b, 1])
    return count


@part
def next_row(directory: Words, stride: int, prefix: int, columns: int, cursors: Words, count: int) -> int:
    """The cursor at the least row, -1 when all are at their ends."""
    best = -1
    for k in range(count):
        if cursors[k, 1] == cursors[k, 2]:
            continue
        at, other = cursors[k, 0] * stride, cursors[best, 0] * stride
        if best < 0 or compare_suffix(directory, at, cursors[k, 1], other, cursors[best, 1], prefix, columns) < 0:
            best = k
    return best


@part
def take_row(
    directory: Words, stride: int, prefix: int, columns: int, weights: int, cursors: Words, count: int, best: int, sums: Words
) -> tuple[int, bool]:
    """sums[w] = weight w of the row at cursor `best` over all batches; moves them on. Returns (rows read, within 64 bits)."""
    place, row = cursors[best, 0] * stride, cursors[best, 1]
    for w in range(2 * weights):
        sums[w] = 0
    read = 0
    for k in range(count):
        at, here = cursors[k, 0] * stride, cursors[k, 1]
        if here == cursors[k, 2] or (k != best and compare_suffix(directory, at, here, place, row, prefix, columns) != 0):
            continue
        for w in range(weights):
            word = load(directory[at + DIRECTORY_HEADER + columns + w], here)
            partial = sums[w] + word
            if ((partial ^ sums[w]) & (partial ^ word)) < 0:
                sums[weights + w] += 1 if word > 0 else -1
            sums[w] = partial
        cursors[k, 1] = here + 1
        read += 1
    for w in range(weights):
        if sums[weights + w] != 0:
            return read, False
    return read, True


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64, int64[::1], int64, int64, int64, int64, int64[::1], int64, int64[::1])")
def first(
    directory: Words,
    batches: int,
    columns: int,
    weights: int,
    keys: Words,
    prefix: int,
    starts: Words,
    width: int,
    begin: int,
    end: int,
    limit: int,
    target: Words,
    room: int,
    report: Words,
) -> int:
    """For the keys begin to end: the first `limit` copies of rows in order (see `trace/probe.py`), as (key, columns, weights).

    target has room for `room` rows. Returns the key it did not get to finish (end if it did all); report has the rows written.
    """
    stride = DIRECTORY_HEADER + columns + weights
    spans = np.empty((BLOCK, batches, 2), np.int64)
    cursors = np.empty((batches + 1, 3), np.int64)
    sums = np.empty(2 * weights, np.int64)
    written = touched = 0
    for i in range(begin, end):
        if (i - begin) % BLOCK == 0:
            touched += open_cursors(directory, batches, stride, keys, prefix, starts, width, i, min(BLOCK, end - i), spans)
        active = gather_cursors(spans[(i - begin) % BLOCK], batches, cursors)
        kept = written
        copies = 0
        while copies < limit:
            best = next_row(directory, stride, prefix, columns, cursors, active)
            if best < 0:
                break
            place, row = cursors[best, 0] * stride + DIRECTORY_HEADER, cursors[best, 1]
            read, within = take_row(directory, stride, prefix, columns, weights, cursors, active, best, sums)
            touched += read
            if not within:
                report[OVERFLOW] = 1
                return i
            if sums[0] <= 0:
                continue
            if written == room:
                report[TOUCHED], report[MATCHES] = touched, kept
                return i
            store(target[0], written, i)
            for c in range(columns):
                store(target[1 + c], written, load(directory[place + c], row))
            for w in range(weights):
                store(target[1 + columns + w], written, sums[w])
            written += 1
            copies += min(sums[0], limit)
    report[TOUCHED], report[MATCHES] = touched, written
    return end
