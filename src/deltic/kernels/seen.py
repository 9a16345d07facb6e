"""The rows that a tick of a recursion derives: each once, by number, in a hash table, with its history; and lists of rows by iteration.

The history of a row is the weights with which it was derived in past epochs, by iteration. It is looked up when the row is first visited.
Rows are entered in blocks, so that memory serves many of them at a time. Functions that are called for each row take addresses: with arrays
each call would count references. Rows are hashed under a key of the process, so that crafted values cannot crowd a part of the table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.memory import Words, address_of, load, prefetch, store
from deltic.kernels.merge import BATCH_ROWS, DIRECTORY_HEADER
from deltic.kernels.read import BLOCK, LARGE, seek_block

TOUCHED_ROWS, TOUCHED_JOINS, SOUGHT_ROWS, SOUGHT_JOINS, DERIVED, ITERATIONS = range(6)
"""Words of the report: what was inspected for histories and for joins, keys sought for each, rows derived, iterations."""

ROWS, KNOWN, LATEST, DERIVATIONS, CHANGES, ENTRIES, FREE, OVERFLOWED, REPORT = range(6, 15)
"""More words of it, how much of each table is used: the rows, their histories (and the latest iteration in these), derivations, changes,
entries of the lists; the first entry that is free again, or NOTHING; whether a weight has left 64 bits. And how many words a report has."""

SUM, NOW, LAST, HISTORY, CHANGE, STATE = range(6)
"""Words of a record before those of its row: the row's weight in this tick's earlier iterations and in this one, the last iteration that
visited it, the first entry of its history (UNKNOWN before it is looked up), the change of its presence. And how many words that are."""

WAITING_ROW, WAITING_WEIGHT, WAITING_NEXT, WAITING = range(4)
"""Words of an entry of a list: the number of the row, a weight, the next entry or NOTHING. And how many words that are."""

PAST_ITERATION, PAST_WEIGHT, PAST_NEXT, PAST = range(4)
"""Words of an entry of a history: the iteration, the weight, the row's next entry or NOTHING. And how many words that are."""

NOTHING, UNKNOWN = -1, -2
FAR = 1 << 62
MOST = (1 << 63) - 1
LINE_BITS = 3
"""Eight slots of the hash table are a cache line."""

PROBE_STEP = (1 << LINE_BITS) + 1
"""From a slot in use to the next one to try: in another line and elsewhere in it; being odd, it reaches all slots."""

ROOM = 256
"""Rows for which tables have room at first."""

SLOTS = 2
"""Slots of the hash table for a row, at least."""

NUMBER_BITS = 32
"""Bits of a row's number; the rest of a slot of the hash table is the tag."""


class Seen(NamedTuple):
    """records: int64[room, STATE + width]. slots: the hash table, (tag, number of a row) or NOTHING. key: of the hash. lent: memory for
    slots, the first of which `slots` may be.

    A tag is a part of the row's hash: rows with other tags need not be compared.
    """

    records: Words
    slots: Words
    key: int
    lent: Words


class Waiting(NamedTuple):
    """Lists of rows to visit. entries: int64[room, WAITING]. heads: the first entry of each iteration, or NOTHING."""

    entries: Words
    heads: Words


class KeyHits(NamedTuple):
    """Room for a block of keys: their words, int64[most words, BLOCK], and the addresses of these; the positions of those that a batch has,
    and their rows [low, high) there.
    """

    words: Words
    table: Words
    keys: Words
    low: Words
    high: Words


@part
def key_hits(width: int) -> KeyHits:
    """For keys of at most so many words."""
    words, table = np.empty((width, BLOCK), np.int64), np.empty(width, np.int64)
    for c in range(width):
        table[c] = address_of(words[c])
    return KeyHits(words, table, np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64))


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
def grown_columns(columns: Words, filled: int, room: int) -> Words:
    """Columns, of which `filled` words each are in use, with room for at least `room`."""
    if room <= columns.shape[1]:
        return columns
    larger = np.empty((len(columns), max(room, 2 * columns.shape[1])), np.int64)
    larger[:, :filled] = columns[:, :filled]
    return larger


@part
def renewed(words: Words, room: int) -> Words:
    """Room for at least `room` words, of any content."""
    return words if room <= len(words) else np.empty(max(room, 2 * len(words)), np.int64)


@part
def grown_heads(heads: Words, iteration: int) -> Words:
    """The heads of lists, with one for this iteration at least."""
    if iteration < len(heads):
        return heads
    larger = np.full(max(iteration + 1, 2 * len(heads)), NOTHING, np.int64)
    larger[: len(heads)] = heads
    return larger


@part
def total(low: Words, high: Words, hits: int) -> int:
    """How many rows the first `hits` hits have."""
    rows = 0
    for h in range(hits):
        rows += high[h] - low[h]
    return rows


@part
def hash_row(row: int, width: int, key: int) -> int:
    """A hash of the words at `row`, not negative; rows whose last words differ in their low bits alone are in one cache line.

    Successive iterations derive such rows. The line is hashed, and so is the position in it, so that words that are all multiples of 8
    spread as well.
    """
    state = np.uint64(key) ^ np.uint64(width)
    last = np.uint64(load(row, width - 1))
    for c in range(width):
        word = np.uint64(load(row, c)) if c < width - 1 else last >> np.uint64(LINE_BITS)
        state = (state ^ word) * np.uint64(0x9E3779B97F4A7C15)
        state ^= state >> np.uint64(32)
    state *= np.uint64(0xD6E8FEB86659FD93)
    state ^= state >> np.uint64(32)
    position = (state + last) & np.uint64((1 << LINE_BITS) - 1)
    hashed: int = np.int64((state >> np.uint64(LINE_BITS) << np.uint64(LINE_BITS) | position) & np.uint64(MOST))
    return hashed


@part
def tagged(hashed: int, r: int) -> int:
    """The slot of row r: the high bits of its hash, and its number."""
    return (hashed >> NUMBER_BITS) << NUMBER_BITS | r


@part
def empty_slots(size: int, lent: Words) -> Words:
    """So many slots without rows, in the memory that is lent if there is room."""
    slots = lent[:size] if size <= len(lent) else np.empty(size, np.int64)
    slots[:] = NOTHING
    return slots


@part
def with_room(seen: Seen, count: int, width: int, room: int) -> Seen:
    """The table of `count` rows with room for at least `room`."""
    records = grown_rows(seen.records, room)
    size = len(seen.slots)
    if SLOTS * room <= size:
        return Seen(records, seen.slots, seen.key, seen.lent)
    while size < SLOTS * room:
        size *= 4  # entering all rows again costs more than memory
    slots = empty_slots(size, seen.lent)
    words, step = address_of(records) + 8 * STATE, 8 * (STATE + width)
    for r in range(count):
        hashed = hash_row(words + r * step, width, seen.key)
        position = hashed & (size - 1)
        while slots[position] >= 0:
            position = (position + PROBE_STEP) & (size - 1)
        slots[position] = tagged(hashed, r)
    return Seen(records, slots, seen.key, seen.lent)


@part
def find_row(records: int, slots: int, mask: int, count: int, row: int, width: int, hashed: int) -> int:
    """The number of the row whose words, at `row`, have this hash; `count` if it is new, and then entered."""
    step = 8 * (STATE + width)
    position = hashed & mask
    slot = load(slots, position)
    while slot >= 0:
        r = slot & ((1 << NUMBER_BITS) - 1)
        if slot == tagged(hashed, r):
            same = True
            for c in range(width):
                same &= load(records + r * step, STATE + c) == load(row, c)
            if same:
                return r
        position = (position + PROBE_STEP) & mask
        slot = load(slots, position)
    store(slots, position, tagged(hashed, count))
    new = records + count * step
    for c in range(width):
        store(new, STATE + c, load(row, c))
    store(new, SUM, 0)
    store(new, NOW, 0)
    store(new, CHANGE, 0)
    store(new, LAST, NOTHING)
    store(new, HISTORY, UNKNOWN)
    return count


@part
def wait(entries: int, heads: int, used: int, free: int, row: int, weight: int, iteration: int) -> tuple[int, int]:
    """Enters a row into the list of an iteration, in the first free entry or after the used ones: (used entries, the first free one)."""
    number = free if free >= 0 else used
    entry = entries + 8 * WAITING * number
    if free >= 0:
        free = load(entry, WAITING_NEXT)
    else:
        used += 1
    store(entry, WAITING_ROW, row)
    store(entry, WAITING_WEIGHT, weight)
    store(entry, WAITING_NEXT, load(heads, iteration))
    store(heads, iteration, number)
    return used, free


@part
def enter(seen: Seen, waiting: Waiting, derived: Words, filled: int, width: int, report: Words) -> tuple[Seen, Waiting]:
    """Enters the first `filled` rows of `derived`, (words, iteration, weight), into the lists of their iterations."""
    count, used, free = report[ROWS], report[ENTRIES], report[FREE]
    seen = with_room(seen, count, width, count + filled)
    entries, heads = grown_rows(waiting.entries, used + filled), waiting.heads
    records, slots, mask = address_of(seen.records), address_of(seen.slots), len(seen.slots) - 1
    waits, rows, step = address_of(entries), address_of(derived), 8 * (width + 2)
    hashes = np.empty(min(filled, BLOCK), np.int64)
    for first in range(0, filled, BLOCK):
        block = min(BLOCK, filled - first)
        latest = 0
        for i in range(block):
            hashes[i] = hash_row(rows + (first + i) * step, width, seen.key)
            latest = max(latest, derived[first + i, width])
        heads = grown_heads(heads, latest)
        lists = address_of(heads)
        if mask >= LARGE:
            for i in range(block):
                prefetch(slots, hashes[i] & mask)
        for i in range(block):
            r = find_row(records, slots, mask, count, rows + (first + i) * step, width, hashes[i])
            count = max(count, r + 1)
            iteration, weight = derived[first + i, width], derived[first + i, width + 1]
            used, free = wait(waits, lists, used, free, r, weight, iteration)
    report[ROWS], report[ENTRIES], report[FREE] = count, used, free
    report[DERIVED] += filled
    return seen, Waiting(entries, heads)


@part
def take_due(waiting: Waiting, records: Words, iteration: int, visited: Words, fresh: Words, report: Words) -> tuple[int, int]:
    """Adds up the list of the iteration, and lists its rows and those whose history is unknown: (how many, how many unknown).

    Frees the entries.
    """
    visits = unknown = 0
    entries = waiting.entries
    entry = waiting.heads[iteration]
    waiting.heads[iteration] = NOTHING
    if entry < 0:
        return 0, 0
    first = last = entry
    while entry >= 0:
        r = entries[entry, WAITING_ROW]
        if records[r, LAST] != iteration:
            records[r, LAST] = iteration
            records[r, NOW] = 0
            visited[visits] = r
            visits += 1
            if records[r, HISTORY] == UNKNOWN:
                fresh[unknown] = r
                unknown += 1
        weight = entries[entry, WAITING_WEIGHT]
        total = records[r, NOW] + weight
        if ((total ^ records[r, NOW]) & (total ^ weight)) < 0:
            report[OVERFLOWED] = 1
        records[r, NOW] = total
        last, entry = entry, entries[entry, WAITING_NEXT]
    entries[last, WAITING_NEXT], report[FREE] = report[FREE], first
    return visits, unknown


@part
def read_histories(
    past: Words,
    batches: int,
    width: int,
    lead: int,
    relation: int,
    relations: int,
    records: Words,
    fresh: Words,
    count: int,
    history: Words,
    hits: KeyHits,
    report: Words,
) -> Words:
    """Looks the rows fresh[:count] of a relation up in the directory of its past derivations; returns the histories with theirs.

    lead: how many words of a record precede the row. Iteration i of the relation is i * relations + relation in the histories.
    """
    stride = DIRECTORY_HEADER + width + 2
    keys, low, high = hits.words, hits.low, hits.high
    used, latest = report[KNOWN], report[LATEST]
    report[SOUGHT_ROWS] += count
    for first in range(0, count, BLOCK):
        block = min(BLOCK, count - first)
        for i in range(block):
            records[fresh[first + i], HISTORY] = NOTHING
            for c in range(width):
                keys[c, i] = records[fresh[first + i], STATE + lead + c]
        for b in range(batches):
            matches, inspected = seek_block(past, b * stride, hits.table, width, 0, block, hits.keys, low, high)
            iterations = past[b * stride + DIRECTORY_HEADER + width]
            weights = past[b * stride + DIRECTORY_HEADER + width + 1]
            if past[b * stride + BATCH_ROWS] >= LARGE:
                for h in range(matches):
                    prefetch(iterations, low[h])
                    prefetch(weights, low[h])
            rows = total(low, high, matches)
            report[TOUCHED_ROWS] += inspected + rows
            history = grown_rows(history, used + rows)
            for h in range(matches):
                r = fresh[first + hits.keys[h]]
                for k in range(low[h], high[h]):
                    iteration = load(iterations, k) * relations + relation
                    latest = max(latest, iteration)
                    history[used, PAST_ITERATION], history[used, PAST_WEIGHT] = iteration, load(weights, k)
                    history[used, PAST_NEXT] = records[r, HISTORY]
                    records[r, HISTORY] = used
                    used += 1
    report[KNOWN], report[LATEST] = used, latest
    return history


@part
def step_row(record: int, history: int, iteration: int) -> tuple[int, int, bool]:
    """Visits a row: (the change of its presence at this iteration, the next iteration of its history or FAR, whether within 64 bits)."""
    before = past = 0
    later = FAR
    safe = True
    entry = load(record, HISTORY)
    while entry >= 0:
        step = history + 8 * PAST * entry
        when, weight = load(step, PAST_ITERATION), load(step, PAST_WEIGHT)
        if when < iteration:
            total = before + weight
            safe &= ((total ^ before) & (total ^ weight)) >= 0
            before = total
        elif when == iteration:
            total = past + weight
            safe &= ((total ^ past) & (total ^ weight)) >= 0
            past = total
        else:
            later = min(later, when)
        entry = load(step, PAST_NEXT)
    earlier, here = load(record, SUM), load(record, NOW)
    old, new, now = before + past, before + earlier, earlier + here
    all_ = old + now
    safe &= ((old ^ before) & (old ^ past)) >= 0 and ((new ^ before) & (new ^ earlier)) >= 0
    safe &= ((now ^ earlier) & (now ^ here)) >= 0 and ((all_ ^ old) & (all_ ^ now)) >= 0
    change = np.int64(all_ > 0) - np.int64(new > 0) - np.int64(old > 0) + np.int64(before > 0)
    store(record, SUM, now)
    return change, later, safe
