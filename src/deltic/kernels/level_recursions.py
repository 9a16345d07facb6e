"""The instruction of level programs for a recursion of any relations of which a tick derives few rows: `recursion`, over registers and
spines.

A kernel of its own, which `level.run` calls, and which is loaded for the first program that has the instruction.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.added import ADDED, COLLECTION, ITERATION, WEIGHT, WORDS
from deltic.kernels.added import REPORT as REPORT_WORDS
from deltic.kernels.compiler import kernel, part
from deltic.kernels.fixpoint import DONE as SETTLED
from deltic.kernels.instructions import (
    COUNTERS,
    DECLINED,
    DONE,
    ENTRY_RECURSION,
    FULL,
    HEADER,
    RAN,
    ROWS,
    ROWS_IN,
    ROWS_OUT,
    ROWS_TOUCHED,
    SPINE,
    SPINE_BATCHES,
    SPINE_SOUGHT,
    allot,
    set_empty,
)
from deltic.kernels.level_loops import FEW, MANY, directory_words, put_change, put_directory, put_rows, readable
from deltic.kernels.linked import call_fixpoint
from deltic.kernels.memory import Words, store
from deltic.kernels.recursion import DERIVED_ITERATION, DERIVED_RELATION, DERIVED_WEIGHT, DERIVED_WORDS, OPERATION
from deltic.kernels.rules import (
    BATCHES,
    COLLECTION_WIDTH,
    COLLECTION_WORDS,
    INPUT,
    INPUT_ROWS,
    OLD_BATCHES,
    PAST,
    RELATION,
    RELATION_BATCHES,
    RELATION_PAST,
    RULE,
    STEP,
    VARIANT,
)
from deltic.kernels.seen import DERIVATIONS, DERIVED, ITERATIONS, SOUGHT_JOINS, TOUCHED_JOINS, TOUCHED_ROWS

SUMS, RECURSIVE, MOST_WORDS, REGISTERS, EXPORTED, LIMIT, HASH_KEY, OF_ROWS, OF_JOINS, HEAD = range(10)
"""Operands: the register of the sums of the exported relation; how many collections are recursive; the most words of a row, and the most
registers of a rule; the number of that relation; the most iterations; the key of the hash; whose counters those of the rows and those of
the joins are. And how many these are. Then lists, each after its length in words: spines, inputs, pasts, steps, results, and the tables of
the program. A step is the number of the spine that it reads."""
SLOT, COLUMNS, CHANGE, READ = range(4)
"""Words of a spine: its slot; its columns; the register of its change, or NONE. And how many these are."""
NONE = -1
OF_COLLECTION, CHANGE_OF, GIVEN = range(3)
"""Words of an input: the number of the collection that it is; its register. And how many these are."""
OF_RELATION, PAST_SPINE, PAST_OF = range(3)
"""Words of a past: the number of the relation, and that of the spine of its past derivations. And how many these are."""
ADDS, NUMBER, OUT, ROW_WORDS, RESULT = range(5)
"""Words of a result: whether it is what is added to a collection, not what is derived of a relation; the number of that; its register; the
words of a row. And how many these are."""


@part
def listed(code: Words, at: int, width: int) -> tuple[Words, int]:
    """(records of `width` words, whose length in words is at `at`; the position after them)"""
    end = at + 1 + code[at]
    return code[at + 1 : end].reshape((code[at] // width, width)), np.int64(end)


@part
def put_records(registers: Words, out: int, records: Words, count: int, kind: int, number: int, words: Words, state: Words) -> bool:
    """Copies these words of the records whose word `kind` is `number` to a register, as its columns; False if the arena is full."""
    rows = 0
    for r in range(count):
        rows += np.int64(records[r, kind] == number)
    if rows == 0:
        set_empty(registers, out)
        return True
    if not allot(registers, out, len(words), rows, state):
        return False
    row = 0
    for r in range(count):
        if records[r, kind] == number:
            for c in range(len(words)):
                store(registers[out + HEADER + c], row, records[r, words[c]])
            row += 1
    return True


@part
def put_results(registers: Words, results: Words, derived: Words, added: Words, report: Words, state: Words) -> bool:
    """Writes the rows that are appended to arrangements, each with its iteration, to their registers; False if the arena is full."""
    done = True
    for n in range(len(results)):
        result = results[n]
        width = result[ROW_WORDS]
        words = np.empty(width + 2, np.int64)
        adds = result[ADDS] != 0
        words[:width] = np.arange(width) + (WORDS if adds else DERIVED_WORDS)
        words[width], words[width + 1] = ITERATION if adds else DERIVED_ITERATION, WEIGHT if adds else DERIVED_WEIGHT
        if adds:
            done &= put_records(registers, result[OUT], added, report[ADDED], COLLECTION, result[NUMBER], words, state)
        else:
            done &= put_records(registers, result[OUT], derived, report[DERIVATIONS], DERIVED_RELATION, result[NUMBER], words, state)
    return done


@part
def located(
    read: Words,
    inputs: Words,
    pasts: Words,
    step_spines: Words,
    collections: Words,
    relations: Words,
    steps: Words,
    registers: Words,
    spines: Words,
) -> Words:
    """All directories, and the addresses of the inputs; enters into the program's tables where they are."""
    words = 0
    for n in range(len(read)):
        words += directory_words(read[n, SLOT], read[n, COLUMNS], spines)
    for n in range(len(inputs)):
        words += collections[inputs[n, OF_COLLECTION], COLLECTION_WIDTH] + 1
    directories, places, batches = np.empty(words, np.int64), np.empty(len(read), np.int64), np.empty(len(read), np.int64)
    end = 0
    for n in range(len(read)):
        places[n], batches[n] = end, spines[SPINE * read[n, SLOT] + SPINE_BATCHES]
        end = put_directory(directories, end, read[n, SLOT], read[n, COLUMNS], spines)
        if read[n, CHANGE] != NONE:
            end = put_change(directories, end, read[n, CHANGE], read[n, COLUMNS], registers)
    for n in range(len(inputs)):
        collection, change = collections[inputs[n, OF_COLLECTION]], inputs[n, CHANGE_OF]
        collection[INPUT], collection[INPUT_ROWS] = end, registers[change + ROWS]
        for c in range(collection[COLLECTION_WIDTH] + 1):
            directories[end + c] = registers[change + HEADER + c]
        end += collection[COLLECTION_WIDTH] + 1
    for n in range(len(pasts)):
        relation, spine = relations[pasts[n, OF_RELATION]], pasts[n, PAST_SPINE]
        relation[RELATION_PAST], relation[RELATION_BATCHES] = places[spine], batches[spine]
    for n in range(len(steps)):
        spine = step_spines[n, 0]
        change = read[spine, CHANGE]
        steps[n, PAST], steps[n, OLD_BATCHES] = places[spine], batches[spine]
        steps[n, BATCHES] = batches[spine] + np.int64(change != NONE and registers[change + ROWS] > 0)
    return directories


@part
def given_rows(read: Words, inputs: Words, registers: Words) -> int:
    """How many rows the largest change has."""
    rows = 0
    for n in range(len(inputs)):
        rows = max(rows, registers[inputs[n, CHANGE_OF] + ROWS])
    for n in range(len(read)):
        rows = max(rows, registers[read[n, CHANGE] + ROWS] if read[n, CHANGE] != NONE else 0)
    return np.int64(rows)


@part
def are_readable(read: Words, spines: Words) -> bool:
    """Whether `recursion` may read the spines."""
    may = True
    for n in range(len(read)):
        may &= readable(read[n, SLOT], spines)
    return may


@kernel("int64(int64[::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def recur(code: Words, at: int, registers: Words, spines: Words, state: Words, counters: Words, entries: Words) -> int:
    """The operands above: the results of a recursion."""
    read, end = listed(code, at + HEAD, READ)
    inputs, end = listed(code, end, GIVEN)
    pasts, end = listed(code, end, PAST_OF)
    step_spines, end = listed(code, end, 1)
    results, end = listed(code, end, RESULT)
    fixed_collections, end = listed(code, end, COLLECTION_WORDS)
    fixed_relations, end = listed(code, end, RELATION)
    operations, end = listed(code, end, OPERATION)
    rules, end = listed(code, end, RULE)
    variants, end = listed(code, end, VARIANT)
    fixed_steps, end = listed(code, end, STEP)
    moves = code[end + 1 : end + 1 + code[end]]
    end += 1 + code[end]
    keys = code[end + 1 : end + 1 + code[end]]
    given = given_rows(read, inputs, registers)
    if given == 0:
        set_empty(registers, code[at + SUMS])
        for n in range(len(results)):
            set_empty(registers, results[n, OUT])
        return DONE
    if given > FEW or not are_readable(read, spines):
        return DECLINED
    collections, relations, steps = fixed_collections.copy(), fixed_relations.copy(), fixed_steps.copy()
    directories = located(read, inputs, pasts, step_spines, collections, relations, steps, registers, spines)
    report, recursive = np.zeros(REPORT_WORDS, np.int64), code[at + RECURSIVE]
    program = (directories, collections, relations, operations, rules, variants, steps, moves, keys, recursive)
    sizes = (code[at + MOST_WORDS], code[at + REGISTERS], code[at + EXPORTED], code[at + LIMIT], code[at + HASH_KEY], MANY)
    outcome, derived, added, sums, growth = call_fixpoint(entries[ENTRY_RECURSION], (*program, *sizes, report))
    if outcome != SETTLED or max(report[DERIVATIONS], report[ADDED]) > MANY:
        return DECLINED
    if not (
        put_results(registers, results, derived, added, report, state) and put_rows(registers, code[at + SUMS], sums, sums.shape[1], state)
    ):
        return FULL
    own, joins = COUNTERS * code[at + OF_ROWS], COUNTERS * code[at + OF_JOINS]
    counters[own + RAN], counters[joins + RAN] = 1, 1
    counters[own + ROWS_IN], counters[own + ROWS_TOUCHED] = report[DERIVATIONS], report[TOUCHED_ROWS]
    counters[own + ROWS_OUT] = growth[: report[ITERATIONS] * recursive].sum()
    counters[joins + ROWS_OUT], counters[joins + ROWS_TOUCHED] = report[DERIVED], report[TOUCHED_JOINS]
    for n in range(len(steps)):
        spines[SPINE * read[step_spines[n, 0], SLOT] + SPINE_SOUGHT] += report[SOUGHT_JOINS] // len(steps)
    return DONE
