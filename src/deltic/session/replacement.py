"""The change that makes a table have exactly the rows of a frame, duplicates included: what a source that has no changes becomes.

Both are sorted and merged as words, so rows are equal here exactly when they are equal in the table. O(rows of both).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operators.table import TableInput
from deltic.circuit.pending import UNORDERED, WEIGHT, PendingRows
from deltic.connectors.frames import rows_frame
from deltic.schema import TableSchema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.intake import encode_changes
from deltic.trace.merge import merge
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable


def replacement(table: TableSchema, frame: Any, circuit: Dataflow, held: Sequence[Spine], strings: StringTable) -> PendingRows:
    """held: the table's rows, a spine for each shard. Raises FrameError."""
    rows: pa.Table = rows_frame(frame, table)
    words = encode_changes(rows, table, strings)
    order = _order(table, circuit)
    new = consolidate(Rows(tuple(words[i] for i in order), (np.ones(rows.num_rows, np.int64),)))
    change = merge([new, *(_negated(spine.scan(Counters())) for spine in held)])
    positions = np.argsort(order)
    columns = tuple(change.columns[i] for i in positions)
    n = change.length
    ordinals = np.full(n, UNORDERED, np.int64)
    return PendingRows.of(columns, np.full(n, WEIGHT, np.int64), ordinals, change.weights[0])


def _order(table: TableSchema, circuit: Dataflow) -> tuple[int, ...]:
    """The word columns of the schema in the order in which they are stored."""
    inputs = (node.operator for node in circuit.nodes if isinstance(node.operator, TableInput))
    return next(one.order for one in inputs if one.table.name == table.name)


def _negated(batch: Batch) -> Batch:
    batch.verified()
    return Batch.trusted(batch.columns, [-weights for weights in batch.weights])
