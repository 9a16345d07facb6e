"""The kernel that runs a linear recursion to its fixed point: distinct over what joins of the recursive relation with others yield.

X(n+1) = distinct(base ⊎ π(X(n) ⋈ E) ⊎ …): all iterations of one tick in one call, over the spines as they lie. Rows of X that the tick
meets are kept in a hash table, each with its history: the weights with which it was derived in past epochs, by iteration. What is derived
at an iteration waits in that iteration's list. The rules are theory.md's, section 1: a change of E meets all past rows of X, whose
products are due at their iterations; a row that is looked at is looked at again at the later iterations of its history.

Directories are those of `merge.py`, laid one behind the other in one array. A chain is one join with another relation, a row of `chains`.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, load, product_overflows
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import BLOCK, seek_block
from deltic.kernels.vector import mix

KEY, OTHER_AT, OTHER_BATCHES, OTHER_COLUMNS, MINE_AT, MINE_BATCHES, MINE_COLUMNS, CHANGE_AT, CHANGE_ROWS, MOVES_AT, CHAIN = range(11)
"""Words of a chain: how many words its key has; where in the directories the other relation is, its batches and columns (as of now); the
same of the recursive relation as it was before the tick, arranged by the key, iterations last; where the other's change is (one batch), and
its rows; where its moves are. And how many words that are.

moves: for each word of a row of the recursive relation as arranged (iteration left out), which word of a row that is; then, for each word
of a derived row, (0 the recursive relation or 1 the other, the word there as arranged).
"""

TOUCHED_ROWS, TOUCHED_JOINS, SOUGHT_ROWS, SOUGHT_JOINS, DERIVED, ITERATIONS, REPORT = range(7)
"""Words of the report: what was inspected for histories and for joins, keys sought for each, rows derived, iterations; their number."""

DONE, OVERFLOW, DIVERGED = 0, 1, 2

SUM, NOW, SEEN, HISTORY, CHANGE, STATE = range(6)
"""What is kept of a row: its weight in this tick's earlier iterations and in this one, the last iteration that looked at it, the first
place of its history (UNKNOWN before it is looked up), the change of its presence; and how many words that are."""

NOTHING, UNKNOWN = -1, -2
FAR = 1 << 62


@part
def grown(words: Words, room: int) -> Words:
    """The words with room for at least `room`."""
    if room <= len(words):
        return words
    larger = np.empty(max(room, 2 * len(words)), np.int64)
    larger[: len(words)] = words
    return larger


@part
def grown_rows(rows: Words, room: int) -> Words:
    """A table of rows with room for at least `room` rows."""
    if room <= len(rows):
        return rows
    larger = np.empty((max(room, 2 * len(rows)), rows.shape[1]), np.int64)
    larger[: len(rows)] = rows
    return larger


@part
def hash_row(row: Words, width: int) -> int:
    """A hash of a row's words, its low bits included."""
    state = np.uint64(width)
    for c in range(width):
        state = mix(state ^ np.uint64(row[c])) + np.uint64(0x9E3779B97F4A7C15)
    hashed: int = np.int64(mix(state) >> np.uint64(2))
    return hashed


@part
def grown_slots(slots: Words, rows: Words, count: int, width: int, room: int) -> Words:
    """A hash table with place for `room` rows, and the `count` rows in it."""
    if 2 * room <= len(slots):
        return slots
    size = len(slots)
    while size < 2 * room:
        size *= 2
    larger = np.full(size, NOTHING, np.int64)
    for r in range(count):
        place = hash_row(rows[r], width) & (size - 1)
        while larger[place] >= 0:
            place = (place + 1) & (size - 1)
        larger[place] = r
    return larger


@part
def find_row(slots: Words, rows: Words, state: Words, count: int, row: Words, width: int) -> int:
    """The number of the row, which is `count` if it is new, and then entered."""
    mask = len(slots) - 1
    place = hash_row(row, width) & mask
    while slots[place] >= 0:
        r: int = slots[place]
        same = True
        for c in range(width):
            same &= rows[r, c] == row[c]
        if same:
            return r
        place = (place + 1) & mask
    slots[place] = count
    for c in range(width):
        rows[count, c] = row[c]
    state[count, SUM] = state[count, NOW] = state[count, CHANGE] = 0
    state[count, SEEN] = NOTHING
    state[count, HISTORY] = UNKNOWN
    return count


@part
def grown_heads(heads: Words, iteration: int) -> Words:
    """Lists of iterations, at least up to this one."""
    if iteration < len(heads):
        return heads
    larger = np.full(max(iteration + 1, 2 * len(heads)), NOTHING, np.int64)
    larger[: len(heads)] = heads
    return larger


@part
def derived_row(row: Words, width: int, moves: Words, out: int, mine: Words, others: Words, other: int) -> None:
    """row = the words of a derived row: from `mine`, and from row `other` of the columns `others`."""
    for c in range(width):
        word = moves[out + 2 * c + 1]
        row[c] = mine[word] if moves[out + 2 * c] == 0 else load(others[word], other)


@part
def read_histories(
    directories: Words, at: int, batches: int, width: int, rows: Words, fresh: Words, count: int, state: Words, history: Words, used: int
) -> tuple[Words, int, int]:
    """Looks the rows fresh[:count] up among past derivations: (history, its entries, what was inspected).

    An entry is (iteration, weight, next entry of the row).
    """
    stride = DIRECTORY_HEADER + width + 2
    keys = np.empty((width, BLOCK), np.int64)
    table = np.empty(width, np.int64)
    for c in range(width):
        table[c] = keys[c].ctypes.data
    who = np.empty(BLOCK, np.int64)
    low = np.empty(BLOCK, np.int64)
    high = np.empty(BLOCK, np.int64)
    touched = 0
    for first in range(0, count, BLOCK):
        block = min(BLOCK, count - first)
        for i in range(block):
            state[fresh[first + i], HISTORY] = NOTHING
            for c in range(width):
                keys[c, i] = rows[fresh[first + i], c]
        for b in range(batches):
            place = at + b * stride
            found, inspected = seek_block(directories[place:], 0, table, width, 0, block, who, low, high)
            touched += inspected
            iterations = directories[place + DIRECTORY_HEADER + width]
            weights = directories[place + DIRECTORY_HEADER + width + 1]
            for h in range(found):
                r = fresh[first + who[h]]
                history = grown_rows(history, used + high[h] - low[h])
                for k in range(low[h], high[h]):
                    history[used, 0], history[used, 1] = load(iterations, k), load(weights, k)
                    history[used, 2] = state[r, HISTORY]
                    state[r, HISTORY] = used
                    used += 1
                touched += high[h] - low[h]
    return history, used, touched


@part
def step_row(state: Words, r: int, history: Words, iteration: int) -> tuple[int, int, bool]:
    """Looks at a row: (the change of its presence at this iteration, the next iteration of its history or FAR, within 64 bits)."""
    before = at = 0
    later = FAR
    safe = True
    entry = state[r, HISTORY]
    while entry >= 0:
        when, weight = history[entry, 0], history[entry, 1]
        if when < iteration:
            total = before + weight
            safe &= ((total ^ before) & (total ^ weight)) >= 0
            before = total
        elif when == iteration:
            total = at + weight
            safe &= ((total ^ at) & (total ^ weight)) >= 0
            at = total
        else:
            later = min(later, when)
        entry = history[entry, 2]
    old, new, now = before + at, before + state[r, SUM], state[r, SUM] + state[r, NOW]
    all_ = old + now
    safe &= ((old ^ before) & (old ^ at)) >= 0 and ((new ^ before) & (new ^ state[r, SUM])) >= 0
    safe &= ((now ^ state[r, SUM]) & (now ^ state[r, NOW])) >= 0 and ((all_ ^ old) & (all_ ^ now)) >= 0
    change = np.int64(all_ > 0) - np.int64(new > 0) - np.int64(old > 0) + np.int64(before > 0)
    state[r, SUM] = now
    return change, later, safe


@part
def by_column(rows: Words, width: int, entries: Words, count: int) -> Words:
    """Columns of the entries' rows, then of their other words."""
    out = np.empty((width + entries.shape[1] - 1, count), np.int64)
    for k in range(count):
        r = entries[k, 0]
        for c in range(width):
            out[c, k] = rows[r, c]
        for c in range(1, entries.shape[1]):
            out[width + c - 1, k] = entries[k, c]
    return out


@kernel(
    "Tuple((int64, int64[:,::1], int64[:,::1], int64[:,::1], int64[::1]))"
    "(int64[::1], int64[:,::1], int64[::1], int64[::1], int64, int64, int64, int64, int64, int64[::1])"
)
def fixpoint(
    directories: Words,
    chains: Words,
    moves: Words,
    base: Words,
    base_rows: int,
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
    rows, state = np.empty((256, width), np.int64), np.empty((256, STATE), np.int64)
    slots = np.full(512, NOTHING, np.int64)
    count = 0
    waiting = np.empty((256, 3), np.int64)
    waits = 0
    heads = np.full(64, NOTHING, np.int64)
    history = np.empty((256, 3), np.int64)
    known = 0
    derivations = np.empty((256, 3), np.int64)
    derived = 0
    changes = np.empty((256, 3), np.int64)
    changed = 0
    looked, fresh = np.empty(256, np.int64), np.empty(256, np.int64)
    growth = np.empty(64, np.int64)
    who = np.empty(BLOCK, np.int64)
    low = np.empty(BLOCK, np.int64)
    high = np.empty(BLOCK, np.int64)
    row = np.empty(width, np.int64)
    outcome = DONE

    rows, state = grown_rows(rows, base_rows), grown_rows(state, base_rows)
    slots = grown_slots(slots, rows, count, width, base_rows)
    waiting = grown_rows(waiting, base_rows)
    for k in range(base_rows):
        for c in range(width):
            row[c] = load(base[c], k)
        r = find_row(slots, rows, state, count, row, width)
        count = max(count, r + 1)
        waiting[waits, 0], waiting[waits, 1], waiting[waits, 2] = r, load(base[width], k), heads[0]
        heads[0] = waits
        waits += 1

    for n in range(len(chains)):
        chain = chains[n]
        key, columns = chain[KEY], chain[MINE_COLUMNS]
        stride = DIRECTORY_HEADER + columns + 1
        out = chain[MOVES_AT] + columns - 1
        others = directories[chain[CHANGE_AT] + DIRECTORY_HEADER :]
        weights = others[chain[OTHER_COLUMNS]]
        mine = np.empty(columns, np.int64)
        for first in range(0, chain[CHANGE_ROWS], BLOCK):
            block = min(BLOCK, chain[CHANGE_ROWS] - first)
            report[SOUGHT_JOINS] += block
            for b in range(chain[MINE_BATCHES]):
                at = chain[MINE_AT] + b * stride
                found, inspected = seek_block(directories[at:], 0, others, key, first, block, who, low, high)
                report[TOUCHED_JOINS] += inspected
                for h in range(found):
                    more = high[h] - low[h]
                    report[TOUCHED_JOINS] += more
                    rows, state = grown_rows(rows, count + more), grown_rows(state, count + more)
                    slots = grown_slots(slots, rows, count, width, count + more)
                    waiting = grown_rows(waiting, waits + more)
                    other = first + who[h]
                    for k in range(low[h], high[h]):
                        for c in range(columns):
                            mine[c] = load(directories[at + DIRECTORY_HEADER + c], k)
                        derived_row(row, width, moves, out, mine, others, other)
                        r = find_row(slots, rows, state, count, row, width)
                        count = max(count, r + 1)
                        x, y = load(directories[at + DIRECTORY_HEADER + columns], k), load(weights, other)
                        if product_overflows(x, y):
                            outcome = OVERFLOW
                        iteration = mine[columns - 1]
                        heads = grown_heads(heads, iteration)
                        waiting[waits, 0], waiting[waits, 1], waiting[waits, 2] = r, x * y, heads[iteration]
                        heads[iteration] = waits
                        waits += 1

    iteration = steps = 0
    while outcome == DONE:
        looked, fresh = grown(looked, count), grown(fresh, count)
        looks = unknown = 0
        entry = heads[iteration]
        heads[iteration] = NOTHING
        while entry >= 0:
            r = waiting[entry, 0]
            if state[r, SEEN] != iteration:
                state[r, SEEN] = iteration
                state[r, NOW] = 0
                looked[looks] = r
                looks += 1
                if state[r, HISTORY] == UNKNOWN:
                    fresh[unknown] = r
                    unknown += 1
            weight = waiting[entry, 1]
            total = state[r, NOW] + weight
            if ((total ^ state[r, NOW]) & (total ^ weight)) < 0:
                outcome = OVERFLOW
            state[r, NOW] = total
            entry = waiting[entry, 2]
        history, known, touched = read_histories(directories, past_at, past_batches, width, rows, fresh, unknown, state, history, known)
        report[TOUCHED_ROWS] += touched
        report[SOUGHT_ROWS] += unknown

        derivations = grown_rows(derivations, derived + looks)
        waiting = grown_rows(waiting, waits + looks)
        changes = grown_rows(changes, changed + looks)
        start = changed
        for k in range(looks):
            r = looked[k]
            if state[r, NOW] != 0:
                derivations[derived, 0], derivations[derived, 1], derivations[derived, 2] = r, iteration, state[r, NOW]
                derived += 1
            change, later, safe = step_row(state, r, history, iteration)
            if not safe:
                outcome = OVERFLOW
            if later < FAR:
                heads = grown_heads(heads, later)
                waiting[waits, 0], waiting[waits, 1], waiting[waits, 2] = r, 0, heads[later]
                heads[later] = waits
                waits += 1
            if change != 0:
                changes[changed, 0], changes[changed, 1], changes[changed, 2] = r, iteration + 1, change
                changed += 1
                state[r, CHANGE] += change
        growth = grown(growth, steps + 1)
        growth[steps] = changed - start
        steps += 1
        if changed > start and iteration >= limit:
            outcome = DIVERGED
            for k in range(changed - start):
                changes[k] = changes[start + k]
            changed -= start
            break
        if changed == start:
            iteration += 1
            while iteration < len(heads) and heads[iteration] < 0:
                iteration += 1
            if iteration >= len(heads):
                break
            continue

        iteration += 1
        heads = grown_heads(heads, iteration)
        for n in range(len(chains)):
            chain = chains[n]
            key, columns = chain[KEY], chain[OTHER_COLUMNS]
            stride = DIRECTORY_HEADER + columns + 1
            renamed, out = chain[MOVES_AT], chain[MOVES_AT] + chain[MINE_COLUMNS] - 1
            mine = np.empty((BLOCK, chain[MINE_COLUMNS]), np.int64)
            keys = np.empty((key, BLOCK), np.int64)
            table = np.empty(key, np.int64)
            for c in range(key):
                table[c] = keys[c].ctypes.data
            for first in range(start, changed, BLOCK):
                block = min(BLOCK, changed - first)
                report[SOUGHT_JOINS] += block
                for i in range(block):
                    for c in range(chain[MINE_COLUMNS] - 1):
                        mine[i, c] = rows[changes[first + i, 0], moves[renamed + c]]
                    for c in range(key):
                        keys[c, i] = mine[i, c]
                for b in range(chain[OTHER_BATCHES]):
                    at = chain[OTHER_AT] + b * stride
                    found, inspected = seek_block(directories[at:], 0, table, key, 0, block, who, low, high)
                    report[TOUCHED_JOINS] += inspected
                    others = directories[at + DIRECTORY_HEADER :]
                    weights = others[columns]
                    more = 0
                    for h in range(found):
                        more += high[h] - low[h]
                    report[TOUCHED_JOINS] += more
                    rows, state = grown_rows(rows, count + more), grown_rows(state, count + more)
                    slots = grown_slots(slots, rows, count, width, count + more)
                    waiting = grown_rows(waiting, waits + more)
                    for h in range(found):
                        x = changes[first + who[h], 2]
                        for k in range(low[h], high[h]):
                            derived_row(row, width, moves, out, mine[who[h]], others, k)
                            r = find_row(slots, rows, state, count, row, width)
                            count = max(count, r + 1)
                            y = load(weights, k)
                            if product_overflows(x, y):
                                outcome = OVERFLOW
                            waiting[waits, 0], waiting[waits, 1], waiting[waits, 2] = r, x * y, heads[iteration]
                            heads[iteration] = waits
                            waits += 1

    sums = np.empty((count, 2), np.int64)
    summed = 0
    for r in range(count):
        if state[r, CHANGE] != 0:
            sums[summed, 0], sums[summed, 1] = r, state[r, CHANGE]
            summed += 1
    report[DERIVED], report[ITERATIONS] = waits, steps
    return (
        outcome,
        by_column(rows, width, derivations, derived),
        by_column(rows, width, changes, changed),
        by_column(rows, width, sums, summed),
        growth[:steps].copy(),
    )
