"""The radix index of a batch whose rows arrive in order, part by part; the layout is that of `kernels/index.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from deltic.kernels.index import BUCKETS, INDEX_HEADER, index_room, index_words
from deltic.kernels.memory import WORD_MIN, Words

PIECE: Final = 1 << 20
"""Words that are returned at once."""


class StreamedIndex:
    """leading: the sorted leading columns of all batches that are merged. rows: about how many rows there will be."""

    __slots__ = ("_base", "_begun", "_bucket", "_buckets", "_nulls", "_rows", "_shift", "words")

    def __init__(self, leading: Sequence[Words], rows: int) -> None:
        firsts = [(column, int(np.searchsorted(column, WORD_MIN, "right"))) for column in leading]
        bounds = [(int(column[first]), int(column[-1])) for column, first in firsts if first < len(column)]
        low, high = (min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else (0, 0)
        self._base, self._shift = low, 0
        while (high - low) >> self._shift >= index_room(rows):
            self._shift += 1
        self._buckets = ((high - low) >> self._shift) + 1
        self._nulls = self._rows = self._bucket = 0
        self._begun = False
        self.words: Final = index_words(self._buckets)
        """How many words the index has."""

    def add(self, leading: Words) -> Iterator[Words]:
        """The leading words of the next rows; yields the next words of the index, those that no later row can change."""
        nulls = 0 if self._begun else int(np.searchsorted(leading, WORD_MIN, "right"))
        self._nulls += nulls
        if nulls < len(leading):
            yield from self._begin()
            offsets = leading[nulls:].view(np.uint64) - np.uint64(self._base % 2**64)
            yield from self._ends((offsets >> np.uint64(self._shift)).view(np.int64), nulls)
        self._rows += len(leading)

    def end(self) -> Iterator[Words]:
        """The remaining words, after the last row."""
        yield from self._begin()
        while self._bucket < self._buckets:
            size = min(self._buckets - self._bucket, PIECE)
            yield np.full(size, self._rows, np.int64)
            self._bucket += size
        yield np.array([self._rows], np.int64)

    def _begin(self) -> Iterator[Words]:
        if not self._begun:
            self._begun = True
            header = np.empty(INDEX_HEADER + 1, np.int64)
            header[:BUCKETS], header[BUCKETS:] = (self._nulls, self._base, self._shift), (self._buckets, self._nulls)
            yield header

    def _ends(self, buckets: Words, nulls: int) -> Iterator[Words]:
        """The ends of the buckets before the last of these, which later rows may extend."""
        last = min(int(buckets[-1]), self._buckets - 1)  # greater only if the batches are not sorted
        while self._bucket < last:
            size = min(last - self._bucket, PIECE)
            ends = np.searchsorted(buckets, np.arange(self._bucket, self._bucket + size), "right")
            yield ends.astype(np.int64) + (self._rows + nulls)
            self._bucket += size
