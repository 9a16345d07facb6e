"""Rows: a struct of arrays with weights, in any order, duplicates allowed. What flows between operators.

columns: int64[n] each, the words of the rows. weights: int64[n] each, one or more accumulators per row that add when rows merge.
The arrays are never mutated after construction, and may be shared with other rows or mapped from files.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from deltic.kernels.build import CHECKED
from deltic.kernels.memory import Words
from deltic.kernels.room import fresh
from deltic.kernels.table import address, addresses


class Rows:
    """n rows of zero or more columns with at least one weight."""

    __slots__ = ("_packed", "_table", "columns", "length", "weights")

    _packed: tuple[Words, int, int, int] | None
    """Of packed rows: the block, the word where they begin there, how many columns and weights."""

    columns: tuple[Words, ...]
    weights: tuple[Words, ...]
    length: int

    def __init__(self, columns: Sequence[Words], weights: Sequence[Words]) -> None:
        """The arrays must be contiguous int64 of one length; this is checked before a kernel first reads them."""
        assert len(weights) > 0
        self.columns = tuple(columns)
        self.weights = tuple(weights)
        self.length = len(weights[0])
        self._table: Words | None = None
        self._packed = None

    @classmethod
    def packed(cls, block: Words, first: int, columns: int, weights: int, length: int) -> Rows:
        """Rows whose columns and weights follow one another in `block`; O(1). first: its address.

        The arrays are made when they are first used, since most rows of small ticks are only read by kernels.
        """
        rows = cls.__new__(cls)
        rows.length = length
        rows._packed = (block, 0, columns, weights)
        size = 8 * length * (columns + weights)
        handles = CHECKED or not length  # in the checked build each column has bounds of its own
        rows._table = None if handles else np.arange(first, first + size, 8 * length)
        return rows

    def __getattr__(self, name: str) -> Any:
        """The arrays of packed rows."""
        if name not in ("columns", "weights"):
            raise AttributeError(name)
        assert self._packed is not None
        block, start, columns, weights = self._packed
        end = start + (columns + weights) * self.length
        arrays = tuple(block[start:end].reshape(columns + weights, self.length))
        self.columns, self.weights = arrays[:columns], arrays[columns:]
        return getattr(self, name)

    def __len__(self) -> int:
        return self.length

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.columns, self.weights)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.length} rows, {len(self.columns)} columns, {len(self.weights)} weights)"

    @property
    def shape(self) -> tuple[int, int]:
        """How many columns and weights; the arrays of packed rows are not made."""
        return (len(self.columns), len(self.weights)) if self._packed is None else self._packed[2:]

    @property
    def words(self) -> Sequence[Words]:
        """Arrays that, one after another, have all words: the columns, then the weights. Those of packed rows are one array."""
        if self._packed is None:
            return (*self.columns, *self.weights)
        block, start, columns, weights = self._packed
        return (block[start : start + (columns + weights) * self.length],)

    @property
    def table(self) -> Words:
        """The addresses of columns and weights, checked; cached."""
        if self._table is None:
            self._table = addresses((*self.columns, *self.weights), self.length)
        return self._table

    @property
    def nbytes(self) -> int:
        """Bytes of the words (shared arrays are counted in each owner)."""
        return 8 * self.length * (len(self.columns) + len(self.weights))

    @staticmethod
    @cache
    def empty(columns: int, weights: int) -> Rows:
        """No rows."""
        none = np.empty(0, np.int64)
        return Rows((none,) * columns, (none,) * weights)

    def select(self, columns: Sequence[int]) -> Rows:
        """The same rows with these columns, in this order; nothing is copied."""
        return Rows([self.columns[c] for c in columns], self.weights)

    def part(self, start: int, end: int) -> Rows:
        """The rows from position `start` to `end`; nothing is copied."""
        return Rows([c[start:end] for c in self.columns], [w[start:end] for w in self.weights])

    def take(self, rows: np.ndarray[Any, Any]) -> Rows:
        """A copy of the rows at these positions, or where a mask is true."""
        return Rows([c[rows] for c in self.columns], [w[rows] for w in self.weights])

    def copied(self) -> Rows:
        """The same rows in arrays of their own."""
        return Rows([c.copy() for c in self.columns], [w.copy() for w in self.weights])

    @staticmethod
    def concat(parts: Sequence[Rows]) -> Rows:
        """All rows of one or more parts of one shape; a single part that is not empty is returned as it is."""
        assert parts
        full = [part for part in parts if part.length] or [parts[0]]
        if len(full) == 1:
            return full[0]
        if not CHECKED and all(part._packed is not None for part in full):
            return _joined(full)
        columns, weights = full[0].shape
        arrays = [(*part.columns, *part.weights) for part in full]
        words = fresh((columns + weights) * (length := sum([part.length for part in full]))).reshape(columns + weights, length)
        for target, pieces in zip(words, zip(*arrays, strict=True), strict=True):
            np.concatenate(pieces, out=target)
        return Rows(tuple(words[:columns]), tuple(words[columns:]))


def _joined(parts: Sequence[Rows]) -> Rows:
    """All rows of packed ones, packed."""
    blocks = []
    for part in parts:
        assert part._packed is not None
        block, start, columns, weights = part._packed
        size = columns + weights
        blocks.append(block[start : start + size * part.length].reshape(size, part.length))
    joined = np.concatenate(blocks, axis=1)
    return Rows.packed(words := joined.reshape(-1), address(words), columns, weights, joined.shape[1])
