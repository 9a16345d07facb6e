"""The radix index of a batch whose rows arrive in order, part by part; the layout is that of `kernels/index.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from deltic.kernels.index import BUCKETS, BY_SECOND, INDEX_HEADER, index_room, index_words, second_serves
from deltic.kernels.memory import WORD_MIN, Words

PIECE: Final = 1 << 20
"""Words that are returned at once."""


class StreamedIndex:
    """inputs: the columns of all batches that are merged, sorted. rows: about how many rows there will be."""

    __slots__ = ("_base", "_before", "_bucket", "_buckets", "_from", "_rows", "_second", "_shift", "_started", "words")

    def __init__(self, inputs: Sequence[Sequence[Words]], rows: int) -> None:
        filled = [columns for columns in inputs if len(columns) and len(columns[0])]
        self._second, self._from = _choice(filled)
        starts = [int(np.searchsorted(columns[0], self._from)) for columns in filled]
        indexed = [columns[self._second][start:] for columns, start in zip(filled, starts, strict=True)]
        bounds = [(int(words[0]), int(words[-1])) for words in indexed if len(words)]
        low, high = (min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else (0, 0)
        self._base, self._shift = low, 0
        while (high - low) >> self._shift >= index_room(rows):
            self._shift += 1
        self._buckets = ((high - low) >> self._shift) + 1
        self._before = self._rows = self._bucket = 0
        self._started = False
        self.words: Final = index_words(self._buckets, BY_SECOND * self._second)
        """How many words the index has."""

    def add(self, columns: Sequence[Words]) -> Iterator[Words]:
        """The columns of the next rows; yields the next words of the index, those that no later row can change."""
        rows = len(columns[0])
        before = 0 if self._started else int(np.searchsorted(columns[0], self._from))
        self._before += before
        if before < rows:
            yield from self._begin()
            offsets = columns[self._second][before:].view(np.uint64) - np.uint64(self._base % 2**64)
            yield from self._ends((offsets >> np.uint64(self._shift)).view(np.int64), before)
        self._rows += rows

    def end(self) -> Iterator[Words]:
        """The remaining words, after the last row."""
        yield from self._begin()
        while self._bucket < self._buckets:
            size = min(self._buckets - self._bucket, PIECE)
            yield np.full(size, self._rows, np.int64)
            self._bucket += size
        yield np.array([self._rows, *([self._from] if self._second else [])], np.int64)

    def _begin(self) -> Iterator[Words]:
        if not self._started:
            self._started = True
            header = np.empty(INDEX_HEADER + 1, np.int64)
            shift = self._shift + BY_SECOND * self._second
            header[:BUCKETS], header[BUCKETS:] = (self._before, self._base, shift), (self._buckets, self._before)
            yield header

    def _ends(self, buckets: Words, before: int) -> Iterator[Words]:
        """The ends of the buckets before the last of these, which later rows may extend."""
        last = min(int(buckets[-1]), self._buckets - 1)  # greater only if the batches are not sorted
        while self._bucket < last:
            size = min(last - self._bucket, PIECE)
            ends = np.searchsorted(buckets, np.arange(self._bucket, self._bucket + size), "right")
            yield ends.astype(np.int64) + (self._rows + before)
            self._bucket += size


def _choice(inputs: Sequence[Sequence[Words]]) -> tuple[int, int]:
    """(the column to be indexed, the least leading word of the rows that are)."""
    greatest = max((int(columns[0][-1]) for columns in inputs), default=0)
    rows = sum(len(columns[0]) for columns in inputs)
    run = sum(len(columns[0]) - int(np.searchsorted(columns[0], greatest)) for columns in inputs)
    second = all(len(columns) > 1 for columns in inputs) and bool(second_serves(rows, run))
    return (1, greatest) if second else (0, WORD_MIN + 1)
