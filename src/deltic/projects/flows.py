"""Runs the flows of streaming tables and sinks by Spark: all that is available, then it ends."""

from __future__ import annotations

import shutil
from typing import Any

from pyspark.errors import PySparkException

from deltic.errors import QueryError
from deltic.projects.definitions import SINK
from deltic.projects.planning import DatasetPlan, FlowPlan
from deltic.projects.server import Server, first_line
from deltic.projects.tables import TRANSACTIONAL, CatalogTables, local


def run_flow(server: Server, tables: CatalogTables, one: DatasetPlan, flow: FlowPlan, from_nothing: bool) -> int:
    """Appends what is new in a flow's sources; returns how many rows. Raises QueryError with the flow's place."""
    dataset = one.dataset
    checkpoint = tables.checkpoint(dataset, flow.flow.name)
    if from_nothing:
        _reset(server, tables, one, checkpoint)
    with server.under(flow.flow.names, flow.flow.settings):
        writer: Any = server.frame(flow.message).writeStream.outputMode("append").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", checkpoint).queryName(flow.flow.name.replace("`", ""))
        try:
            if dataset.kind == SINK:
                query = writer.format(dataset.format).options(**dataset.options).start()
            else:
                query = writer.format(tables.format(dataset)).toTable(dataset.identifier)
            query.awaitTermination()
            error = query.exception()
        except PySparkException as failure:
            raise QueryError(f"{flow.flow.place}: the flow {flow.flow.name}: {first_line(failure)}") from failure
    if error is not None:
        raise QueryError(f"{flow.flow.place}: the flow {flow.flow.name}: {first_line(error)}")
    return sum(progress.numInputRows for progress in query.recentProgress)


def _reset(server: Server, tables: CatalogTables, one: DatasetPlan, checkpoint: str) -> None:
    """Forgets how far a flow has read. The first flow of a table empties it."""
    dataset = one.dataset
    if dataset.kind != SINK and checkpoint == tables.checkpoint(dataset, one.flows[0].flow.name):
        server.sql(f"TRUNCATE TABLE {dataset.identifier}")
        rows = local(tables.location(dataset))
        if tables.format(dataset) not in TRANSACTIONAL and rows is not None:
            shutil.rmtree(rows, ignore_errors=True)
    if (folder := local(checkpoint)) is not None:
        shutil.rmtree(folder, ignore_errors=True)
