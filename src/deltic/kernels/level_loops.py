"""The instruction of level programs for a linear recursion of which a tick derives few rows: `fixpoint`, over registers and spines.

A kernel of its own, which `level.run` calls, and which is loaded for the first program that has the instruction.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels import fixpoint
from deltic.kernels.compiler import kernel, part
from deltic.kernels.fixpoint import (
    CHAIN,
    CHANGE_ROWS,
    DIVISION,
    KEY,
    MOST_DERIVATIONS,
    MOST_ROWS,
    MOVES,
    OTHER,
    OTHER_BATCHES,
    OTHER_CHANGE,
    OTHER_COLUMNS,
    RECURSIVE,
    RECURSIVE_BATCHES,
    RECURSIVE_COLUMNS,
    SHARES,
)
from deltic.kernels.instructions import (
    BATCHES,
    COUNTERS,
    DECLINED,
    DONE,
    ENTRY_FIXPOINT,
    FULL,
    HEADER,
    RAN,
    ROWS,
    ROWS_IN,
    ROWS_OUT,
    ROWS_TOUCHED,
    SPINE,
    SPINE_BATCHES,
    SPINE_DIRECTORY,
    SPINE_SHARED,
    SPINE_SOUGHT,
    allot,
    set_empty,
)
from deltic.kernels.linked import call_fixpoint
from deltic.kernels.memory import Words, load, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.seen import (
    CHANGES,
    DERIVATIONS,
    DERIVED,
    REPORT,
    SOUGHT_JOINS,
    SOUGHT_ROWS,
    TOUCHED_JOINS,
    TOUCHED_ROWS,
)

FEW = 1 << 12
"""The most rows of a change, and roughly of those that a tick derives: of more, the operator's `step` may divide the work among threads."""
MANY = 1 << 15
"""The most derivations of them: with more, the arena would be full again in each tick, and the instruction run twice."""

SUMS, DERIVATIONS_OUT, CHANGES_OUT, BASE, WIDTH, LIMIT, HASH_KEY, PAST, OF_ROWS, OF_JOINS, JOINS, HEAD = range(12)
"""Operands: the registers of the three results, and of the change at iteration 0; the words of a row; the most iterations; the key of the
hash; the spine of what was derived before; whose counters those of the rows and those of the joins are; how many joins. And how many these
are. The operands of each join follow, then how many moves there are, and each of these."""
JOIN_KEY, OTHER_SPINE, OTHER_WIDTH, CHANGE, RECURSIVE_SPINE, RECURSIVE_WIDTH, MOVES_FROM, JOIN = range(8)
"""Operands of a join: words of the key; the spine of the other relation, its columns and the register of its change; the spine of the
recursive relation and its columns; where its moves begin. And how many these are."""


@part
def readable(spine: int, spines: Words) -> bool:
    """Whether the spine may be read anywhere, and all of its rows are this shard's."""
    unshared: bool = spines[SPINE * spine + SPINE_BATCHES] >= 0 and spines[SPINE * spine + SPINE_SHARED] == 0
    return unshared


@part
def may_run(code: Words, at: int, spines: Words) -> bool:
    """Whether `fixpoint` may read the spines."""
    may = readable(code[at + PAST], spines)
    for n in range(code[at + JOINS]):
        join = at + HEAD + JOIN * n
        may &= readable(code[join + OTHER_SPINE], spines) and readable(code[join + RECURSIVE_SPINE], spines)
    return may


@part
def directory_words(spine: int, columns: int, spines: Words) -> int:
    """The length of a spine's directory, whose rows have one weight, with one more batch."""
    return np.int64((spines[SPINE * spine + SPINE_BATCHES] + 1) * (DIRECTORY_HEADER + columns + 1))


@part
def put_directory(directories: Words, end: int, spine: int, columns: int, spines: Words) -> int:
    """Copies the directory of a spine to position `end`; returns the position after it."""
    start = spines[SPINE * spine + SPINE_DIRECTORY]
    words = spines[SPINE * spine + SPINE_BATCHES] * (DIRECTORY_HEADER + columns + 1)
    for i in range(words):
        directories[end + i] = load(start, i)
    return np.int64(end + words)


@part
def put_change(directories: Words, end: int, change: int, columns: int, registers: Words) -> int:
    """Copies the part of a directory of the batch in a register, unless it is empty; returns the position after it."""
    if registers[change + ROWS] == 0:
        return end
    words = DIRECTORY_HEADER + columns + 1
    for i in range(words):
        directories[end + i] = registers[change + ROWS + i]
    return np.int64(end + words)


@part
def gathered_directories(code: Words, at: int, registers: Words, spines: Words) -> tuple[Words, Words]:
    """(all directories, that of past derivations first; the chains), as `fixpoint` takes them."""
    width, joins = code[at + WIDTH], code[at + JOINS]
    words = directory_words(code[at + PAST], width + 1, spines)
    for n in range(joins):
        join = at + HEAD + JOIN * n
        words += directory_words(code[join + OTHER_SPINE], code[join + OTHER_WIDTH], spines)
        words += directory_words(code[join + RECURSIVE_SPINE], code[join + RECURSIVE_WIDTH], spines)
    directories, chains = np.empty(words, np.int64), np.zeros((joins, CHAIN), np.int64)
    end = put_directory(directories, 0, code[at + PAST], width + 1, spines)
    for n in range(joins):
        join = at + HEAD + JOIN * n
        other, columns, change = code[join + OTHER_SPINE], code[join + OTHER_WIDTH], code[join + CHANGE]
        recursive, recursive_columns = code[join + RECURSIVE_SPINE], code[join + RECURSIVE_WIDTH]
        rows = registers[change + ROWS]
        chains[n, KEY], chains[n, MOVES] = code[join + JOIN_KEY], code[join + MOVES_FROM]
        chains[n, OTHER], chains[n, OTHER_COLUMNS], chains[n, CHANGE_ROWS] = end, columns, rows
        chains[n, OTHER_BATCHES] = spines[SPINE * other + SPINE_BATCHES] + np.int64(rows > 0)
        end = put_directory(directories, end, other, columns, spines)
        chains[n, OTHER_CHANGE] = end
        end = put_change(directories, end, change, columns, registers)
        chains[n, RECURSIVE], chains[n, RECURSIVE_COLUMNS] = end, recursive_columns
        chains[n, RECURSIVE_BATCHES] = spines[SPINE * recursive + SPINE_BATCHES]
        end = put_directory(directories, end, recursive, recursive_columns, spines)
    return directories, chains


@part
def put_rows(registers: Words, out: int, columns: Words, rows: int, state: Words) -> bool:
    """Copies the first rows of columns to a register; False if the arena is full."""
    if rows == 0:
        set_empty(registers, out)
        return True
    if not allot(registers, out, len(columns), rows, state):
        return False
    for c in range(len(columns)):
        for i in range(rows):
            store(registers[out + HEADER + c], i, columns[c, i])
    return True


@part
def count_nodes(code: Words, at: int, chains: Words, report: Words, spines: Words, counters: Words) -> None:
    """The counters of the scope's nodes, and the keys that were sought, as `Loop.run` counts them."""
    rows, joins, past = COUNTERS * code[at + OF_ROWS], COUNTERS * code[at + OF_JOINS], code[at + PAST]
    counters[rows + RAN], counters[joins + RAN] = 1, 1
    counters[rows + ROWS_IN], counters[rows + ROWS_OUT] = report[DERIVATIONS], report[CHANGES]
    counters[rows + ROWS_TOUCHED], counters[rows + BATCHES] = report[TOUCHED_ROWS], spines[SPINE * past + SPINE_BATCHES]
    counters[joins + ROWS_OUT], counters[joins + ROWS_TOUCHED] = report[DERIVED], report[TOUCHED_JOINS]
    counters[joins + BATCHES] = 0
    spines[SPINE * past + SPINE_SOUGHT] += report[SOUGHT_ROWS]
    for n in range(len(chains)):
        counters[joins + BATCHES] += chains[n, RECURSIVE_BATCHES] + chains[n, OTHER_BATCHES]
        spines[SPINE * code[at + HEAD + JOIN * n + OTHER_SPINE] + SPINE_SOUGHT] += report[SOUGHT_JOINS]


@kernel("int64(int64[::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def loop(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """The operands above: the results of a linear recursion."""
    sums, derivations, changes, base, width = (
        code[at + SUMS],
        code[at + DERIVATIONS_OUT],
        code[at + CHANGES_OUT],
        code[at + BASE],
        code[at + WIDTH],
    )
    joins, moves = code[at + JOINS], at + HEAD + JOIN * code[at + JOINS]
    given = registers[base + ROWS]
    for n in range(joins):
        given = max(given, registers[code[at + HEAD + JOIN * n + CHANGE] + ROWS])
    if given == 0:
        for out in (sums, derivations, changes):
            set_empty(registers, out)
        return DONE
    if given > FEW or not may_run(code, at, spines):
        return DECLINED
    directories, chains = gathered_directories(code, at, registers, spines)
    division, report, none = np.zeros(DIVISION, np.int64), np.zeros(REPORT, np.int64), np.empty(0, np.int64)
    division[SHARES], division[MOST_ROWS], division[MOST_DERIVATIONS] = 1, FEW, MANY
    outcome, derived, changed, summed, _ = call_fixpoint(
        entries[ENTRY_FIXPOINT],
        (
            directories,
            chains,
            code[moves + 1 : moves + 1 + code[moves]],
            registers[base + HEADER : base + HEADER + width + 1],
            registers[base + ROWS],
            0,
            spines[SPINE * code[at + PAST] + SPINE_BATCHES],
            width,
            code[at + LIMIT],
            division,
            code[at + HASH_KEY],
            none,
            none,
            report,
        ),
    )
    if outcome != fixpoint.DONE or report[DERIVATIONS] > MANY:
        return DECLINED
    if not (
        put_rows(registers, derivations, derived, report[DERIVATIONS], state)
        and put_rows(registers, changes, changed, report[CHANGES], state)
        and put_rows(registers, sums, summed, summed.shape[1], state)
    ):
        return FULL
    count_nodes(code, at, chains, report, spines, counters)
    return DONE
