"""The kernel that finds rows by their rank under a prefix, from a row whose rank is known, over all batches of a spine.

Directory and keys are those of `read.py`; the batches are merged row by row, as in `ordered.py`, backward or forward from that row.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, load, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.ordered import BATCH, END, NEXT, ROW, ROW_END, SPAN, compare_suffix, next_row, open_cursors, take_row
from deltic.kernels.read import BLOCK, OVERFLOW, TOUCHED, seek_block

BEGIN = ROW_END + 1
"""The word of a cursor that has the first row of its batch under the prefix; a cursor here has one word more than in `ordered.py`."""


@part
def gather_all(spans: Words, begins: Words, batches: int, cursors: Words) -> int:
    """Lists a cursor for each batch with rows under the prefix; returns how many."""
    count = 0
    for b in range(batches):
        cursors[count, BATCH] = b
        cursors[count, ROW] = spans[b, NEXT]
        cursors[count, ROW_END] = spans[b, END]
        cursors[count, BEGIN] = begins[b]
        count += np.int64(begins[b] < spans[b, END])
    return count


@part
def step_back(
    directory: Words, stride: int, prefix: int, columns: int, weights: int, cursors: Words, count: int, outcome: Words
) -> tuple[int, bool]:
    """Moves the cursors before the greatest row that precedes them; outcome[0] = its weight 0 over all batches, outcome[1] = rows read.

    Returns (a cursor at that row, -1 if there is none, and whether the weight is within 64 bits).
    """
    greatest, entry, row = -1, 0, 0
    for k in range(count):
        here = cursors[k, ROW] - 1
        if here < cursors[k, BEGIN]:
            continue
        if greatest < 0 or compare_suffix(directory, cursors[k, BATCH] * stride, here, entry, row, prefix, columns) > 0:
            greatest, entry, row = k, cursors[k, BATCH] * stride, here
    outcome[0] = outcome[1] = 0
    if greatest < 0:
        return -1, True
    over = 0
    for k in range(count):
        other, here = cursors[k, BATCH] * stride, cursors[k, ROW] - 1
        if here < cursors[k, BEGIN] or (k != greatest and compare_suffix(directory, other, here, entry, row, prefix, columns) != 0):
            continue
        word = load(directory[other + DIRECTORY_HEADER + columns], here)
        partial = outcome[0] + word
        if ((partial ^ outcome[0]) & (partial ^ word)) < 0:
            over += 1 if word > 0 else -1
        outcome[0] = partial
        cursors[k, ROW] = here
        outcome[1] += 1
    return greatest, over == 0


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64, int64[::1], int64, int64, int64[::1], int64[::1], int64[::1])")
def ranked(
    directory: Words,
    batches: int,
    columns: int,
    weights: int,
    keys: Words,
    prefix: int,
    starts: Words,
    width: int,
    n: int,
    ranks: Words,
    target: Words,
    report: Words,
) -> int:
    """For each key the rows at two ranks (see `trace/probe.py`); returns how many keys it has finished.

    ranks: the addresses of (the copies before start i, the lower rank, the higher rank). target: those of the words after the prefix of the
    lower row, the copies before it, the words of the higher row.
    """
    stride = DIRECTORY_HEADER + columns + weights
    spans = np.empty((BLOCK, batches, SPAN), np.int64)
    begins = np.zeros((BLOCK, batches), np.int64)
    cursors = np.empty((batches + 1, BEGIN + 1), np.int64)
    sums = np.empty(2 * weights, np.int64)
    outcome = np.empty(2, np.int64)
    hits, low, high = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    touched = 0
    for i in range(n):
        slot = i % BLOCK
        if slot == 0:
            count = min(BLOCK, n - i)
            touched += open_cursors(directory, batches, stride, keys, prefix, starts, width, i, count, spans)
            begins[:] = 0
            for b in range(batches):
                listed, inspected = seek_block(directory, b * stride, keys, prefix, i, count, hits, low, high)
                touched += inspected
                for h in range(listed):
                    begins[hits[h], b] = low[h]
        active = gather_all(spans[slot], begins[slot], batches, cursors)
        before, lower, higher = load(ranks[0], i), load(ranks[1], i), load(ranks[2], i)
        while before > lower:
            at, within = step_back(directory, stride, prefix, columns, weights, cursors, active, outcome)
            touched += outcome[1]
            if not within:
                report[OVERFLOW] = 1
                return i
            if at < 0:
                return i
            before -= outcome[0]
        found = False
        while True:
            least = next_row(directory, stride, prefix, columns, cursors, active)
            if least < 0:
                return i
            entry, row = cursors[least, BATCH] * stride + DIRECTORY_HEADER, cursors[least, ROW]
            read, within = take_row(directory, stride, prefix, columns, weights, cursors, active, least, sums)
            touched += read
            if not within:
                report[OVERFLOW] = 1
                return i
            if sums[0] <= 0:
                continue
            if not found and before + sums[0] > lower:
                found = True
                for c in range(width):
                    store(target[c], i, load(directory[entry + prefix + c], row))
                store(target[width], i, before)
            before += sums[0]
            if before > higher:
                for c in range(width):
                    store(target[width + 1 + c], i, load(directory[entry + prefix + c], row))
                break
    report[TOUCHED] = touched
    return n
