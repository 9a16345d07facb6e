"""Share: which rows of a trace are a shard's own, if it may hold rows of other shards too."""

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
        """The shard's rows, in their order. O(rows)."""
        return partition(rows, self.key, self.shards)[self.shard]

    def places(self, words: Sequence[Words]) -> Words:
        """Positions of the shard's rows among n rows, ascending. words: int64[n] for each of `key`."""
        rows = Rows(words, (np.arange(len(words[0])),))
        return partition(rows, range(len(words)), self.shards)[self.shard].weights[0]

    def of_batch(self, batch: Batch) -> Batch:
        """The shard's rows of a batch, as a batch."""
        own = self.of(batch.verified())
        return batch if len(own) == len(batch) else Batch.trusted(own.columns, own.weights)
