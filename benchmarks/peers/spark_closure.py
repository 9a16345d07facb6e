"""The closure of a graph by Spark itself, from scratch: by its WITH RECURSIVE, and by a loop over DataFrames as users write it.

WITH RECURSIVE takes UNION ALL alone, which gives each pair once for each way between its nodes: DISTINCT comes last, and on a cycle there
is no end. The loop is semi-naive: it follows the pairs that the last round found by one edge, and ends when that finds nothing new.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.checks import Change

RECURSIVE = """
    WITH RECURSIVE paths AS (
        SELECT src, dst FROM edges
        UNION ALL
        SELECT p.src, e.dst FROM paths p JOIN edges e ON p.dst = e.src
    )
    SELECT DISTINCT src, dst FROM paths
"""


class Graph:
    """The edges as they are now, in Spark's cache."""

    def __init__(self, spark: SparkSession, partitions: int) -> None:
        self.spark, self.partitions = spark, partitions
        self.edges: DataFrame | None = None

    def replace(self, edges: pa.Table) -> None:
        """Other edges; not timed."""
        if self.edges is not None:
            self.edges.unpersist()
        self.edges = self.spark.createDataFrame(edges).repartition(self.partitions).cache()
        self.edges.count()
        self.edges.createOrReplaceTempView("edges")

    def recursive(self) -> Change:
        """All pairs, by WITH RECURSIVE."""
        return columns(self.spark.sql(RECURSIVE).toArrow())

    def loop(self) -> Change:
        """All pairs, by a loop. Each round is cut off from those before it, or its plan would hold all of theirs."""
        assert self.edges is not None
        steps = self.edges.selectExpr("src AS dst", "dst AS target")
        reached = new = self.edges
        while True:
            walked = new.join(steps, "dst").selectExpr("src", "target AS dst").distinct()
            new = walked.join(reached, ["src", "dst"], "left_anti").localCheckpoint()
            if new.isEmpty():
                return columns(reached.toArrow())
            reached = reached.union(new).coalesce(self.partitions).localCheckpoint()


def columns(read: pa.Table) -> Change:
    """int64[n] sources and targets."""
    return tuple(np.asarray(read[name].combine_chunks()).astype(np.int64) for name in ("src", "dst"))
