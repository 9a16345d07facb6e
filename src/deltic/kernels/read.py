"""Kernels that read a spine: all its batches in one call, for many keys.

The directory is that of `merge.py`. Keys are a table of `width` columns of n words: the leading `width` columns of the rows sought.
Keys are taken in blocks: first the buckets of all keys of a block are looked up, then their rows, so that the memory works on many
keys at a time. Every kernel counts what it inspected: index entries and rows compared or added.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.index import bucket
from deltic.kernels.memory import Words, load, store
from deltic.kernels.merge import DIRECTORY_HEADER

BLOCK = 64
TOUCHED, OVERFLOW, HITS, MATCHES = 0, 1, 2, 3
"""Words of a reader's report."""


@part
def equal_range(column: int, start: int, end: int, word: int) -> tuple[int, int, int]:
    """(first, last + 1) of `word` in the sorted column[start:end], and the words compared; binary, then galloping."""
    touched = 0
    low = start
    high = end
    while low < high:
        middle = (low + high) >> 1
        touched += 1
        if load(column, middle) < word:
            low = middle + 1
        else:
            high = middle
    if low == end or load(column, low) != word:
        return low, low, touched + 1
    last = low
    step = 1
    while last + step < end and load(column, last + step) == word:
        touched += 1
        last += step
        step *= 2
    high = min(last + step, end)
    while last + 1 < high:
        middle = (last + high) >> 1
        touched += 1
        if load(column, middle) == word:
            last = middle
        else:
            high = middle
    return low, last + 1, touched + 2


@part
def narrow(directory: Words, at: int, keys: Words, width: int, i: int, start: int, end: int) -> tuple[int, int, int]:
    """The rows of [start, end) whose leading columns equal key i, and the words compared."""
    touched = 0
    for c in range(width):
        if start == end:
            break
        start, end, more = equal_range(directory[at + DIRECTORY_HEADER + c], start, end, load(keys[c], i))
        touched += more
    return start, end, touched


@part
def seek_block(directory: Words, at: int, keys: Words, width: int, first: int, count: int, starts: Words, ends: Words) -> int:
    """starts[i], ends[i]: the rows of one batch for the keys first + i; returns what it inspected."""
    if width == 0:
        for i in range(count):
            starts[i], ends[i] = 0, directory[at]
        return 0
    index = directory[at + 1]
    touched = 2 * count
    for i in range(count):
        starts[i], ends[i] = bucket(index, load(keys[0], first + i))
    for i in range(count):
        if starts[i] < ends[i]:
            starts[i], ends[i], more = narrow(directory, at, keys, width, first + i, starts[i], ends[i])
            touched += more
    return touched


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64, int64, int64[::1], int64[::1])")
def lookup(
    directory: Words, batches: int, columns: int, weights: int, keys: Words, width: int, n: int, target: Words, report: Words
) -> int:
    """target[w][i] = the sum of weight w over all rows that begin with key i; returns -1 on overflow."""
    stride = DIRECTORY_HEADER + columns + weights
    starts = np.empty(BLOCK, np.int64)
    ends = np.empty(BLOCK, np.int64)
    wraps = np.zeros((weights, BLOCK), np.int64)
    touched = 0
    for first in range(0, n, BLOCK):
        count = min(BLOCK, n - first)
        wrapped = False
        for w in range(weights):
            for i in range(count):
                store(target[w], first + i, 0)
        for b in range(batches):
            at = b * stride
            touched += seek_block(directory, at, keys, width, first, count, starts, ends)
            for w in range(weights):
                column = directory[at + DIRECTORY_HEADER + columns + w]
                for i in range(count):
                    for row in range(starts[i], ends[i]):
                        word = load(column, row)
                        total = load(target[w], first + i)
                        partial = total + word
                        if ((partial ^ total) & (partial ^ word)) < 0:
                            wraps[w, i] += 1 if word > 0 else -1
                            wrapped = True
                        store(target[w], first + i, partial)
            for i in range(count):
                touched += ends[i] - starts[i]
        if wrapped and np.any(wraps != 0):
            return -1
    report[TOUCHED] = touched
    return 0


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64, int64, int64[::1], int64[::1])")
def seek(directory: Words, batches: int, columns: int, weights: int, keys: Words, width: int, n: int, hits: Words, report: Words) -> int:
    """Writes a hit (key, batch, first row, end) for each batch with rows that begin with key i, in order of i.

    hits: addresses of 4 columns with room for n * batches. Returns the number of hits; report has the rows in them.
    """
    stride = DIRECTORY_HEADER + columns + weights
    starts = np.empty((batches, BLOCK), np.int64)
    ends = np.empty((batches, BLOCK), np.int64)
    touched = found = matches = 0
    for first in range(0, n, BLOCK):
        count = min(BLOCK, n - first)
        for b in range(batches):
            touched += seek_block(directory, b * stride, keys, width, first, count, starts[b], ends[b])
        for i in range(count):
            for b in range(batches):
                rows = ends[b, i] - starts[b, i]
                if rows > 0:
                    store(hits[0], found, first + i)
                    store(hits[1], found, b)
                    store(hits[2], found, starts[b, i])
                    store(hits[3], found, ends[b, i])
                    found += 1
                    matches += rows
    report[TOUCHED] = touched + matches
    report[MATCHES] = matches
    return found


@kernel("int64(int64[::1], int64, int64[::1], int64, int64[::1], int64, int64[::1])")
def expand(directory: Words, stride: int, hits: Words, count: int, wanted: Words, outputs: int, target: Words) -> int:
    """target[0] = the key of each row in the hits; target[1 + o] = its column wanted[o] (weights follow the columns)."""
    position = 0
    for h in range(count):
        key = load(hits[0], h)
        rows = load(hits[3], h) - load(hits[2], h)
        for i in range(rows):
            store(target[0], position + i, key)
        position += rows
    for o in range(outputs):
        position = 0
        for h in range(count):
            source = directory[load(hits[1], h) * stride + DIRECTORY_HEADER + wanted[o]]
            start = load(hits[2], h)
            rows = load(hits[3], h) - start
            for i in range(rows):
                store(target[1 + o], position + i, load(source, start + i))
            position += rows
    return position


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
    directory: Words, batches: int, stride: int, keys: Words, prefix: int, starts: Words, width: int, i: int, cursors: Words
) -> int:
    """cursors[b] = (next row, end) in each batch for prefix i from start i on; returns what it inspected."""
    touched = 0
    for b in range(batches):
        at = b * stride
        low, high = 0, directory[at]
        if prefix > 0:
            low, high = bucket(directory[at + 1], load(keys[0], i))
            touched += 2
        low, high, more = narrow(directory, at, keys, prefix, i, low, high)
        touched += more
        cursors[b, 1] = high
        while width > 0 and low < high:
            middle = (low + high) >> 1
            touched += 1
            if below_start(directory, at, middle, prefix, starts, width, i):
                low = middle + 1
            else:
                high = middle
        cursors[b, 0] = low
    return touched


@part
def next_row(directory: Words, batches: int, stride: int, prefix: int, columns: int, cursors: Words) -> int:
    """The batch whose cursor is at the least row, -1 when all are at their ends."""
    best = -1
    for b in range(batches):
        if cursors[b, 0] < cursors[b, 1] and (
            best < 0 or compare_suffix(directory, b * stride, cursors[b, 0], best * stride, cursors[best, 0], prefix, columns) < 0
        ):
            best = b
    return best


@part
def take_row(
    directory: Words, batches: int, stride: int, prefix: int, columns: int, weights: int, cursors: Words, best: int, sums: Words
) -> tuple[int, bool]:
    """sums[w] = weight w of the row at `best` over all batches; moves the cursors on. Returns (rows read, within 64 bits)."""
    row = cursors[best, 0]
    sums[:] = 0
    read = 0
    for b in range(batches):
        here = cursors[b, 0]
        if here >= cursors[b, 1] or (b != best and compare_suffix(directory, b * stride, here, best * stride, row, prefix, columns) != 0):
            continue
        for w in range(weights):
            word = load(directory[b * stride + DIRECTORY_HEADER + columns + w], here)
            partial = sums[w] + word
            if ((partial ^ sums[w]) & (partial ^ word)) < 0:
                sums[weights + w] += 1 if word > 0 else -1
            sums[w] = partial
        cursors[b, 0] = here + 1
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
    cursors = np.empty((batches, 2), np.int64)
    sums = np.empty(2 * weights, np.int64)
    written = touched = 0
    for i in range(begin, end):
        kept = written
        copies = 0
        touched += open_cursors(directory, batches, stride, keys, prefix, starts, width, i, cursors)
        while copies < limit:
            best = next_row(directory, batches, stride, prefix, columns, cursors)
            if best < 0:
                break
            row = cursors[best, 0]
            read, within = take_row(directory, batches, stride, prefix, columns, weights, cursors, best, sums)
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
                store(target[1 + c], written, load(directory[best * stride + DIRECTORY_HEADER + c], row))
            for w in range(weights):
                store(target[1 + columns + w], written, sums[w])
            written += 1
            copies += min(sums[0], limit)
    report[TOUCHED], report[MATCHES] = touched, written
    return end
