"""Instructions of level programs that read nested values: fields of STRUCTs as columns, and the elements of ARRAYs as rows."""

from __future__ import annotations

from deltic.kernels.compiler import part
from deltic.kernels.instructions import (
    DECLINED,
    DONE,
    ENTRY_COUNT_ELEMENTS,
    ENTRY_READ_ELEMENTS,
    ENTRY_READ_FIELDS,
    FULL,
    HEADER,
    INDEX,
    ORDER,
    ROWS,
    allot,
    borrow,
    set_empty,
    take,
)
from deltic.kernels.linked import call
from deltic.kernels.memory import Words, load, store


@part
def fields(code: Words, at: int, registers: Words, state: Words, entries: Words) -> int:
    """out, source, columns, weights, word of the STRUCTs, words of the fields, fields, then their paths: the rows with these words last."""
    out, source, columns, weights, word, added = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4], code[at + 5]
    n = registers[source + ROWS]
    if n == 0:
        set_empty(registers, out)
        return DONE
    for c in range(columns):
        registers[out + HEADER + c] = registers[source + HEADER + c]
    for c in range(added):
        column = take(state, n)
        if column == 0:
            return FULL
        registers[out + HEADER + columns + c] = column
    for w in range(weights):
        registers[out + HEADER + columns + added + w] = registers[source + HEADER + columns + w]
    registers[out + ORDER], registers[out + ROWS], registers[out + INDEX] = 0, n, 0
    targets = registers[out + HEADER + columns : out + HEADER + columns + added]
    arguments = (state, registers[source + HEADER + word], n, code, at + 7, code[at + 6], targets)
    return DONE if call(entries[ENTRY_READ_FIELDS], arguments) == 0 else DECLINED


@part
def unnest(code: Words, at: int, registers: Words, state: Words, entries: Words) -> int:
    """out, its columns, source, columns, weights, word of the ARRAYs, bytes of an element, its form, whether rows without elements remain,
    whether positions are wanted, words that are repeated, each: the rows, once for each element, with position and element last."""
    out, width, source, columns, weights, word = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4], code[at + 5]
    size, form, outer, positions, carried = code[at + 6], code[at + 7], code[at + 8], code[at + 9], code[at + 10]
    n = registers[source + ROWS]
    if n == 0:
        set_empty(registers, out)
        return DONE
    begins = borrow(state, 2 * n)
    if begins == 0:
        return FULL
    counts = begins + 8 * n
    rows = call(entries[ENTRY_COUNT_ELEMENTS], (state, registers[source + HEADER + word], n, size, outer, begins, counts))
    if rows < 0:
        return DECLINED
    if rows == 0:
        set_empty(registers, out)
        return DONE
    if not allot(registers, out, width + weights, rows, state):
        return FULL
    for c in range(carried + weights):
        column = registers[source + HEADER + (code[at + 11 + c] if c < carried else columns + c - carried)]
        target, row = registers[out + HEADER + (c if c < carried else width + c - carried)], 0
        for i in range(n):
            repeated = load(column, i)
            for _ in range(load(counts, i)):
                store(target, row, repeated)
                row += 1
    places = registers[out + HEADER + carried] if positions else 0
    targets = registers[out + HEADER + carried + positions : out + HEADER + width]
    outcome = call(entries[ENTRY_READ_ELEMENTS], (begins, counts, n, size, form, places, targets))
    return DONE if outcome == 0 else DECLINED
