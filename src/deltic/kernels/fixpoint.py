"""The kernel that runs a linear recursion to its fixed point: distinct over what joins of the recursive relation with others yield.

X(n+1) = distinct(base ⊎ π(X(n) ⋈ E) ⊎ …): all iterations of one tick in one call, over the spines as they are. Rows of X that the tick
derives are kept in a hash table, each with its history (`seen.py`). A row that is derived at an iteration is entered into that iteration's
list. The rules are those of docs/theory.md (Operators at nested times): a change of E joins all past rows of X, and these products are due
at the iterations of the rows; a row that is visited is visited again at the later iterations of its history.

Directories are those of `merge.py`, one after another in one array. A chain is one join with another relation, a row of `chains`.

If all chains pass a word of X on, rows with different values of it never meet: the tick divides into shares by a hash of that word, each of
which is run alone, by a thread of its own.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, address_of, load, product_overflows, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import BLOCK, seek_block
from deltic.kernels.seen import (
    CHANGE,
    CHANGES,
    DERIVATIONS,
    ENTRIES,
    FAR,
    FREE,
    ITERATIONS,
    LATEST,
    NOTHING,
    NOW,
    OVERFLOWED,
    PAST,
    ROOM,
    ROWS,
    SLOTS,
    SOUGHT_JOINS,
    STATE,
    TOUCHED_JOINS,
    WAITING,
    KeyHits,
    Seen,
    Waiting,
    empty_slots,
    enter,
    grown,
    grown_columns,
    grown_heads,
    grown_rows,
    key_hits,
    read_histories,
    renewed,
    step_row,
    take_due,
    total,
    wait,
)
from deltic.kernels.vector import mix

KEY, OTHER, OTHER_BATCHES, OTHER_COLUMNS, RECURSIVE, RECURSIVE_BATCHES, RECURSIVE_COLUMNS, OTHER_CHANGE, CHANGE_ROWS, MOVES, CHAIN = range(
    11
)
"""Words of a chain: how many words its key has; the position of the other relation in the directories, its batches and columns (as of now);
the same of the recursive relation as it was before the tick, arranged by the key, iterations last; the position of the other's change (one
batch), and its rows; the position of its moves. And how many words that are.

moves: for each word of a row of the recursive relation as arranged (without the iteration), which word of a row it is; then, for each word
of a derived row, (0 for the recursive relation or 1 for the other, the word there as arranged).
"""

CHANGED_ROW, CHANGED_WEIGHT, CHANGED = range(3)
"""Words of a change of one iteration: the number of the row, the change of its presence. And how many words that are."""

SHARE, SHARES, PASSED, MOST_ROWS, MOST_DERIVATIONS, DIVISION = range(6)
"""Words of how a tick is divided: the number of this share, how many there are, the word of a row that all chains pass on (of a single
share any), and beyond how many rows, or derivations of them, the kernel ends, since it has more to do than its caller should. And how many
words that are."""

DONE, OVERFLOW, DIVERGED, LARGE_TICK = range(4)


@part
def scratch_words(width: int) -> int:
    """Words of scratch for a row: its record, its slots of the hash table and an entry of its history."""
    return STATE + width + SLOTS + PAST


@part
def result_words(width: int) -> int:
    """Words of results for a row: a derivation, a change and a sum."""
    return 2 * (width + 2) + width + 1


@part
def lent_tables(scratch: Words, results: Words, width: int) -> tuple[Words, Words, Words, Words, Words, Words]:
    """(records, memory for slots, history, derivations, changes, room for sums) in memory that is lent, or in small memory of their own."""
    rows = len(scratch) // scratch_words(width)
    if rows == 0:
        scratch, results, rows = np.empty(ROOM * scratch_words(width), np.int64), np.empty(ROOM * result_words(width), np.int64), ROOM
    first, second, size = rows * (STATE + width), rows * (STATE + width + SLOTS), rows * (width + 2)
    records, slots, history = scratch[:first].reshape((rows, STATE + width)), scratch[first:second], scratch[second:].reshape((rows, PAST))
    derivations, changes = results[:size].reshape((width + 2, rows)), results[size : 2 * size].reshape((width + 2, rows))
    return records, slots, history, derivations, changes, results[2 * size :]


@part
def most_words(chains: Words, width: int) -> int:
    """Of a key of histories, or of a row of X as arranged, with its iteration and its weight: joins may compare a word with several."""
    most = width
    for n in range(len(chains)):
        most = max(most, chains[n, RECURSIVE_COLUMNS] + 1)
    return np.int64(most)


@part
def is_shared(word: int, division: Words) -> bool:
    """Whether rows with this word are those of this share."""
    shared: bool = division[SHARES] == 1 or np.int64(mix(np.uint64(word)) % np.uint64(division[SHARES])) == division[SHARE]
    return shared


@part
def base_rows(base: Words, count: int, width: int, division: Words) -> tuple[Words, int]:
    """(the rows that are derived at iteration 0: words, iteration, weight; how many they are)"""
    derived = np.empty((max(count, ROOM), width + 2), np.int64)
    rows = 0
    for k in range(count):
        if is_shared(load(base[division[PASSED]], k), division):
            for c in range(width):
                derived[rows, c] = load(base[c], k)
            derived[rows, width], derived[rows, width + 1] = 0, load(base[width], k)
            rows += 1
    return derived, rows


@part
def derive(moves: int, width: int, recursive: int, columns: int, i: int, other: int, other_columns: int, j: int, row: int) -> bool:
    """Writes to `row` what row i of `recursive` and row j of `other` derive: words, iteration, weight. False if that leaves 64 bits.

    recursive, other: tables of `columns` and `other_columns` columns, then the weights. moves: those of a derived row. All are addresses.
    """
    for c in range(width):
        word = load(moves, 2 * c + 1)
        store(row, c, load(load(recursive, word), i) if load(moves, 2 * c) == 0 else load(load(other, word), j))
    x, y = load(load(recursive, columns), i), load(load(other, other_columns), j)
    store(row, width, load(load(recursive, columns - 1), i))
    store(row, width + 1, x * y)
    return not product_overflows(x, y)


@part
def join_past(
    directories: Words,
    chain: Words,
    moves: Words,
    width: int,
    division: Words,
    seen: Seen,
    waiting: Waiting,
    derived: Words,
    hits: KeyHits,
    report: Words,
) -> tuple[Seen, Waiting, Words]:
    """Enters what the other relation's change derives with the past rows of the recursive one."""
    columns, other_columns = chain[RECURSIVE_COLUMNS], chain[OTHER_COLUMNS]
    passed = 0
    while passed < columns - 1 and moves[chain[MOVES] + passed] != division[PASSED]:
        passed += 1
    stride, step = DIRECTORY_HEADER + columns + 1, 8 * (width + 2)
    output_moves = address_of(moves) + 8 * (chain[MOVES] + columns - 1)
    change = directories[chain[OTHER_CHANGE] + DIRECTORY_HEADER :]
    for first in range(0, chain[CHANGE_ROWS], BLOCK):
        block = min(BLOCK, chain[CHANGE_ROWS] - first)
        report[SOUGHT_JOINS] += block
        for b in range(chain[RECURSIVE_BATCHES]):
            entry = chain[RECURSIVE] + b * stride
            matches, inspected = seek_block(directories, entry, change, chain[KEY], first, block, hits.keys, hits.low, hits.high)
            rows = total(hits.low, hits.high, matches)
            report[TOUCHED_JOINS] += inspected + rows
            if rows == 0:
                continue
            derived = grown_rows(derived, rows)
            recursive, other, row = address_of(directories[entry + DIRECTORY_HEADER :]), address_of(change), address_of(derived)
            filled = 0
            for h in range(matches):
                j = first + hits.keys[h]
                for i in range(hits.low[h], hits.high[h]):
                    if is_shared(load(load(recursive, passed), i), division):
                        if not derive(output_moves, width, recursive, columns, i, other, other_columns, j, row):
                            report[OVERFLOWED] = 1
                        row += step
                        filled += 1
            seen, waiting = enter(seen, waiting, derived, filled, width, report)
    return seen, waiting, derived


@part
def join_changes(
    directories: Words,
    chain: Words,
    moves: Words,
    width: int,
    changed: Words,
    changes: int,
    iteration: int,
    seen: Seen,
    waiting: Waiting,
    derived: Words,
    hits: KeyHits,
    report: Words,
) -> tuple[Seen, Waiting, Words]:
    """Enters what the changes of an iteration derive with the other relation."""
    columns, other_columns, key_moves = chain[RECURSIVE_COLUMNS], chain[OTHER_COLUMNS], chain[MOVES]
    stride, step = DIRECTORY_HEADER + other_columns + 1, 8 * (width + 2)
    output_moves = address_of(moves) + 8 * (key_moves + columns - 1)
    arranged, keys = hits.words, hits.table
    for first in range(0, changes, BLOCK):
        block = min(BLOCK, changes - first)
        report[SOUGHT_JOINS] += block
        records = seen.records
        for i in range(block):
            for c in range(columns - 1):
                arranged[c, i] = records[changed[first + i, CHANGED_ROW], STATE + moves[key_moves + c]]
            arranged[columns - 1, i], arranged[columns, i] = iteration, changed[first + i, CHANGED_WEIGHT]
        for b in range(chain[OTHER_BATCHES]):
            entry = chain[OTHER] + b * stride
            matches, inspected = seek_block(directories, entry, keys, chain[KEY], 0, block, hits.keys, hits.low, hits.high)
            rows = total(hits.low, hits.high, matches)
            report[TOUCHED_JOINS] += inspected + rows
            if rows == 0:
                continue
            derived = grown_rows(derived, rows)
            recursive, other, row = address_of(keys), address_of(directories[entry + DIRECTORY_HEADER :]), address_of(derived)
            for h in range(matches):
                for j in range(hits.low[h], hits.high[h]):
                    if not derive(output_moves, width, recursive, columns, hits.keys[h], other, other_columns, j, row):
                        report[OVERFLOWED] = 1
                    row += step
            seen, waiting = enter(seen, waiting, derived, rows, width, report)
    return seen, waiting, derived


@part
def settle(
    seen: Seen,
    waiting: Waiting,
    visited: Words,
    visits: int,
    history: Words,
    width: int,
    iteration: int,
    derivations: Words,
    changes: Words,
    changed: Words,
    report: Words,
) -> tuple[Waiting, Words, Words, Words]:
    """Visits the rows visited[:visits]: writes their derivations and changes, and enters those to visit later into the lists.

    changed: the changes of this iteration alone.
    """
    derived, done, used, free = report[DERIVATIONS], report[CHANGES], report[ENTRIES], report[FREE]
    heads, entries = grown_heads(waiting.heads, report[LATEST]), grown_rows(waiting.entries, used + visits)
    derivations, changes = grown_columns(derivations, derived, derived + visits), grown_columns(changes, done, done + visits)
    changed = changed if visits <= len(changed) else np.empty((2 * visits, CHANGED), np.int64)
    first_record, step, first_entry = address_of(seen.records), 8 * seen.records.shape[1], address_of(history)
    waits, lists = address_of(entries), address_of(heads)
    derived_rows, changed_rows = address_of(derivations), address_of(changes)
    count = 0
    for k in range(visits):
        record = first_record + visited[k] * step
        if load(record, NOW) != 0:
            write_row(derived_rows, derivations.shape[1], derived, record, width, iteration, load(record, NOW))
            derived += 1
        change, later, safe = step_row(record, first_entry, iteration)
        if not safe:
            report[OVERFLOWED] = 1
        if later < FAR:
            used, free = wait(waits, lists, used, free, visited[k], 0, later)
        if change != 0:
            write_row(changed_rows, changes.shape[1], done + count, record, width, iteration + 1, change)
            changed[count, CHANGED_ROW], changed[count, CHANGED_WEIGHT] = visited[k], change
            count += 1
            store(record, CHANGE, load(record, CHANGE) + change)
    report[DERIVATIONS], report[CHANGES], report[ENTRIES], report[FREE] = derived, done + count, used, free
    return Waiting(entries, heads), derivations, changes, changed


@part
def write_row(columns: int, room: int, row: int, record: int, width: int, iteration: int, weight: int) -> None:
    """Writes the words of a record, an iteration and a weight to row `row` of columns of `room` words each."""
    for c in range(width):
        store(columns + 8 * room * c, row, load(record, STATE + c))
    store(columns + 8 * room * width, row, iteration)
    store(columns + 8 * room * (width + 1), row, weight)


@part
def next_due(heads: Words, iteration: int) -> int:
    """The first iteration from this one on with a list that is not empty; len(heads) if there is none."""
    while iteration < len(heads) and heads[iteration] < 0:
        iteration += 1
    return iteration


@part
def cut(columns: Words, start: int, end: int, rows: int, division: Words) -> Words:
    """Columns that begin with rows start to end. Those of one share among several are read at once, others may be kept in a batch: they
    are copied if most are spare, or if they are lent, with room for `rows`.
    """
    own = columns.shape[1] > rows and 2 * end > columns.shape[1]
    return columns if start == 0 and (own or division[SHARES] > 1) else columns[:, start:end].copy()


@part
def summed(records: Words, count: int, width: int, room: Words, division: Words) -> Words:
    """Columns of the rows whose presence has changed over all iterations, and by how much; of one share among several in `room`."""
    rows = 0
    for r in range(count):
        rows += np.int64(records[r, CHANGE] != 0)
    size = rows * (width + 1)
    sums = room[:size].reshape((width + 1, rows)) if division[SHARES] > 1 and size <= len(room) else np.empty((width + 1, rows), np.int64)
    k = 0
    for r in range(count):
        if records[r, CHANGE] != 0:
            for c in range(width):
                sums[c, k] = records[r, STATE + c]
            sums[width, k] = records[r, CHANGE]
            k += 1
    return sums


@kernel(
    "Tuple((int64, int64[:,::1], int64[:,::1], int64[:,::1], int64[::1]))"
    "(int64[::1], int64[:,::1], int64[::1], int64[::1], int64, int64, int64, int64, int64, int64[::1], int64, "
    "int64[::1], int64[::1], int64[::1])"
)
def fixpoint(
    directories: Words,
    chains: Words,
    moves: Words,
    base: Words,
    base_count: int,
    past_entry: int,
    past_batches: int,
    width: int,
    limit: int,
    division: Words,
    hash_key: int,
    scratch: Words,
    results: Words,
    report: Words,
) -> tuple[int, Words, Words, Words, Words]:
    """Runs to the fixed point: (outcome, derivations, changes by iteration, their sums, how many rows changed in each iteration).

    base: columns of `width` words and a weight, the change of what is derived at iteration 0. past_entry: the position of the directory of
    past derivations, by row and iteration. division: of the tick into shares; only the rows of this one are derived. hash_key: any number
    that users cannot guess. scratch, results: memory for a power of two of rows, `scratch_words` and `result_words` each, or none; what one
    share among several returns is in it, while there is room. Derivations are columns (row, iteration, weight), changes (row, iteration at
    which the joins see them, weight), sums (row, weight); none are in order, and columns may be longer than the report says. On divergence
    the changes are those of the first iteration beyond the limit; of a large tick nothing counts.
    """
    records, slots, history, derivations, changes, room = lent_tables(scratch, results, width)
    seen, lent = Seen(records, empty_slots(max(min(SLOTS * ROOM, len(slots)), len(slots) // 4), slots), hash_key, slots), len(records)
    waiting = Waiting(np.empty((ROOM, WAITING), np.int64), np.full(64, NOTHING, np.int64))
    hits, changed = key_hits(most_words(chains, width)), np.empty((ROOM, CHANGED), np.int64)
    visited, fresh, growth = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64), np.empty(64, np.int64)
    report[FREE] = NOTHING
    past = directories[past_entry:]
    derived, first = base_rows(base, base_count, width, division)
    seen, waiting = enter(seen, waiting, derived, first, width, report)
    for n in range(len(chains)):
        seen, waiting, derived = join_past(directories, chains[n], moves, width, division, seen, waiting, derived, hits, report)

    outcome, start, iteration = DONE, 0, 0
    while report[OVERFLOWED] == 0 and iteration < len(waiting.heads):
        if report[ROWS] > division[MOST_ROWS] or report[DERIVATIONS] > division[MOST_DERIVATIONS]:
            outcome = LARGE_TICK
            break
        visited, fresh = renewed(visited, report[ROWS]), renewed(fresh, report[ROWS])
        visits, unknown = take_due(waiting, seen.records, iteration, visited, fresh, report)
        history = read_histories(past, past_batches, width, 0, 0, 1, seen.records, fresh, unknown, history, hits, report)
        start = report[CHANGES]
        waiting, derivations, changes, changed = settle(
            seen, waiting, visited, visits, history, width, iteration, derivations, changes, changed, report
        )
        growth = grown(growth, report[ITERATIONS] + 1)
        growth[report[ITERATIONS]] = report[CHANGES] - start
        report[ITERATIONS] += 1
        if report[CHANGES] == start:
            iteration = next_due(waiting.heads, iteration + 1)
            continue
        if iteration >= limit:
            outcome = DIVERGED
            break
        iteration += 1
        waiting = Waiting(waiting.entries, grown_heads(waiting.heads, iteration))
        for n in range(len(chains)):
            seen, waiting, derived = join_changes(
                directories, chains[n], moves, width, changed, report[CHANGES] - start, iteration, seen, waiting, derived, hits, report
            )

    if report[OVERFLOWED] != 0:
        outcome = OVERFLOW
    return (
        outcome,
        cut(derivations, 0, report[DERIVATIONS], lent, division),
        cut(changes, start if outcome == DIVERGED else 0, report[CHANGES], lent, division),
        summed(seen.records, report[ROWS], width, room, division),
        growth[: report[ITERATIONS]].copy(),
    )
