"""consolidate: rows to a batch: sorted, equal rows merged by adding their weights, rows with all weights 0 dropped."""

from __future__ import annotations

from deltic.errors import WeightOverflow
from deltic.kernels import sort
from deltic.kernels.memory import Words
from deltic.kernels.table import block, cut
from deltic.trace.batch import Batch
from deltic.trace.rows import Rows


def overflow(where: str) -> WeightOverflow:
    """The error for a weight beyond 64 bits. where: the computation."""
    return WeightOverflow(
        f"weight overflow: {where} gives a weight beyond 64 bits",
        remedy="a row's multiplicity or a sum must stay within ±9223372036854775807",
    )


def cut_batch(words: Words, table: Words, columns: int, length: int, index: Words | None = None) -> Batch:
    """The first `length` rows of a kernel's output as a batch; copied if most of a large output is not used.

    words: int64[columns + weights, room], with the addresses of its columns, from `block`.
    """
    addresses: Words | None = table
    if 2 * length < words.shape[1]:
        words, addresses = words[:, :length].copy(), None
    elif length < words.shape[1]:
        words, addresses = words[:, :length], cut(table)
    rows = tuple(words)
    return Batch.trusted(rows[:columns], rows[columns:], index, addresses)


def consolidate(rows: Rows) -> Batch:
    """The batch equal to `rows` as a Z-set; shares the arrays if the rows are in order. O(n) for rows of bounded width.

    Raises WeightOverflow if a sum of weights leaves 64 bits; partial sums may.
    """
    if isinstance(rows, Batch):
        return rows
    if not rows.length:
        return Batch.empty(*rows.shape)
    columns, weights = len(rows.columns), len(rows.weights)
    order = sort.sortedness(rows.table, columns, weights, rows.length)
    if order == 2:
        return Batch.trusted(rows.columns, rows.weights, table=rows.table)
    words, target = block(columns + weights, rows.length)
    length = sort.consolidate(rows.table, columns, weights, rows.length, target, order)
    if length < 0:
        raise overflow("adding equal rows")
    return cut_batch(words, target, columns, length)
