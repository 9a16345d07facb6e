"""The kernel that runs a recursion of several relations to its fixed point: what joins of any of them yield, distinct or kept as they are.

A program is arrays: operations, in the order in which an iteration runs them, over relations and collections. A relation sums what rules
derive; its rows are in one hash table, the number of the relation first, with their histories (`seen.py`). A collection is what a relation
or an input adds, in one order of words (`added.py`). A rule starts from the rows that its collection has got in this iteration; each of its
steps looks a key up, and binds other words (`rules.py`). A derivation is due at the greatest iteration of its parts: iteration i of
relation r is number i * relations + r, so that one sequence of lists has all that is due.

Directories are those of `merge.py`, one after another in one array. Times are those of docs/theory.md (Operators at nested times).
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.added import (
    ADDED,
    COLLECTION,
    ITERATION,
    KEYS,
    SPAN,
    SPAN_END,
    SPAN_START,
    WEIGHT,
    WORDS,
    Added,
    add_columns,
    add_moved,
    link,
    with_added,
)
from deltic.kernels.compiler import kernel, part
from deltic.kernels.fixpoint import DIVERGED, DONE, LARGE_TICK, OVERFLOW, next_due
from deltic.kernels.memory import Words, address_of, load, store
from deltic.kernels.rules import (
    ADDS_TO,
    COLLECTION_WIDTH,
    DELAY,
    DISTINCT,
    INPUT,
    INPUT_ROWS,
    RELATION_BATCHES,
    RELATION_PAST,
    RELATION_WIDTH,
    ProgramTables,
    apply_rule,
)
from deltic.kernels.seen import (
    CHANGE,
    DERIVATIONS,
    ENTRIES,
    FAR,
    FREE,
    ITERATIONS,
    LATEST,
    NOTHING,
    NOW,
    OVERFLOWED,
    ROOM,
    ROWS,
    SLOTS,
    STATE,
    WAITING,
    KeyHits,
    Seen,
    Waiting,
    grown,
    grown_heads,
    grown_rows,
    key_hits,
    read_histories,
    step_row,
    take_due,
    wait,
)
from deltic.kernels.seen import PAST as HISTORY_WORDS

ARRANGE, APPLY, SETTLE = range(3)
KIND, SUBJECT, SOURCE, MOVES, OPERATION = range(5)
"""Words of an operation: its kind; the collection to fill, the rule or the relation; the collection to copy from, and the position of the
moves of its words. And how many words that are."""

DERIVED_RELATION, DERIVED_ITERATION, DERIVED_WEIGHT, DERIVED_WORDS = range(4)
"""Words of a derivation before those of its row. And how many words that are."""


@part
def store_row(row: int, collection: int, iteration: int, weight: int, record: int, width: int) -> None:
    """Writes a row of a collection with the words of a record."""
    store(row, COLLECTION, collection)
    store(row, ITERATION, iteration)
    store(row, WEIGHT, weight)
    for c in range(width):
        store(row, WORDS + c, load(record, STATE + 1 + c))


@part
def settle_distinct(
    number: int,
    relation: Words,
    relations: int,
    iteration: int,
    seen: Seen,
    waiting: Waiting,
    visited: Words,
    visits: int,
    history: Words,
    added: Added,
    derivations: Words,
    report: Words,
) -> tuple[Waiting, Added, Words]:
    """Visits rows of a distinct relation: writes their derivations, adds their changes, and enters those to visit later into the lists."""
    used, free, derived = report[ENTRIES], report[FREE], report[DERIVATIONS]
    heads, entries = grown_heads(waiting.heads, report[LATEST]), grown_rows(waiting.entries, used + visits)
    derivations, added = grown_rows(derivations, derived + visits), with_added(added, visits, report)
    first_record, step, first_entry = address_of(seen.records), 8 * seen.records.shape[1], address_of(history)
    waits, lists = address_of(entries), address_of(heads)
    out, out_step = address_of(derivations), 8 * derivations.shape[1]
    rows, row_step = address_of(added.rows), 8 * added.rows.shape[1]
    width, collection, now = relation[RELATION_WIDTH], relation[ADDS_TO], iteration * relations + number
    for k in range(visits):
        record = first_record + visited[k] * step
        if load(record, NOW) != 0:
            row = out + derived * out_step
            store(row, DERIVED_RELATION, number)
            store(row, DERIVED_ITERATION, iteration)
            store(row, DERIVED_WEIGHT, load(record, NOW))
            for c in range(width):
                store(row, DERIVED_WORDS + c, load(record, STATE + 1 + c))
            derived += 1
        change, later, safe = step_row(record, first_entry, now)
        if not safe:
            report[OVERFLOWED] = 1
        if later < FAR:
            used, free = wait(waits, lists, used, free, visited[k], 0, later)
        if change != 0:
            store(record, CHANGE, load(record, CHANGE) + change)
            if collection >= 0:
                store_row(rows + row_step * report[ADDED], collection, iteration + relation[DELAY], change, record, width)
                report[ADDED] += 1
    report[ENTRIES], report[FREE], report[DERIVATIONS] = used, free, derived
    return Waiting(entries, heads), added, derivations


@part
def settle_sums(relation: Words, iteration: int, seen: Seen, visited: Words, visits: int, added: Added, report: Words) -> Added:
    """Adds the visited rows of a relation that is not distinct, with their weights."""
    added = with_added(added, visits, report)
    first_record, step = address_of(seen.records), 8 * seen.records.shape[1]
    rows, row_step = address_of(added.rows), 8 * added.rows.shape[1]
    slots, mask = address_of(added.slots), len(added.slots) - 1
    collection, key = relation[ADDS_TO], added.keys[relation[ADDS_TO]]
    for k in range(visits):
        record = first_record + visited[k] * step
        if load(record, NOW) != 0:
            number = report[ADDED]
            store_row(rows + row_step * number, collection, iteration, load(record, NOW), record, relation[RELATION_WIDTH])
            if key >= 0:
                report[KEYS] += link(rows, row_step, slots, mask, number, key, added.hash_key)
            report[ADDED] += 1
    return added


@part
def settle(
    program: ProgramTables,
    directories: Words,
    number: int,
    iteration: int,
    seen: Seen,
    waiting: Waiting,
    history: Words,
    added: Added,
    spans: Words,
    coming: Words,
    derivations: Words,
    hits: KeyHits,
    report: Words,
) -> tuple[Seen, Waiting, Added, Words, Words]:
    """Sums what is due for a relation at this iteration, and adds what changes to its collection."""
    relation, relations = program.relations[number], len(program.relations)
    due = iteration * relations + number
    if due >= len(waiting.heads) or waiting.heads[due] < 0:
        return seen, waiting, added, derivations, history
    visited, fresh, start = np.empty(report[ROWS], np.int64), np.empty(report[ROWS], np.int64), report[ADDED]
    visits, unknown = take_due(waiting, seen.records, due, visited, fresh, report)
    if relation[DISTINCT] != 0:
        past, batches, width = directories[relation[RELATION_PAST] :], relation[RELATION_BATCHES], relation[RELATION_WIDTH]
        history = read_histories(past, batches, width, 1, number, relations, seen.records, fresh, unknown, history, hits, report)
        waiting, added, derivations = settle_distinct(
            number, relation, relations, iteration, seen, waiting, visited, visits, history, added, derivations, report
        )
    else:
        added = settle_sums(relation, iteration, seen, visited, visits, added, report)
    if relation[ADDS_TO] >= 0:
        span = coming[relation[ADDS_TO]] if relation[DELAY] else spans[relation[ADDS_TO]]
        span[SPAN_START], span[SPAN_END] = start, report[ADDED]
    return seen, waiting, added, derivations, history


@part
def begin_iteration(
    iteration: int, program: ProgramTables, directories: Words, added: Added, spans: Words, coming: Words, recursive: int, report: Words
) -> Added:
    """Sets what collections have got: recursive relations what the last iteration has changed, inputs all at iteration 0."""
    for c in range(len(spans)):
        spans[c, SPAN_START], spans[c, SPAN_END] = report[ADDED], report[ADDED]
        if c < recursive:
            spans[c, SPAN_START], spans[c, SPAN_END] = coming[c, SPAN_START], coming[c, SPAN_END]
            coming[c, SPAN_START], coming[c, SPAN_END] = report[ADDED], report[ADDED]
        elif iteration == 0 and program.collections[c, INPUT] >= 0:
            collection = program.collections[c]
            columns = directories[collection[INPUT] :]
            added = add_columns(added, columns, collection[INPUT_ROWS], c, collection[COLLECTION_WIDTH], report)
            spans[c, SPAN_END] = report[ADDED]
    return added


@part
def summed(records: Words, count: int, relation: int, width: int) -> Words:
    """Columns of the rows of a relation whose presence has changed over all iterations, and by how much."""
    rows = 0
    for r in range(count):
        rows += np.int64(records[r, STATE] == relation and records[r, CHANGE] != 0)
    sums = np.empty((width + 1, rows), np.int64)
    k = 0
    for r in range(count):
        if records[r, STATE] == relation and records[r, CHANGE] != 0:
            for c in range(width):
                sums[c, k] = records[r, STATE + 1 + c]
            sums[width, k] = records[r, CHANGE]
            k += 1
    return sums


@kernel(
    "Tuple((int64, int64[:,::1], int64[:,::1], int64[:,::1], int64[::1]))"
    "(int64[::1], int64[:,::1], int64[:,::1], int64[:,::1], int64[:,::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1], "
    "int64, int64, int64, int64, int64, int64, int64, int64[::1])"
)
def recursion(
    directories: Words,
    collections: Words,
    relations: Words,
    operations: Words,
    rules: Words,
    variants: Words,
    steps: Words,
    moves: Words,
    keys: Words,
    recursive: int,
    width: int,
    registers: int,
    exported: int,
    limit: int,
    hash_key: int,
    most: int,
    report: Words,
) -> tuple[int, Words, Words, Words, Words]:
    """Runs to the fixed point: (outcome, derivations, added rows, sums, growth).

    keys: of the collections, for `Added`. recursive: how many collections are those of recursive relations. width: the most words of a row.
    registers: the most registers of a rule. exported: the relation whose sums are returned, as columns of words and a weight. limit: how
    many iterations may change rows. most: beyond how many rows or derivations the kernel ends. growth: for each iteration that was
    run, how many rows each recursive collection has got. Derivations and added rows are records, in any order, and more than the report
    says.
    """
    program = ProgramTables(collections, relations, operations, rules, variants, steps, moves)
    seen = Seen(np.empty((ROOM, STATE + 1 + width), np.int64), np.full(SLOTS * ROOM, NOTHING, np.int64), hash_key, np.empty(0, np.int64))
    waiting = Waiting(np.empty((ROOM, WAITING), np.int64), np.full(64, NOTHING, np.int64))
    added = Added(np.empty((ROOM, WORDS + width), np.int64), np.full(2 * ROOM, NOTHING, np.int64), keys, hash_key)
    hits = key_hits(width)
    derivations, history = np.empty((ROOM, DERIVED_WORDS + width), np.int64), np.empty((ROOM, HISTORY_WORDS), np.int64)
    growth = np.empty(64, np.int64)
    spans, coming = np.zeros((len(collections), SPAN), np.int64), np.zeros((recursive, SPAN), np.int64)
    report[FREE] = NOTHING
    several, outcome, iteration = len(relations), DONE, 0
    while True:
        added = begin_iteration(iteration, program, directories, added, spans, coming, recursive, report)
        for n in range(len(operations)):
            kind, subject = operations[n, KIND], operations[n, SUBJECT]
            if kind == APPLY:
                seen, waiting = apply_rule(
                    rules[subject], program, directories, added, spans, iteration, registers, width, seen, waiting, hits, report
                )
            elif kind == ARRANGE:
                source = operations[n, SOURCE]
                if spans[source, SPAN_START] < spans[source, SPAN_END]:
                    spans[subject, SPAN_START] = report[ADDED]
                    moved = moves[operations[n, MOVES] : operations[n, MOVES] + collections[subject, COLLECTION_WIDTH]]
                    added = add_moved(added, source, spans[source], subject, moved, report)
                    spans[subject, SPAN_END] = report[ADDED]
            else:
                seen, waiting, added, derivations, history = settle(
                    program, directories, subject, iteration, seen, waiting, history, added, spans, coming, derivations, hits, report
                )
        changed = False
        growth = grown(growth, (report[ITERATIONS] + 1) * recursive)
        for c in range(recursive):
            growth[report[ITERATIONS] * recursive + c] = coming[c, SPAN_END] - coming[c, SPAN_START]
            changed |= coming[c, SPAN_END] > coming[c, SPAN_START]
        report[ITERATIONS] += 1
        if report[OVERFLOWED] != 0:
            outcome = OVERFLOW
            break
        if report[ROWS] > most or report[ADDED] > most or report[DERIVATIONS] > most:
            outcome = LARGE_TICK
            break
        if changed:
            if iteration >= limit:
                outcome = DIVERGED
                break
            iteration += 1
            continue
        due = next_due(waiting.heads, (iteration + 1) * several)
        if due >= len(waiting.heads):
            break
        iteration = due // several
    sums = summed(seen.records, report[ROWS], exported, relations[exported, RELATION_WIDTH])
    return outcome, derivations, added.rows, sums, growth
