"""The kernel that runs a linear recursion to its fixed point: distinct over what joins of the recursive relation with others yield.

X(n+1) = distinct(base ⊎ π(X(n) ⋈ E) ⊎ …): all iterations of one tick in one call, over the spines as they lie. Rows of X that the tick
meets are kept in a hash table, each with its history (`seen.py`). What is derived at an iteration waits in that iteration's list. The
rules are those of docs/theory.md (Operators at nested times): a change of E meets all past rows of X, whose products are due at their
iterations; a row that is looked at is looked at again at the later iterations of its history.

Directories are those of `merge.py`, laid one behind the other in one array. A chain is one join with another relation, a row of `chains`.
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
    ROOM,
    ROWS,
    SOUGHT_JOINS,
    STATE,
    TOUCHED_JOINS,
    Found,
    Seen,
    Waiting,
    enter,
    grown,
    grown_columns,
    grown_heads,
    grown_rows,
    read_histories,
    renewed,
    step_row,
    take_due,
    total,
    wait,
)

KEY, OTHER_AT, OTHER_BATCHES, OTHER_COLUMNS, MINE_AT, MINE_BATCHES, MINE_COLUMNS, CHANGE_AT, CHANGE_ROWS, MOVES_AT, CHAIN = range(11)
"""Words of a chain: how many words its key has; where in the directories the other relation is, its batches and columns (as of now); the
same of the recursive relation as it was before the tick, arranged by the key, iterations last; where the other's change is (one batch), and
its rows; where its moves are. And how many words that are.

moves: for each word of a row of the recursive relation as arranged (iteration left out), which word of a row that is; then, for each word
of a derived row, (0 the recursive relation or 1 the other, the word there as arranged).
"""

DONE, OVERFLOW, DIVERGED = 0, 1, 2


@part
def base_rows(base: Words, count: int, width: int) -> Words:
    """The rows that are derived at iteration 0: words, iteration, weight."""
    met = np.empty((max(count, ROOM), width + 2), np.int64)
    for k in range(count):
        for c in range(width):
            met[k, c] = load(base[c], k)
        met[k, width], met[k, width + 1] = 0, load(base[width], k)
    return met


@part
def derive(moves: int, width: int, mine: int, columns: int, i: int, others: int, other_columns: int, j: int, row: int) -> bool:
    """Writes to `row` what row i of `mine` and row j of `others` derive: words, iteration, weight. False if that leaves 64 bits.

    mine, others: tables of so many columns, then the weights. moves: from the words of a derived row on. All are addresses.
    """
    for c in range(width):
        word = load(moves, 2 * c + 1)
        store(row, c, load(load(mine, word), i) if load(moves, 2 * c) == 0 else load(load(others, word), j))
    x, y = load(load(mine, columns), i), load(load(others, other_columns), j)
    store(row, width, load(load(mine, columns - 1), i))
    store(row, width + 1, x * y)
    return not product_overflows(x, y)


@part
def join_past(
    directories: Words,
    chain: Words,
    moves: Words,
    width: int,
    seen: Seen,
    waiting: Waiting,
    met: Words,
    found: Found,
    report: Words,
) -> tuple[Seen, Waiting, Words]:
    """Enters what the other relation's change derives with the past rows of the recursive one."""
    columns, other_columns = chain[MINE_COLUMNS], chain[OTHER_COLUMNS]
    who, low, high = found.who, found.low, found.high
    stride, step = DIRECTORY_HEADER + columns + 1, 8 * (width + 2)
    derived = address_of(moves) + 8 * (chain[MOVES_AT] + columns - 1)
    others = directories[chain[CHANGE_AT] + DIRECTORY_HEADER :]
    for first in range(0, chain[CHANGE_ROWS], BLOCK):
        block = min(BLOCK, chain[CHANGE_ROWS] - first)
        report[SOUGHT_JOINS] += block
        for b in range(chain[MINE_BATCHES]):
            at = chain[MINE_AT] + b * stride
            hits, inspected = seek_block(directories, at, others, chain[KEY], first, block, who, low, high)
            rows = total(low, high, hits)
            report[TOUCHED_JOINS] += inspected + rows
            met = grown_rows(met, rows)
            mine, theirs, row = address_of(directories[at + DIRECTORY_HEADER :]), address_of(others), address_of(met)
            for h in range(hits):
                j = first + who[h]
                for i in range(low[h], high[h]):
                    if not derive(derived, width, mine, columns, i, theirs, other_columns, j, row):
                        report[OVERFLOWED] = 1
                    row += step
            seen, waiting = enter(seen, waiting, met, rows, width, report)
    return seen, waiting, met


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
    met: Words,
    found: Found,
    report: Words,
) -> tuple[Seen, Waiting, Words]:
    """Enters what the changes of an iteration derive with the other relation."""
    columns, other_columns, renamed = chain[MINE_COLUMNS], chain[OTHER_COLUMNS], chain[MOVES_AT]
    who, low, high = found.who, found.low, found.high
    stride, step = DIRECTORY_HEADER + other_columns + 1, 8 * (width + 2)
    derived = address_of(moves) + 8 * (renamed + columns - 1)
    arranged = np.empty((columns + 1, min(changes, BLOCK)), np.int64)
    keys = np.empty(columns + 1, np.int64)
    for c in range(columns + 1):
        keys[c] = address_of(arranged[c])
    for first in range(0, changes, BLOCK):
        block = min(BLOCK, changes - first)
        report[SOUGHT_JOINS] += block
        records = seen.records
        for i in range(block):
            for c in range(columns - 1):
                arranged[c, i] = records[changed[first + i, 0], STATE + moves[renamed + c]]
            arranged[columns - 1, i], arranged[columns, i] = iteration, changed[first + i, 1]
        for b in range(chain[OTHER_BATCHES]):
            at = chain[OTHER_AT] + b * stride
            hits, inspected = seek_block(directories, at, keys, chain[KEY], 0, block, who, low, high)
            rows = total(low, high, hits)
            report[TOUCHED_JOINS] += inspected + rows
            met = grown_rows(met, rows)
            mine, theirs, row = address_of(keys), address_of(directories[at + DIRECTORY_HEADER :]), address_of(met)
            for h in range(hits):
                for j in range(low[h], high[h]):
                    if not derive(derived, width, mine, columns, who[h], theirs, other_columns, j, row):
                        report[OVERFLOWED] = 1
                    row += step
            seen, waiting = enter(seen, waiting, met, rows, width, report)
    return seen, waiting, met


@part
def settle(
    seen: Seen,
    waiting: Waiting,
    looked: Words,
    looks: int,
    history: Words,
    width: int,
    iteration: int,
    derivations: Words,
    changes: Words,
    changed: Words,
    report: Words,
) -> tuple[Waiting, Words, Words, Words]:
    """Looks at the rows looked[:looks], and notes their derivations and changes; those that have to be looked at later wait.

    changed: (row, weight) of the changes of this iteration alone.
    """
    derived, done, used, free = report[DERIVATIONS], report[CHANGES], report[ENTRIES], report[FREE]
    heads, entries = grown_heads(waiting.heads, report[LATEST]), grown_rows(waiting.entries, used + looks)
    derivations, changes = grown_columns(derivations, derived, derived + looks), grown_columns(changes, done, done + looks)
    changed = changed if looks <= len(changed) else np.empty((2 * looks, 2), np.int64)
    first_record, step, first_entry = address_of(seen.records), 8 * seen.records.shape[1], address_of(history)
    waits, lists = address_of(entries), address_of(heads)
    derived_rows, changed_rows = address_of(derivations), address_of(changes)
    count = 0
    for k in range(looks):
        record = first_record + looked[k] * step
        if load(record, NOW) != 0:
            write_row(derived_rows, derivations.shape[1], derived, record, width, iteration, load(record, NOW))
            derived += 1
        change, later, safe = step_row(record, first_entry, iteration)
        if not safe:
            report[OVERFLOWED] = 1
        if later < FAR:
            used, free = wait(waits, lists, used, free, looked[k], 0, later)
        if change != 0:
            write_row(changed_rows, changes.shape[1], done + count, record, width, iteration + 1, change)
            changed[count, 0], changed[count, 1] = looked[k], change
            count += 1
            store(record, CHANGE, load(record, CHANGE) + change)
    report[DERIVATIONS], report[CHANGES], report[ENTRIES], report[FREE] = derived, done + count, used, free
    return Waiting(entries, heads), derivations, changes, changed


@part
def write_row(columns: int, room: int, at: int, record: int, width: int, iteration: int, weight: int) -> None:
    """Writes a row's words, an iteration and a weight to place `at` of columns with so much room each."""
    for c in range(width):
        store(columns + 8 * room * c, at, load(record, STATE + c))
    store(columns + 8 * room * width, at, iteration)
    store(columns + 8 * room * (width + 1), at, weight)


@part
def next_due(heads: Words, iteration: int) -> int:
    """The first iteration from this one on that something waits for; their number if nothing does."""
    while iteration < len(heads) and heads[iteration] < 0:
        iteration += 1
    return iteration


@part
def cut(columns: Words, start: int, end: int) -> Words:
    """Columns that begin with rows start to end; copied unless these are most of what there is."""
    return columns if start == 0 and 2 * end > columns.shape[1] else columns[:, start:end].copy()


@part
def summed(records: Words, count: int, width: int) -> Words:
    """Columns of the rows whose presence has changed in the end, and how."""
    rows = 0
    for r in range(count):
        rows += np.int64(records[r, CHANGE] != 0)
    sums = np.empty((width + 1, rows), np.int64)
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
    "(int64[::1], int64[:,::1], int64[::1], int64[::1], int64, int64, int64, int64, int64, int64[::1])"
)
def fixpoint(
    directories: Words,
    chains: Words,
    moves: Words,
    base: Words,
    base_count: int,
    past_at: int,
    past_batches: int,
    width: int,
    limit: int,
    report: Words,
) -> tuple[int, Words, Words, Words, Words]:
    """Runs to the fixed point: (outcome, derivations, changes by iteration, their sums, how many rows changed in each iteration).

    base: columns of `width` words and a weight, the change of what is derived at iteration 0. past: the directory of past derivations, by
    row and iteration. Derivations are columns (row, iteration, weight), changes (row, iteration at which the joins see them, weight), sums
    (row, weight); none of them are in order, and columns may be longer than the report says. On divergence the changes are those of the
    iteration that was one too many.
    """
    seen = Seen(np.empty((ROOM, STATE + width), np.int64), np.full(2 * ROOM, NOTHING, np.int64))
    waiting = Waiting(np.empty((ROOM, 3), np.int64), np.full(64, NOTHING, np.int64))
    found = Found(np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64))
    derivations, changes = np.empty((width + 2, ROOM), np.int64), np.empty((width + 2, ROOM), np.int64)
    history, changed = np.empty((ROOM, 3), np.int64), np.empty((ROOM, 2), np.int64)
    looked, fresh, growth = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64), np.empty(64, np.int64)
    report[FREE] = NOTHING
    past = directories[past_at:]
    met = base_rows(base, base_count, width)
    seen, waiting = enter(seen, waiting, met, base_count, width, report)
    for n in range(len(chains)):
        seen, waiting, met = join_past(directories, chains[n], moves, width, seen, waiting, met, found, report)

    outcome, start, iteration = DONE, 0, 0
    while report[OVERFLOWED] == 0 and iteration < len(waiting.heads):
        looked, fresh = renewed(looked, report[ROWS]), renewed(fresh, report[ROWS])
        looks, unknown = take_due(waiting, seen.records, iteration, looked, fresh, report)
        history = read_histories(past, past_batches, width, seen.records, fresh, unknown, history, found, report)
        start = report[CHANGES]
        waiting, derivations, changes, changed = settle(
            seen, waiting, looked, looks, history, width, iteration, derivations, changes, changed, report
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
            seen, waiting, met = join_changes(
                directories, chains[n], moves, width, changed, report[CHANGES] - start, iteration, seen, waiting, met, found, report
            )

    if report[OVERFLOWED] != 0:
        outcome = OVERFLOW
    return (
        outcome,
        cut(derivations, 0, report[DERIVATIONS]),
        cut(changes, start if outcome == DIVERGED else 0, report[CHANGES]),
        summed(seen.records, report[ROWS], width),
        growth[: report[ITERATIONS]].copy(),
    )
