"""Sums of changes: tables of rows and their `_weight`."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from deltic.connectors.frames import WEIGHT
from deltic.types import frozen_list


def weighed(rows: pa.Table, weight: int = 1) -> pa.Table:
    """The rows with a column `_weight`."""
    return rows.append_column(WEIGHT, pa.array([weight], pa.int64()).take(pa.array([0] * rows.num_rows, pa.int8())))


def difference(before: pa.Table, after: pa.Table) -> pa.Table:
    """The change from `before` to `after`, tables of the same columns: each row whose count differs, once, with its `_weight`. O(both)."""
    return net([weighed(before, -1), weighed(after)])


def net(changes: Sequence[pa.Table]) -> pa.Table:
    """The sum of changes of the same columns: each row whose weights do not add up to 0, once, where it came first. O(rows).

    A column that is nullable in one of them is so in the sum.
    """
    schema = pa.unify_schemas([change.schema for change in changes])
    whole = pa.concat_tables(change.cast(schema) for change in changes)
    place = whole.column_names.index(WEIGHT)
    keys = [_comparable(column) for column in whole.drop_columns(WEIGHT).columns]
    names = [str(i) for i in range(len(keys))]
    rows = pa.table([*keys, whole.column(WEIGHT), pa.array(range(whole.num_rows), pa.int64())], [*names, "weight", "row"])
    sums = rows.group_by(names).aggregate([("weight", "sum"), ("row", "min")])
    sums = sums.filter(pc.not_equal(sums.column("weight_sum"), 0)).sort_by("row_min")
    return whole.take(sums.column("row_min")).set_column(place, whole.schema.field(place), sums.column("weight_sum"))


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """A column that is equal where the values are: Arrow groups no nested ones."""
    return pa.array(map(repr, frozen_list(column.combine_chunks()))) if pa.types.is_nested(column.type) else column
