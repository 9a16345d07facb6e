"""Cuts of several sorted tables at the same rows, so that they can be merged part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from deltic.kernels.memory import Words

Reach = Callable[[int, int], int]
"""(number of a table, row) → the row up to which a part that begins there may extend: at least one more, or the table's length."""
Cut = list[tuple[int, int]]
"""(start, end) of a part's rows in each table."""


def common_cuts(tables: Sequence[Sequence[Words]], lengths: Sequence[int], reach: Reach) -> Iterator[Cut]:
    """The parts, in order: rows that are equal are in one part, and a part is as large as the reach of one of the tables.

    tables: the columns of each; rows strictly ascend. lengths: their rows. O(tables · log rows) for each part.

    >>> list(common_cuts([[np.array([1, 2, 5])], [np.array([2, 9])]], [3, 2], lambda i, row: row + 2))
    [[(0, 2), (0, 1)], [(2, 3), (1, 2)]]
    """
    starts = [0] * len(tables)
    while any(start < length for start, length in zip(starts, lengths, strict=True)):
        ends = [min(reach(i, start), length) for i, (start, length) in enumerate(zip(starts, lengths, strict=True))]
        rows = [_row(table, end) for table, end, length in zip(tables, ends, lengths, strict=True) if end < length]
        if rows:
            bound = min(rows)
            ends = [_first_from(table, bound, start, end) for table, start, end in zip(tables, starts, ends, strict=True)]
        yield list(zip(starts, ends, strict=True))
        starts = ends


def _row(table: Sequence[Words], number: int) -> tuple[int, ...]:
    return tuple(int(column[number]) for column in table)


def _first_from(table: Sequence[Words], row: tuple[int, ...], start: int, end: int) -> int:
    """The first row from `start` on that is not below `row`, or `end`."""
    for column, word in zip(table, row, strict=True):
        words = column[start:end]
        start, end = start + int(np.searchsorted(words, word)), start + int(np.searchsorted(words, word, "right"))
        if start == end:
            break
    return start
