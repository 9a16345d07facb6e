"""The rows of a trace whose leading word is in a range, and the least leading word after another. Rows of other shards are omitted."""

from __future__ import annotations

import numpy as np

from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.merge import merge
from deltic.trace.spine import Spine


def between(spine: Spine, after: int, until: int, counters: Counters) -> Batch:
    """after < leading word ≤ until, consolidated. O(batches · log rows + rows returned). Raises WeightOverflow."""
    parts = []
    for batch in spine.batches:
        start, end = (0, batch.length) if batch.guard is None else batch.guard.between(after, until)
        first, last = (start + int(row) for row in np.searchsorted(batch.columns[0][start:end], (after, until), "right"))
        if first < last:
            columns, weights = ([word[first:last] for word in words] for words in (batch.columns, batch.weights))
            part = Batch.trusted(columns, weights)
            parts.append(part if spine.share is None else spine.share.of_batch(part))
    counters.batches += len(spine.batches)
    counters.touched += sum(part.length for part in parts)
    return merge(parts) if parts else Batch.empty(spine.columns, spine.weights)


def first_after(spine: Spine, after: int, counters: Counters) -> int | None:
    """The least leading word greater than `after` of a row with nonzero weight; None if there is none.

    O(batches · log rows + rows after `after` that cancel each other before the first that remains).
    """
    count = 1
    while limits := [word for batch in spine.batches if (word := _word_after(batch, after, count)) is not None]:
        until = min(limits)
        rows = between(spine, after, until, counters)
        if len(rows):
            return int(rows.columns[0][0])
        after, count = until, 2 * count
    return None


def _word_after(batch: Batch, after: int, count: int) -> int | None:
    """The leading word of the `count`-th row after `after`, or of the last row; None if there is none."""
    start, end = (0, batch.length) if batch.guard is None else batch.guard.after(after, count)
    first = start + int(np.searchsorted(batch.columns[0][start:end], after, "right"))
    return int(batch.columns[0][min(first + count, end) - 1]) if first < end else None
