"""The rows that a tick of a recursion adds to its relations, each with the iteration at which it was added, linked by key.

Rows are only added. Every row belongs to a collection; in a collection with a key, rows with the same key are a list, the newest first.
One hash table has the newest row of each key of all collections. Keys are hashed under a number of the process, so that crafted values
cannot crowd a part of the table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.memory import Words, address_of, load, store
from deltic.kernels.seen import NOTHING, PROBE_STEP, grown_rows, hash_row
from deltic.kernels.seen import REPORT as SEEN_REPORT

COLLECTION, NEXT, DEPTH, ITERATION, WEIGHT, WORDS = range(6)
"""Words of a row before its own: the collection, the next older row with its key or NOTHING, how many rows its list has, the iteration,
the weight. And how many words that are."""

ADDED, KEYS, REPORT = range(SEEN_REPORT, SEEN_REPORT + 3)
"""More words of the report: rows, keys in the hash table. And how many words a report has."""

SPAN_START, SPAN_END, SPAN = range(3)
"""Words of a span: rows [start, end) are what a collection has got in an iteration. And how many words that are."""


class Added(NamedTuple):
    """rows: int64[room, WORDS + width]. slots: the hash table, numbers of rows or NOTHING. keys: int64[collections], how many leading words
    are the key of a collection, -1 for none. hash_key: of the hash."""

    rows: Words
    slots: Words
    keys: Words
    hash_key: int


@part
def hash_key(words: int, width: int, collection: int, key: int) -> int:
    """A hash of the `width` words at `words` as a key of the collection, not negative."""
    return hash_row(words, width, key ^ (collection << 8)) if width > 0 else collection


@part
def has_key(row: int, collection: int, words: int, width: int) -> bool:
    """Whether the row at `row` is one of the collection and begins with the `width` words at `words`."""
    same = load(row, COLLECTION) == collection
    for c in range(width):
        same &= load(row, WORDS + c) == load(words, c)
    return same


@part
def with_added(added: Added, more: int, report: Words) -> Added:
    """The table with room for `more` rows."""
    rows, size = grown_rows(added.rows, report[ADDED] + more), len(added.slots)
    if 2 * (report[KEYS] + more) <= size:
        return Added(rows, added.slots, added.keys, added.hash_key)
    while size < 2 * (report[KEYS] + more):
        size *= 4
    slots = np.full(size, NOTHING, np.int64)
    first, step = address_of(rows), 8 * rows.shape[1]
    for number in added.slots:
        if number >= 0:
            row = first + number * step
            collection = load(row, COLLECTION)
            position = hash_key(row + 8 * WORDS, added.keys[collection], collection, added.hash_key) & (size - 1)
            while slots[position] >= 0:
                position = (position + PROBE_STEP) & (size - 1)
            slots[position] = number
    return Added(rows, slots, added.keys, added.hash_key)


@part
def slot_of(rows: int, step: int, slots: int, mask: int, collection: int, words: int, width: int, key: int) -> int:
    """The slot of the key at `words`, or the free one where it belongs."""
    position = hash_key(words, width, collection, key) & mask
    number = load(slots, position)
    while number >= 0 and not has_key(rows + number * step, collection, words, width):
        position = (position + PROBE_STEP) & mask
        number = load(slots, position)
    return position


@part
def link(rows: int, step: int, slots: int, mask: int, number: int, width: int, key: int) -> int:
    """Puts a new row first in the list of its key; returns how many keys are new."""
    row = rows + number * step
    slot = slot_of(rows, step, slots, mask, load(row, COLLECTION), row + 8 * WORDS, width, key)
    older = load(slots, slot)
    store(slots, slot, number)
    store(row, NEXT, older)
    store(row, DEPTH, 1 if older < 0 else 1 + load(rows + older * step, DEPTH))
    return np.int64(older < 0)


@part
def add_moved(added: Added, source: int, span: Words, collection: int, moves: Words, report: Words) -> Added:
    """Adds the rows of `span`, with their words moved, to a collection. moves: for each word, which word of a row it is."""
    start, count = span[SPAN_START], span[SPAN_END] - span[SPAN_START]
    added = with_added(added, count, report)
    rows, step, slots, mask = address_of(added.rows), 8 * added.rows.shape[1], address_of(added.slots), len(added.slots) - 1
    key = added.keys[collection]
    for i in range(count):
        number = report[ADDED] + i
        row, old = rows + number * step, rows + (start + i) * step
        store(row, COLLECTION, collection)
        store(row, ITERATION, load(old, ITERATION))
        store(row, WEIGHT, load(old, WEIGHT))
        for c in range(len(moves)):
            store(row, WORDS + c, load(old, WORDS + moves[c]))
        if key >= 0:
            report[KEYS] += link(rows, step, slots, mask, number, key, added.hash_key)
    report[ADDED] += count
    return added


@part
def add_columns(added: Added, columns: Words, count: int, collection: int, width: int, report: Words) -> Added:
    """Adds rows at iteration 0. columns: the addresses of their words and weights, in a collection without a key."""
    added = with_added(added, count, report)
    for i in range(count):
        row = added.rows[report[ADDED] + i]
        row[COLLECTION], row[ITERATION], row[WEIGHT] = collection, 0, load(columns[width], i)
        for c in range(width):
            row[WORDS + c] = load(columns[c], i)
    report[ADDED] += count
    return added
