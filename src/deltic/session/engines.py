"""The runtime of a session. Modules that need PySpark are imported when a session uses Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from deltic.connectors.recognise import check_batch, in_arrow
from deltic.connectors.source import RemoteRows, Run
from deltic.errors import FrameError
from deltic.runtimes import GroupingRuntime, Runtime
from deltic.runtimes.embedded import DurableEmbedded, Embedded, LoggedEmbedded
from deltic.schema import Schema, TableSchema
from deltic.session.options import RunOptions
from deltic.trace.workers import ALONE, Workers


def spark_changes(frame: Any, table: TableSchema, sequence: str | None) -> Any:
    """A Spark DataFrame as changes that stay on Spark. Raises FrameError for a stream, and for one with a column twice."""
    from deltic.runtimes.spark import SparkChanges  # noqa: PLC0415  pyspark is an optional extra

    where = f"table {table.name}"
    check_batch(frame, where)
    names = [name.lower() for name in frame.columns]
    for i, name in enumerate(names):
        if name in names[:i]:
            message = f"{where}: the frame has the column {frame.columns[i]} twice (case does not count)"
            raise FrameError(message, expected=f"the columns {', '.join(table.schema.names)}")
    return SparkChanges(in_arrow(frame, where), table, sequence)


def spark_frame(spark: Any, rows: pa.Table, schema: Schema) -> Any:
    """Rows of this process as a Spark DataFrame with the types of the schema."""
    from deltic.runtimes.spark.datasource import frame_of  # noqa: PLC0415  pyspark is an optional extra

    return frame_of(spark, rows, schema)


def source_changes(spark: Any, rows: RemoteRows, table: TableSchema) -> Any:
    """Changes of a source that Spark's tasks read."""
    from deltic.runtimes.spark.source_changes import SourceChanges  # noqa: PLC0415  pyspark is an optional extra

    return SourceChanges(spark, rows, table)


def run_on_tasks(spark: Any) -> Run:
    """What runs functions in the tasks of a Spark session."""
    from deltic.runtimes.spark.source_changes import run_on_tasks as of_spark  # noqa: PLC0415  pyspark is an optional extra

    return of_spark(spark)


def open_runtime(options: RunOptions) -> Runtime:
    """In this process or on Spark, with the state in memory or in a folder."""
    folder = options.folder
    if options.spark is None:
        if folder is None:
            return Embedded(options.shards or 1, options.embedded_threads)
        durable = LoggedEmbedded if options.commit_log else DurableEmbedded
        return durable(folder, options.shards, retain=options.retain, threads=options.embedded_threads)
    from deltic.runtimes.spark import SparkRuntime  # noqa: PLC0415  pyspark is an optional extra

    return SparkRuntime(options.spark, folder, options.shards, retain=options.retain, shared_state=options.shared_state)


def workers_of(runtime: Runtime) -> Workers:
    """The threads among which large ticks are divided in this process."""
    return runtime.workers if isinstance(runtime, Embedded | DurableEmbedded) else ALONE


def divides_tables(runtime: Runtime) -> bool:
    """Whether ticks in this process copy the rows of tables to memory of their shards, so that nothing of them stays where it is."""
    return isinstance(runtime, Embedded | DurableEmbedded) and runtime.shards > 1


def grouping(runtime: Runtime) -> GroupingRuntime | None:
    """The runtime, if it can commit the ticks of several threads as a group."""
    return runtime if isinstance(runtime, LoggedEmbedded) else None
