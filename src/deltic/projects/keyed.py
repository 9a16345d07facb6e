"""create_auto_cdc_flow (SCD type 1) as a view: of each key the event with the greatest sequence, unless it deletes.

The events are kept, so a late event loses to a newer one in whatever batch either came, and to a newer delete of its key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyspark.sql.connect.proto as pb
from pyspark.pipelines.flow import AutoCdcFlow
from pyspark.sql.connect import functions as F
from pyspark.sql.connect.window import Window

from deltic.errors import CatalogError, Unsupported
from deltic.frontends.dataframes.expressions import name_parts
from deltic.projects.definitions import Dataset, FilePlace
from deltic.types import backquoted

_SEQUENCE: Final = "__deltic_sequence"
_DELETES: Final = "__deltic_deletes"
_RANK: Final = "__deltic_rank"
_NULL: Final = "an event has a NULL as its key, or as its sequence; a temporary view of the others, by WHERE, can be the source"


def check_keyed(dataset: Dataset) -> None:
    """Raises CatalogError unless one flow of changes is all that fills the dataset."""
    place = dataset.changes[0].place
    if len(dataset.changes) > 1 or dataset.flows:
        raise CatalogError(f"{place}: {dataset.key} has another flow beside create_auto_cdc_flow", expected="one flow of changes alone")


def latest(flow: AutoCdcFlow, source: str, place: FilePlace) -> Callable[[Any], Any]:
    """A function that makes the DataFrame of a flow over its events. source: the name of the table of events."""

    def made(spark: Any) -> Any:
        events = spark.table(backquoted(source))
        names = [field.name for field in events.schema.fields]
        keys = _names(spark, flow.keys, place)
        shown = _shown(spark, flow, names, keys, place)
        sequence: Any = flow.sequence_by
        valid = sequence.isNotNull()
        for key in keys:
            valid = valid & F.col(backquoted(key)).isNotNull()
        checked = F.when(valid, sequence).otherwise(F.raise_error(F.lit(_NULL)))
        deletes: Any = F.lit(False) if flow.apply_as_deletes is None else F.coalesce(flow.apply_as_deletes, F.lit(False))
        rows = events.select("*", checked.alias(_SEQUENCE), deletes.alias(_DELETES))
        newest = Window.partitionBy(*map(_column, keys)).orderBy(F.col(_SEQUENCE).desc())
        ranked = rows.select("*", F.row_number().over(newest).alias(_RANK))
        return ranked.where(F.col(_RANK) == 1).where(~F.col(_DELETES)).select(*map(_column, shown))

    return made


def _column(name: str) -> Any:
    return F.col(backquoted(name))


def _shown(spark: Any, flow: AutoCdcFlow, names: list[str], keys: list[str], place: FilePlace) -> list[str]:
    """The columns of the table."""
    if flow.column_list is not None and flow.except_column_list is not None:
        raise CatalogError(f"{place}: both column_list and except_column_list are given", remedy="leave one of them out")
    listed = {name.lower() for name in _names(spark, flow.column_list or flow.except_column_list or [], place)}
    if unknown := listed - {name.lower() for name in names}:
        raise CatalogError(f"{place}: the source {flow.source} has no column {min(unknown)}", expected=f"some of {', '.join(names)}")
    shown = [name for name in names if flow.column_list is None or name.lower() in listed]
    shown = [name for name in shown if flow.except_column_list is None or name.lower() not in listed]
    if missing := [key for key in keys if key.lower() not in {name.lower() for name in shown}]:
        raise CatalogError(f"{place}: the key {missing[0]} is not among the columns of the table", remedy="leave it in")
    return shown


def _names(spark: Any, columns: list[Any], place: FilePlace) -> list[str]:
    """The names that columns are."""
    names = []
    for column in columns:
        message: pb.Expression = column.to_plan(spark.client)
        parts = name_parts(message.unresolved_attribute.unparsed_identifier)
        if len(parts) != 1:
            raise Unsupported(f"{place}: a column of create_auto_cdc_flow is not a name", expected="the names of columns, without a table")
        names.append(parts[0])
    return names
