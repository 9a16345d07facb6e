"""The rows of a trace whose leading word lies in a range."""

from __future__ import annotations

import numpy as np

from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.merge import merge
from deltic.trace.spine import Spine


def between(spine: Spine, after: int, until: int, counters: Counters) -> Batch:
    """after < leading word ≤ until, consolidated. O(batches · log rows + rows found). Raises WeightOverflow."""
    parts = []
    for batch in spine.batches:
        start, end = (0, batch.length) if batch.guard is None else batch.guard.between(after, until)
        first, last = (start + int(at) for at in np.searchsorted(batch.columns[0][start:end], (after, until), "right"))
        if first < last:
            columns, weights = ([word[first:last] for word in words] for words in (batch.columns, batch.weights))
            parts.append(Batch.trusted(columns, weights))
    counters.batches += len(spine.batches)
    counters.touched += sum(part.length for part in parts)
    return merge(parts) if parts else Batch.empty(spine.columns, spine.weights)
