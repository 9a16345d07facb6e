"""The instruction of level programs for tables that are changed by operations, in order: inserts, deletes, updates and upserts."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.instructions import (
    BATCH,
    DECLINED,
    DONE,
    ENTRY_CONSOLIDATE,
    ENTRY_RESOLVE,
    ENTRY_SORTEDNESS,
    FULL,
    HEADER,
    ORDER,
    ROWS,
    SPINE,
    SPINE_BATCHES,
    SPINE_DIRECTORY,
    allot,
    borrow,
    copy_words,
    count_read,
    fill,
)
from deltic.kernels.level_rows import stored_rows, sum_weights
from deltic.kernels.linked import call
from deltic.kernels.memory import Words, load, store
from deltic.kernels.merge import compare_rows
from deltic.kernels.read import MATCHES, REPORT, TOUCHED
from deltic.kernels.resolve import DELETE_ROW, INSERT
from deltic.kernels.resolve import REPORT as RESOLVE_REPORT
from deltic.kernels.resolve import ROWS as RESOLVED_ROWS

OVERFLOW, NO_ROOM, UNORDERED = -1, -2, -3
"""Instead of a number of rows or keys."""


@part
def are_all(code: Words, at: int, registers: Words) -> bool:
    """source, column, word: whether all words of the column are this one."""
    source = code[at]
    column, word, same = registers[source + HEADER + code[at + 1]], code[at + 2], True
    for i in range(registers[source + ROWS]):
        same &= load(column, i) == word
    return same


@part
def consolidated(table: Words, columns: int, n: int, state: Words, entries: Words) -> int:
    """Sorts rows of one weight, and adds equal ones: replaces the addresses. Returns how many there are, or OVERFLOW, or NO_ROOM."""
    if n == 0:
        return np.int64(0)
    order = call(entries[ENTRY_SORTEDNESS], (table, columns, 1, n))
    if order == BATCH:
        return np.int64(n)
    start = borrow(state, (columns + 1) * n)
    if start == 0:
        return np.int64(NO_ROOM)
    target = np.empty(columns + 1, np.int64)
    for c in range(columns + 1):
        target[c] = start + 8 * c * n
    rows = call(entries[ENTRY_CONSOLIDATE], (table, columns, 1, n, target, order))
    table[:] = target
    return rows if rows >= 0 else np.int64(OVERFLOW)


@part
def failure(rows: int) -> int:
    """What an instruction returns that got OVERFLOW, NO_ROOM or UNORDERED instead of a number of rows."""
    return FULL if rows == NO_ROOM else DECLINED


@part
def write_batch(registers: Words, out: int, table: Words, columns: int, rows: int, state: Words) -> int:
    """Writes rows of one weight from `consolidated`, or returns why there are none."""
    if rows < 0:
        return failure(rows)
    if not allot(registers, out, columns + 1, rows, state):
        return FULL
    for c in range(columns + 1):
        copy_words(registers[out + HEADER + c], table[c], rows)
    registers[out + ORDER] = BATCH
    return DONE


@part
def in_order(registers: Words, source: int, columns: int, key: int, positions: int, starts: int, state: Words, entries: Words) -> int:
    """Writes the positions of the rows by key and ordinal, and where each key begins among these, then their number. Returns how many keys
    there are, UNORDERED if two operations on a key have no order, or NO_ROOM."""
    n = registers[source + ROWS]
    table, room = np.empty(key + 3, np.int64), borrow(state, 2 * n)
    if room == 0:
        return np.int64(NO_ROOM)
    for k in range(key):
        table[k] = registers[source + HEADER + k]
    table[key], table[key + 1], table[key + 2] = registers[source + HEADER + columns + 1], room, room + 8 * n
    for i in range(n):
        store(room, i, i)
    fill(room + 8 * n, 1, n)
    rows = consolidated(table, key + 2, n, state, entries)
    if rows < 0:
        return np.int64(rows)
    copy_words(positions, table[key + 1], n)
    keys = np.int64(0)
    for i in range(n):
        if i == 0 or compare_rows(table, 0, i - 1, table, 0, i, key) != 0:
            store(starts, keys, i)
            keys += 1
        elif load(table[key], i - 1) == load(table[key], i):
            return np.int64(UNORDERED)
    store(starts, keys, n)
    return keys


@part
def resolve(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """out, source, columns, key, spine: the change that the operations make of the table. After its columns the source has the operation
    and the ordinal of each row. key: words, 0 for a table of rows without key."""
    out, source, columns, key, spine = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4]
    n = registers[source + ROWS]
    if spines[SPINE * spine + SPINE_BATCHES] < 0:
        return DECLINED
    positions, starts = borrow(state, n), borrow(state, n + 1)
    if positions == 0 or starts == 0:
        return FULL
    width = key if key > 0 else columns
    keys = in_order(registers, source, columns, width, positions, starts, state, entries)
    start = borrow(state, (width + 1) * max(keys, 1))
    if keys < 0:
        return failure(keys)
    if start == 0:
        return FULL
    distinct = np.empty(width, np.int64)
    for c in range(width):
        distinct[c] = start + 8 * c * keys
        for i in range(keys):
            store(distinct[c], i, load(registers[source + HEADER + c], load(positions, load(starts, i))))
    counts = start + 8 * width * keys
    if key == 0:
        table = np.empty(1, np.int64)
        table[0] = counts
        if not sum_weights(spine, columns, 1, distinct, columns, keys, table, spines, state, counters, entries):
            return DECLINED
        return resolved_rows(registers, out, source, columns, positions, starts, keys, counts, state)
    return resolved_keys(registers, out, source, columns, key, spine, distinct, positions, keys, spines, state, counters, entries)


@part
def resolved_rows(
    registers: Words, out: int, source: int, columns: int, positions: int, starts: int, keys: int, counts: int, state: Words
) -> int:
    """Rows are their own key: each has a number of copies, which is never negative."""
    if not allot(registers, out, columns + 1, keys, state):
        return FULL
    operations, kept = registers[source + HEADER + columns], 0
    for k in range(keys):
        copies = load(counts, k)
        for i in range(load(starts, k), load(starts, k + 1)):
            operation = load(operations, load(positions, i))
            if operation not in (INSERT, DELETE_ROW):
                return DECLINED
            copies += 1 if operation == INSERT else -1
            if copies < 0:
                return DECLINED
        if copies != load(counts, k):
            row = load(positions, load(starts, k))
            for c in range(columns):
                store(registers[out + HEADER + c], kept, load(registers[source + HEADER + c], row))
            store(registers[out + HEADER + columns], kept, copies - load(counts, k))
            kept += 1
    registers[out + ORDER], registers[out + ROWS] = BATCH, kept
    return DONE


@part
def resolved_keys(
    registers: Words,
    out: int,
    source: int,
    columns: int,
    key: int,
    spine: int,
    distinct: Words,
    positions: int,
    keys: int,
    spines: Words,
    state: Words,
    counters: Words,
    entries: Words,
) -> int:
    """Each key has one row, or none."""
    directory, batches = spines[SPINE * spine + SPINE_DIRECTORY], spines[SPINE * spine + SPINE_BATCHES]
    report, wanted = np.zeros(REPORT, np.int64), np.arange(columns + 1)
    stored = stored_rows(directory, batches, columns, distinct, key, keys, wanted, state, report, entries)
    if stored[0] == 0 or not allot(registers, out, columns + 1, 2 * keys, state):
        return FULL
    count_read(counters, state, spines, spine, keys, batches, report[TOUCHED])
    rows, target = registers[source + HEADER : source + HEADER + columns], registers[out + HEADER : out + HEADER + columns + 1]
    operations, ordinals = registers[source + HEADER + columns], registers[source + HEADER + columns + 1]
    n, resolved = registers[source + ROWS], np.empty(RESOLVE_REPORT, np.int64)
    arguments = (rows, operations, ordinals, positions, n, columns, key, stored[1:], report[MATCHES], stored[0], target, resolved)
    length = call(entries[ENTRY_RESOLVE], arguments)
    for error in resolved[RESOLVED_ROWS + 1 :]:
        if error >= 0:
            return DECLINED
    registers[out + ORDER], registers[out + ROWS] = BATCH, length
    return DONE
