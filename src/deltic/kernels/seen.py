"""Rows that a tick of a recursion meets: each once, by number, in a hash table, with its history; and what waits for its iteration.

The history of a row is the weights with which it was derived in past epochs, by iteration. It is looked up when the row is first looked
at. Rows are entered in blocks, so that the memory works on many of them at a time. What is called for each row is given addresses: with
an array each call would count a reference up and down again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.memory import Words, address_of, load, prefetch, store
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.read import BLOCK, LARGE, seek_block

TOUCHED_ROWS, TOUCHED_JOINS, SOUGHT_ROWS, SOUGHT_JOINS, DERIVED, ITERATIONS = range(6)
"""Words of the report: what was inspected for histories and for joins, keys sought for each, rows derived, iterations."""

ROWS, KNOWN, LATEST, DERIVATIONS, CHANGES, ENTRIES, FREE, OVERFLOWED, REPORT = range(6, 15)
"""How much of each table is used: the rows, their histories (and the latest iteration in these), derivations, changes, entries that wait or
have waited; how many of these are the first that is free again; whether a weight has left 64 bits; and how many words a report has."""

SUM, NOW, LAST, HISTORY, CHANGE, STATE = range(6)
"""What is kept of a row, before its words: its weight in this tick's earlier iterations and in this one, the last iteration that looked at
it, the first place of its history (UNKNOWN before it is looked up), the change of its presence; and how many words that are."""

NOTHING, UNKNOWN = -1, -2
FAR = 1 << 62
MOST = (1 << 63) - 1
LINE_BITS = 3
"""Eight places of the hash table are a cache line."""

NEXT_PLACE = (1 << LINE_BITS) + 1
"""From a place that is taken to the next one: in another line and elsewhere there; being odd, it comes by all places."""

ROOM = 256
"""Rows for which tables have room at first."""

NUMBER_BITS = 32
"""Bits of a row's number; the rest of a place of the hash table is the tag."""


class Seen(NamedTuple):
    """records: int64[room, STATE + width], what is kept of a row, and its words. slots: the hash table, (tag, number of a row) or NOTHING.

    A tag is a part of the row's hash: rows that merely lie where another is sought need not be looked at.
    """

    records: Words
    slots: Words


class Waiting(NamedTuple):
    """entries: int64[room, 3], (row, weight, next entry of the iteration). heads: the first entry of each iteration, or NOTHING."""

    entries: Words
    heads: Words


class Found(NamedTuple):
    """Room for a block of keys: which of them a batch has, and their rows there."""

    who: Words
    low: Words
    high: Words


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
    """Columns, of which so many words are filled, with room for at least `room`."""
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
    """Lists of iterations, at least up to this one."""
    if iteration < len(heads):
        return heads
    larger = np.full(max(iteration + 1, 2 * len(heads)), NOTHING, np.int64)
    larger[: len(heads)] = heads
    return larger


@part
def total(low: Words, high: Words, hits: int) -> int:
    """How many rows the hits have."""
    rows = 0
    for h in range(hits):
        rows += high[h] - low[h]
    return rows


@part
def hash_row(row: int, width: int) -> int:
    """A hash of the words at `row`, its low bits included; rows whose last words are near to each other often lie in one cache line.

    Iterations that go on from each other meet such rows. The line is hashed, and so is where its first row is: ids that are all multiples
    of 8 spread as well.
    """
    state = np.uint64(width)
    last = np.uint64(load(row, width - 1))
    for c in range(width):
        word = np.uint64(load(row, c)) if c < width - 1 else last >> np.uint64(LINE_BITS)
        state = (state ^ word) * np.uint64(0x9E3779B97F4A7C15)
        state ^= state >> np.uint64(32)
    state *= np.uint64(0xD6E8FEB86659FD93)
    state ^= state >> np.uint64(32)
    place = (state + last) & np.uint64((1 << LINE_BITS) - 1)
    hashed: int = np.int64((state >> np.uint64(LINE_BITS) << np.uint64(LINE_BITS) | place) & np.uint64(MOST))
    return hashed


@part
def tagged(hashed: int, r: int) -> int:
    """What the hash table has for row r: the high bits of its hash, and its number."""
    return (hashed >> NUMBER_BITS) << NUMBER_BITS | r


@part
def with_room(seen: Seen, count: int, width: int, room: int) -> Seen:
    """The `count` rows with room for at least `room`."""
    records = grown_rows(seen.records, room)
    size = len(seen.slots)
    if 2 * room <= size:
        return Seen(records, seen.slots)
    while size < 2 * room:
        size *= 4  # entering all rows again costs more than room
    slots = np.full(size, NOTHING, np.int64)
    words, step = address_of(records) + 8 * STATE, 8 * (STATE + width)
    for r in range(count):
        hashed = hash_row(words + r * step, width)
        place = hashed & (size - 1)
        while slots[place] >= 0:
            place = (place + NEXT_PLACE) & (size - 1)
        slots[place] = tagged(hashed, r)
    return Seen(records, slots)


@part
def find_row(records: int, slots: int, mask: int, count: int, row: int, width: int, hashed: int) -> int:
    """The number of the row whose words, at `row`, have this hash; `count` if it is new, and then entered."""
    step = 8 * (STATE + width)
    place = hashed & mask
    slot = load(slots, place)
    while slot >= 0:
        r = slot & ((1 << NUMBER_BITS) - 1)
        if slot == tagged(hashed, r):
            same = True
            for c in range(width):
                same &= load(records + r * step, STATE + c) == load(row, c)
            if same:
                return r
        place = (place + NEXT_PLACE) & mask
        slot = load(slots, place)
    store(slots, place, tagged(hashed, count))
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
    """Enters a row into the list of an iteration, where an entry is free or behind the used ones: (those used, the first that is free)."""
    entry = free if free >= 0 else used
    if free >= 0:
        free = load(entries, 3 * free + 2)
    else:
        used += 1
    store(entries, 3 * entry, row)
    store(entries, 3 * entry + 1, weight)
    store(entries, 3 * entry + 2, load(heads, iteration))
    store(heads, iteration, entry)
    return used, free


@part
def enter(seen: Seen, waiting: Waiting, met: Words, filled: int, width: int, report: Words) -> tuple[Seen, Waiting]:
    """Lets the first `filled` rows of `met` wait for their iterations: words, iteration, weight."""
    count, used, free = report[ROWS], report[ENTRIES], report[FREE]
    seen = with_room(seen, count, width, count + filled)
    entries, heads = grown_rows(waiting.entries, used + filled), waiting.heads
    records, slots, mask = address_of(seen.records), address_of(seen.slots), len(seen.slots) - 1
    waits, rows, step = address_of(entries), address_of(met), 8 * (width + 2)
    hashes = np.empty(min(filled, BLOCK), np.int64)
    for first in range(0, filled, BLOCK):
        block = min(BLOCK, filled - first)
        latest = 0
        for i in range(block):
            hashes[i] = hash_row(rows + (first + i) * step, width)
            latest = max(latest, met[first + i, width])
        heads = grown_heads(heads, latest)
        lists = address_of(heads)
        if mask >= LARGE:
            for i in range(block):
                prefetch(slots, hashes[i] & mask)
        for i in range(block):
            r = find_row(records, slots, mask, count, rows + (first + i) * step, width, hashes[i])
            count = max(count, r + 1)
            iteration, weight = met[first + i, width], met[first + i, width + 1]
            used, free = wait(waits, lists, used, free, r, weight, iteration)
    report[ROWS], report[ENTRIES], report[FREE] = count, used, free
    report[DERIVED] += filled
    return seen, Waiting(entries, heads)


@part
def take_due(waiting: Waiting, records: Words, iteration: int, looked: Words, fresh: Words, report: Words) -> tuple[int, int]:
    """Adds up what waits for the iteration, and lists its rows and those that are new: (how many, how many new ones).

    The entries are free again.
    """
    looks = unknown = 0
    entries = waiting.entries
    entry = waiting.heads[iteration]
    waiting.heads[iteration] = NOTHING
    if entry < 0:
        return 0, 0
    first = last = entry
    while entry >= 0:
        r = entries[entry, 0]
        if records[r, LAST] != iteration:
            records[r, LAST] = iteration
            records[r, NOW] = 0
            looked[looks] = r
            looks += 1
            if records[r, HISTORY] == UNKNOWN:
                fresh[unknown] = r
                unknown += 1
        weight = entries[entry, 1]
        total = records[r, NOW] + weight
        if ((total ^ records[r, NOW]) & (total ^ weight)) < 0:
            report[OVERFLOWED] = 1
        records[r, NOW] = total
        last, entry = entry, entries[entry, 2]
    entries[last, 2], report[FREE] = report[FREE], first
    return looks, unknown


@part
def read_histories(
    past: Words, batches: int, width: int, records: Words, fresh: Words, count: int, history: Words, found: Found, report: Words
) -> Words:
    """Looks the rows fresh[:count] up in the directory of past derivations; gives the history with their entries.

    An entry is (iteration, weight, next entry of the row).
    """
    stride = DIRECTORY_HEADER + width + 2
    keys = np.empty((width, min(count, BLOCK)), np.int64)
    table = np.empty(width, np.int64)
    for c in range(width):
        table[c] = address_of(keys[c])
    who, low, high = found.who, found.low, found.high
    used, latest = report[KNOWN], report[LATEST]
    report[SOUGHT_ROWS] += count
    for first in range(0, count, BLOCK):
        block = min(BLOCK, count - first)
        for i in range(block):
            records[fresh[first + i], HISTORY] = NOTHING
            for c in range(width):
                keys[c, i] = records[fresh[first + i], STATE + c]
        for b in range(batches):
            hits, inspected = seek_block(past, b * stride, table, width, 0, block, who, low, high)
            iterations = past[b * stride + DIRECTORY_HEADER + width]
            weights = past[b * stride + DIRECTORY_HEADER + width + 1]
            rows = total(low, high, hits)
            report[TOUCHED_ROWS] += inspected + rows
            history = grown_rows(history, used + rows)
            for h in range(hits):
                r = fresh[first + who[h]]
                for k in range(low[h], high[h]):
                    iteration = load(iterations, k)
                    latest = max(latest, iteration)
                    history[used, 0], history[used, 1] = iteration, load(weights, k)
                    history[used, 2] = records[r, HISTORY]
                    records[r, HISTORY] = used
                    used += 1
    report[KNOWN], report[LATEST] = used, latest
    return history


@part
def step_row(record: int, history: int, iteration: int) -> tuple[int, int, bool]:
    """Looks at a row: (the change of its presence at this iteration, the next iteration of its history or FAR, within 64 bits)."""
    before = at = 0
    later = FAR
    safe = True
    entry = load(record, HISTORY)
    while entry >= 0:
        when, weight = load(history, 3 * entry), load(history, 3 * entry + 1)
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
        entry = load(history, 3 * entry + 2)
    earlier, here = load(record, SUM), load(record, NOW)
    old, new, now = before + at, before + earlier, earlier + here
    all_ = old + now
    safe &= ((old ^ before) & (old ^ at)) >= 0 and ((new ^ before) & (new ^ earlier)) >= 0
    safe &= ((now ^ earlier) & (now ^ here)) >= 0 and ((all_ ^ old) & (all_ ^ now)) >= 0
    change = np.int64(all_ > 0) - np.int64(new > 0) - np.int64(old > 0) + np.int64(before > 0)
    store(record, SUM, now)
    return change, later, safe
