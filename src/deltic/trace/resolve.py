"""What a sequence of operations on rows with a primary key changes in their table, given the rows that it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from deltic.kernels import resolve as kernel
from deltic.kernels.memory import Words
from deltic.kernels.sort import sortedness
from deltic.kernels.table import address, addresses, block
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.probe import probe
from deltic.trace.spine import Spine

NONE: Final = -1
"""The position of no operation."""


class Resolved(NamedTuple):
    """The change; of no use if one of the others is the position of an operation, not NONE.

    absent: the oldest operation that requires a row and meets none, or another. duplicate: the oldest insert that meets a row. tied: an
    operation that is as old as another of its key.
    """

    change: Batch
    absent: int
    duplicate: int
    tied: int


def resolve(rows: Sequence[Words], ops: Words, ordinals: Words, key: int, stored: Spine, counters: Counters) -> Resolved:
    """rows: the words of each operation, the `key` words of the primary key first. ops: codes of Op. O(n · log state + n log n)."""
    n, width = len(ops), len(rows)
    once = np.ones(n, np.int64)
    ascend = sortedness(addresses((*rows[:key], once), n), key, 1, n) == 2  # then each key has one operation
    order = np.arange(n) if ascend else np.lexsort((ordinals, *reversed(rows[:key])))
    keys = rows[:key] if ascend else [column[order] for column in rows[:key]]
    distinct = keys if ascend else _distinct(keys)
    sources, columns, weights = probe(stored, distinct, range(width), counters)
    if not len(sources) and len(distinct[0]) == n and ((ops == kernel.INSERT) | (ops == kernel.UPSERT)).all():  # as in a load
        return Resolved(Batch.trusted(rows if ascend else [column[order] for column in rows], [once]), NONE, NONE, NONE)
    words, target = block(width + 1, 2 * len(distinct[0]))
    report = np.empty(kernel.REPORT, np.int64)
    kernel.resolve(
        addresses(rows, n),
        address(ops),
        address(ordinals),
        address(order),
        n,
        width,
        key,
        addresses((*columns, weights[0]), len(sources)),
        len(sources),
        address(sources),
        target,
        report,
    )
    length = int(report[kernel.ROWS])
    change = Batch.trusted([words[i, :length] for i in range(width)], [words[width, :length]])
    positions = [int(order[k]) if k >= 0 else NONE for k in report[kernel.ABSENT : kernel.REPORT].tolist()]
    return Resolved(change, *positions)


def refused(rows: Sequence[Words], ops: Words, ordinals: Words, key: int, stored: Spine, counters: Counters, most: int) -> list[int]:
    """The positions of the operations that their table refuses, the oldest first, where it applies the others. Arguments as of `resolve`.

    most: of them. key: 0 of a table without a key, of which the rows are counted. O(n · log state + n log n), in Python: for ticks that
    fail.
    """
    by = len(rows) if key == 0 else key
    order = np.lexsort((ordinals, *reversed(rows[:by])))
    _, columns, weights = probe(stored, _distinct([column[order] for column in rows[:by]]), range(len(rows)), counters)
    copies = Counter[tuple[int, ...]]()
    for row, weight in zip(zip(*(column.tolist() for column in columns), strict=True), weights[0].tolist(), strict=True):
        copies[row] += weight
    held = {row[:key]: row for row, count in copies.items() if count > 0} if key else {}
    given, codes, positions = list(zip(*(column.tolist() for column in rows), strict=True)), ops.tolist(), []
    for i in np.argsort(ordinals, kind="stable").tolist():
        row, removes = given[i], codes[i] in (kernel.DELETE_ROW, kernel.DELETE_KEY)
        if not key:
            fits = copies[row] > 0 if removes else True
            copies[row] += (-1 if removes else 1) if fits else 0
        else:
            old = held.get(row[:key])
            fits = _fits(codes[i], row, old)
            if fits and removes:
                del held[row[:key]]
            elif fits:
                held[row[:key]] = row
        if not fits:
            positions.append(i)
            if len(positions) == most:
                break
    return positions


def _fits(op: int, row: tuple[int, ...], old: tuple[int, ...] | None) -> bool:
    """Whether an operation can follow where the table has the row `old` of its key."""
    if op == kernel.INSERT:
        return old is None
    return op == kernel.UPSERT or (old == row if op == kernel.DELETE_ROW else old is not None)


def _distinct(keys: Sequence[Words]) -> Sequence[Words]:
    """The first of each run of equal keys."""
    begins = np.ones(len(keys[0]), bool)
    for i, column in enumerate(keys):
        differs = column[1:] != column[:-1]
        begins[1:] = differs if i == 0 else begins[1:] | differs
    return keys if begins.all() else [column[begins] for column in keys]
