"""Instructions of level programs that evaluate expressions: the rows on which a predicate is TRUE, and columns that are computed."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.instructions import (
    CONSTANT,
    DECLINED,
    DONE,
    ENTRY_EVALUATE,
    FULL,
    HEADER,
    INDEX,
    ORDER,
    ROWS,
    borrow,
    fill,
    set_empty,
    take,
)
from deltic.kernels.level_rows import same_rows
from deltic.kernels.linked import call
from deltic.kernels.memory import Words, load, store
from deltic.kernels.scalars import BLOCK, LANE


@part
def evaluated(
    code: Words, at: int, registers: Words, source: int, width: int, out: int, outs: int, positions: int, state: Words, entries: Words
) -> tuple[int, int]:
    """(the outcome, the rows kept) of the operations at `at`: lanes, operations, the words of each."""
    lanes, n = code[at], registers[source + ROWS]
    block = min(n, BLOCK)
    start = borrow(state, LANE * lanes * (1 + block))
    if start == 0:
        return FULL, 0
    fill(start, 0, LANE * lanes)
    columns, written = registers[source + HEADER : source + HEADER + width], registers[out + HEADER : out + HEADER + outs]
    arguments = (code, np.int64(at + 2), code[at + 1], start, lanes, block, columns, written, state, n, positions)
    kept = call(entries[ENTRY_EVALUATE], arguments)
    return (DECLINED, 0) if kept < 0 else (DONE, kept)


@part
def filter_rows(code: Words, at: int, registers: Words, state: Words, entries: Words) -> int:
    """out, source, columns, weights, columns that are read later, each of them, then the operations."""
    out, source, columns, weights, needed = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4]
    n, width = registers[source + ROWS], columns + weights
    if n == 0:
        set_empty(registers, out)
        return DONE
    positions = borrow(state, n)
    if positions == 0:
        return FULL
    outcome, kept = evaluated(code, at + 5 + needed, registers, source, width, source, 0, positions, state, entries)
    if outcome != DONE:
        return outcome
    if kept in (n, 0):
        same_rows(registers, out, source, width)
        if kept == 0:
            set_empty(registers, out)
        return DONE
    for c in range(needed + weights):
        word = code[at + 5 + c] if c < needed else columns + c - needed
        column, target = registers[source + HEADER + word], take(state, kept)
        if target == 0:
            return FULL
        for i in range(kept):
            store(target, i, load(column, load(positions, i)))
        registers[out + HEADER + word] = target
    registers[out + ORDER] = registers[source + ORDER] if needed == columns else 0
    registers[out + ROWS], registers[out + INDEX] = kept, 0
    return DONE


@part
def compute_columns(code: Words, at: int, registers: Words, state: Words, entries: Words) -> int:
    """out, its columns, source, columns, weights, columns that are moved, (target, kind, word) of each, columns that are computed, each of
    them, then the operations, which write these."""
    out, out_columns, source, columns, weights = code[at], code[at + 1], code[at + 2], code[at + 3], code[at + 4]
    n, moved = registers[source + ROWS], code[at + 5]
    if n == 0:
        set_empty(registers, out)
        return DONE
    at += 6
    for c in range(moved):
        target, word = code[at + 3 * c], code[at + 3 * c + 2]
        if code[at + 3 * c + 1] == CONSTANT:
            column = take(state, n)
            if column == 0:
                return FULL
            fill(column, word, n)
        else:
            column = registers[source + HEADER + word]
        registers[out + HEADER + target] = column
    at += 3 * moved
    for c in range(code[at]):
        column = take(state, n)
        if column == 0:
            return FULL
        registers[out + HEADER + code[at + 1 + c]] = column
    for w in range(weights):
        registers[out + HEADER + out_columns + w] = registers[source + HEADER + columns + w]
    outcome, _ = evaluated(code, at + 1 + code[at], registers, source, columns, out, out_columns, 0, state, entries)
    registers[out + ORDER], registers[out + ROWS], registers[out + INDEX] = 0, n, 0
    return outcome
