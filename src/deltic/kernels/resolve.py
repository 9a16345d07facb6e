"""The kernel that turns the operations on rows with a primary key into the exact change of their table."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, choose, load, store
from deltic.kernels.merge import compare_rows

GIVEN, STORED = range(2)
"""Where a row of the result comes from: an operation, or the table."""
INSERT, DELETE_ROW, UPSERT, DELETE_KEY, UPDATE = range(5)
"""The codes of `deltic.schema.Op`."""
ROWS, ABSENT, DUPLICATE, TIED, REPORT = range(5)
"""Of the report: how many rows are written; the first operations that require a row and meet none, that meet one and require none, and
that are as old as the one before of the same key, as positions in `order`, or -1. And how many words it has."""


@part
def _net(stored: Words, width: int, start: int, end: int) -> int:
    """Which of the stored rows of a key counts once all their weights are added; -1 if none does."""
    if end - start == 1:
        return start
    for j in range(start, end):
        if load(stored[width], j) > 0:
            total = 0
            for k in range(start, end):
                if compare_rows(stored, 0, j, stored, 0, k, width) == 0:
                    total += load(stored[width], k)
            if total > 0:
                return j
    return -1


@part
def _note(source: int, i: int, weight: int, places: Words, weights: int, row: int) -> int:
    """Notes that a row of the result is row i of a source, STORED or GIVEN."""
    places[row] = 2 * i + source
    store(weights, row, weight)
    return row + 1


@part
def _copy(rows: Words, stored: Words, width: int, places: Words, length: int, target: Words) -> None:
    """Writes the noted rows, column by column: a wide table has more columns than a processor follows at a time."""
    for c in range(width):
        given, old, out = rows[c], stored[c], target[c]
        for row in range(length):
            place = places[row]
            store(out, row, load(choose(place & 1 == STORED, old, given), place >> 1))


@part
def _earlier(ordinals: int, order: int, best: int, k: int) -> int:
    """The one of two positions in `order` whose operation is older; `best` may be -1."""
    return k if best < 0 or load(ordinals, load(order, k)) < load(ordinals, load(order, best)) else best


@kernel("int64(int64[::1], int64, int64, int64, int64, int64, int64, int64[::1], int64, int64, int64[::1], int64[::1])")
def resolve(
    rows: Words,
    ops: int,
    ordinals: int,
    order: int,
    n: int,
    width: int,
    key: int,
    stored: Words,
    matches: int,
    sources: int,
    target: Words,
    report: Words,
) -> int:
    """Writes what n operations change, sorted and consolidated: `width` columns, the first `key` of which are the key, and weights. Returns
    how many rows that are.

    rows: columns. order: the positions of the operations by key, those of a key by age. stored: the columns and the weights of the rows
    that the table has of these keys; sources: for each of them the number of its key, ascending. target: room for two rows of each key.
    """
    report[ROWS], report[ABSENT], report[DUPLICATE], report[TIED] = 0, -1, -1, -1
    places = np.empty(2 * n, np.int64)
    weights = target[width]
    k = number = match = 0
    while k < n:
        first = load(order, k)
        start = match
        while match < matches and load(sources, match) == number:
            match += 1
        old = _net(stored, width, start, match) if match > start else -1
        exists, last = old >= 0, -1
        while k < n and compare_rows(rows, 0, load(order, k), rows, 0, first, key) == 0:
            i = load(order, k)
            op = load(ops, i)
            if last >= 0 and load(ordinals, i) == load(ordinals, last) and report[TIED] < 0:
                report[TIED] = k
            if op == INSERT:
                if exists:
                    report[DUPLICATE] = _earlier(ordinals, order, report[DUPLICATE], k)
            elif op != UPSERT:
                agrees = exists
                if exists and op == DELETE_ROW:
                    source, row = (rows, last) if last >= 0 else (stored, old)
                    agrees = compare_rows(rows, key, i, source, key, row, width - key) == 0
                if not agrees:
                    report[ABSENT] = _earlier(ordinals, order, report[ABSENT], k)
            exists = op not in (DELETE_ROW, DELETE_KEY)
            last = i
            k += 1
        number += 1
        out = report[ROWS]
        if old < 0:
            report[ROWS] = _note(GIVEN, last, 1, places, weights, out) if exists else out
        elif not exists:
            report[ROWS] = _note(STORED, old, -1, places, weights, out)
        else:
            compared = compare_rows(stored, key, old, rows, key, last, width - key)
            if compared < 0:
                out = _note(STORED, old, -1, places, weights, out)
                report[ROWS] = _note(GIVEN, last, 1, places, weights, out)
            elif compared > 0:
                out = _note(GIVEN, last, 1, places, weights, out)
                report[ROWS] = _note(STORED, old, -1, places, weights, out)
    _copy(rows, stored, width, places, report[ROWS], target)
    return np.int64(report[ROWS])
