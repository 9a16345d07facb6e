"""Instructions of level programs that join a change with an arrangement: joins, semijoins and antijoins."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.instructions import (
    DECLINED,
    DONE,
    ENTRY_EXPAND,
    ENTRY_LOOKUP,
    ENTRY_SEEK,
    FULL,
    HEADER,
    INDEX,
    ONE,
    ORDER,
    ROWS,
    SPINE,
    SPINE_BATCHES,
    SPINE_DIRECTORY,
    allot,
    borrow,
    count_read,
    fill,
    set_empty,
    take,
)
from deltic.kernels.level_rows import sum_weights
from deltic.kernels.linked import call, words_at
from deltic.kernels.memory import Words, load, product_overflows, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import HIT, MATCHES, REPORT, TOUCHED
from deltic.kernels.vector import are_opposite, uncancelled

NO_ROOM = -1


@part
def key_table(code: Words, at: int, width: int, registers: Words, source: int, state: Words) -> int:
    """The address of a table of the words of a key, whose positions begin at `at` of the program; 0 if the arena is full."""
    n = registers[source + ROWS]
    start = borrow(state, width)
    if start == 0:
        return 0
    for k in range(width):
        position = code[at + k]
        if position == ONE:
            ones = borrow(state, n)
            if ones == 0:
                return 0
            fill(ones, 1, n)
            store(start, k, ones)
        else:
            store(start, k, registers[source + HEADER + position])
    return start


@part
def with_change(spine: int, width: int, other: int, registers: Words, spines: Words, state: Words) -> tuple[int, int]:
    """(the address of the directory of a spine and of the batch in register `other`, or NO_ROOM; how many batches). other: -1 for none."""
    batches = spines[SPINE * spine + SPINE_BATCHES]
    directory, stride = spines[SPINE * spine + SPINE_DIRECTORY], DIRECTORY_HEADER + width
    if other < 0 or registers[other + ROWS] == 0:
        return directory, batches
    both = borrow(state, (batches + 1) * stride)
    if both == 0:
        return NO_ROOM, 0
    for i in range(batches * stride):
        store(both, i, load(directory, i))
    for i in range(stride):
        store(both, batches * stride + i, registers[other + ROWS + i])
    return both, batches + 1


@part
def each_once(source: int, matches: int, n: int) -> bool:
    """Whether every key has exactly one match, as when a foreign key matches a primary key."""
    once = matches == n
    for i in range(matches if once else 0):
        once &= load(source, i) == i
    return once


@part
def gathered(column: int, source: int, matches: int, once: bool, state: Words) -> int:
    """The address of the column's words at the positions `source`; 0 if the arena is full."""
    if once:
        return column
    target = take(state, matches)
    if target != 0:
        for i in range(matches):
            store(target, i, load(column, load(source, i)))
    return target


@part
def sought_rows(code: Words, at: int, keys: Words, columns: int, change: int, registers: Words, state: Words) -> tuple[int, int]:
    """(the address of the positions of the rows of a change to look up, 0 for all; how many they are, or NO_ROOM)

    Rows that cancel for this join, since they differ in words that it does not read, are left out. at: where the program has the columns of
    the output. columns: of the change. The keys then begin with those of these rows.
    """
    n, words = registers[change + ROWS], code[at]
    own, weights_at = 0, at + 2 + 2 * words
    for c in range(words):
        own += np.int64(code[at + 1 + 2 * c] != 0)
    weights, read = np.empty(code[weights_at - 1], np.int64), np.empty(len(keys) + own, np.int64)
    for p in range(len(weights)):
        weights[p] = registers[change + HEADER + columns + code[weights_at + 2 * p]]
    some = False
    for i in range(n - 1):
        some |= are_opposite(weights, i)
    if not some:
        return 0, n
    read[: len(keys)] = keys
    own = len(keys)
    for c in range(words):
        if code[at + 1 + 2 * c] != 0:
            read[own] = registers[change + HEADER + code[at + 2 + 2 * c]]
            own += 1
    kept = borrow(state, n)
    if kept == 0:
        return 0, NO_ROOM
    rows = uncancelled(read, weights, n, kept)
    if rows == n:
        return 0, n
    for k in range(len(keys)):
        column = borrow(state, n)
        if column == 0:
            return 0, NO_ROOM
        for i in range(rows):
            store(column, i, load(keys[k], load(kept, i)))
        keys[k] = column
    return kept, rows


@part
def match(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """out, change, its columns, spine, its columns and weights, the register of its change or -1, words of the key, each of them, columns
    of the output, (whether of the change, position) of each, weights of the output, (weight of the change, of the spine) of each."""
    out, change, columns, spine = code[at], code[at + 1], code[at + 2], code[at + 3]
    other_columns, other_weights, other, key = code[at + 4], code[at + 5], code[at + 6], code[at + 7]
    n = registers[change + ROWS]
    if n == 0:
        set_empty(registers, out)
        return DONE
    if spines[SPINE * spine + SPINE_BATCHES] < 0:
        return DECLINED
    keys_at = key_table(code, at + 8, key, registers, change, state)
    if keys_at == 0:
        return FULL
    keys = words_at(keys_at, key)
    kept, n = sought_rows(code, at + 8 + key, keys, columns, change, registers, state)
    if n == NO_ROOM:
        return FULL
    if n == 0:
        set_empty(registers, out)
        return DONE
    directory_at, batches = with_change(spine, other_columns + other_weights, other, registers, spines, state)
    hits_at = borrow(state, HIT * (n * batches + 1))
    if directory_at == NO_ROOM or hits_at == 0:
        return FULL
    stride = DIRECTORY_HEADER + other_columns + other_weights
    directory, report, hits = words_at(directory_at, batches * stride), np.zeros(REPORT, np.int64), np.empty(HIT, np.int64)
    for h in range(HIT):
        hits[h] = hits_at + 8 * h * n * batches
    count = call(entries[ENTRY_SEEK], (directory, batches, other_columns, other_weights, keys, key, n, hits, report))
    matches = report[MATCHES]
    count_read(counters, state, spines, spine, n, batches, report[TOUCHED])
    if matches == 0:
        set_empty(registers, out)
        return DONE
    at += 8 + key
    return joined(code, at, out, change, columns, other_columns, directory, stride, hits, count, matches, kept, registers, state, entries)


@part
def joined(
    code: Words,
    at: int,
    out: int,
    change: int,
    columns: int,
    other_columns: int,
    directory: Words,
    stride: int,
    hits: Words,
    count: int,
    matches: int,
    kept: int,
    registers: Words,
    state: Words,
    entries: Words,
) -> int:
    """Writes the rows of the hits, and their weights. kept: the positions of the rows that were sought, 0 if they are those of all."""
    words = code[at]
    pairs = code[at + 1 + 2 * words]
    wanted, table = np.empty(words + pairs, np.int64), np.empty(1 + words + pairs, np.int64)
    table[0] = borrow(state, matches)
    if table[0] == 0:
        return FULL
    outputs = 0
    for c in range(words):
        if code[at + 1 + 2 * c] == 0:
            wanted[outputs] = code[at + 2 + 2 * c]
            table[1 + outputs] = take(state, matches)
            if table[1 + outputs] == 0:
                return FULL
            registers[out + HEADER + c] = table[1 + outputs]
            outputs += 1
    weights_at = at + 2 + 2 * words
    for p in range(pairs):
        wanted[outputs + p] = other_columns + code[weights_at + 2 * p + 1]
        table[1 + outputs + p] = take(state, matches)
        if table[1 + outputs + p] == 0:
            return FULL
    call(entries[ENTRY_EXPAND], (directory, stride, hits, count, wanted, outputs + pairs, table))
    source = table[0]
    for i in range(matches if kept != 0 else 0):
        store(source, i, load(kept, load(source, i)))
    once = each_once(source, matches, registers[change + ROWS])
    for c in range(words):
        if code[at + 1 + 2 * c] != 0:
            column = gathered(registers[change + HEADER + code[at + 2 + 2 * c]], source, matches, once, state)
            if column == 0:
                return FULL
            registers[out + HEADER + c] = column
    for p in range(pairs):
        own, other = registers[change + HEADER + columns + code[weights_at + 2 * p]], table[1 + outputs + p]
        for i in range(matches):
            x, y = load(own, load(source, i)), load(other, i)
            if product_overflows(x, y):
                return DECLINED
            store(other, i, x * y)
        registers[out + HEADER + words + p] = other
    registers[out + ORDER], registers[out + ROWS], registers[out + INDEX] = 0, matches, 0
    return DONE


@part
def keep_present(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """out, change, its columns, spine, its columns, the register of its change or -1, anti, words of the key, each of them, columns of the
    output, each of them: the rows whose key is in the spine, or is not."""
    out, change, columns, spine = code[at], code[at + 1], code[at + 2], code[at + 3]
    other_columns, other, anti, key = code[at + 4], code[at + 5], code[at + 6], code[at + 7]
    n = registers[change + ROWS]
    if n == 0:
        set_empty(registers, out)
        return DONE
    if spines[SPINE * spine + SPINE_BATCHES] < 0:
        return DECLINED
    keys_at = key_table(code, at + 8, key, registers, change, state)
    directory_at, batches = with_change(spine, other_columns + 1, other, registers, spines, state)
    counts_at = borrow(state, n)
    if keys_at == 0 or directory_at == NO_ROOM or counts_at == 0:
        return FULL
    directory, report = words_at(directory_at, batches * (DIRECTORY_HEADER + other_columns + 1)), np.zeros(REPORT, np.int64)
    target = np.empty(1, np.int64)
    target[0] = counts_at
    if call(entries[ENTRY_LOOKUP], (directory, batches, other_columns, 1, words_at(keys_at, key), key, n, target, report)) < 0:
        return DECLINED
    count_read(counters, state, spines, spine, n, batches, report[TOUCHED])
    at += 8 + key
    width = code[at]
    if not allot(registers, out, width + 1, n, state):
        return FULL
    kept = 0
    for i in range(n):
        if (load(counts_at, i) > 0) != (anti != 0):
            for c in range(width):
                store(registers[out + HEADER + c], kept, load(registers[change + HEADER + code[at + 1 + c]], i))
            store(registers[out + HEADER + width], kept, load(registers[change + HEADER + columns], i))
            kept += 1
    registers[out + ROWS] = kept
    return DONE


@part
def flip(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """out, change, its columns, its spine, the columns of that, the other spine, its columns, anti, words of the key, each of them, columns
    of the output, each of them: the rows of the other spine under keys that the change adds to its spine, or removes. The change is a batch
    of keys."""
    out, change, columns, spine, spine_columns = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4]
    other, other_columns, anti, key = code[at + 5], code[at + 6], code[at + 7], code[at + 8]
    n = registers[change + ROWS]
    if n == 0:
        set_empty(registers, out)
        return DONE
    if spines[SPINE * spine + SPINE_BATCHES] < 0 or spines[SPINE * other + SPINE_BATCHES] < 0:
        return DECLINED
    keys_at = key_table(code, at + 9, key, registers, change, state)
    start = borrow(state, (key + 3) * n + key)
    if keys_at == 0 or start == 0:
        return FULL
    before_at, sign = start, start + 8 * n
    table, target = words_at(start + 8 * (key + 2) * n, key), np.empty(1, np.int64)
    target[0] = before_at
    own = registers[change + HEADER : change + HEADER + columns]
    if not sum_weights(spine, spine_columns, 1, own, columns, n, target, spines, state, counters, entries):
        return DECLINED
    for k in range(key):
        table[k] = start + 8 * (2 + k) * n
    weight, flipped = registers[change + HEADER + columns], 0
    for i in range(n):
        x, y = load(before_at, i), load(weight, i)
        total = x + y
        if ((total ^ x) & (total ^ y)) < 0:
            return DECLINED
        change_of = np.int64(total > 0) - np.int64(x > 0)
        if change_of != 0:
            for k in range(key):
                store(table[k], flipped, load(load(keys_at, k), i))
            store(sign, flipped, -change_of if anti != 0 else change_of)
            flipped += 1
    return flipped_rows(
        code, at + 9 + key, out, other, other_columns, table, key, flipped, sign, registers, spines, state, counters, entries
    )


@part
def flipped_rows(
    code: Words,
    at: int,
    out: int,
    spine: int,
    columns: int,
    keys: Words,
    key: int,
    n: int,
    sign: int,
    registers: Words,
    spines: Words,
    state: Words,
    counters: Words,
    entries: Words,
) -> int:
    """The rows of a spine under n keys, each with the sign of its key."""
    batches, stride = spines[SPINE * spine + SPINE_BATCHES], DIRECTORY_HEADER + columns + 1
    directory = words_at(spines[SPINE * spine + SPINE_DIRECTORY], batches * stride)
    hits_at = borrow(state, HIT * (n * batches + 1))
    if hits_at == 0:
        return FULL
    hits, report = np.empty(HIT, np.int64), np.zeros(REPORT, np.int64)
    for h in range(HIT):
        hits[h] = hits_at + 8 * h * n * batches
    count = call(entries[ENTRY_SEEK], (directory, batches, columns, 1, keys, key, n, hits, report))
    matches = report[MATCHES]
    count_read(counters, state, spines, spine, n, batches, report[TOUCHED])
    width = code[at]
    wanted, table = np.empty(width + 1, np.int64), np.empty(width + 2, np.int64)
    table[0] = borrow(state, matches)
    if table[0] == 0 or not allot(registers, out, width + 1, matches, state):
        return FULL
    for c in range(width):
        wanted[c], table[1 + c] = code[at + 1 + c], registers[out + HEADER + c]
    wanted[width], table[1 + width] = columns, registers[out + HEADER + width]
    call(entries[ENTRY_EXPAND], (directory, stride, hits, count, wanted, width + 1, table))
    for i in range(matches):
        word = load(table[1 + width], i)
        store(table[1 + width], i, word * load(sign, load(table[0], i)))
    return DONE
