"""The reference for the views at the end: their queries on the final tables, by another engine if one is installed.

On Spark it is Spark SQL. Embedded it is DuckDB if that is installed; otherwise a second session of Deltic that loads the final tables
at once, which checks that the ticks add up but not what the queries mean.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from deltic.examples.flights.script import NAME, QUERIES, TEXT
from deltic.session import Session

Tables = Mapping[str, pa.Table]


def by_spark(spark: Any, tables: Tables) -> tuple[str, dict[str, pa.Table]]:
    """The reference's name for the output, and each view's content."""
    for name, table in tables.items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
    return f"Spark SQL {spark.version} on the final tables", {view: spark.sql(query).toArrow() for view, query in QUERIES.items()}


def without_spark(tables: Tables) -> tuple[str, dict[str, pa.Table]]:
    """As by_spark."""
    if importlib.util.find_spec("duckdb") is not None:
        return _by_duckdb(importlib.import_module("duckdb"), tables)
    return "Deltic from scratch on the final tables (DuckDB is not installed)", _from_scratch(tables)


def _by_duckdb(duckdb: Any, tables: Tables) -> tuple[str, dict[str, pa.Table]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        contents = {view: connection.sql(query).to_arrow_table() for view, query in QUERIES.items()}
    return f"DuckDB {duckdb.__version__} on the final tables", contents


def _from_scratch(tables: Tables) -> dict[str, pa.Table]:
    with Session() as session:
        session.sql(TEXT, name=NAME)
        with session.transaction() as tick:
            for name, table in tables.items():
                tick.insert(name, table)
        return {view: session.view(view).to_arrow() for view in QUERIES}
