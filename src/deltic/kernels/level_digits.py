"""Sums of FLOAT and DOUBLE in level programs: values taken apart to digits, whose sums are exact, and these sums, each rounded once."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.floats import GROWN, NAN, ROOM, add_limb, bits_of, is_digit, ordered, rounded_sum
from deltic.kernels.instructions import (
    DECLINED,
    DONE,
    ENTRY_SPLIT,
    FULL,
    HEADER,
    ROWS,
    block,
    borrow,
    copy_words,
    count_read,
    fill,
)
from deltic.kernels.level_joins import NO_ROOM, with_change
from deltic.kernels.level_rows import stored_rows
from deltic.kernels.level_tables import NO_ROOM as NO_ROOM_TO_SORT
from deltic.kernels.level_tables import consolidated, write_batch
from deltic.kernels.linked import call, words_at
from deltic.kernels.memory import WORD_MIN, Words, load, store
from deltic.kernels.read import MATCHES, REPORT, TOUCHED

MOST_ROWS = 1 << 16
"""Of more rows, each of which yields up to 64, the instruction declines, and the `step` takes so many apart at a time."""

SLOT, COUNTED, IS_MEAN, NULLABLE, PLACE, REAL = range(6)
"""Operands of a sum: the slot of its digits; the weight that counts its rows; whether it is divided by these, and may be NULL; the place of
its word in the row of a group. And how many they are."""


@part
def is_grown(table: Words, key: int, row: int) -> bool:
    """Whether the limb of a row is to be carried; those that count NaN and infinities are not."""
    return load(table[key + 1], row) < NAN and not -GROWN < load(table[key + 2], row) < GROWN


@part
def carried(table: Words, key: int, n: int, state: Words, entries: Words) -> int:
    """Carries the grown limbs of consolidated rows, as `normalise_limbs` of `trace/sums.py`. Returns what `consolidated` returns."""
    grown = 0
    for i in range(n):
        grown += np.int64(is_grown(table, key, i))
    if grown == 0:
        return np.int64(n)
    more, rows = block(key + 3, n + 2 * grown, state), n
    if more[0] == 0:
        return np.int64(NO_ROOM_TO_SORT)
    for c in range(key + 3):
        copy_words(more[c], table[c], n)
    for i in range(n):
        if is_grown(table, key, i):
            position, limb = load(table[key + 1], i), load(table[key + 2], i)
            carry = (limb >> 32) + np.int64(limb < 0)  # towards zero: the least word shifted back would leave 64 bits
            for step in range(2):
                for c in range(key + 1):
                    store(more[c], rows, load(table[c], i))
                store(more[key + 1], rows, position + step)
                store(more[key + 2], rows, carry if step else -(carry << 32))
                rows += 1
    table[:] = more
    return consolidated(table, key + 2, rows, state, entries)


@kernel("int64(int64[::1], int64, int64[::1], int64[::1], int64[::1])")
def take_apart(code: Words, at: int, registers: Words, state: Words, entries: Words) -> int:
    """out, source, words of the key, slot: rows (key, slot, position) whose weights are the limbs of value times weight; the value is the
    word after the key."""
    out, source, key, slot = code[at], code[at + 1], code[at + 2], code[at + 3]
    n, values, weights = registers[source + ROWS], registers[source + HEADER + key], registers[source + HEADER + key + 1]
    bits, none = borrow(state, n + 1), np.empty(0, np.int64)
    if bits == 0:
        return FULL
    if n > MOST_ROWS:
        return DECLINED
    for i in range(n):
        word = load(values, i)
        store(bits, i, word ^ ~WORD_MIN if word < 0 else word)
    limbs = call(entries[ENTRY_SPLIT], (bits, weights, n, none, none, none))
    table, rows = block(key + 3, limbs, state), borrow(state, limbs + 1)
    if table[0] == 0 or rows == 0:
        return FULL
    if limbs > 0:
        places = (words_at(rows, limbs), words_at(table[key + 1], limbs), words_at(table[key + 2], limbs))
        call(entries[ENTRY_SPLIT], (bits, weights, n, places[0], places[1], places[2]))
    for c in range(key):
        column = registers[source + HEADER + c]
        for i in range(limbs):
            store(table[c], i, load(column, load(rows, i)))
    fill(table[key], slot, limbs)
    kept = consolidated(table, key + 2, limbs, state, entries)
    if kept > 0:
        kept = carried(table, key, kept, state, entries)
    return write_batch(registers, out, table, key + 2, kept, state)


@part
def real_word(value: float, count: int, is_mean: bool) -> int:
    """The word of a sum, or of its mean."""
    if is_mean and value != 0:  # a sum of 0.0 has the mean 0.0, whatever the sign of the count
        value /= np.float64(count)
    return ordered(bits_of(value))


@part
def write_reals(
    code: Words,
    at: int,
    reals: int,
    key: int,
    keys: Words,
    n: int,
    spine: int,
    change: int,
    sums: Words,
    filled: int,
    new: Words,
    registers: Words,
    spines: Words,
    state: Words,
    counters: Words,
    entries: Words,
) -> int:
    """Writes the words of the sums whose operands begin at `at` to the new rows of the groups. filled: whether a group has rows."""
    columns, wanted, report = key + 2, np.arange(key, key + 3), np.zeros(REPORT, np.int64)
    directory, batches = with_change(spine, columns + 1, change, registers, spines, state)
    if directory == NO_ROOM:
        return FULL
    found = stored_rows(directory, batches, columns, keys, key, n, wanted, state, report, entries)
    if found[0] == 0:
        return FULL
    count_read(counters, state, spines, spine, n, batches, report[TOUCHED])
    digits, counts, row = np.empty(ROOM, np.int64), np.empty(3, np.int64), 0
    for i in range(n):
        end = row
        while end < report[MATCHES] and load(found[0], end) == i:
            end += 1
        for r in range(reals):
            own = at + REAL * r
            digits[:] = 0
            counts[:] = 0
            for j in range(row, end):
                if load(found[1], j) == code[own + SLOT]:
                    if not is_digit(load(found[2], j)):
                        return DECLINED
                    add_limb(load(found[2], j), load(found[3], j), digits, counts)
            rows = load(sums[code[own + COUNTED]], i) if load(filled, i) != 0 else 0
            if rows == 0 and code[own + NULLABLE] != 0:
                store(new[code[own + PLACE]], i, WORD_MIN)
            elif rows == 0 and code[own + IS_MEAN] != 0:
                return DECLINED
            else:
                store(new[code[own + PLACE]], i, real_word(rounded_sum(digits, counts), rows, code[own + IS_MEAN] != 0))
        row = end
    return DONE
