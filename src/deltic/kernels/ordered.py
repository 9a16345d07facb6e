"""The kernel that reads rows in order: the first ones of each prefix, over all batches of a spine.

Directory, keys and report are those of `read.py`. The batches are merged row by row, only as far as the limit requires.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, load, store
from deltic.kernels.merge import DIRECTORY_HEADER, compare_rows
from deltic.kernels.read import BLOCK, MATCHES, OVERFLOW, TOUCHED, seek_block

MOST_WORDS = 1 << 22
"""The most words of first rows for which there is room at once. What could be more counts, not what is: all rows of the spine."""
NEXT, END, SPAN = range(3)
"""Words of a span, the rows of one batch under a prefix: the next row to read, and their end. And how many words that are."""

BATCH, ROW, ROW_END, CURSOR = range(4)
"""Words of a cursor: the number of its batch, the next row, and the end of its rows. And how many words that are."""


@part
def below_start(directory: Words, entry: int, row: int, prefix: int, starts: Words, width: int, i: int) -> bool:
    """Whether a row's columns after the prefix are below start i."""
    return compare_rows(directory, entry + DIRECTORY_HEADER + prefix, row, starts, 0, i, width) < 0


@part
def compare_suffix(directory: Words, entry: int, i: int, other: int, j: int, prefix: int, columns: int) -> int:
    """-1, 0 or 1: compares row i of one batch with row j of another by the columns after the prefix."""
    skipped = DIRECTORY_HEADER + prefix
    return compare_rows(directory, entry + skipped, i, directory, other + skipped, j, columns - prefix)


@part
def open_cursors(
    directory: Words, batches: int, stride: int, keys: Words, prefix: int, starts: Words, width: int, first: int, count: int, spans: Words
) -> int:
    """spans[i, b] = the span of prefix first + i in each batch, from its start on; returns what it inspected."""
    hits = np.empty(BLOCK, np.int64)
    low = np.empty(BLOCK, np.int64)
    high = np.empty(BLOCK, np.int64)
    touched = 0
    for i in range(count):
        for b in range(batches):
            spans[i, b, NEXT] = spans[i, b, END] = 0
    for b in range(batches):
        entry = b * stride
        listed, inspected = seek_block(directory, entry, keys, prefix, first, count, hits, low, high)
        touched += inspected
        for h in range(listed):
            start, end = low[h], high[h]
            spans[hits[h], b, END] = end
            while width > 0 and start < end:
                middle = (start + end) >> 1
                touched += 1
                if below_start(directory, entry, middle, prefix, starts, width, first + hits[h]):
                    start = middle + 1
                else:
                    end = middle
            spans[hits[h], b, NEXT] = start
    return touched


@part
def gather_cursors(spans: Words, batches: int, cursors: Words) -> int:
    """Lists a cursor for each batch with rows in its span; returns how many."""
    count = 0
    for b in range(batches):
        cursors[count, BATCH] = b
        cursors[count, ROW] = spans[b, NEXT]
        cursors[count, ROW_END] = spans[b, END]
        count += np.int64(spans[b, NEXT] < spans[b, END])
    return count


@part
def next_row(directory: Words, stride: int, prefix: int, columns: int, cursors: Words, count: int) -> int:
    """The cursor at the least row, -1 when all are at their ends."""
    least, entry, row = -1, 0, 0
    for k in range(count):
        if cursors[k, ROW] == cursors[k, ROW_END]:
            continue
        if least < 0 or compare_suffix(directory, cursors[k, BATCH] * stride, cursors[k, ROW], entry, row, prefix, columns) < 0:
            least, entry, row = k, cursors[k, BATCH] * stride, cursors[k, ROW]
    return least


@part
def take_row(
    directory: Words, stride: int, prefix: int, columns: int, weights: int, cursors: Words, count: int, least: int, sums: Words
) -> tuple[int, bool]:
    """sums[w] = weight w of the row at cursor `least`, summed over all batches; advances the cursors at that row.

    Returns (rows read, whether the sums are within 64 bits). sums: also has `weights` words of scratch.
    """
    entry, row = cursors[least, BATCH] * stride, cursors[least, ROW]
    for w in range(2 * weights):
        sums[w] = 0
    read = 0
    for k in range(count):
        other, here = cursors[k, BATCH] * stride, cursors[k, ROW]
        if here == cursors[k, ROW_END] or (k != least and compare_suffix(directory, other, here, entry, row, prefix, columns) != 0):
            continue
        for w in range(weights):
            word = load(directory[other + DIRECTORY_HEADER + columns + w], here)
            partial = sums[w] + word
            if ((partial ^ sums[w]) & (partial ^ word)) < 0:
                sums[weights + w] += 1 if word > 0 else -1
            sums[w] = partial
        cursors[k, ROW] = here + 1
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

    target has room for `room` rows. Returns the first key that it could not finish, or end; the report has the rows written.
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
        kept = written
        copies = 0
        while copies < limit:
            least = next_row(directory, stride, prefix, columns, cursors, active)
            if least < 0:
                break
            first_column, row = cursors[least, BATCH] * stride + DIRECTORY_HEADER, cursors[least, ROW]
            read, within = take_row(directory, stride, prefix, columns, weights, cursors, active, least, sums)
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
                store(target[1 + c], written, load(directory[first_column + c], row))
            for w in range(weights):
                store(target[1 + columns + w], written, sums[w])
            written += 1
            copies += min(sums[0], limit)
    report[TOUCHED], report[MATCHES] = touched, written
    return end
