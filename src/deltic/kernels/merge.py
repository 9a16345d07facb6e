"""The kernel that merges sorted batches, step by step.

A directory describes batches, `2 + columns + weights` words each: rows, address of the index, addresses of the columns and weights.
A merge writes its output and the index over it together, at most about `fuel` rows at a call, and can be resumed: all that it needs is
in `state`. The inputs are only read, so readers may go on with them until the merge is done.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.index import index_end, index_header, index_rows
from deltic.kernels.memory import WORD_MIN, Words, load, store
from deltic.kernels.sort import compare_rows

DIRECTORY_HEADER = 2

STARTED, WRITTEN, CURSOR, READ, POSITIONS = 0, 1, 2, 3, 4
"""Words of a merge's state: whether it has begun, rows written, index cursor, rows read, then a position per input."""

BUFFER = 256


@part
def begin(directory: Words, batches: int, stride: int, index: int, room: int) -> None:
    """Lays the index out for the leading words of all inputs."""
    low = high = 0
    found = False
    for b in range(batches):
        at = b * stride
        n = directory[at]
        if n == 0:
            continue
        column = directory[at + DIRECTORY_HEADER]
        last = load(column, n - 1)
        if last == WORD_MIN:
            continue
        first = load(directory[at + 1], 1)
        low = min(low, first) if found else first
        high = max(high, last) if found else last
        found = True
    index_header(index, low, high, room)


@part
def choose(directory: Words, batches: int, stride: int, columns: int, state: Words) -> tuple[int, int, bool]:
    """The input with the least head, the one with the next (-1 if none), and whether the two heads are equal."""
    best = -1
    second = -1
    tied = False
    for b in range(batches):
        at = b * stride
        row = state[POSITIONS + b]
        if row >= directory[at]:
            continue
        if best < 0:
            best = b
            continue
        key = at + DIRECTORY_HEADER
        order = compare_rows(directory, key, row, directory, best * stride + DIRECTORY_HEADER, state[POSITIONS + best], columns)
        if order < 0:
            second, best, tied = best, b, False
        elif order == 0:
            second, tied = b, True
        elif not tied and (
            second < 0
            or compare_rows(directory, key, row, directory, second * stride + DIRECTORY_HEADER, state[POSITIONS + second], columns) < 0
        ):
            second = b
    return best, second, tied


@part
def run_end(directory: Words, best: int, second: int, stride: int, columns: int, state: Words, limit: int) -> int:
    """The first row of `best` after its head, at most `limit`, that is not below the head of `second`; by galloping."""
    at = best * stride + DIRECTORY_HEADER
    bound = second * stride + DIRECTORY_HEADER
    bound_row = state[POSITIONS + second]
    below: int = state[POSITIONS + best]
    step = 1
    while below + step < limit and compare_rows(directory, at, below + step, directory, bound, bound_row, columns) < 0:
        below += step
        step *= 2
    above = min(below + step, limit)
    while below + 1 < above:
        middle = (below + above) >> 1
        if compare_rows(directory, at, middle, directory, bound, bound_row, columns) < 0:
            below = middle
        else:
            above = middle
    return below + 1


@part
def add_tied(directory: Words, batches: int, stride: int, columns: int, weights: int, best: int, state: Words, sums: Words, at: int) -> int:
    """Adds the weights of all heads equal to that of `best` to sums[at:] and steps over them.

    Returns 1 if a weight is left, 0 if all are 0, -1 on overflow.
    """
    key = best * stride + DIRECTORY_HEADER
    head = state[POSITIONS + best]
    for w in range(weights):
        sums[at + w] = 0
        sums[at + weights + w] = 0
    for b in range(batches):
        row = state[POSITIONS + b]
        here = b * stride + DIRECTORY_HEADER
        if row >= directory[b * stride] or compare_rows(directory, here, row, directory, key, head, columns) != 0:
            continue
        for w in range(weights):
            word = load(directory[here + columns + w], row)
            total = sums[at + w]
            partial = total + word
            if ((partial ^ total) & (partial ^ word)) < 0:
                sums[at + weights + w] += 1 if word > 0 else -1
            sums[at + w] = partial
        state[READ] += 1
        if b != best:
            state[POSITIONS + b] += 1
    state[POSITIONS + best] += 1
    live = 0
    for w in range(weights):
        if sums[at + weights + w] != 0:
            return -1
        if sums[at + w] != 0:
            live = 1
    return live


@part
def copy_runs(directory: Words, stride: int, width: int, target: Words, written: int, runs: Words, count: int) -> None:
    """Copies the runs (input, first row, end) one after another to the target, column by column."""
    for c in range(width):
        out = target[c]
        position = written
        for r in range(count):
            source = directory[runs[r, 0] * stride + DIRECTORY_HEADER + c]
            start = runs[r, 1]
            length = runs[r, 2] - start
            for i in range(length):
                store(out, position + i, load(source, start + i))
            position += length


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64, int64, int64[::1], int64)")
def merge(directory: Words, batches: int, columns: int, weights: int, target: Words, index: int, room: int, state: Words, fuel: int) -> int:
    """Reads on until about `fuel` rows are read or all are; returns 1 when done, 0 when not, -1 on weight overflow.

    target: addresses of the output, with room for the rows of all inputs. index: room for `room` buckets; 0 with no columns.
    """
    stride = DIRECTORY_HEADER + columns + weights
    if state[STARTED] == 0:
        if columns > 0:
            begin(directory, batches, stride, index, room)
        state[STARTED] = 1
    rows = 0
    for b in range(batches):
        rows += directory[b * stride]
    until = min(state[READ] + fuel, rows)
    runs = np.empty((BUFFER, 3), np.int64)
    sums = np.empty((BUFFER + 1) * 2 * weights, np.int64)
    summed = np.empty(BUFFER, np.int64)
    while state[READ] < until:
        count = 0
        patches = 0
        start = state[WRITTEN]
        position = start
        while count < BUFFER and state[READ] < until:
            best, second, tied = choose(directory, batches, stride, columns, state)
            row = state[POSITIONS + best]
            if tied:
                live = add_tied(directory, batches, stride, columns, weights, best, state, sums, patches * 2 * weights)
                if live < 0:
                    return -1
                if live == 0:
                    continue
                summed[patches] = position
                patches += 1
                end = row + 1
            else:
                end = min(directory[best * stride], row + until - state[READ])
                if second >= 0:
                    end = run_end(directory, best, second, stride, columns, state, end)
                state[POSITIONS + best] = end
                state[READ] += end - row
            runs[count, 0], runs[count, 1], runs[count, 2] = best, row, end
            count += 1
            position += end - row
        copy_runs(directory, stride, columns + weights, target, start, runs, count)
        for p in range(patches):
            for w in range(weights):
                store(target[columns + w], summed[p], sums[p * 2 * weights + w])
        if columns > 0:
            state[CURSOR] = index_rows(index, target[0], start, position, state[CURSOR])
        state[WRITTEN] = position
    if state[READ] < rows:
        return 0
    if columns > 0:
        index_end(index, target[0], state[WRITTEN], state[CURSOR])
    return 1
