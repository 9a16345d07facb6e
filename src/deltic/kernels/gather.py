"""The kernel that merges a few small batches at once: their rows are copied, sorted together and indexed, in one call."""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel
from deltic.kernels.index import BY_SECOND, index_room, index_words
from deltic.kernels.instructions import ENTRY_BUILD_INDEX, ENTRY_CONSOLIDATE, ENTRY_SORTEDNESS, copy_words, fill
from deltic.kernels.linked import call
from deltic.kernels.memory import Words, address_of, load, store
from deltic.kernels.merge import BATCH_INDEX, BATCH_ROWS, DIRECTORY_HEADER


@kernel("int64(int64[::1], int64, int64, int64[::1], int64, int64[::1], int64[::1])")
def gather(directory: Words, columns: int, weights: int, copies: Words, target: int, entry: Words, entries: Words) -> int:
    """Writes the sum of the batches of a directory to `target`: columns, weights and index, one after another, and its entry.

    copies: room for the words of all rows. target: room for `gathered_words`. entries: the addresses of kernels.
    Returns the rows; -1 on weight overflow.
    """
    width = columns + weights
    rows, source, merged = len(copies) // width, np.empty(width, np.int64), np.empty(width, np.int64)
    end = address_of(copies)
    for c in range(width):
        source[c], merged[c] = end, target + 8 * rows * c
        for at in range(0, len(directory), DIRECTORY_HEADER + width):
            copy_words(end, directory[at + DIRECTORY_HEADER + c], directory[at + BATCH_ROWS])
            end += 8 * directory[at + BATCH_ROWS]
    ascending = call(entries[ENTRY_SORTEDNESS], (source, columns, weights, rows))
    groups = call(entries[ENTRY_CONSOLIDATE], (source, columns, weights, rows, merged, ascending))
    if groups < 0:
        return -1
    for c in range(width):
        place = target + 8 * groups * c
        for i in range(groups if groups < rows else 0):  # to the left, the first word first
            store(place, i, load(merged[c], i))
        entry[DIRECTORY_HEADER + c] = place
    room, index = index_room(groups), target + 8 * groups * width
    fill(index, 0, index_words(room, BY_SECOND))
    call(entries[ENTRY_BUILD_INDEX], (target, entry[DIRECTORY_HEADER + 1] if columns > 1 else 0, groups, index, room))
    entry[BATCH_ROWS], entry[BATCH_INDEX] = groups, index
    return groups


def gathered_words(width: int, rows: int) -> int:
    """The most words that so many rows of so many columns and weights take, with their index."""
    return width * rows + index_words(index_room(rows), BY_SECOND)
