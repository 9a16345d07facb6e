"""Streams of changes: several streaming frames as one query, and the id of a query. Only the DataFrame API is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count_if, lit, struct
from pyspark.sql.streaming.query import StreamingQuery

from deltic.connectors.frames import OP, WEIGHT
from deltic.connectors.recognise import in_arrow
from deltic.errors import FrameError, SetupError
from deltic.runtimes.spark.changes import TAG, SparkChanges, TaggedChanges, TaggedTable
from deltic.schema import TableSchema
from deltic.types import backquoted

OBSERVED = "deltic"
"""The name under which a StreamingQueryListener gets the counts of a pipeline's own query."""
QUERY_ID = "sql.streaming.queryId"
"""The local property that Spark sets on the thread that runs a batch."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When batches run: as soon as there is data (the default), once for all available data, or at intervals."""

    available_now: bool = False
    once: bool = False
    processing_time: str | None = None

    def __post_init__(self) -> None:
        if self.available_now + self.once + (self.processing_time is not None) > 1:
            raise SetupError("more than one trigger", expected="one of availableNow, once and processingTime")


def tagged_table(columns: Sequence[str], table: TableSchema, sequence: str | None) -> TaggedTable:
    """The format of changes in a frame: with `_op` or `_weight`, or, with neither, new rows. Raises FrameError.

    The values of its rows are checked when they are encoded.
    """
    where = f"table {table.name}"
    given = {name.lower() for name in columns}
    own = {name.lower() for name in table.schema.names}
    if twice := next((name for i, name in enumerate(columns) if name.lower() in map(str.lower, columns[:i])), None):
        message = f"{where}: the stream has the column {twice} twice (case does not count)"
        raise FrameError(message, expected=f"the columns {', '.join(table.schema.names)}")
    marks = given & {OP, WEIGHT}
    if len(marks) == 2:
        raise FrameError(f"{where}: a stream with both {OP} and {WEIGHT}", expected="one of them, or neither if all rows are new")
    if sequence is not None and (sequence.lower() not in given or OP not in marks):
        raise FrameError(
            f"{where}: the sequence {sequence} needs a column {sequence} and a column {OP}", expected="operations that have an order"
        )
    extra = sorted(given - own - marks - ({sequence.lower()} if sequence else set()))
    # A frame of deletes may have only the key.
    required = {table.schema[i].name.lower() for i in table.key} if OP in marks and table.key else own
    missing = sorted(required - given)
    if extra or missing:
        problem = f"column {extra[0]} of the stream is not in the table" if extra else f"the stream has no column {missing[0]}"
        raise FrameError(f"{where}: {problem}", expected=f"the columns {', '.join(table.schema.names)}")
    return TaggedTable(table, sequence, inserts=not marks)


def check_streaming(frame: DataFrame, table: TableSchema) -> None:
    """Raises FrameError unless the frame is a stream."""
    if not frame.isStreaming:
        raise FrameError(
            f"table {table.name}: the frame is not a stream",
            expected="a DataFrame from spark.readStream",
            remedy="apply a batch of changes with pipeline.session.apply",
        )


def tagged(frames: Sequence[DataFrame]) -> DataFrame:
    """The frames as one: the number of a row's frame, and a struct for each frame, NULL except in its own rows."""
    structs = [f"s{i}" for i in range(len(frames))]
    union: DataFrame | None = None
    for i, frame in enumerate(frames):
        columns = struct(*(col(backquoted(name)) for name in frame.columns)).alias(structs[i])
        part = frame.select(lit(i).alias(TAG), columns)
        union = part if union is None else union.unionByName(part, allowMissingColumns=True)
    assert union is not None
    return union.select(TAG, *structs)


def observed(frame: DataFrame, tables: Sequence[str]) -> DataFrame:
    """A tagged frame whose rows Spark counts, by table, for listeners of its query. tables: of the tags."""
    names = dict.fromkeys(tables)
    counts = [count_if(col(TAG).isin([i for i, table in enumerate(tables) if table == name])).alias(name) for name in names]
    return frame.observe(OBSERVED, *counts)


def batch_changes(batch: DataFrame, parts: tuple[TaggedTable, ...], *, union: bool) -> TaggedChanges | SparkChanges:
    """One micro-batch as changes. union: of a query over tagged frames, else of a stream of one table."""
    if union:  # of frames in which it was done
        return TaggedChanges(batch, parts)
    return SparkChanges(in_arrow(batch, f"table {parts[0].table.name}"), parts[0].table, parts[0].sequence, parts[0].inserts)


def start_query(
    frame: DataFrame, function: Callable[[DataFrame, int], None], name: str, checkpoint: str, trigger: Trigger
) -> StreamingQuery:
    """Starts a query that hands each micro-batch to `function`."""
    writer = frame.writeStream.foreachBatch(function).queryName(name).option("checkpointLocation", checkpoint)
    if trigger.available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger.once:
        writer = writer.trigger(once=True)
    elif trigger.processing_time is not None:
        writer = writer.trigger(processingTime=trigger.processing_time)
    return writer.start()


def is_connect(spark: Any) -> bool:
    """Whether a session talks to a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def query_id(spark: SparkSession, name: str | None) -> str | None:
    """Spark's id of the query whose batch runs on this thread, the same while its checkpoint is; None if it is unknown.

    name: that of the query, by which it is found under Spark Connect.
    """
    if is_connect(spark):
        return next((str(query.id) for query in spark.streams.active if name is not None and query.name == name), None)
    current: str | None = spark.sparkContext.getLocalProperty(QUERY_ID)
    return current
