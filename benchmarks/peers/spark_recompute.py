"""Spark itself: the view's query over cached tables after every tick.

Changes are appended as rows with weights, so that the cached tables stay as they are and no tick pays for writing them anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.checks import Words


class Recompute:
    """The loaded tables in Spark's cache, and what has changed since then; the query reads all rows of a table as `all_` and its name."""

    def __init__(self, spark: SparkSession, query: str, columns: Sequence[str], tables: Mapping[str, DataFrame]) -> None:
        self.spark, self.query, self.columns = spark, query, columns
        self.loaded = {name: frame.cache() for name, frame in tables.items()}
        self.changed: dict[str, list[pa.Table]] = {name: [] for name in self.loaded}
        for frame in self.loaded.values():
            frame.count()

    def add(self, changes: dict[str, pa.Table]) -> None:
        """Keeps a tick's changes for the next answer; not timed."""
        for name, table in changes.items():
            self.changed[name].append(table)

    def answer(self) -> tuple[Words, ...]:
        """The view's columns after all changes so far; there are some."""
        for name, frame in self.loaded.items():
            # createDataFrame gives no rows at all for a table that begins with several empty chunks (PySpark 4.2.1).
            added = pa.concat_tables(self.changed[name]).combine_chunks()
            frame.unionByName(self.spark.createDataFrame(added)).createOrReplaceTempView(f"all_{name}")
        view = self.spark.sql(self.query).toArrow()
        return tuple(np.asarray(view[name].combine_chunks()).astype(np.int64) for name in self.columns)

    def close(self) -> None:
        for frame in self.loaded.values():
            frame.unpersist()
