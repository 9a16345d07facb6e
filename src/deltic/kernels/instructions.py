"""The instructions of a level program, and the memory that they work on: what `level.py` runs.

A register holds rows: their order, how many, the address of their index, then the addresses of columns and of weights. All registers of a
program are in one array, and an instruction names one by its first word there. What an instruction writes is allocated in the arena: the
content of registers from its low end, and what only the current node needs from its high end, where `begin` frees it.

An instruction is its opcode, its length and its operands; counts in it say how many words follow. `deltic.circuit.programs` describes each.
An instruction that cannot go on as the operator's `step` would (a user's error, an overflow, pages to verify) declines: the runner then
calls the `step` of its node. So every error is raised in one place.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.memory import Words, load, store

ORDER, ROWS, INDEX, HEADER = range(4)
"""Words of a register: 2 if its rows are a batch, else 0; how many; the address of their index, or 0. And how many words precede the
addresses of columns and weights. From ROWS on it is an entry of a directory."""

BATCH = 2
"""The order of a batch; that of `sortedness`."""

END, BEGIN, FINISH, STEP, APPEND, JUMP, JUMP_UNLESS = range(7)
SELECT, WEIGH, SORT, INDEXED, CHECK_LIGHT, CONCATENATE, NEGATE, TOUCH, FILTER, COMPUTE, FIELDS, UNNEST, TAKE_APART = range(7, 20)
FIRST_OF_SPINES = 32
CHECK_PRESENT, CHECK_KEYS, MATCH, KEEP_PRESENT, FLIP, REWEIGH, AGGREGATE, RESOLVE, EXTREMES, FIRST_ROWS, LOOP, RECUR = range(
    FIRST_OF_SPINES, FIRST_OF_SPINES + 12
)
"""The opcodes; those from FIRST_OF_SPINES on read spines."""

PC, NODE, ARENA, WORDS, LOW, HIGH, NEEDED, APPENDED, KEPT, SKIP, STARTED, STRINGS = range(12)
STATE = STRINGS + 5
"""Words of the runner's state: where the current node begins; its number; the address of the arena, its words, those used at its low end,
and those left before its high end is used; the words needed if it is full; how many registers are to be kept, and the words of their rows
and indexes; the end of the node's instructions; the cycle at which it began; the strings of the state (`find_strings` of the runner). And
how many words that are; the ids of texts follow."""

RAN, ROWS_IN, ROWS_OUT, ROWS_TOUCHED, BATCHES, CYCLES, COUNTERS = range(7)
"""Words of a node's counters. And how many words that are."""

SPINE_DIRECTORY, SPINE_BATCHES, SPINE_SOUGHT, SPINE_SHARED, SPINE = range(5)
"""Words of a spine: the address of its directory; its batches, or -1 if pages of them must be verified before they are read; keys that were
sought; whether it may also hold rows of other shards. And how many words that are."""

SLOT, REGISTER, WIDTH, KEPT_REGISTER = range(4)
"""Words of a register that is to be kept: the slot of what it is appended to; its start; how many columns and weights. And how
many words that are."""

DONE, FULL, DECLINED, STEPPED = range(4)
"""Why the runner returns: the program has ended; the arena is full; an instruction has declined; it is the turn of a node's `step`."""

ENTRY_SORTEDNESS, ENTRY_CONSOLIDATE, ENTRY_BUILD_INDEX, ENTRY_LOOKUP, ENTRY_SEEK, ENTRY_EXPAND, ENTRY_EVALUATE, ENTRY_RESOLVE = range(8)
ENTRY_READ_FIELDS, ENTRY_COUNT_ELEMENTS, ENTRY_READ_ELEMENTS, ENTRY_MEAN, ENTRY_FIRST, ENTRY_EXTREMES = range(8, 14)
ENTRY_SPLIT, ENTRY_TAKE_APART, ENTRY_FIRST_ROWS, ENTRY_LOOP, ENTRY_FIXPOINT, ENTRY_RECUR, ENTRY_RECURSION = range(14, 21)
"""The addresses of the kernels that instructions call."""

WORD, CONSTANT = range(2)
"""Operands of SELECT: (WORD, position in the input), (CONSTANT, value)."""

COUNT_ROWS, WHOLE, HALVES = range(3)
"""Measures of WEIGH: the weight itself; times a word; times the two halves of a word."""

RESULT_COUNT, RESULT_TOTAL, RESULT_JOINED, RESULT_DECIMAL, RESULT_MEAN, RESULT_ROUNDED_MEAN, RESULT_QUOTIENT, RESULT_EXTREME = range(8)
"""Results of AGGREGATE: a count; a total of one word; a total of two halves, or of the limbs of a decimal; the mean of a total of one word,
or of two halves, as a double; the mean of decimals; words that EXTREMES has written."""
RESULT = 14
"""Words of a result: its kind, the weight of its sum, the weight that counts, whether it may be NULL; of a decimal how many limbs it has,
the words of the least magnitude that does not fit, high and low, and whether its value takes two words; of a mean of decimals also the
operands of `decimals.mean`. Of an extreme: its kind, and how many words it has."""

DISTINCT, EXCEPT, EXCEPT_ALL, INTERSECT, INTERSECT_ALL = range(5)
"""Rules of REWEIGH."""

ONE = -1
"""A word of a key that is not in the rows: the constant 1."""

ONES = -2
"""Instead of the position of a weight of SELECT: all 1."""


@part
def take(state: Words, words: int) -> int:
    """The address of new words at the low end of the arena; 0 if it is full."""
    if state[LOW] + words > state[HIGH]:
        state[NEEDED] = words
        return 0
    start = state[LOW]
    state[LOW] = start + words
    return np.int64(state[ARENA] + 8 * start)


@part
def borrow(state: Words, words: int) -> int:
    """The address of new words that are free again after the node; 0 if the arena is full."""
    if state[LOW] + words > state[HIGH]:
        state[NEEDED] = words
        return 0
    state[HIGH] -= words
    return np.int64(state[ARENA] + 8 * state[HIGH])


@part
def block(words: int, n: int, state: Words) -> Words:
    """The addresses of so many borrowed columns of n words, from 0 on if the arena is full."""
    table, start = np.zeros(words, np.int64), borrow(state, words * n + 1)
    for c in range(words):
        table[c] = start + 8 * c * n if start != 0 else 0
    return table


@part
def copy_words(target: int, source: int, n: int) -> None:
    for i in range(n):
        store(target, i, load(source, i))


@part
def fill(target: int, word: int, n: int) -> None:
    for i in range(n):
        store(target, i, word)


@part
def set_empty(registers: Words, out: int) -> None:
    registers[out + ORDER], registers[out + ROWS], registers[out + INDEX] = BATCH, 0, 0


@part
def allot(registers: Words, out: int, width: int, rows: int, state: Words) -> bool:
    """Gives the register new columns and weights, `width` in all, with room for `rows`; False if the arena is full."""
    start = take(state, width * rows)
    if start == 0:
        return False
    for c in range(width):
        registers[out + HEADER + c] = start + 8 * c * rows
    registers[out + ORDER], registers[out + ROWS], registers[out + INDEX] = 0, rows, 0
    return True


@part
def count_read(counters: Words, state: Words, spines: Words, spine: int, keys: int, batches: int, touched: int) -> None:
    """Counts what a reader of a spine did."""
    own = COUNTERS * state[NODE]
    counters[own + ROWS_TOUCHED] += touched
    counters[own + BATCHES] += batches
    spines[SPINE * spine + SPINE_SOUGHT] += keys
