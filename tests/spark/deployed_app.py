"""A user's application for spark-submit: `deployed_app.py STATE`. Prints a view, and where driver and executors find Deltic and kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

import deltic
from deltic import kernels

SCRIPT = """
    CREATE TABLE edges (a BIGINT, b BIGINT, PRIMARY KEY (a, b));
    CREATE MATERIALIZED VIEW reached AS
        WITH RECURSIVE r(a, b) AS (SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges e ON r.b = e.a)
        SELECT a, count(*) AS n FROM r GROUP BY a;
"""


def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [deltic.__file__] * batch.num_rows, "kernels": [str(kernels.SHIPPED)] * batch.num_rows})


def main() -> None:
    spark = SparkSession.builder.appName("deployed").getOrCreate()
    workers = spark.range(8, numPartitions=4).mapInArrow(place, "file STRING, kernels STRING").distinct().collect()
    with deltic.Session(spark=spark, state=sys.argv[1], shards=2, shared_state=True) as session:
        session.sql(SCRIPT)
        session.apply({"edges": [{"a": a, "b": a + 1, "_op": "insert"} for a in range(3)]})
        session.apply({"edges": [{"a": 0, "b": 1, "_op": "delete"}, {"a": 3, "b": 4, "_op": "insert"}]})
        rows = sorted((row["a"], row["n"]) for row in session.view("reached").rows())
    found = {"driver": deltic.__file__, "workers": [row.file for row in workers], "kernels": [row.kernels for row in workers]}
    print(json.dumps({"rows": rows, **found}))
    spark.stop()


if __name__ == "__main__":
    main()
