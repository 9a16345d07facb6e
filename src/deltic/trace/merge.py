"""merge: batches to one batch that is their sum, at once or step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deltic.kernels import merge as kernel
from deltic.kernels.index import BUCKETS, index_room, index_words
from deltic.kernels.memory import Words
from deltic.kernels.table import address, block, zeros
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate, cut_batch, overflow
from deltic.trace.rows import Rows

EVERYTHING = 2**62
SORTED_ROWS = 1 << 11
"""Below so many rows, three batches or more are sorted together: the calls of a merge two at a time cost more than the sort."""


def _entries(left: Batch, right: Batch) -> Words:
    """A directory of two batches, without their indexes: a merge does not read them."""
    width = kernel.DIRECTORY_HEADER + len(left.table)
    directory = np.zeros(2 * width, np.int64)
    directory[kernel.BATCH_ROWS], directory[width + kernel.BATCH_ROWS] = left.length, right.length
    directory[kernel.DIRECTORY_HEADER : width], directory[width + kernel.DIRECTORY_HEADER :] = left.table, right.table
    return directory


class Pair:
    """A running merge of two batches of one shape."""

    __slots__ = ("_directory", "_index", "_index_address", "_room", "_shape", "_state", "_target", "_words")

    def __init__(self, left: Batch, right: Batch, indexed: bool, gradual: bool) -> None:
        """The caller must keep the inputs until the end.

        indexed: whether an index over the output is wanted. gradual: whether the work will be done in small steps.
        """
        rows = left.length + right.length
        self._shape = len(left.columns), len(left.weights)
        self._directory = _entries(left, right)
        self._words, self._target = block(len(left.table), rows, gradual)
        self._room = index_room(rows) if indexed and left.columns else 0
        self._index = zeros(index_words(self._room) if self._room else 0, gradual)
        self._index_address = address(self._index) if self._room else 0
        self._state = np.zeros(kernel.STATE, np.int64)

    @property
    def read(self) -> int:
        """Rows read so far."""
        return int(self._state[kernel.READ])

    def work(self, fuel: int) -> bool:
        """Reads about `fuel` more rows; True when the merge is done. Raises WeightOverflow, and then again at every call."""
        columns, weights = self._shape
        outcome = kernel.merge(self._directory, columns, weights, self._target, self._index_address, self._room, self._state, fuel)
        if outcome < 0:
            raise overflow("merging batches")
        return outcome == 1

    def result(self) -> Batch:
        """The merged batch, once `work` has returned True."""
        length = int(self._state[kernel.WRITTEN])
        index = self._index[: index_words(int(self._index[BUCKETS]))] if self._room else None
        return cut_batch(self._words, self._target, self._shape[0], length, index)


class _Step(NamedTuple):
    """A step of a running merge: a pair of batches that become one, and those to be merged after it."""

    pair: Pair
    inputs: tuple[Batch, Batch]
    """Kept for the pair."""
    waiting: tuple[Batch, ...]

    @staticmethod
    def of(batches: Sequence[Batch], gradual: bool) -> _Step:
        left, right, *waiting = sorted(batches, key=len)
        return _Step(Pair(left, right, not waiting, gradual), (left, right), tuple(waiting))


class Merge:
    """A running merge of two or more batches of one shape, two at a time, the smallest first. All inputs stay valid throughout.

    Its progress is one reference, and that of a pair is kept by the kernel: after any exception in `work`, at any line, it can be called
    again.
    """

    __slots__ = ("_gradual", "_step", "inputs")

    def __init__(self, inputs: Sequence[Batch], gradual: bool = True) -> None:
        self.inputs = tuple(batch.verified() for batch in inputs)
        self._gradual = gradual
        self._step = _Step.of(self.inputs, gradual)

    def work(self, fuel: int) -> int:
        """Reads about `fuel` more rows, or all that remain; returns the unused fuel, at least 1 if and only if the merge is done.

        Raises WeightOverflow, and then again at every call.
        """
        while True:
            pair, _, waiting = self._step
            before = pair.read
            if not pair.work(fuel):
                return 0
            fuel -= pair.read - before
            if not waiting:
                return max(fuel, 1)
            self._step = _Step.of((*waiting, pair.result()), self._gradual)

    def result(self) -> Batch:
        """The merged batch with its index, once `work` has returned more than 0."""
        return self._step.pair.result()


def merge(batches: Sequence[Batch]) -> Batch:
    """The sum of one or more batches of one shape. O(rows · log batches); O(rows) for few rows in many batches.

    Raises WeightOverflow if the weights of a row leave 64 bits, also if only a sum over some of the batches does.
    """
    assert batches
    full = [batch for batch in batches if batch.length] or [batches[0]]
    if len(full) == 1:
        return full[0].verified()
    if len(full) > 2 and sum(batch.length for batch in full) < SORTED_ROWS:
        return consolidate(Rows.concat([batch.verified() for batch in full]))
    running = Merge(full, gradual=False)
    running.work(EVERYTHING)
    return running.result()
