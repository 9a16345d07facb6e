"""A user's application for spark-submit: `files_app.py FOLDER BYTES`. Runs a pipeline over Parquet files.

Those of so many bytes are large: the driver reads no row of them."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import deltic
from deltic.connectors.files import source

SCRIPT = """
    CREATE TABLE t (id BIGINT NOT NULL, v BIGINT, PRIMARY KEY (id)) USING parquet OPTIONS (path 'in', append_only 'true');
    CREATE MATERIALIZED VIEW sums AS SELECT id % 3 AS g, count(*) AS n, sum(v % 1000) AS s FROM t GROUP BY id % 3;
"""


def not_here(*_: object) -> None:
    raise AssertionError("the driver has read rows")


def main() -> None:
    spark = SparkSession.builder.appName("files").getOrCreate()
    setattr(source, "LARGE_BYTES", int(sys.argv[2]))  # noqa: B010  mypy: a constant
    setattr(source, "_Reading", not_here)  # noqa: B010  mypy: a class
    folder = sys.argv[1]
    with deltic.Pipeline(SCRIPT, state=f"{folder}/state", base=folder, spark=spark, shards=2, shared_state=True) as pipeline:
        pipeline.run_once()
        rows = sorted((row["g"], row["n"], row["s"]) for row in pipeline.session.view("sums").rows())
        epoch = pipeline.session.epoch
    print(json.dumps({"rows": rows, "epoch": [epoch]}))
    spark.stop()


if __name__ == "__main__":
    main()
