"""Changes that are Spark DataFrames: encoded where they are, and never collected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from deltic.circuit.operators.table import UNORDERED
from deltic.circuit.stage import Failure, route
from deltic.connectors.frames import Changes, change_frame
from deltic.errors import DelticError, FrameError
from deltic.runtimes.spark.message import LAST, Kind, Message, Part, pack_failure, pack_parts, to_arrow
from deltic.schema import TableSchema
from deltic.trace.encoding import Layout, encode_changes
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable


@dataclass(frozen=True, slots=True)
class SparkChanges:
    """A change frame (the table's columns and `_op` or `_weight`) that stays on Spark.

    It must be deterministic, since Spark may read it twice. sequence: the column (integer, date or timestamp) that orders the changes
    of a key; without one, a key that occurs twice is an error.
    """

    frame: DataFrame
    table: TableSchema
    sequence: str | None = None


@dataclass(frozen=True, slots=True)
class EncodeTask:
    """Maps batches of a change frame to messages with the table's port for each shard. key: the word columns that rows are routed by."""

    table: TableSchema
    key: tuple[int, ...]
    port: str
    level: int
    shards: int
    seed: int
    sequence: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        failed: Failure | None = None
        for batch in batches:
            if failed is not None or not batch.num_rows:
                continue  # the rest is read all the same: Spark kills a worker that leaves input behind
            try:
                yield to_arrow(self._encoded(pa.Table.from_batches([batch])))
            except DelticError as error:
                failed = Failure.of(error)
        if failed is not None:
            yield to_arrow([Message(shard, LAST, Kind.FAILURE, pack_failure(failed)) for shard in range(self.shards)])

    def _encoded(self, frame: pa.Table) -> Sequence[Message]:
        strings = StringTable(self.seed)
        changes = change_frame(frame, self.table, self.sequence)
        words = encode_changes(changes.rows, self.table, strings)
        rows = Rows((*words, changes.ops, self._ordinals(frame, changes)), (changes.weights,))
        positions = Layout.of(self.table.schema).strings
        return [
            Message(shard, self.level, Kind.ROWS, payload)
            for shard, part in enumerate(route(rows, self.key, self.shards))
            for payload in pack_parts([Part(self.port, part, positions)] if len(part) else [], strings)
        ]

    def _ordinals(self, frame: pa.Table, changes: Changes) -> np.ndarray:
        """The values of the sequence column: ranks within one batch would say nothing about the others."""
        if self.sequence is None:
            return np.full(len(changes.ops), UNORDERED, np.int64)
        (name,) = (name for name in frame.column_names if name.lower() == self.sequence.lower())
        values = frame.column(name)
        if pa.types.is_date32(values.type):
            values = values.cast(pa.int32())
        elif pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        if not pa.types.is_integer(values.type):
            raise FrameError(
                f"table {self.table.name}: the sequence {name} is of type {values.type}", expected="an integer, date or timestamp column"
            )
        ascending = values.take(pc.sort_indices(values)).cast(pa.int64()).to_numpy()
        found = ascending[changes.ordinals]
        ordinals: np.ndarray = np.where(found < 0, found - 1, found)  # UNORDERED is none of them
        return ordinals
