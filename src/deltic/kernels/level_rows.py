"""Instructions of level programs over rows: order, columns, weights, and the checks of a table's change."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.index import BY_SECOND, index_length, index_room, index_words
from deltic.kernels.instructions import (
    APPENDED,
    BATCH,
    CONSTANT,
    COUNT_ROWS,
    COUNTERS,
    DECLINED,
    DONE,
    ENTRY_BUILD_INDEX,
    ENTRY_CONSOLIDATE,
    ENTRY_EXPAND,
    ENTRY_LOOKUP,
    ENTRY_SEEK,
    ENTRY_SORTEDNESS,
    FULL,
    HALVES,
    HEADER,
    INDEX,
    KEPT,
    KEPT_REGISTER,
    NODE,
    ONES,
    ORDER,
    REGISTER,
    ROWS,
    ROWS_TOUCHED,
    SLOT,
    SPINE,
    SPINE_BATCHES,
    SPINE_DIRECTORY,
    WIDTH,
    allot,
    block,
    borrow,
    copy_words,
    count_read,
    fill,
    set_empty,
    take,
)
from deltic.kernels.linked import call, words_at
from deltic.kernels.memory import Words, load, product_overflows, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import HIT, MATCHES, REPORT, TOUCHED

LIGHT = 1 << 40
"""As LARGE of the operator trace_append: heavier weights are checked against the state."""
LOW_HALF = 0xFFFFFFFF

room_of = part(index_room)


@part
def stored_rows(
    directory_at: int, batches: int, columns: int, keys: Words, key: int, n: int, wanted: Words, state: Words, report: Words, entries: Words
) -> Words:
    """The addresses of the rows of some batches, with one weight, that begin with one of n keys: the number of the key, ascending, and the
    wanted columns and weights. The first is 0 if the arena is full; the report has how many rows there are."""
    stride = DIRECTORY_HEADER + columns + 1
    directory, hits = words_at(directory_at, batches * stride), block(HIT, n * batches, state)
    if hits[0] == 0:
        return hits
    report[:] = 0
    count = call(entries[ENTRY_SEEK], (directory, batches, columns, 1, keys, key, n, hits, report))
    rows = block(1 + len(wanted), report[MATCHES], state)
    if rows[0] != 0:
        call(entries[ENTRY_EXPAND], (directory, stride, hits, count, wanted, len(wanted), rows))
    return rows


@part
def same_rows(registers: Words, out: int, source: int, width: int) -> None:
    """The register shares the columns and weights of another."""
    for c in range(HEADER + width):
        registers[out + c] = registers[source + c]


@part
def sort(code: Words, at: int, registers: Words, state: Words, entries: Words) -> int:
    """out, source, columns, weights: the rows in order, equal ones added."""
    out, source, columns, weights = code[at], code[at + 1], code[at + 2], code[at + 3]
    width, n = columns + weights, registers[source + ROWS]
    if n == 0:
        set_empty(registers, out)
        return DONE
    if registers[source + ORDER] == BATCH:
        same_rows(registers, out, source, width)
        return DONE
    table = registers[source + HEADER : source + HEADER + width]
    order = call(entries[ENTRY_SORTEDNESS], (table, columns, weights, n))
    if order == BATCH:
        same_rows(registers, out, source, width)
        registers[out + ORDER], registers[out + INDEX] = BATCH, 0
        return DONE
    if not allot(registers, out, width, n, state):
        return FULL
    target = registers[out + HEADER : out + HEADER + width]
    rows = call(entries[ENTRY_CONSOLIDATE], (table, columns, weights, n, target, order))
    if rows < 0:
        return DECLINED
    registers[out + ORDER], registers[out + ROWS] = BATCH, rows
    return DONE


@part
def index(register: int, columns: int, registers: Words, state: Words, entries: Words) -> int:
    """Builds the index of a batch that has none."""
    n = registers[register + ROWS]
    if n == 0 or columns == 0 or registers[register + INDEX] != 0:
        return DONE
    room = room_of(n)
    words = index_words(room, BY_SECOND)
    start = take(state, words)
    if start == 0:
        return FULL
    fill(start, 0, words)
    second = registers[register + HEADER + 1] if columns > 1 else 0
    call(entries[ENTRY_BUILD_INDEX], (registers[register + HEADER], second, n, start, room))
    registers[register + INDEX] = start
    return DONE


@part
def append(code: Words, at: int, registers: Words, state: Words, entries: Words, appended: Words) -> int:
    """slot, source, columns, weights: the batch is to be appended to an arrangement."""
    slot, source, columns = code[at], code[at + 1], code[at + 2]
    if registers[source + ROWS] == 0:
        return DONE
    outcome = index(source, columns, registers, state, entries)
    if outcome == DONE:
        width, kept = columns + code[at + 3], KEPT_REGISTER * state[APPENDED]
        appended[kept + SLOT], appended[kept + REGISTER], appended[kept + WIDTH] = slot, source, width
        state[APPENDED] += 1
        state[KEPT] += width * registers[source + ROWS]
        if registers[source + INDEX] != 0:
            state[KEPT] += index_length(registers[source + INDEX])
    return outcome


@part
def select(code: Words, at: int, registers: Words, state: Words) -> int:
    """out, source, source columns, keeps the order, weights, the position of each (-1: zeros; ONES), columns, the operands of each."""
    out, source, source_columns, ordered, weights = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4]
    at += 5
    n, columns = registers[source + ROWS], code[at + weights]
    zeros = 0
    for w in range(weights):
        position = code[at + w]
        if position >= 0:
            registers[out + HEADER + columns + w] = registers[source + HEADER + source_columns + position]
            continue
        if position == ONES:
            ones = take(state, n)
            if ones == 0:
                return FULL
            fill(ones, 1, n)
            registers[out + HEADER + columns + w] = ones
            continue
        if zeros == 0:
            zeros = take(state, n)
            if zeros == 0:
                return FULL
            fill(zeros, 0, n)
        registers[out + HEADER + columns + w] = zeros
    at += weights + 1
    for c in range(columns):
        if code[at + 2 * c] == CONSTANT:
            column = take(state, n)
            if column == 0:
                return FULL
            fill(column, code[at + 2 * c + 1], n)
            registers[out + HEADER + c] = column
        else:
            registers[out + HEADER + c] = registers[source + HEADER + code[at + 2 * c + 1]]
    registers[out + ORDER] = registers[source + ORDER] if ordered else 0
    registers[out + ROWS], registers[out + INDEX] = n, registers[source + INDEX] if ordered else 0
    return DONE


@part
def weigh(code: Words, at: int, registers: Words, state: Words) -> int:
    """out, source, columns, measures, (kind, word) of each: the weight, then its product with each measure."""
    out, source, columns, measures = code[at], code[at + 1], code[at + 2], code[at + 3]
    at += 4
    n = registers[source + ROWS]
    weight = registers[source + HEADER + columns]
    for c in range(columns + 1):
        registers[out + HEADER + c] = registers[source + HEADER + c]
    slot = out + HEADER + columns + 1
    for m in range(measures):
        kind = code[at + 2 * m]
        if kind == COUNT_ROWS:
            registers[slot] = weight
            slot += 1
            continue
        column = registers[source + HEADER + code[at + 2 * m + 1]]
        halves = kind == HALVES
        target = take(state, n * (1 + np.int64(halves)))
        if target == 0:
            return FULL
        for i in range(n):
            word, w = load(column, i), load(weight, i)
            if halves:
                if product_overflows(word >> 32, w) or product_overflows(word & LOW_HALF, w):
                    return DECLINED
                store(target, i, (word >> 32) * w)
                store(target, n + i, (word & LOW_HALF) * w)
            else:
                if product_overflows(word, w):
                    return DECLINED
                store(target, i, word * w)
        registers[slot] = target
        slot += 1
        if halves:
            registers[slot] = target + 8 * n
            slot += 1
    registers[out + ORDER], registers[out + ROWS], registers[out + INDEX] = 0, n, 0
    return DONE


@part
def check_light(code: Words, at: int, registers: Words) -> int:
    """source, columns, weights: declines if a weight may overflow that of the state."""
    source, columns, weights = code[at], code[at + 1], code[at + 2]
    for w in range(weights):
        column = registers[source + HEADER + columns + w]
        for i in range(registers[source + ROWS]):
            word = load(column, i)
            if (word if word >= 0 else ~word) >= LIGHT:
                return DECLINED
    return DONE


@part
def concatenate(code: Words, at: int, registers: Words, state: Words) -> int:
    """out, width, inputs, each: all rows of all inputs."""
    out, width, inputs = code[at], code[at + 1], code[at + 2]
    at += 3
    n = full = last = 0
    for i in range(inputs):
        rows = registers[code[at + i] + ROWS]
        n += rows
        if rows > 0:
            full += 1
            last = code[at + i]
    if full == 0:
        set_empty(registers, out)
        return DONE
    if full == 1:
        same_rows(registers, out, last, width)
        return DONE
    if not allot(registers, out, width, n, state):
        return FULL
    start = 0
    for i in range(inputs):
        source = code[at + i]
        rows = registers[source + ROWS]
        if rows == 0:
            continue
        for c in range(width):
            copy_words(registers[out + HEADER + c] + 8 * start, registers[source + HEADER + c], rows)
        start += rows
    return DONE


@part
def negate(code: Words, at: int, registers: Words, state: Words) -> int:
    """out, source, columns, weights: every weight times -1."""
    out, source, columns, weights = code[at], code[at + 1], code[at + 2], code[at + 3]
    n = registers[source + ROWS]
    target = take(state, n * weights)
    if target == 0:
        return FULL
    for c in range(columns):
        registers[out + HEADER + c] = registers[source + HEADER + c]
    for w in range(weights):
        column = registers[source + HEADER + columns + w]
        for i in range(n):
            word = load(column, i)
            if product_overflows(word, np.int64(-1)):
                return DECLINED
            store(target, i, -word)
        registers[out + HEADER + columns + w] = target
        target += 8 * n
    registers[out + ORDER], registers[out + ROWS], registers[out + INDEX] = 0, n, 0
    return DONE


@part
def sum_weights(
    spine: int,
    columns: int,
    weights: int,
    keys: Words,
    width: int,
    n: int,
    target: Words,
    spines: Words,
    state: Words,
    counters: Words,
    entries: Words,
) -> bool:
    """target[w][i] = weight w of key i in a spine; False on overflow."""
    batches = spines[SPINE * spine + SPINE_BATCHES]
    directory = words_at(spines[SPINE * spine + SPINE_DIRECTORY], batches * (DIRECTORY_HEADER + columns + weights))
    report = np.zeros(REPORT, np.int64)
    if call(entries[ENTRY_LOOKUP], (directory, batches, columns, weights, keys, width, n, target, report)) < 0:
        return False
    count_read(counters, state, spines, spine, n, batches, report[TOUCHED])
    return True


@part
def check_present(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """source, columns, spine: declines if a removed row is not in the spine as often as it is removed."""
    source, columns, spine = code[at], code[at + 1], code[at + 2]
    n, weight = registers[source + ROWS], registers[source + HEADER + columns]
    removed = 0
    for i in range(n):
        removed += np.int64(load(weight, i) < 0)
    if removed == 0:
        return DONE
    if spines[SPINE * spine + SPINE_BATCHES] < 0:
        return DECLINED
    start = borrow(state, (columns + 2) * removed + columns + 1)
    if start == 0:
        return FULL
    table = words_at(start, columns + 1)
    for c in range(columns + 1):
        table[c] = start + 8 * (columns + 1 + c * removed)
    change, m = table[columns] + 8 * removed, 0
    for i in range(n):
        if load(weight, i) < 0:
            for c in range(columns):
                store(table[c], m, load(registers[source + HEADER + c], i))
            store(change, m, load(weight, i))
            m += 1
    if not sum_weights(spine, columns, 1, table[:columns], columns, m, table[columns:], spines, state, counters, entries):
        return DECLINED
    for i in range(m):
        total, word = load(table[columns], i), load(change, i)
        if total + word < 0 or word < -LIGHT:
            return DECLINED
    return DONE


@part
def check_keys(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """source, columns, spine, key: declines if a primary key would have two rows. The rows are a batch."""
    source, columns, spine, key = code[at], code[at + 1], code[at + 2], code[at + 3]
    n, weight = registers[source + ROWS], registers[source + HEADER + columns]
    start = borrow(state, (key + 2) * n + key + 1)
    if start == 0:
        return FULL
    table = words_at(start, key + 1)
    for c in range(key + 1):
        table[c] = start + 8 * (key + 1 + c * n)
    change, m, i = table[key] + 8 * n, 0, 0
    while i < n:
        net, j = load(weight, i), i + 1
        while j < n:
            same = True
            for c in range(key):
                column = registers[source + HEADER + c]
                same &= load(column, i) == load(column, j)
            if not same:
                break
            net += load(weight, j)
            j += 1
        if net > 0:
            for c in range(key):
                store(table[c], m, load(registers[source + HEADER + c], i))
            store(change, m, net)
            m += 1
        i = j
    if m == 0:
        return DONE
    if spines[SPINE * spine + SPINE_BATCHES] < 0:
        return DECLINED
    if not sum_weights(spine, columns, 1, table[:key], key, m, table[key:], spines, state, counters, entries):
        return DECLINED
    for i in range(m):
        if load(table[key], i) + load(change, i) > 1:
            return DECLINED
    return DONE


@part
def touch(code: Words, at: int, registers: Words, state: Words, counters: Words) -> int:
    """source: its rows count as touched."""
    counters[COUNTERS * state[NODE] + ROWS_TOUCHED] += registers[code[at] + ROWS]
    return DONE
