"""The kernel that merges two sorted batches, step by step.

A directory is an array of entries, one for each batch: BATCH_ROWS, BATCH_INDEX (not read by a merge), then the addresses of its columns
and weights. A variable `entry` is the position of an entry in the directory.
A merge writes its output and the index over it together, about `fuel` rows at a call, and can be resumed: `state` has all that it needs.
The inputs are only read, so that others may read them until the merge is done.

The output is written in blocks: first it is decided which row comes from where, then rows are copied column by column. Where the inputs
alternate, rows are chosen one by one without branches; long runs of one input are measured by galloping and copied whole.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.index import count_nulls, index_end, index_header, index_rows, rows_below, second_serves
from deltic.kernels.memory import WORD_MIN, Words, address_of, choose, load, store

BATCH_ROWS, BATCH_INDEX, DIRECTORY_HEADER = range(3)
"""Words of an entry: how many rows; the address of the index. And how many words precede the addresses of columns and weights."""

READ, WRITTEN, LEFT, RIGHT, LONG_RUNS, STATE = range(6)
"""Words of a merge's state: rows read, rows written, next row of each input, whether runs are long. And how many words that are."""

BLOCK = 512


@part
def compare_rows(left: Words, left_offset: int, i: int, right: Words, right_offset: int, j: int, columns: int) -> int:
    """-1, 0 or 1: compares row i of the columns at left[left_offset:] with row j of those at right[right_offset:]."""
    for c in range(columns):
        x = load(left[left_offset + c], i)
        y = load(right[right_offset + c], j)
        if x != y:
            return -1 if x < y else 1
    return 0


@part
def begin(directory: Words, stride: int, columns: int, index: int, room: int) -> None:
    """Chooses the layout of the index for the words of both inputs."""
    left, right = directory[BATCH_ROWS], directory[stride + BATCH_ROWS]
    greatest, known = 0, False
    for b in range(2):
        entry = b * stride
        n = directory[entry + BATCH_ROWS]
        if n > 0:
            word = load(directory[entry + DIRECTORY_HEADER], n - 1)
            greatest, known = max(greatest, word) if known else word, True
    before = 0
    for b in range(2):
        entry = b * stride
        before += rows_below(directory[entry + DIRECTORY_HEADER], directory[entry + BATCH_ROWS], greatest)
    second = columns > 1 and second_serves(left + right, left + right - before)
    low = high = 0
    bounded = False
    for b in range(2):
        entry = b * stride
        n = directory[entry + BATCH_ROWS]
        column = directory[entry + DIRECTORY_HEADER]
        start = rows_below(column, n, greatest) if second else count_nulls(column, n)
        if start == n:
            continue
        indexed = directory[entry + DIRECTORY_HEADER + np.int64(second)]
        first, last = load(indexed, start), load(indexed, n - 1)
        low = min(low, first) if bounded else first
        high = max(high, last) if bounded else last
        bounded = True
    index_header(index, low, high, room, second, greatest)


@part
def add_tied(directory: Words, stride: int, columns: int, weights: int, i: int, j: int, sums: Words, offset: int) -> int:
    """sums[offset + w] = weight w of row i on the left plus that of row j on the right; returns 0 if all are 0, else 1, -1 on overflow."""
    left = DIRECTORY_HEADER + columns
    right = stride + left
    live = 0
    for w in range(weights):
        x = load(directory[left + w], i)
        y = load(directory[right + w], j)
        total = x + y
        if ((total ^ x) & (total ^ y)) < 0:
            return -1
        sums[offset + w] = total
        if total != 0:
            live = 1
    return live


@part
def cancelling(directory: Words, stride: int, i: int, j: int, most: int, columns: int, weights: int) -> int:
    """How many rows from i on, at most `most`, are equal to as many of the right from j on, with opposite weights."""
    rows = most
    for c in range(columns):
        left, right = directory[DIRECTORY_HEADER + c], directory[stride + DIRECTORY_HEADER + c]
        k = 0
        while k < rows and load(left, i + k) == load(right, j + k):
            k += 1
        rows = k
    for w in range(columns, columns + weights):
        left, right = directory[DIRECTORY_HEADER + w], directory[stride + DIRECTORY_HEADER + w]
        k = 0
        while k < rows and load(left, i + k) == -load(right, j + k) != WORD_MIN:
            k += 1
        rows = k
    return rows


@part
def gallop_run(directory: Words, start: int, end: int, run: int, bound: int, row: int, columns: int) -> int:
    """The first row in [start, end) of the columns at `run` that is not below `row` of those at `bound`, or end; start must be below it.

    run, bound: positions in the directory. O(log of the distance).
    """
    below = start
    step = 1
    while below + step < end and compare_rows(directory, run, below + step, directory, bound, row, columns) < 0:
        below += step
        step *= 2
    above = min(below + step, end)
    while below + 1 < above:
        middle = (below + above) >> 1
        less = compare_rows(directory, run, middle, directory, bound, row, columns) < 0
        below, above = choose(less, middle, below), choose(less, above, middle)
    return above


@part
def copy_rows(directory: Words, stride: int, target: Words, written: int, picks: Words, count: int) -> None:
    """Copies the picked rows to the target, column by column; a pick is i for row i on the left, ~j for row j on the right."""
    for c in range(stride - DIRECTORY_HEADER):
        left = directory[DIRECTORY_HEADER + c]
        distance = (directory[stride + DIRECTORY_HEADER + c] - left) >> 3
        out = target[c] + 8 * written
        for k in range(count):
            pick = picks[k]
            side = pick >> 63
            store(out, k, load(left, (pick ^ side) + (side & distance)))


@part
def copy_run(directory: Words, entry: int, width: int, target: Words, written: int, start: int, end: int) -> None:
    """Copies rows start to end of one batch to the target."""
    for c in range(width):
        source = directory[entry + DIRECTORY_HEADER + c] + 8 * start
        out = target[c] + 8 * written
        for k in range(end - start):
            store(out, k, load(source, k))


@part
def pick_distinct(left: int, i: int, right: int, j: int, picks: int, count: int, steps: int) -> tuple[int, int, int]:
    """Picks `steps` rows by their leading words alone, or fewer, up to the first two that are equal: (next i, next j, count).

    Both columns must have more than `steps` words from i and j on. Both next words are loaded before the comparison decides which one is
    needed, since the loop would wait for that load.
    """
    x, y = load(left, i), load(right, j)
    for _ in range(steps):
        next_x, next_y = load(left, i + 1), load(right, j + 1)
        if x == y:
            break
        less = x < y
        store(picks, count, choose(less, i, ~j))
        count += 1
        step = np.int64(less)
        i += step
        j += 1 - step
        x = choose(less, next_x, x)
        y = choose(less, y, next_y)
    return i, j, count


@part
def pick_rows(
    directory: Words, stride: int, columns: int, weights: int, state: Words, room: int, picks: Words, patches: Words, sums: Words
) -> tuple[int, int]:
    """Chooses the next rows of the output, at most `room`, until an input ends: (how many, how many of them have summed weights).

    Returns (-1, 0) on weight overflow. `patches` has the positions of rows with summed weights, `sums` their weights.
    """
    n, m = directory[BATCH_ROWS], directory[stride + BATCH_ROWS]
    left, right = directory[DIRECTORY_HEADER], directory[stride + DIRECTORY_HEADER]
    i, j = state[LEFT], state[RIGHT]
    picked = address_of(picks)
    count = patched = 0
    while count < room and i < n and j < m:
        if columns > 0:
            steps = min(room - count, n - i - 1, m - j - 1)
            i, j, count = pick_distinct(left, i, right, j, picked, count, steps)
            if count == room:
                break
        order = compare_rows(directory, DIRECTORY_HEADER, i, directory, stride + DIRECTORY_HEADER, j, columns)
        if order == 0:
            live = add_tied(directory, stride, columns, weights, i, j, sums, patched * weights)
            if live < 0:
                return -1, 0
            picks[count] = i
            patches[patched] = count
            patched += live
            count += live
            i += 1
            j += 1
            more = np.int64(8) if live == 0 else 0
            while more > 0:  # what is removed is often many rows in a row
                most = min(more, n - i, m - j)
                gone = cancelling(directory, stride, i, j, most, columns, weights)
                i += gone
                j += gone
                more = 2 * more if gone == more else 0
        elif order < 0:
            picks[count] = i
            count += 1
            i += 1
        else:
            picks[count] = ~j
            count += 1
            j += 1
    state[READ] += i - state[LEFT] + j - state[RIGHT]
    state[LONG_RUNS] = np.int64(8 * min(i - state[LEFT], j - state[RIGHT]) < count)
    state[LEFT], state[RIGHT] = i, j
    return count, patched


@part
def copy_long_run(directory: Words, stride: int, columns: int, state: Words, limit: int, target: Words) -> int:
    """Copies the rows with which one input precedes the other, at most `limit` of them; returns how many.

    0 if the next rows of both inputs are equal.
    """
    n, m = directory[BATCH_ROWS], directory[stride + BATCH_ROWS]
    i, j = state[LEFT], state[RIGHT]
    left, right = DIRECTORY_HEADER, stride + DIRECTORY_HEADER
    order = -1 if j == m else 1 if i == n else compare_rows(directory, left, i, directory, right, j, columns)
    if order == 0:
        return 0
    if order < 0:
        start, end = i, min(n, i + limit)
        if j < m:
            end = gallop_run(directory, start, end, left, right, j, columns)
        state[LEFT] = end
        copy_run(directory, 0, stride - DIRECTORY_HEADER, target, state[WRITTEN], start, end)
    else:
        start, end = j, min(m, j + limit)
        if i < n:
            end = gallop_run(directory, start, end, right, left, i, columns)
        state[RIGHT] = end
        copy_run(directory, stride, stride - DIRECTORY_HEADER, target, state[WRITTEN], start, end)
    state[READ] += end - start
    return np.int64(end - start)


@kernel("int64(int64[::1], int64, int64, int64[::1], int64, int64, int64[::1], int64)")
def merge(directory: Words, columns: int, weights: int, target: Words, index: int, room: int, state: Words, fuel: int) -> int:
    """Continues a merge of two batches until about `fuel` rows are read or all are; returns 1 when done, 0 if not, -1 on weight overflow.

    target: addresses of the output, with room for the rows of both. index: the address of zeros with room for `room` buckets; 0 for none.
    """
    stride = DIRECTORY_HEADER + columns + weights
    if state[READ] == 0 and index != 0:
        begin(directory, stride, columns, index, room)
    rows = directory[BATCH_ROWS] + directory[stride + BATCH_ROWS]
    until = min(state[READ] + fuel, rows)
    picks = np.empty(BLOCK + 1, np.int64)
    patches = np.empty(BLOCK + 1, np.int64)
    sums = np.empty((BLOCK + 1) * weights, np.int64)
    while state[READ] < until:
        start = state[WRITTEN]
        count = 0
        if state[LONG_RUNS] or state[LEFT] == directory[BATCH_ROWS] or state[RIGHT] == directory[stride + BATCH_ROWS]:
            count = copy_long_run(directory, stride, columns, state, until - state[READ], target)
            state[LONG_RUNS] = np.int64(count >= 8)
        if count == 0:
            count, patched = pick_rows(directory, stride, columns, weights, state, min(BLOCK, until - state[READ]), picks, patches, sums)
            if count < 0:
                return -1
            copy_rows(directory, stride, target, start, picks, count)
            for p in range(patched):
                for w in range(weights):
                    store(target[columns + w], start + patches[p], sums[p * weights + w])
        if index != 0:
            index_rows(index, target[0], target[1] if columns > 1 else 0, start, start + count)
        state[WRITTEN] = start + count
    if state[READ] < rows:
        return 0
    if index != 0:
        index_end(index, target[0], state[WRITTEN])
    return 1
