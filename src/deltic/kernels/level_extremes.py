"""The instruction of level programs for groups with MIN and MAX, or with sums of doubles: their rows, from sums, from digits, and from the
first rows of sorted arrangements.

A kernel of its own, which `level.run` calls. It reads what the `step` of the operator reads, in the same order, and counts it alike.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.instructions import (
    BATCHES,
    COUNTERS,
    DECLINED,
    DONE,
    ENTRY_FIRST,
    ENTRY_LOOKUP,
    ENTRY_SEEK,
    FULL,
    HEADER,
    NODE,
    ROWS,
    ROWS_TOUCHED,
    SPINE,
    SPINE_BATCHES,
    SPINE_DIRECTORY,
    allot,
    block,
    copy_words,
    count_read,
    fill,
    set_empty,
)
from deltic.kernels.level_digits import REAL, write_reals
from deltic.kernels.level_groups import emit, render
from deltic.kernels.level_joins import NO_ROOM, with_change
from deltic.kernels.level_rows import stored_rows, sum_weights
from deltic.kernels.level_tables import consolidated, failure
from deltic.kernels.linked import call, words_at
from deltic.kernels.memory import WORD_MIN, Words, load, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import HIT, HIT_END, HIT_KEY, HIT_START, MATCHES, OVERFLOW, REPORT, TOUCHED

HEAD = 13
"""Operands before those of sums of doubles and of extremes."""
CHANGE, ARRANGEMENT, WIDTH, PARTS = range(4)
"""Operands of an extreme: the register of its change, its spine, how many order words it has; then the parts of each of these."""
MASK, PLACE, FORM, PART = range(4)
"""Parts of an order word: the bits in which it differs from its word in the row of a group, the place of that, and its form. And how many
they are."""
PLAIN, MARKED, FLAGGED, IS_NULL = range(4)
"""Forms. In the row of a group without a first row, a word is 0, or NULL's marker, or 0 with a 0 before it, where there is a 1 otherwise.
IS_NULL: not a word of the row, but whether the word at its place is NULL's marker."""
EXISTED, FILLED, OLD = range(3)
"""Columns of a table of groups: whether a group had a row; whether it has rows now; the words of its old row, then those of its new row."""


@part
def count_touched(counters: Words, state: Words, rows: int, batches: int) -> None:
    counters[COUNTERS * state[NODE] + ROWS_TOUCHED] += rows
    counters[COUNTERS * state[NODE] + BATCHES] += batches


@part
def add_change(
    change: int, key: int, keys: Words, n: int, sums: Words, registers: Words, state: Words, counters: Words, entries: Words
) -> int:
    """Adds the weights of the keys in a change to `sums`."""
    weights = len(sums)
    added, report = block(weights, n, state), np.zeros(REPORT, np.int64)
    if added[0] == 0:
        return FULL
    directory = registers[change + ROWS : change + ROWS + DIRECTORY_HEADER + key + weights]
    batches = np.int64(registers[change + ROWS] > 0)
    if call(entries[ENTRY_LOOKUP], (directory, batches, key, weights, keys, key, n, added, report)) < 0:
        return DECLINED
    count_touched(counters, state, report[TOUCHED], batches)
    for w in range(weights):
        for i in range(n):
            x, y = load(sums[w], i), load(added[w], i)
            total = x + y
            if ((total ^ x) & (total ^ y)) < 0:
                return DECLINED
            store(sums[w], i, total)
    return DONE


@part
def remember(spine: int, key: int, keys: Words, n: int, old: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """Writes the words of the rows that were emitted for the groups; zeros where there is none."""
    width = len(old)
    for c in range(width):
        fill(old[c], 0, n)
    columns, batches, report = key + width, spines[SPINE * spine + SPINE_BATCHES], np.zeros(REPORT, np.int64)
    directory, wanted = spines[SPINE * spine + SPINE_DIRECTORY], np.arange(key, columns + 1)
    table = stored_rows(directory, batches, columns, keys, key, n, wanted, state, report, entries)
    if table[0] == 0:
        return FULL
    count_read(counters, state, spines, spine, n, batches, report[TOUCHED])
    rows = consolidated(table, width + 1, report[MATCHES], state, entries)
    if rows < 0:
        return failure(rows)
    for row in range(rows):
        group = load(table[0], row)
        for c in range(width):
            store(old[c], group, load(table[1 + c], row))
    return DONE


@part
def order_word(code: Words, at: int, row: Words, group: int) -> int:
    """An order word of the row of a group."""
    word = load(row[code[at + PLACE]], group)
    if code[at + FORM] == IS_NULL:
        word = np.int64(word == WORD_MIN)
    return np.int64(word ^ code[at + MASK])


@part
def put_word(code: Words, at: int, row: Words, group: int, word: int) -> None:
    """Writes an order word to the row of a group."""
    place, form = code[at + PLACE], code[at + FORM]
    if form != IS_NULL:
        store(row[place], group, word ^ code[at + MASK])
    if form == FLAGGED:
        store(row[place - 1], group, 1)


@part
def put_null(code: Words, at: int, width: int, row: Words, group: int) -> None:
    """Writes NULL, or zeros, to the row of a group, as the words of an extreme whose parts begin at `at`."""
    for c in range(width):
        place, form = code[at + PART * c + PLACE], code[at + PART * c + FORM]
        if form != IS_NULL:
            store(row[place], group, WORD_MIN if form == MARKED else 0)
        if form == FLAGGED:
            store(row[place - 1], group, 0)


@part
def is_there(code: Words, at: int, row: Words, group: int) -> bool:
    """Whether the extreme whose parts begin at `at` is not NULL in the row of a group."""
    place, form = code[at + PLACE], code[at + FORM]
    if form == FLAGGED:
        return load(row[place - 1], group) != 0
    return form == PLAIN or load(row[place], group) != WORD_MIN


@part
def find_starts(code: Words, at: int, key: int, hits: Words, count: int, table: Words, registers: Words, found: Words) -> int:
    """Writes NULL for each group whose extreme may have changed, and where to search for it: the group, its key, and the lesser of the
    order words of the extreme before and of the first inserted row. Returns how many groups are to be searched."""
    columns, width, at = code[at + CHANGE] + HEADER, code[at + WIDTH], at + PARTS
    words = (len(table) - OLD) // 2
    old, new, searched = table[OLD : OLD + words], table[OLD + words :], 0
    for h in range(count):
        group, row, end = load(hits[HIT_KEY], h), load(hits[HIT_START], h), load(hits[HIT_END], h)
        for k in range(key):
            store(found[1 + k], searched, load(registers[columns + k], row))
        while row < end and load(registers[columns + key + width], row) <= 0:
            row += 1
        present = load(table[EXISTED], group) != 0 and is_there(code, at, old, group)
        less = decided = not present
        for c in range(width):
            start = order_word(code, at + PART * c, old, group) if present else 0
            if row < end and not decided:
                word = load(registers[columns + key + c], row)
                less, decided = word < start, word != start
            store(found[1 + key + c], searched, start)
        for c in range(width if row < end and less else 0):
            store(found[1 + key + c], searched, load(registers[columns + key + c], row))
        put_null(code, at, width, new, group)
        if (present or row < end) and load(table[FILLED], group) != 0:
            store(found[0], searched, group)
            searched += 1
    return searched


@part
def search(
    code: Words,
    at: int,
    key: int,
    keys: Words,
    n: int,
    table: Words,
    registers: Words,
    spines: Words,
    state: Words,
    counters: Words,
    entries: Words,
) -> int:
    """Writes the extreme whose operands begin at `at` to the new rows of the groups in its change."""
    change, spine, width = code[at + CHANGE], code[at + ARRANGEMENT], code[at + WIDTH]
    columns = key + width
    stride, report = DIRECTORY_HEADER + columns + 1, np.zeros(REPORT, np.int64)
    hits, found = block(HIT, n, state), block(1 + columns, n, state)
    directory_at, batches = with_change(spine, columns + 1, change, registers, spines, state)
    if hits[0] == 0 or found[0] == 0 or directory_at == NO_ROOM:
        return FULL
    own = registers[change + ROWS : change + ROWS + stride]
    count = call(entries[ENTRY_SEEK], (own, 1, columns, 1, keys, key, n, hits, report))
    count_touched(counters, state, report[TOUCHED], 1)
    searched = find_starts(code, at, key, hits, count, table, registers, found)
    first = block(2 + columns, searched, state)
    if first[0] == 0:
        return FULL
    sought, starts = found[1 : 1 + key], found[1 + key :]
    directory = words_at(directory_at, batches * stride)
    report[:] = 0
    call(
        entries[ENTRY_FIRST],
        (directory, batches, columns, 1, sought, key, starts, width, 0, searched, 1, first, searched, report),
    )
    if report[OVERFLOW] != 0:
        return DECLINED
    count_read(counters, state, spines, spine, searched, batches, report[TOUCHED])
    new = table[(len(table) + OLD) // 2 :]
    for row in range(report[MATCHES]):
        group = load(found[0], load(first[0], row))
        for c in range(width):
            put_word(code, at + PARTS + PART * c, new, group, load(first[1 + key + c], row))
    return DONE


@part
def replaced(
    code: Words, at: int, out: int, groups: int, key: int, always: bool, sums: Words, table: Words, registers: Words, entries: Words
) -> int:
    """The old and the new row of each group whose row changes. `render` writes the other results; their number is at `at`."""
    width, weights, n = (len(table) - OLD) // 2, len(sums), registers[groups + ROWS]
    after, before, row, number = np.empty(weights, np.int64), np.empty(width, np.int64), np.empty(width, np.int64), np.zeros(2, np.int64)
    rows = 0
    for i in range(n):
        existed, exists = load(table[EXISTED], i) != 0, always or load(table[FILLED], i) != 0
        for w in range(weights):
            after[w] = load(sums[w], i) if exists else 0
        for c in range(width):
            before[c], row[c] = load(table[OLD + c], i), load(table[OLD + width + c], i)
        if not render(code, at + 1, code[at], after, row, number, entries):
            return DECLINED
        differs = existed != exists
        for c in range(width):
            differs |= before[c] != row[c]
        if differs and existed:
            emit(registers, out, rows, groups, i, key, before, width, -1)
            rows += 1
        if differs and exists:
            emit(registers, out, rows, groups, i, key, row, width, 1)
            rows += 1
    registers[out + ROWS] = rows
    return DONE


@kernel("int64(int64[::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def extremes(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """out, groups, words of the key, the change of the sums, weights, spine of the sums, that of the rows before, words of the results,
    whether an empty group has a row, extremes, sums of doubles, the change and the spine of their digits, the operands of each of these
    sums and of each extreme, results, each: the rows of groups before and after."""
    out, groups, key, change, weights = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4]
    spine, memory, width, always, count = code[at + 5], code[at + 6], code[at + 7], code[at + 8] != 0, code[at + 9]
    reals, digits_change, digits = code[at + 10], code[at + 11], code[at + 12]
    n, batches, operands = registers[groups + ROWS], spines[SPINE * spine + SPINE_BATCHES], at + HEAD + REAL * reals
    unverified = batches < 0 or spines[SPINE * memory + SPINE_BATCHES] < 0 or (reals > 0 and spines[SPINE * digits + SPINE_BATCHES] < 0)
    for _ in range(count):
        unverified |= spines[SPINE * code[operands + ARRANGEMENT] + SPINE_BATCHES] < 0
        operands += PARTS + PART * code[operands + WIDTH]
    if unverified or (always and batches == 0):
        return DECLINED
    if n == 0:
        set_empty(registers, out)
        return DONE
    keys = registers[groups + HEADER : groups + HEADER + key]
    sums, table = block(weights, n, state), block(OLD + 2 * width, n, state)
    if sums[0] == 0 or table[0] == 0 or not allot(registers, out, key + width + 1, 2 * n, state):
        return FULL
    if not sum_weights(spine, key, weights, keys, key, n, sums, spines, state, counters, entries):
        return DECLINED
    for i in range(n):
        store(table[EXISTED], i, np.int64(always or load(sums[0], i) != 0))
    outcome = add_change(change, key, keys, n, sums, registers, state, counters, entries)
    if outcome == DONE:
        outcome = remember(memory, key, keys, n, table[OLD : OLD + width], spines, state, counters, entries)
    if outcome != DONE:
        return outcome
    for i in range(n):
        store(table[FILLED], i, np.int64(load(sums[0], i) != 0))
    for c in range(width):
        copy_words(table[OLD + width + c], table[OLD + c], n)
    at += HEAD
    if reals > 0:
        filled, new = table[EXISTED] if always else table[FILLED], table[OLD + width :]
        outcome = write_reals(
            code, at, reals, key, keys, n, digits, digits_change, sums, filled, new, registers, spines, state, counters, entries
        )
        if outcome != DONE:
            return outcome
    at += REAL * reals
    for _ in range(count):
        for i in range(n):
            if load(table[EXISTED], i) == 0:
                put_null(code, at + PARTS, code[at + WIDTH], table[OLD + width :], i)
        if registers[code[at + CHANGE] + ROWS] > 0:
            outcome = search(code, at, key, keys, n, table, registers, spines, state, counters, entries)
            if outcome != DONE:
                return outcome
        at += PARTS + PART * code[at + WIDTH]
    return replaced(code, at, out, groups, key, always, sums, table, registers, entries)
