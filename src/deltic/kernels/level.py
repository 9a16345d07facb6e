"""The runner of level programs: one kernel, compiled once, that interprets the instructions of any level.

`instructions.py` says what a program works on. The runner returns when the program has ended, when the arena is full (it is called again
with a larger one, and starts the node again), when an instruction declines, and when a node has no instructions of its own; in the last two
cases the operator's `step` computes the node's register, and the runner is called again to resume after it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from deltic.kernels import (
    decimals,
    evaluation,
    fixpoint,
    floats,
    level_digits,
    level_extremes,
    level_first_rows,
    level_loops,
    level_recursions,
    nested_words,
    ordered,
    read,
    recursion,
    sort,
)
from deltic.kernels import index as index_kernels
from deltic.kernels import resolve as operations
from deltic.kernels.compiler import kernel, part
from deltic.kernels.index import index_length
from deltic.kernels.instructions import (
    AGGREGATE,
    APPEND,
    BEGIN,
    CHECK_KEYS,
    CHECK_LIGHT,
    CHECK_PRESENT,
    COMPUTE,
    CONCATENATE,
    COUNTERS,
    CYCLES,
    DONE,
    END,
    ENTRY_EXTREMES,
    ENTRY_FIRST_ROWS,
    ENTRY_FIXPOINT,
    ENTRY_LOOP,
    ENTRY_RECUR,
    ENTRY_RECURSION,
    ENTRY_TAKE_APART,
    EXTREMES,
    FIELDS,
    FILTER,
    FINISH,
    FIRST_OF_SPINES,
    FIRST_ROWS,
    FLIP,
    HEADER,
    HIGH,
    INDEX,
    JUMP,
    JUMP_UNLESS,
    KEEP_PRESENT,
    KEPT_REGISTER,
    LOOP,
    MATCH,
    NEGATE,
    NODE,
    PC,
    RAN,
    RECUR,
    REGISTER,
    RESOLVE,
    ROWS,
    ROWS_IN,
    ROWS_OUT,
    SELECT,
    SKIP,
    SORT,
    STARTED,
    STEP,
    STEPPED,
    TAKE_APART,
    TOUCH,
    UNNEST,
    WEIGH,
    WIDTH,
    WORDS,
    copy_words,
    set_empty,
)
from deltic.kernels.level_groups import aggregate, reweigh
from deltic.kernels.level_joins import flip, keep_present, match
from deltic.kernels.level_nested import fields, unnest
from deltic.kernels.level_rows import (
    append,
    check_keys,
    check_light,
    check_present,
    concatenate,
    index,
    negate,
    select,
    touch,
    weigh,
)
from deltic.kernels.level_rows import (
    sort as sort_instruction,
)
from deltic.kernels.level_scalars import compute_columns, filter_rows
from deltic.kernels.level_tables import are_all, resolve
from deltic.kernels.linked import call, cycles, entry_of
from deltic.kernels.memory import Words
from deltic.kernels.merge import DIRECTORY_HEADER


@part
def begin(code: Words, pc: int, registers: Words, state: Words, counters: Words) -> int:
    """node, out, eager, the end of its instructions, inputs, each: the next instruction, past the node if it has no rows."""
    node, out, eager, skip, inputs = code[pc + 2], code[pc + 3], code[pc + 4], code[pc + 5], code[pc + 6]
    rows = 0
    for i in range(inputs):
        rows += registers[code[pc + 7 + i] + ROWS]
    if rows == 0 and not eager:
        set_empty(registers, out)
        return np.int64(skip)
    own = COUNTERS * node
    for c in range(COUNTERS):
        counters[own + c] = 0
    counters[own + RAN], counters[own + ROWS_IN] = 1, rows
    state[NODE], state[PC], state[SKIP], state[HIGH], state[STARTED] = node, pc, skip, state[WORDS], cycles()
    return np.int64(pc + code[pc + 1])


@part
def rows_instruction(opcode: int, code: Words, at: int, registers: Words, state: Words, counters: Words, entries: Words) -> int:
    """An instruction that reads no spine."""
    if opcode == SELECT:
        return select(code, at, registers, state)
    if opcode == SORT:
        return sort_instruction(code, at, registers, state, entries)
    if opcode == TOUCH:
        return touch(code, at, registers, state, counters)
    if opcode == WEIGH:
        return weigh(code, at, registers, state)
    if opcode == CHECK_LIGHT:
        return check_light(code, at, registers)
    if opcode == CONCATENATE:
        return concatenate(code, at, registers, state)
    if opcode == NEGATE:
        return negate(code, at, registers, state)
    if opcode == FILTER:
        return filter_rows(code, at, registers, state, entries)
    if opcode == COMPUTE:
        return compute_columns(code, at, registers, state, entries)
    if opcode == FIELDS:
        return fields(code, at, registers, state, entries)
    if opcode == UNNEST:
        return unnest(code, at, registers, state, entries)
    if opcode == TAKE_APART:
        return call(entries[ENTRY_TAKE_APART], (code, at, registers, state, entries))
    return index(code[at], code[at + 1], registers, state, entries)


@part
def spine_instruction(
    opcode: int, code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words
) -> int:
    """An instruction that reads spines."""
    if opcode == MATCH:
        return match(code, at, registers, spines, state, counters, entries)
    if opcode == AGGREGATE:
        return aggregate(code, at, registers, spines, state, counters, entries)
    if opcode == CHECK_PRESENT:
        return check_present(code, at, registers, spines, state, counters, entries)
    if opcode == CHECK_KEYS:
        return check_keys(code, at, registers, spines, state, counters, entries)
    if opcode == RESOLVE:
        return resolve(code, at, registers, spines, state, counters, entries)
    if opcode == KEEP_PRESENT:
        return keep_present(code, at, registers, spines, state, counters, entries)
    if opcode == EXTREMES:
        return call(entries[ENTRY_EXTREMES], (code, at, registers, spines, state, counters, entries))
    if opcode == FIRST_ROWS:
        return call(entries[ENTRY_FIRST_ROWS], (code, at, registers, spines, state, counters, entries))
    if opcode == LOOP:
        return call(entries[ENTRY_LOOP], (code, at, registers, spines, state, counters, entries))
    if opcode == RECUR:
        return call(entries[ENTRY_RECUR], (code, at, registers, spines, state, counters, entries))
    if opcode == FLIP:
        return flip(code, at, registers, spines, state, counters, entries)
    return reweigh(code, at, registers, spines, state, counters, entries)


@kernel("int64(int64[::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def run(code: Words, pc: int, registers: Words, spines: Words, state: Words, counters: Words, appended: Words, entries: Words) -> int:
    """Runs the program from `pc`; returns why it stops. The state says where: at the node that must be begun again, or whose turn it is."""
    while True:
        opcode = code[pc]
        if opcode == BEGIN:
            pc = begin(code, pc, registers, state, counters)
            continue
        if opcode == FINISH:
            own = COUNTERS * state[NODE]
            counters[own + ROWS_OUT] = registers[code[pc + 2] + ROWS]
            counters[own + CYCLES] = cycles() - state[STARTED]
            pc += code[pc + 1]
            continue
        if opcode == JUMP:
            pc = np.int64(code[pc + 2])
            continue
        if opcode == JUMP_UNLESS:
            pc = np.int64(pc + code[pc + 1] if are_all(code, pc + 3, registers) else code[pc + 2])
            continue
        if opcode == END:
            return DONE
        if opcode == STEP:
            return STEPPED
        if opcode == APPEND:
            outcome = append(code, pc + 2, registers, state, entries, appended)
        elif opcode >= FIRST_OF_SPINES:
            outcome = spine_instruction(opcode, code, pc + 2, registers, spines, state, counters, entries)
        else:
            outcome = rows_instruction(opcode, code, pc + 2, registers, state, counters, entries)
        if outcome != DONE:
            return outcome
        pc += code[pc + 1]


@kernel("int64(int64[::1], int64[::1], int64, int64, int64, int64[::1])")
def keep(registers: Words, kept: Words, count: int, indexed: int, target: int, entries: Words) -> int:
    """Copies registers, with their indexes if `indexed`, to `target` one after another, and writes their entries of directories."""
    entry = 0
    for i in range(count):
        register, width = kept[KEPT_REGISTER * i + REGISTER], kept[KEPT_REGISTER * i + WIDTH]
        rows = registers[register + ROWS]
        entries[entry], entries[entry + 1] = rows, 0
        for c in range(width):
            copy_words(target, registers[register + HEADER + c], rows)
            entries[entry + DIRECTORY_HEADER + c] = target
            target += 8 * rows
        if indexed and registers[register + INDEX] != 0:
            words = index_length(registers[register + INDEX])
            copy_words(target, registers[register + INDEX], words)
            entries[entry + 1] = target
            target += 8 * words
        entry += DIRECTORY_HEADER + width
    return entry


@kernel("int64()", nogil=False)
def now() -> int:
    """The clock by which `run` measures nodes."""
    return cycles()


def entries() -> Words:
    """The addresses of the kernels that `run` calls; 0 of those that `load` adds."""
    if not ENTRIES[0]:
        for entry in reversed(range(len(CALLED))):  # the first one at last: another thread that sees it finds all
            ENTRIES[entry] = entry_of(CALLED[entry])
    return ENTRIES


def load(opcode: int) -> None:
    """Loads what an instruction calls that few sessions have, or compiles it."""
    for entry in CALLED_BY[opcode]:
        ENTRIES[entry] = entry_of(ADDED[entry])


CALLED: Final = (
    sort.sortedness,
    sort.consolidate,
    index_kernels.build_index,
    read.lookup,
    read.seek,
    read.expand,
    evaluation.evaluate,
    operations.resolve,
    nested_words.read_fields,
    nested_words.count_elements,
    nested_words.read_elements,
    decimals.mean,
    ordered.first,
    level_extremes.extremes,
    floats.split_products,
    level_digits.take_apart,
    level_first_rows.first_rows,
)
"""In the order of the ENTRY constants."""
ADDED: Final = {
    ENTRY_LOOP: level_loops.loop,
    ENTRY_FIXPOINT: fixpoint.fixpoint,
    ENTRY_RECUR: level_recursions.recur,
    ENTRY_RECURSION: recursion.recursion,
}
CALLED_BY: Final = {LOOP: (ENTRY_LOOP, ENTRY_FIXPOINT), RECUR: (ENTRY_RECUR, ENTRY_RECURSION)}
ENTRIES: Final[Words] = np.zeros(len(CALLED) + len(ADDED), np.int64)
"""By the ENTRY constants. One array: threads that load at the same time write the same."""
