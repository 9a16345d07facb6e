"""The rules of a recursion: what the newest rows of a collection derive with the rows that arrangements have for their keys.

A rule starts from the rows that its collection has got in this iteration. Each of its steps looks a key up in what an arrangement had
before the tick and in a collection, and binds the other words. A derivation is due at the greatest iteration of its parts (docs/theory.md,
Operators at nested times). Each pair of changes meets once: of two rules of a join one reads the other side without its newest rows.

A program is arrays of records, which this module and `recursion.py` describe.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deltic.kernels.added import (
    DEPTH,
    ITERATION,
    NEXT,
    SPAN_END,
    SPAN_START,
    WEIGHT,
    WORDS,
    Added,
    slot_of,
)
from deltic.kernels.compiler import part
from deltic.kernels.memory import Words, address_of, load, product_overflows, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import BLOCK, seek_block
from deltic.kernels.seen import (
    FAR,
    NOTHING,
    OVERFLOWED,
    SOUGHT_JOINS,
    TOUCHED_JOINS,
    KeyHits,
    Seen,
    Waiting,
    enter,
    grown_rows,
    total,
)

DISTINCT, RELATION_WIDTH, RELATION_PAST, RELATION_BATCHES, ADDS_TO, DELAY, RELATION = range(7)
"""Words of a relation: whether it is distinct; its words; of a distinct one, the position in the directories of its past derivations, and
their batches; the collection that it adds to, or NOTHING; 1 if that gets its changes in the next iteration. And how many words that are."""

INPUT, INPUT_ROWS, COLLECTION_WIDTH, COLLECTION_WORDS = range(4)
"""Words of a collection: the position in the directories of the addresses of what an input adds at iteration 0, or NOTHING, and its rows;
the words of a row. And how many words that are. The first collections are those of recursive relations, read an iteration later."""

START, TARGET, FIRST_VARIANT, VARIANTS, RULE = range(5)
"""Words of a rule: its collection and its relation; its variants, of which each row takes the one whose first step has the fewest rows for
it. And how many words that are."""

FIRST_STEP, STEPS, OUTPUT, CONDITIONS, CONDITION_COUNT, VARIANT = range(6)
"""Words of a variant: its steps; the positions of its output and of its conditions among the moves, how many conditions. And how many words
that are. An operand is two words: (0, a register) or (1, a constant). The output is an operand for each word; a condition is a comparison
and two operands."""

KEY, KEY_MOVES, BOUND, ROW_WIDTH, PAST, OLD_BATCHES, BATCHES, TIMED, ADDED_TO, NEW, STEP = range(11)
"""Words of a step: the words of its key, and the position of their registers among the moves; how many registers are bound before; the
words of a row of the arrangement; the position in the directories of what it was before the tick, its batches, and those with the tick's
change; 1 if its rows have an iteration; the collection of what the tick adds, or NOTHING; whether the newest rows are read. And how many
words that are. A step binds the words of a row after the key."""

TIME, MULTIPLICITY, REGISTERS = range(3)
"""Words of a prefix before its registers: the iteration at which it is due, the product of its weights. And how many words that are."""

EQUAL, NOT_EQUAL, LESS, LESS_OR_EQUAL = range(4)
COMPARED = 5
"""Words of a condition."""

CHUNK = 1 << 12
"""Rows that a rule starts from at once."""


class ProgramTables(NamedTuple):
    """Tables of the records above, and the words that they refer to."""

    collections: Words
    relations: Words
    operations: Words
    rules: Words
    variants: Words
    steps: Words
    moves: Words


@part
def sought(step: Words, moves: Words, prefixes: Words, first: int, block: int, keys: Words, table: Words) -> None:
    """keys[k] = the words k of the keys of a block of prefixes; table: the addresses of these columns."""
    for k in range(step[KEY]):
        register = moves[step[KEY_MOVES] + k]
        for i in range(block):
            keys[k, i] = prefixes[first + i, REGISTERS + register]
        table[k] = address_of(keys[k])


@part
def newest_row(step: Words, added: Added, keys: Words, i: int, word: Words) -> int:
    """The newest row that the step's collection has for key i of the block, or NOTHING."""
    for k in range(step[KEY]):
        word[k] = keys[k, i]
    rows, width = address_of(added.rows), 8 * added.rows.shape[1]
    slots, mask = address_of(added.slots), len(added.slots) - 1
    return load(slots, slot_of(rows, width, slots, mask, step[ADDED_TO], address_of(word), step[KEY], added.hash_key))


@part
def count_rows(
    step: Words,
    program: ProgramTables,
    directories: Words,
    added: Added,
    prefixes: Words,
    count: int,
    counts: Words,
    hits: KeyHits,
    report: Words,
) -> None:
    """counts[i] = how many rows the step has for prefix i, the newest included."""
    key = step[KEY]
    keys, table, word = np.empty((key + 1, min(count, BLOCK)), np.int64), np.empty(key + 1, np.int64), np.empty(key + 1, np.int64)
    stride = DIRECTORY_HEADER + step[ROW_WIDTH] + step[TIMED] + 1
    for first in range(0, count, BLOCK):
        block = min(BLOCK, count - first)
        sought(step, program.moves, prefixes, first, block, keys, table)
        report[SOUGHT_JOINS] += block
        for i in range(block):
            newest = newest_row(step, added, keys, i, word) if step[ADDED_TO] >= 0 else NOTHING
            counts[first + i] = added.rows[newest, DEPTH] if newest >= 0 else 0
        for b in range(step[BATCHES]):
            entry = step[PAST] + b * stride
            matches, inspected = seek_block(directories, entry, table, key, 0, block, hits.keys, hits.low, hits.high)
            report[TOUCHED_JOINS] += inspected
            for h in range(matches):
                counts[first + hits.keys[h]] += hits.high[h] - hits.low[h]


@part
def extend_prefix(prefix: int, extended: int, bound: int, when: int, weight: int) -> bool:
    """Copies a prefix and joins it with a row's iteration and weight. False if the weight leaves 64 bits."""
    multiplicity = load(prefix, MULTIPLICITY)
    store(extended, TIME, max(load(prefix, TIME), when))
    store(extended, MULTIPLICITY, multiplicity * weight)
    for r in range(bound):
        store(extended, REGISTERS + r, load(prefix, REGISTERS + r))
    return not product_overflows(multiplicity, weight)


@part
def fetch(
    step: Words,
    program: ProgramTables,
    directories: Words,
    added: Added,
    spans: Words,
    iteration: int,
    prefixes: Words,
    count: int,
    extended: Words,
    hits: KeyHits,
    report: Words,
) -> tuple[Words, int]:
    """Extends each prefix with every row that begins with its key: (the extended prefixes, how many)."""
    key, bound, width, timed = step[KEY], step[BOUND], step[ROW_WIDTH], step[TIMED]
    keys, table, word = np.empty((key + 1, min(count, BLOCK)), np.int64), np.empty(key + 1, np.int64), np.empty(key + 1, np.int64)
    stride, size = DIRECTORY_HEADER + width + timed + 1, 8 * prefixes.shape[1]
    batches = step[BATCHES] if step[NEW] != 0 or iteration > 0 else step[OLD_BATCHES]
    limit = FAR if step[NEW] != 0 or step[ADDED_TO] < 0 else spans[step[ADDED_TO], SPAN_START]
    before, added_rows, row_size = address_of(prefixes), address_of(added.rows), 8 * added.rows.shape[1]
    filled = 0
    for first in range(0, count, BLOCK):
        block = min(BLOCK, count - first)
        sought(step, program.moves, prefixes, first, block, keys, table)
        report[SOUGHT_JOINS] += block
        for b in range(batches):
            entry = step[PAST] + b * stride
            matches, inspected = seek_block(directories, entry, table, key, 0, block, hits.keys, hits.low, hits.high)
            rows = total(hits.low, hits.high, matches)
            report[TOUCHED_JOINS] += inspected + rows
            if rows == 0:
                continue
            extended = grown_rows(extended, filled + rows)
            columns, after = address_of(directories[entry + DIRECTORY_HEADER :]), address_of(extended) + size * filled
            iterations, weights = load(columns, width), load(columns, width + timed)
            for h in range(matches):
                prefix = before + size * (first + hits.keys[h])
                for j in range(hits.low[h], hits.high[h]):
                    when = load(iterations, j) if timed else 0
                    if not extend_prefix(prefix, after, bound, when, load(weights, j)):
                        report[OVERFLOWED] = 1
                    for c in range(key, width):
                        store(after, REGISTERS + bound + c - key, load(load(columns, c), j))
                    after += size
            filled += rows
        if step[ADDED_TO] < 0:
            continue
        for i in range(block):
            number = newest_row(step, added, keys, i, word)
            if number < 0:
                continue
            extended = grown_rows(extended, filled + load(added_rows + row_size * number, DEPTH))
            prefix, after = before + size * (first + i), address_of(extended) + size * filled
            while number >= 0:
                row = added_rows + row_size * number
                report[TOUCHED_JOINS] += 1
                if number < limit:
                    if not extend_prefix(prefix, after, bound, load(row, ITERATION), load(row, WEIGHT)):
                        report[OVERFLOWED] = 1
                    for c in range(key, width):
                        store(after, REGISTERS + bound + c - key, load(row, WORDS + c))
                    after += size
                    filled += 1
                number = load(row, NEXT)
    return extended, filled


@part
def operand(moves: int, prefix: int) -> int:
    """The value of an operand."""
    return load(moves, 1) if load(moves, 0) else load(prefix, REGISTERS + load(moves, 1))


@part
def holds(conditions: int, count: int, prefix: int) -> bool:
    """Whether the prefix meets all conditions."""
    met = True
    for n in range(count):
        condition = conditions + 8 * COMPARED * n
        comparison = load(condition, 0)
        left, right = operand(condition + 8, prefix), operand(condition + 24, prefix)
        if comparison == EQUAL:
            met &= left == right
        elif comparison == NOT_EQUAL:
            met &= left != right
        elif comparison == LESS:
            met &= left < right
        else:
            met &= left <= right
    return met


@part
def derive(variant: Words, program: ProgramTables, target: int, prefixes: Words, count: int, derived: Words) -> int:
    """Writes what the prefixes derive: relation, words, number of the iteration, weight. Returns how many meet the conditions."""
    relations, width = len(program.relations), program.relations[target, RELATION_WIDTH]
    moves, last = address_of(program.moves), derived.shape[1] - 2
    prefix, step, row, size = address_of(prefixes), 8 * prefixes.shape[1], address_of(derived), 8 * derived.shape[1]
    output, conditions = moves + 8 * variant[OUTPUT], moves + 8 * variant[CONDITIONS]
    filled = 0
    for _ in range(count):
        if holds(conditions, variant[CONDITION_COUNT], prefix):
            store(row, 0, target)
            for c in range(width):
                store(row, 1 + c, operand(output + 16 * c, prefix))
            for c in range(1 + width, last):
                store(row, c, 0)
            store(row, last, load(prefix, TIME) * relations + target)
            store(row, last + 1, load(prefix, MULTIPLICITY))
            row += size
            filled += 1
        prefix += step
    return filled


@part
def started(added: Added, first: int, count: int, width: int, prefixes: Words) -> None:
    """A prefix for each of the rows from `first` on."""
    row, step, prefix, size = address_of(added.rows), 8 * added.rows.shape[1], address_of(prefixes), 8 * prefixes.shape[1]
    row += step * first
    for _ in range(count):
        store(prefix, TIME, load(row, ITERATION))
        store(prefix, MULTIPLICITY, load(row, WEIGHT))
        for c in range(width):
            store(prefix, REGISTERS + c, load(row, WORDS + c))
        row += step
        prefix += size


@part
def choose_variants(
    rule: Words, program: ProgramTables, directories: Words, added: Added, prefixes: Words, count: int, hits: KeyHits, report: Words
) -> Words:
    """For each prefix the variant of the rule whose first step has the fewest rows for it."""
    chosen, fewest, counts = np.zeros(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    for v in range(rule[VARIANTS]):
        step = program.steps[program.variants[rule[FIRST_VARIANT] + v, FIRST_STEP]]
        count_rows(step, program, directories, added, prefixes, count, counts, hits, report)
        for i in range(count):
            if v == 0 or counts[i] < fewest[i]:
                fewest[i], chosen[i] = counts[i], v
    return chosen


@part
def selected(prefixes: Words, count: int, chosen: Words, v: int) -> tuple[Words, int]:
    """The prefixes for which variant v is chosen: (prefixes, how many)."""
    some, filled = np.empty((count, prefixes.shape[1]), np.int64), 0
    for i in range(count):
        if chosen[i] == v:
            for c in range(prefixes.shape[1]):
                some[filled, c] = prefixes[i, c]
            filled += 1
    return some, filled


@part
def apply_rule(
    rule: Words,
    program: ProgramTables,
    directories: Words,
    added: Added,
    spans: Words,
    iteration: int,
    registers: int,
    width: int,
    seen: Seen,
    waiting: Waiting,
    hits: KeyHits,
    report: Words,
) -> tuple[Seen, Waiting]:
    """Enters what a rule derives from the newest rows of its collection."""
    size, start, end = REGISTERS + registers, spans[rule[START], SPAN_START], spans[rule[START], SPAN_END]
    for first in range(start, end, CHUNK):
        count = min(CHUNK, end - first)
        starts = np.empty((count, size), np.int64)
        started(added, first, count, program.collections[rule[START], COLLECTION_WIDTH], starts)
        several = rule[VARIANTS] > 1
        chosen = choose_variants(rule, program, directories, added, starts, count, hits, report) if several else np.empty(0, np.int64)
        for v in range(rule[VARIANTS]):
            variant = program.variants[rule[FIRST_VARIANT] + v]
            prefixes, filled = selected(starts, count, chosen, v) if several else (starts, count)
            for n in range(variant[FIRST_STEP], variant[FIRST_STEP] + variant[STEPS]):
                if filled == 0:
                    break
                extended = np.empty((filled, size), np.int64)
                step = program.steps[n]
                prefixes, filled = fetch(step, program, directories, added, spans, iteration, prefixes, filled, extended, hits, report)
            if filled > 0:
                derived = np.empty((filled, width + 3), np.int64)
                filled = derive(variant, program, rule[TARGET], prefixes, filled, derived)
                seen, waiting = enter(seen, waiting, derived, filled, 1 + width, report)
    return seen, waiting
