"""The kernel that runs a linear recursion to its fixed point: distinct over what joins of the recursive relation with others yield.

X(n+1) = distinct(base ⊎ π(X(n) ⋈ E) ⊎ …): all iterations of one tick in one call, over the spines as they lie. Rows of X that the tick
meets are kept in a hash table, each with its history (`seen.py`). What is derived at an iteration waits in that iteration's list. The
rules are theory.md's, section 1: a change of E meets all past rows of X, whose products are due at their iterations; a row that is looked
at is looked at again at the later iterations of its history.

Directories are those of `merge.py`, laid one behind the other in one array. A chain is one join with another relation, a row of `chains`.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, load, product_overflows, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import BLOCK, seek_block
from deltic.kernels.seen import (
    CHANGE,
    CHANGES,
    DERIVATIONS,
    DERIVED,
    FAR,
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
    by_column,
    enter,
    grown,
    grown_heads,
    grown_rows,
    read_histories,
    step_row,
    take_due,
    total,
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
    derived = moves.ctypes.data + 8 * (chain[MOVES_AT] + columns - 1)
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
            mine, theirs, row = directories[at + DIRECTORY_HEADER :].ctypes.data, others.ctypes.data, met.ctypes.data
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
    changes: Words,
    start: int,
    seen: Seen,
    waiting: Waiting,
    met: Words,
    found: Found,
    report: Words,
) -> tuple[Seen, Waiting, Words]:
    """Enters what the changes from `start` on derive with the other relation."""
    columns, other_columns, renamed = chain[MINE_COLUMNS], chain[OTHER_COLUMNS], chain[MOVES_AT]
    who, low, high = found.who, found.low, found.high
    stride, step = DIRECTORY_HEADER + other_columns + 1, 8 * (width + 2)
    derived = moves.ctypes.data + 8 * (renamed + columns - 1)
    changed = np.empty((columns + 1, min(report[CHANGES] - start, BLOCK)), np.int64)
    keys = np.empty(columns + 1, np.int64)
    for c in range(columns + 1):
        keys[c] = changed[c].ctypes.data
    for first in range(start, report[CHANGES], BLOCK):
        block = min(BLOCK, report[CHANGES] - first)
        report[SOUGHT_JOINS] += block
        records = seen.records
        for i in range(block):
            for c in range(columns - 1):
                changed[c, i] = records[changes[first + i, 0], STATE + moves[renamed + c]]
            changed[columns - 1, i], changed[columns, i] = changes[first + i, 1], changes[first + i, 2]
        for b in range(chain[OTHER_BATCHES]):
            at = chain[OTHER_AT] + b * stride
            hits, inspected = seek_block(directories, at, keys, chain[KEY], 0, block, who, low, high)
            rows = total(low, high, hits)
            report[TOUCHED_JOINS] += inspected + rows
            met = grown_rows(met, rows)
            mine, theirs, row = keys.ctypes.data, directories[at + DIRECTORY_HEADER :].ctypes.data, met.ctypes.data
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
    iteration: int,
    derivations: Words,
    changes: Words,
    report: Words,
) -> tuple[Waiting, Words, Words]:
    """Looks at the rows looked[:looks], and notes their derivations and changes; those that have to be looked at later wait."""
    records, heads = seen.records, grown_heads(waiting.heads, report[LATEST])
    derived, changed, waits = report[DERIVATIONS], report[CHANGES], report[DERIVED]
    derivations, changes = grown_rows(derivations, derived + looks), grown_rows(changes, changed + looks)
    entries = grown_rows(waiting.entries, waits + looks)
    first_record, step, first_entry = records.ctypes.data, 8 * records.shape[1], history.ctypes.data
    for k in range(looks):
        r = looked[k]
        if records[r, NOW] != 0:
            derivations[derived, 0], derivations[derived, 1], derivations[derived, 2] = r, iteration, records[r, NOW]
            derived += 1
        change, later, safe = step_row(first_record + r * step, first_entry, iteration)
        if not safe:
            report[OVERFLOWED] = 1
        if later < FAR:
            entries[waits, 0], entries[waits, 1], entries[waits, 2] = r, 0, heads[later]
            heads[later] = waits
            waits += 1
        if change != 0:
            changes[changed, 0], changes[changed, 1], changes[changed, 2] = r, iteration + 1, change
            changed += 1
            records[r, CHANGE] += change
    report[DERIVATIONS], report[CHANGES], report[DERIVED] = derived, changed, waits
    return Waiting(entries, heads), derivations, changes


@part
def next_due(heads: Words, iteration: int) -> int:
    """The first iteration from this one on that something waits for; their number if nothing does."""
    while iteration < len(heads) and heads[iteration] < 0:
        iteration += 1
    return iteration


@part
def summed(records: Words, count: int) -> Words:
    """int64[n, 2]: the rows whose presence has changed in the end, and how."""
    sums = np.empty((count, 2), np.int64)
    used = 0
    for r in range(count):
        sums[used, 0], sums[used, 1] = r, records[r, CHANGE]
        used += np.int64(records[r, CHANGE] != 0)
    return sums[:used]


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
    (row, weight); none of them are in order. On divergence the changes are those of the iteration that was one too many.
    """
    seen = Seen(np.empty((ROOM, STATE + width), np.int64), np.full(2 * ROOM, NOTHING, np.int64))
    waiting = Waiting(np.empty((ROOM, 3), np.int64), np.full(64, NOTHING, np.int64))
    found = Found(np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64))
    history, derivations, changes = np.empty((ROOM, 3), np.int64), np.empty((ROOM, 3), np.int64), np.empty((ROOM, 3), np.int64)
    looked, fresh, growth = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64), np.empty(64, np.int64)
    past = directories[past_at:]
    met = base_rows(base, base_count, width)
    seen, waiting = enter(seen, waiting, met, base_count, width, report)
    for n in range(len(chains)):
        seen, waiting, met = join_past(directories, chains[n], moves, width, seen, waiting, met, found, report)

    outcome, start, iteration = DONE, 0, 0
    while report[OVERFLOWED] == 0 and iteration < len(waiting.heads):
        looked, fresh = grown(looked, report[ROWS]), grown(fresh, report[ROWS])
        looks, unknown = take_due(waiting, seen.records, iteration, looked, fresh, report)
        history = read_histories(past, past_batches, width, seen.records, fresh, unknown, history, found, report)
        start = report[CHANGES]
        waiting, derivations, changes = settle(seen, waiting, looked, looks, history, iteration, derivations, changes, report)
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
            seen, waiting, met = join_changes(directories, chains[n], moves, width, changes, start, seen, waiting, met, found, report)

    if report[OVERFLOWED] != 0:
        outcome = OVERFLOW
    first = start if outcome == DIVERGED else 0
    sums = summed(seen.records, report[ROWS])
    return (
        outcome,
        by_column(seen.records, width, derivations, 0, report[DERIVATIONS]),
        by_column(seen.records, width, changes, first, report[CHANGES]),
        by_column(seen.records, width, sums, 0, len(sums)),
        growth[: report[ITERATIONS]].copy(),
    )
