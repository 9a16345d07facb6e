"""Share: which rows are a shard's, where a trace may hold those of others beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deltic.kernels.memory import Words
from deltic.trace.batch import Batch
from deltic.trace.partition import partition
from deltic.trace.rows import Rows


class Share(NamedTuple):
    """The rows whose words at `key` hash to `shard` of `shards`."""

    shard: int
    shards: int
    key: tuple[int, ...]

    def of(self, rows: Rows) -> Rows:
        """Those rows, in their order. O(rows)."""
        return partition(rows, self.key, self.shards)[self.shard]

    def places(self, words: Sequence[Words]) -> Words:
        """Which of n rows are the shard's, ascending; words: int64[n] for each of `key`."""
        rows = Rows(words, (np.arange(len(words[0])),))
        return partition(rows, range(len(words)), self.shards)[self.shard].weights[0]

    def of_batch(self, batch: Batch) -> Batch:
        """Those rows of a batch, as a batch."""
        own = self.of(batch.verified())
        return batch if len(own) == len(batch) else Batch.trusted(own.columns, own.weights)
