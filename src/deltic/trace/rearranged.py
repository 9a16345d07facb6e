"""rearranged: a batch or trace by another order of its columns: an index in memory, by any of them.

The order is derived batch by batch, and kept as long as its batch exists. A row is sorted again when a merge makes a new batch of it, so
the first read of a trace of n rows costs O(n log n), and later ones that of the rows of new batches.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine


def rearranged(trace: Spine, order: Sequence[int], counters: Counters) -> Spine:
    """The rows with their columns in this order, to be read only. order: every column once. Rows that are sorted count as touched.

    The share of the trace, if any, is not that of the result: its columns have other positions.
    """
    by_order = tuple(order)
    return Spine.over(trace.columns, trace.weights, [_sorted(batch, by_order, counters) for batch in trace.batches])


def _sorted(batch: Batch, order: tuple[int, ...], counters: Counters) -> Batch:
    ordered = batch.rearranged.get(order)
    if ordered is None:
        counters.touched += batch.length
        batch.verified()
        ordered = consolidate(Rows([batch.columns[i] for i in order], batch.weights))
        batch.rearranged = {**batch.rearranged, order: ordered}  # replaced, since another thread may do the same
    return ordered
