"""The instruction of level programs for top-k: the change of the first rows of groups.

A kernel of its own, which `level.run` calls. It reads what the `step` of the operator reads, in the same order, and counts it alike.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.instructions import (
    DECLINED,
    DONE,
    ENTRY_FIRST,
    FULL,
    HEADER,
    ROWS,
    SPINE,
    SPINE_BATCHES,
    SPINE_DIRECTORY,
    block,
    borrow,
    copy_words,
    count_read,
    set_empty,
)
from deltic.kernels.level_joins import NO_ROOM, with_change
from deltic.kernels.level_rows import stored_rows
from deltic.kernels.level_tables import consolidated, failure, write_batch
from deltic.kernels.linked import call, words_at
from deltic.kernels.memory import WORD_MIN, Words, load, store
from deltic.kernels.merge import BATCH_ROWS, DIRECTORY_HEADER, compare_rows
from deltic.kernels.ordered import MOST_WORDS
from deltic.kernels.read import MATCHES, OVERFLOW, REPORT, TOUCHED
from deltic.kernels.text import LONG

TEXTS = 8
"""Operands before those of the ids of strings."""
POSITION, DESCENDS, TEXT = range(3)
"""Operands of an id: its place in a row, and whether it sorts descending. And how many they are."""


@part
def sure_words(code: Words, texts: int, rows: Words, i: int, width: int) -> int:
    """How many words of a row determine its order: all, or those before the id of the first long string."""
    for t in range(code[texts]):
        at = texts + 1 + TEXT * t
        last = load(rows[code[at + POSITION] - 1], i)
        if (~last if code[at + DESCENDS] != 0 else last) & 0xFF == LONG:
            return np.int64(code[at + POSITION])
    return width


@part
def read_first(
    spine: Words, keys: Words, key: int, starts: Words, n: int, columns: int, limit: int, state: Words, report: Words, entries: Words
) -> tuple[Words, int]:
    """(the addresses of the first rows of n groups, as `ordered.first` writes them; how many, or -DECLINED, or -FULL).

    spine: the address of its directory, and how many batches it has.
    """
    stride, room = DIRECTORY_HEADER + columns + 1, 0
    directory = words_at(spine[0], spine[1] * stride)
    for b in range(spine[1]):
        room += directory[b * stride + BATCH_ROWS]
    if n < room // limit:
        room = n * limit
    if room * (columns + 2) > MOST_WORDS:
        return np.zeros(1, np.int64), -DECLINED
    rows = block(columns + 2, room, state)
    if rows[0] == 0:
        return rows, -FULL
    report[:] = 0
    call(entries[ENTRY_FIRST], (directory, spine[1], columns, 1, keys, key, starts, len(starts), 0, n, limit, rows, room, report))
    return rows, -DECLINED if report[OVERFLOW] != 0 else report[MATCHES]


@part
def begin_groups(rows: Words, key: int, n: int, begins: int, keys: Words) -> int:
    """Writes the keys of the groups of sorted rows, where each begins, and the number of rows; returns how many groups there are."""
    groups = 0
    for i in range(n):
        if i == 0 or compare_rows(rows, 0, i - 1, rows, 0, i, key) != 0:
            for k in range(key):
                store(keys[k], groups, load(rows[k], i))
            store(begins, groups, i)
            groups += 1
    store(begins, groups, n)
    return groups


@part
def begins_before(rows: Words, i: int, sure: int, others: Words, j: int, other_sure: int, key: int, width: int) -> bool:
    """Whether a row sorts before another one; words from `sure` on are the least word."""
    for c in range(key, width):
        one = load(rows[c], i) if c < sure else WORD_MIN
        other = load(others[c], j) if c < other_sure else WORD_MIN
        if one != other:
            return one < other
    return False


@part
def choose_starts(
    code: Words, texts: int, delta: Words, begins: int, groups: int, old: Words, rows: int, key: int, width: int, limit: int, sought: Words
) -> int:
    """Writes the key of each group that is to be searched, and where. The weights of old rows become what they add to the change: 0 where
    the group stays as it is, else their negatives. Returns how many groups are to be searched."""
    searched, row, others = 0, 0, old[1:]
    for g in range(groups):
        first, copies = row, 0
        while row < rows and load(old[0], row) == g:
            copies += load(old[1 + width], row)
            row += 1
        begin, end = load(begins, g), load(begins, g + 1)
        if copies == limit:
            last_sure = sure_words(code, texts, others, row - 1, width)
            if compare_rows(others, key, row - 1, delta, key, begin, last_sure - key) < 0:
                for i in range(first, row):
                    store(old[1 + width], i, 0)
                continue
        for i in range(first, row):
            store(old[1 + width], i, -load(old[1 + width], i))
        while begin < end and load(delta[width], begin) <= 0:
            begin += 1
        if first == row and begin == end:
            continue
        source, i = others, first
        sure = sure_words(code, texts, others, first, width) if first < row else np.int64(width)
        if begin < end:
            new_sure = sure_words(code, texts, delta, begin, width)
            if first == row or begins_before(delta, begin, new_sure, others, first, sure, key, width):
                source, i, sure = delta, begin, new_sure
        for c in range(width):
            store(sought[c], searched, load(source[c], i) if c < sure else WORD_MIN)
        searched += 1
    return searched


@part
def cut_weights(code: Words, texts: int, new: Words, rows: int, width: int, limit: int, last: int, cuts: int) -> int:
    """Cuts the copies of each group to `limit`. Lists the last row of each full group whose first `cuts` words may be those of others, too;
    returns how many groups these are."""
    words, weights, row, unsure = new[1:], new[1 + width], 0, 0
    while row < rows:
        group, copies = load(new[0], row), 0
        while row < rows and load(new[0], row) == group:
            weight = min(load(weights, row), limit - copies)
            store(weights, row, weight)
            copies += weight
            row += 1
        sure = sure_words(code, texts, words, row - 1, width)
        if copies == limit and sure < width:
            store(last, unsure, row - 1)
            store(cuts, unsure, sure)
            unsure += 1
    return unsure


@part
def look_for_ties(
    place: Words, new: Words, last: int, cuts: int, unsure: int, cut: int, width: int, state: Words, report: Words, entries: Words
) -> tuple[int, int]:
    """(DONE, or DECLINED if other rows begin with the same `cut` words as one of the listed rows, or FULL; how many are listed with this
    cut)."""
    keys, n = block(cut, unsure, state), 0
    if keys[0] == 0:
        return FULL, 0
    for i in range(unsure):
        if load(cuts, i) == cut:
            for c in range(cut):
                store(keys[c], n, load(new[1 + c], load(last, i)))
            n += 1
    if n == 0:
        return DONE, 0
    rows = stored_rows(place[0], place[1], width, keys, cut, n, np.arange(cut, width + 1), state, report, entries)
    if rows[0] == 0:
        return FULL, 0
    count = consolidated(rows, width - cut + 1, report[MATCHES], state, entries)
    if count < 0:
        return failure(count), n
    before = np.int64(-1)
    for i in range(count):
        if load(rows[width - cut + 1], i) > 0:
            if load(rows[0], i) == before:
                return DECLINED, n
            before = load(rows[0], i)
    return DONE, n


@part
def settle(
    code: Words,
    texts: int,
    place: Words,
    new: Words,
    rows: int,
    width: int,
    limit: int,
    spine: int,
    spines: Words,
    state: Words,
    counters: Words,
    entries: Words,
) -> int:
    """Cuts the copies of each group to `limit`. Declines where bytes of strings decide which rows of a group are the first."""
    last, cuts, report = borrow(state, rows + 1), borrow(state, rows + 1), np.zeros(REPORT, np.int64)
    if last == 0 or cuts == 0:
        return FULL
    unsure = cut_weights(code, texts, new, rows, width, limit, last, cuts)
    for t in range(code[texts] if unsure > 0 else 0):
        cut = code[texts + 1 + TEXT * t + POSITION]
        outcome, n = look_for_ties(place, new, last, cuts, unsure, cut, width, state, report, entries)
        if n > 0:
            count_read(counters, state, spines, spine, n, place[1], report[TOUCHED])
        if outcome != DONE:
            return outcome
    return DONE


@part
def write_change(
    out: int, old: Words, old_rows: int, new: Words, new_rows: int, width: int, registers: Words, state: Words, entries: Words
) -> int:
    """Writes the new rows less the old ones."""
    table = block(width + 1, old_rows + new_rows, state)
    if table[0] == 0:
        return FULL
    for c in range(width + 1):
        copy_words(table[c], new[1 + c], new_rows)
        copy_words(table[c] + 8 * new_rows, old[1 + c], old_rows)
    return write_batch(registers, out, table, width, consolidated(table, width, old_rows + new_rows, state, entries), state)


@kernel("int64(int64[::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def first_rows(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """out, change, words of the key, words of a row, limit, spine of the rows, spine of the first rows, ids of strings, the operands of
    each: the change of the first rows of the groups in the change, which is a batch with an index."""
    out, change, key, width = code[at], code[at + 1], code[at + 2], code[at + 3]
    limit, spine, memory = code[at + 4], code[at + 5], code[at + 6]
    n, texts, report = registers[change + ROWS], at + TEXTS - 1, np.zeros(REPORT, np.int64)
    if spines[SPINE * spine + SPINE_BATCHES] < 0 or spines[SPINE * memory + SPINE_BATCHES] < 0:
        return DECLINED
    if n == 0:
        set_empty(registers, out)
        return DONE
    delta = registers[change + HEADER : change + HEADER + width + 1]
    begins, keys, place = borrow(state, n + 1), block(key, n, state), np.empty(2, np.int64)
    if begins == 0 or keys[0] == 0:
        return FULL
    groups = begin_groups(delta, key, n, begins, keys)
    place[0], place[1] = spines[SPINE * memory + SPINE_DIRECTORY], spines[SPINE * memory + SPINE_BATCHES]
    old, old_rows = read_first(place, keys, key, keys[:0], groups, width, limit, state, report, entries)
    if old_rows < 0:
        return np.int64(-old_rows)
    count_read(counters, state, spines, memory, groups, place[1], report[TOUCHED])
    sought = block(width, groups, state)
    if sought[0] == 0:
        return FULL
    searched = choose_starts(code, texts, delta, begins, groups, old, old_rows, key, width, limit, sought)
    new, new_rows = old, np.int64(0)
    if searched > 0:
        place[0], place[1] = with_change(spine, width + 1, change, registers, spines, state)
        if place[0] == NO_ROOM:
            return FULL
        new, new_rows = read_first(place, sought[:key], key, sought[key:], searched, width, limit, state, report, entries)
        if new_rows < 0:
            return np.int64(-new_rows)
        count_read(counters, state, spines, spine, searched, place[1], report[TOUCHED])
        outcome = settle(code, texts, place, new, new_rows, width, limit, spine, spines, state, counters, entries)
        if outcome != DONE:
            return outcome
    return write_change(out, old, old_rows, new, new_rows, width, registers, state, entries)
