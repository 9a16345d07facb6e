"""The order of an answer's rows: Spark's, by columns of an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from deltic.expr.nodes import Column
from deltic.expr.rows.ordering import order_key
from deltic.plan.nodes import Order
from deltic.types import frozen


def in_order(rows: pa.Table, order: Sequence[Order]) -> pa.Table:
    """The rows, sorted by columns that the terms read. NaN is the greatest number; equal rows stay as they are. O(n log n)."""
    keys: list[pa.ChunkedArray] = []
    directions: list[str] = []
    for term in order:
        assert isinstance(term.expr, Column)
        column, direction = rows.column(term.expr.index), "descending" if term.descending else "ascending"
        keys.append(pc.is_null(column))
        directions.append("descending" if term.nulls_first else "ascending")
        if pa.types.is_floating(column.type):
            keys.append(pc.fill_null(pc.is_nan(column), False))
            directions.append(direction)
        keys.append(_ranks(column) if pa.types.is_nested(column.type) else column)
        directions.append(direction)
    names = [f"k{i}" for i in range(len(keys))]
    table = pa.table(dict(zip(names, keys, strict=True)))
    return rows.take(pc.sort_indices(table, sort_keys=list(zip(names, directions, strict=True))))


def _ranks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers in the order of ARRAYs or STRUCTs."""
    values = [frozen(value) for value in column.to_pylist()]
    ordered = sorted((order_key(value), i) for i, value in enumerate(values) if value is not None)
    ranks: list[int | None] = [None] * len(values)
    rank, previous = -1, object()
    for key, i in ordered:
        rank, previous = rank + (key != previous), key
        ranks[i] = rank
    return pa.chunked_array([pa.array(ranks, pa.int64())])
