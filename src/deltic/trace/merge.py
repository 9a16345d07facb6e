"""merge: batches to one batch that is their sum, at once or step by step."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from threading import Lock
from typing import NamedTuple

import numpy as np

from deltic.errors import WeightOverflow
from deltic.kernels import level
from deltic.kernels import merge as kernel
from deltic.kernels.gather import gather, gathered_words
from deltic.kernels.index import BY_SECOND, cut_index, index_room, index_words
from deltic.kernels.memory import Words
from deltic.kernels.room import zeros
from deltic.kernels.table import address, block
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate, cut_batch, overflow
from deltic.trace.rows import Rows

EVERYTHING = 2**62
SORTED_ROWS = 1 << 11
"""Fewer rows are sorted together: the calls of a merge two at a time cost more than the sort."""
CANCELLING_ROWS = 1 << 8
"""Batches of fewer rows do not cancel a trace: they wait for others."""
LAG = 1 << 16
"""Rows by which a thread that works on a merge may be late before a tick reads them itself."""


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

    def __init__(self, left: Batch, right: Batch, indexed: bool) -> None:
        """The caller must keep the inputs until the end. indexed: whether an index over the output is wanted."""
        rows = left.length + right.length
        self._shape = len(left.columns), len(left.weights)
        self._directory = _entries(left, right)
        self._words, self._target = block(len(left.table), rows)
        self._room = index_room(rows) if indexed and left.columns else 0
        self._index = zeros(index_words(self._room, BY_SECOND) if self._room else 0)
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
        index = cut_index(self._index) if self._room else None
        return cut_batch(self._words, self._target, self._shape[0], length, index)


class _Step(NamedTuple):
    """A step of a running merge: a pair of batches that become one, and those to be merged after it."""

    pair: Pair
    inputs: tuple[Batch, Batch]
    """Kept for the pair."""
    waiting: tuple[Batch, ...]
    before: int
    """Rows read in earlier steps."""

    @staticmethod
    def of(batches: Sequence[Batch], before: int = 0) -> _Step:
        left, right, *waiting = sorted(batches, key=len)
        return _Step(Pair(left, right, not waiting), (left, right), tuple(waiting), before)


class Merge:
    """A running merge of two or more batches of one shape, two at a time, the smallest first. All inputs stay valid throughout.

    Its progress is one reference, and that of a pair is kept by the kernel: after any exception in `work`, at any line, it can be called
    again. Threads may share it: one at a time works. A sum of two batches beyond 64 bits ends the reading; `result` then says whether the
    total is, so that it does not depend on who has read.
    """

    __slots__ = ("__weakref__", "_allowed", "_lock", "_overflows", "_step", "cost", "done", "inputs", "shared")

    cost: int
    """Rows that it reads at most."""
    done: bool
    """Whether nothing is left to read."""
    shared: bool
    """Whether another thread works on it, too."""

    def __init__(self, inputs: Sequence[Batch]) -> None:
        self.inputs = tuple(batch.verified() for batch in inputs)
        self.cost, self.shared = _reads(self.inputs), False
        self._allowed, self.done, self._overflows = 0, False, False
        self._lock = Lock()
        self._step = _Step.of(self.inputs)

    @property
    def read(self) -> int:
        """Rows read so far."""
        step = self._step
        return step.before + step.pair.read

    def work(self, fuel: int) -> int:
        """Reads about `fuel` more rows, or all that remain; returns the unused fuel, at least 1 if and only if the merge is done."""
        with self._lock:
            while not self.done:
                pair, _, waiting, before = self._step
                read = pair.read
                try:
                    ended = pair.work(fuel)
                except WeightOverflow:
                    self._overflows = self.done = True
                    break
                if not ended:
                    return 0
                fuel -= pair.read - read
                if waiting:
                    self._step = _Step.of((*waiting, pair.result()), before + pair.read)
                else:
                    self.done = True
            return max(fuel, 1)

    def allow(self, fuel: int) -> int:
        """Allows `fuel` more rows to be read; returns what the merge does not need, at least 1 if and only if it is done.

        That it is done depends on what was allowed, not on who has read it. They are read here, unless another thread works on the merge:
        then only what that thread should have read before, and more than LAG rows of it.
        """
        due = self._allowed - LAG if self.shared else self._allowed + fuel
        self._allowed += fuel
        if self._allowed >= self.cost:
            self.work(EVERYTHING)
            return 1 + self._allowed - self.cost
        if due > self.read:
            self.work(due - self.read)
        return 0

    def result(self) -> Batch:
        """The merged batch, once the merge is done; with its index, unless a sum over some of the inputs was beyond 64 bits.

        Raises WeightOverflow if a sum over all of them is.
        """
        return _total(self.inputs) if self._overflows else self._step.pair.result()


def _reads(batches: Sequence[Batch]) -> int:
    """How many rows a merge two at a time reads, the smallest first, if no rows cancel."""
    sizes = [batch.length for batch in batches]
    heapify(sizes)
    reads = 0
    while len(sizes) > 1:
        size = heappop(sizes) + heappop(sizes)
        heappush(sizes, size)
        reads += size
    return reads


def _total(batches: Sequence[Batch]) -> Batch:
    """The sum of batches of which the sum of some is beyond 64 bits. Raises WeightOverflow if that of all is."""
    if len(batches) == 2:
        raise overflow("merging batches")
    return consolidate(Rows.concat(batches))


def cancels(batch: Batch, stored: int) -> bool:
    """Whether a batch removes at least half as many rows as are `stored`, as what replaces a relation does.

    So a merge with all of them reads O(batch) rows, and spares the readers rows that are not there any more. O(batch), of large ones.
    """
    if batch.length < CANCELLING_ROWS or 2 * batch.length < stored:
        return False
    return 0 < stored <= 2 * int(np.count_nonzero(batch.verified().weights[0] < 0))


def _gathered(batches: Sequence[Batch], rows: int) -> Batch:
    """The sum of a few rows, which are sorted together. Raises WeightOverflow."""
    columns, weights = batches[0].shape
    copies, block = np.empty((columns + weights) * rows, np.int64), np.empty(gathered_words(columns + weights, rows), np.int64)
    entry = np.empty(kernel.DIRECTORY_HEADER + columns + weights, np.int64)
    directory = np.concatenate([batch.entry for batch in batches])
    length = gather(directory, columns, weights, copies, address(block), entry, level.entries())
    if length < 0:
        raise overflow("merging batches")
    return Batch.kept(block, 0, columns, weights, length, entry) if length else Batch.empty(columns, weights)


def merge(batches: Sequence[Batch]) -> Batch:
    """The sum of one or more batches of one shape. O(rows · log batches); O(rows) for few rows in many batches.

    Raises WeightOverflow if the weights of a row leave 64 bits; sums over some of the batches may.
    """
    assert batches
    full = [batch for batch in batches if batch.length] or [batches[0]]
    if len(full) == 1:
        return full[0].verified()
    if full[0].shape[0] and (rows := sum([batch.length for batch in full])) < SORTED_ROWS:
        return _gathered([batch.verified() for batch in full], rows)
    running = Merge(full)
    running.work(EVERYTHING)
    return running.result()
