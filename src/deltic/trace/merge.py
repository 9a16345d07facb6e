"""merge: batches to one batch that is their sum, at once or step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deltic.kernels import merge as kernel
from deltic.kernels.index import INDEX_HEADER, index_room
from deltic.kernels.memory import Words
from deltic.kernels.table import block
from deltic.kernels.vector import address
from deltic.trace.batch import Batch
from deltic.trace.consolidate import cut_batch, overflow

EVERYTHING = 2**62


class Merge:
    """A running merge of two or more batches of one shape. The inputs are only read and stay valid throughout."""

    __slots__ = ("_columns", "_directory", "_index", "_index_address", "_room", "_state", "_target", "_weights", "_words", "inputs", "rows")

    def __init__(self, inputs: Sequence[Batch]) -> None:
        self.inputs = tuple(inputs)
        self.rows = sum(batch.length for batch in self.inputs)
        self._columns, self._weights = len(self.inputs[0].columns), len(self.inputs[0].weights)
        self._directory = np.concatenate([batch.entry for batch in self.inputs])
        self._words, self._target = block(self._columns + self._weights, self.rows)
        self._room = index_room(self.rows)
        self._index: Words = np.empty(INDEX_HEADER + self._room + 1 if self._columns else 0, np.int64)
        self._index_address = address(self._index)
        self._state = np.zeros(kernel.POSITIONS + len(self.inputs), np.int64)

    @property
    def left(self) -> int:
        """Rows still to be read."""
        return self.rows - int(self._state[kernel.READ])

    def work(self, fuel: int) -> bool:
        """Reads about `fuel` more rows; True when the merge is done. Raises WeightOverflow, and then again at every call."""
        outcome = kernel.merge(
            self._directory,
            len(self.inputs),
            self._columns,
            self._weights,
            self._target,
            self._index_address,
            self._room,
            self._state,
            fuel,
        )
        if outcome < 0:
            raise overflow("merging batches")
        return bool(outcome)

    def result(self) -> Batch:
        """The merged batch with its index, once `work` has returned True."""
        length = int(self._state[kernel.WRITTEN])
        index = self._index[: INDEX_HEADER + int(self._index[3]) + 1] if self._columns else self._index
        return cut_batch(self._words, self._columns, length, index)


def merge(batches: Sequence[Batch]) -> Batch:
    """The sum of one or more batches of one shape. O(rows). Raises WeightOverflow."""
    assert batches
    full = [batch for batch in batches if batch.length] or [batches[0]]
    if len(full) == 1:
        return full[0]
    running = Merge(full)
    running.work(EVERYTHING)
    return running.result()
