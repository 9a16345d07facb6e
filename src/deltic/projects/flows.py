"""Runs the flows of streaming tables and sinks by Spark: all that is available, then it ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyspark.sql.connect.proto as pb
from pyspark.errors import PySparkException

from deltic.errors import QueryError
from deltic.projects.definitions import SINK, Dataset, Flow
from deltic.projects.direct import local
from deltic.projects.planning import DatasetPlan, EventsPlan, FlowPlan
from deltic.projects.server import Server, first_line
from deltic.projects.tables import CatalogTables

SINK_LOG: Final = "_spark_metadata"
"""The folder in which Spark's file sink keeps its log: the files of each batch."""


def run_flow(server: Server, tables: CatalogTables, one: DatasetPlan, flow: FlowPlan) -> int:
    """Appends what is new in a flow's sources; returns how many rows it has read. Raises QueryError with the flow's place."""
    dataset = one.dataset
    checkpoint = tables.checkpoint(dataset, flow.flow.name)
    with server.under(flow.flow.names, flow.flow.settings):
        writer: Any = server.frame(flow.message).writeStream.outputMode("append").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", checkpoint).queryName(flow.flow.name.replace("`", ""))
        if dataset.kind == SINK:
            query = _started(writer.format(dataset.format).options(**dataset.options), flow.flow, lambda one: one.start())
        else:
            query = _started(writer.format(tables.format(dataset)), flow.flow, lambda one: one.toTable(dataset.identifier))
    _await(query, flow.flow)
    return sum(progress.numInputRows for progress in query.recentProgress)


def united(flows: Sequence[FlowPlan]) -> FlowPlan:
    """The flows of a table in a file format as one query: Spark's file sink numbers batches by table, and would drop those of a second one.

    Raises QueryError for flows under different settings.
    """
    first = flows[0]
    message = first.message
    for flow in flows[1:]:
        if (flow.flow.names, flow.flow.settings) != (first.flow.names, first.flow.settings):
            remedy = "the same SET and USE for both, or format delta"
            raise QueryError(f"{flow.flow.place}: the flows into {first.flow.target} have different settings", remedy=remedy)
        both = pb.Relation()
        both.set_op.set_op_type = pb.SetOperation.SET_OP_TYPE_UNION
        both.set_op.is_all = both.set_op.by_name = both.set_op.allow_missing_columns = True
        both.set_op.left_input.CopyFrom(message)
        both.set_op.right_input.CopyFrom(flow.message)
        message = both
    names = " and ".join(flow.flow.name for flow in flows)
    return replace(first, flow=replace(first.flow, name=names), message=message)


def run_events(server: Server, tables: CatalogTables, events: EventsPlan, from_nothing: bool) -> None:
    """Appends what is new in a stream to its files. Raises QueryError."""
    location, checkpoint = tables.events(events.dataset), tables.checkpoint(events.dataset, "events")
    if from_nothing:
        for place in (location, checkpoint):
            if (folder := local(place)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
    flow = events.flow.flow
    with server.under(flow.names, flow.settings):
        writer: Any = server.frame(events.flow.message).writeStream.outputMode("append").trigger(availableNow=True)
        query = _started(writer.format("parquet").option("checkpointLocation", checkpoint), flow, lambda one: one.start(location))
    _await(query, flow)


def _started(writer: Any, flow: Flow, start: Callable[[Any], Any]) -> Any:
    """Starts a streaming query."""
    try:
        return start(writer)
    except PySparkException as failure:
        raise QueryError(f"{flow.place}: the flow {flow.name}: {first_line(failure)}") from failure


def _await(query: Any, flow: Flow) -> None:
    """Waits for the end of a streaming query."""
    try:
        query.awaitTermination()
        error = query.exception()
    except PySparkException as failure:
        raise QueryError(f"{flow.place}: the flow {flow.name}: {first_line(failure)}") from failure
    if error is not None:
        raise QueryError(f"{flow.place}: the flow {flow.name}: {first_line(error)}")


def have_been_read(tables: CatalogTables, dataset: Dataset) -> bool:
    """Whether flows have been read into a dataset, as its checkpoints say, if they are on this machine."""
    folder = local(tables.checkpoints(dataset))
    return folder is not None and any(folder.glob("*/commits/[0-9]*"))


def rows_are_lost(location: str) -> bool:
    """Whether the rows that flows have written are gone: the files of a sink, if they are on this machine, or the beginning of its log.

    Spark would append to what is gone: a log that lacks its beginning makes the files unreadable.
    """
    if (rows := local(location)) is None:
        return False
    log = rows / SINK_LOG
    return not (log / "0").exists() and not any(log.glob("*.compact"))


def rows_are_of_others(location: str, checkpoint: str) -> bool:
    """Whether files have batches that a checkpoint has not begun, if both are on this machine: they are those of another checkpoint.

    Spark's file sink would take the batches of this one for those, and drop their rows.
    """
    rows, begun = local(location), local(checkpoint)
    return rows is not None and begun is not None and _last_batch(rows / SINK_LOG) > _last_batch(begun / "offsets")


def _last_batch(log: Path) -> int:
    """The number of the last batch of a log of Spark's; -1 if it has none."""
    return max((int(file.name.partition(".")[0]) for file in log.glob("[0-9]*")), default=-1)


def reset(tables: CatalogTables, one: DatasetPlan, flow: FlowPlan, first: bool) -> None:
    """Forgets how far a flow has read. The first flow of a table empties it, and forgets flows that it no longer has."""
    dataset = one.dataset
    checkpoint = tables.checkpoints(dataset) if first else tables.checkpoint(dataset, flow.flow.name)
    if dataset.kind != SINK and first:
        tables.empty(dataset)
    if (folder := local(checkpoint)) is not None:
        shutil.rmtree(folder, ignore_errors=True)
