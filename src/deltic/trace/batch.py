"""Batch: sorted, consolidated, immutable rows with a radix index over the leading column.

Always: rows strictly ascend lexicographically (signed words); no row has all weights 0; arrays are contiguous and never mutated.
The index (layout in `kernels/index.py`) holds no addresses: it can be stored beside the columns and mapped back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from threading import Lock
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from deltic.kernels import sort
from deltic.kernels.index import BY_SECOND, build_index, cut_index, index_room, index_words
from deltic.kernels.memory import Words
from deltic.kernels.merge import BATCH_INDEX, BATCH_ROWS, DIRECTORY_HEADER
from deltic.kernels.room import zeros
from deltic.kernels.table import address
from deltic.reentrant import free_after_fork
from deltic.trace.guard import Guard
from deltic.trace.rows import Rows

_INDEXING: Final = free_after_fork(Lock())
NO_ORDERS: Final[Mapping[tuple[int, ...], Batch]] = MappingProxyType({})


class Batch(Rows):
    """Rows in order, each once. Created by `consolidate`, `merge`, or `Batch.trusted`.

    guard: of a mapped batch whose pages are verified as they are read. Spines and merges use it; other readers must call `verified` first.
    """

    __slots__ = ("_index", "entry", "guard", "rearranged")

    entry: Words
    """This batch's part of a directory: rows, address of the index, addresses of columns and weights. Made when it is first read."""

    rearranged: Mapping[tuple[int, ...], Batch]
    """The same rows in other orders of the columns, as `trace/rearranged.py` has derived them."""

    def __init__(self, columns: Sequence[Words], weights: Sequence[Words], index: Words | None = None) -> None:
        super().__init__(columns, weights)
        self._index = index
        self.guard: Guard | None = None
        self.rearranged = NO_ORDERS
        assert sort.sortedness(self.table, len(self.columns), len(self.weights), self.length) == 2, "rows are not consolidated"

    @classmethod
    def trusted(
        cls,
        columns: Sequence[Words],
        weights: Sequence[Words],
        index: Words | None = None,
        table: Words | None = None,
        guard: Guard | None = None,
    ) -> Batch:
        """A batch of arrays that are known to be sorted and consolidated, and of their index; O(1).

        table: their addresses, if these are known.
        """
        batch = cls.__new__(cls)
        Rows.__init__(batch, columns, weights)
        batch._table = table
        batch._index = index
        batch.guard = guard
        batch.rearranged = NO_ORDERS
        return batch

    @classmethod
    def kept(cls, block: Words, start: int, columns: int, weights: int, length: int, entry: Words) -> Batch:
        """A batch of `length` rows whose columns, weights and index follow one another in `block`, from word `start` on; O(1).

        entry: its part of a directory. The arrays are made when they are first used: most batches of small ticks are only read by kernels.
        """
        batch = cls.__new__(cls)
        batch.length = length
        batch.entry = entry
        batch._packed = (block, start, columns, weights)
        batch.guard = None
        batch.rearranged = NO_ORDERS
        return batch

    def __getattr__(self, name: str) -> Any:
        """The entry, and the arrays of a packed batch."""
        if name == "entry":
            self.entry = self._made_entry()
        elif name == "_table":
            self._table = self.entry[DIRECTORY_HEADER:]
        elif name == "_index":
            assert self._packed is not None
            block, start, columns, weights = self._packed
            end = start + (columns + weights) * self.length
            self._index = cut_index(block[end:]) if columns else block[:0]
        else:
            return super().__getattr__(name)
        return getattr(self, name)

    def part(self, start: int, end: int) -> Batch:
        """The rows from position `start` to `end`, which are a batch; nothing is copied."""
        return Batch.trusted([c[start:end] for c in self.columns], [w[start:end] for w in self.weights])

    def verified(self) -> Batch:
        """The batch; if it is mapped, all of it verified."""
        if self.guard is not None:
            self.guard.everything()
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        self.verified()
        return Batch.trusted, (self.columns, self.weights, self._index)

    @property
    def index(self) -> Words:
        """The radix index, built at first use; empty without columns."""
        if self._index is None:
            with _INDEXING:  # built once: `entry` keeps its address, so another thread must not replace it
                if self._index is None:
                    self._index = self._built_index()
        return self._index

    def _built_index(self) -> Words:
        if not self.columns:
            return np.empty(0, np.int64)
        room = index_room(self.length)
        index = zeros(index_words(room, BY_SECOND))
        second = int(self.table[1]) if len(self.columns) > 1 else 0
        return index[: build_index(int(self.table[0]), second, self.length, address(index), room)]

    def _made_entry(self) -> Words:
        entry = np.empty(DIRECTORY_HEADER + len(self.table), np.int64)
        entry[BATCH_ROWS], entry[BATCH_INDEX] = self.length, address(self.index)
        entry[DIRECTORY_HEADER:] = self.table
        return entry

    @property
    def addresses(self) -> Words:
        """The addresses of columns and weights."""
        return self.table

    @property
    def nbytes(self) -> int:
        """Bytes of the words, and of the index if it has been built."""
        return super().nbytes + (0 if self._index is None else self._index.nbytes)

    @staticmethod
    @cache
    def empty(columns: int, weights: int) -> Batch:
        """No rows."""
        none = Rows.empty(columns, weights)
        return Batch.trusted(none.columns, none.weights)

    def slice(self, start: int, end: int) -> Batch:
        """Rows start … end, as a batch that shares the arrays."""
        if self.guard is not None:
            self.guard.rows(start, end)
        return Batch.trusted([c[start:end] for c in self.columns], [w[start:end] for w in self.weights])
