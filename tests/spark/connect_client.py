"""A user's program on Spark Connect, in a separate process: python connect_client.py URL FOLDER. Prints the results as JSON."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

import deltic
from deltic.spark import StreamingPipeline, register
from deltic.storage.reader import StateReader

SCRIPT = """
    CREATE TABLE t (k BIGINT NOT NULL, g STRING NOT NULL, v BIGINT NOT NULL, PRIMARY KEY (k));
    CREATE TABLE u (k BIGINT NOT NULL, g STRING NOT NULL, PRIMARY KEY (k));
    CREATE MATERIALIZED VIEW sums AS SELECT t.g, sum(v) AS total, count(*) AS n FROM t JOIN u ON t.g = u.g GROUP BY t.g;
"""
SINK = "CREATE SINK feed FROM sums USING json OPTIONS (path 'feed', mode 'changes');"
T, U = "k BIGINT, g STRING, v BIGINT", "k BIGINT, g STRING"


def plain(spark: SparkSession, folder: Path) -> Any:
    """A session whose ticks run over Connect."""
    with deltic.Session(spark=spark, state=str(folder / "plain")) as session:
        session.sql(SCRIPT)
        session.apply({"u": [{"k": 1, "g": "a", "_op": "insert"}]})
        rows = spark.range(10).selectExpr("id AS k", "'a' AS g", "id AS v").withColumn("_op", lit("insert"))
        session.apply({"t": rows})
        return [session.view("sums").rows(), [row.asDict() for row in session.view("sums").to_spark().collect()]]


def streams(spark: SparkSession, folder: Path) -> Any:
    """The streams of a pipeline, run twice."""
    state = str(folder / "streams")
    pipeline = StreamingPipeline(SCRIPT + SINK, spark, state=state, shards=2, base=folder)
    pipeline.stream("t", stream(spark, folder, "t", T)).stream("u", stream(spark, folder, "u", U))
    write(folder, "t", "1", {"k": 1, "g": "a", "v": 5})
    write(folder, "u", "1", {"k": 1, "g": "a"})
    actual, epochs = [], []
    for k in (2, 3):
        running = pipeline.start(availableNow=True)
        assert running.awaitTermination(100)
        assert running.exception() is None
        actual.append(read(spark, state))
        epochs.append([(sorted(progress.rows_in), progress.epoch) for progress in running.recentProgress])
        write(folder, "t", str(k), {"k": k, "g": "a", "v": 10 * k})
    return [actual, StateReader.open(state).manifest.notes["batches"], len(pickle.dumps(pipeline)), epochs]


def functions(spark: SparkSession, folder: Path) -> Any:
    """Two queries configured by the user, each with its own process in the server."""
    state = str(folder / "functions")
    pipeline = StreamingPipeline(SCRIPT, spark, state=state, shards=2)
    queries = [
        stream(spark, folder, table, columns).writeStream.foreachBatch(pipeline.foreach_batch(table))
        .option("checkpointLocation", str(folder / f"checkpoint-{table}")).trigger(availableNow=True).start()
        for table, columns in (("t", T), ("u", U))
    ]  # fmt: skip
    for query in queries:
        assert query.awaitTermination(100)
        assert query.exception() is None, query.exception()
    return [read(spark, state), sorted(StateReader.open(state).manifest.notes["batches"])]


def stream(spark: SparkSession, folder: Path, table: str, columns: str) -> Any:
    (folder / table).mkdir(exist_ok=True)
    return spark.readStream.schema(columns).json(str(folder / table))


def write(folder: Path, table: str, name: str, row: dict[str, Any]) -> None:
    (folder / "staged").write_text(json.dumps(row))
    (folder / "staged").rename(folder / table / f"{name}.json")


def read(spark: SparkSession, state: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in spark.read.format("deltic").option("view", "sums").load(state).collect()]


if __name__ == "__main__":
    url, root = sys.argv[1], Path(sys.argv[2])
    session = SparkSession.builder.remote(url).getOrCreate()  # type: ignore[attr-defined]
    register(session)
    print(json.dumps({name.__name__: name(session, root) for name in (plain, streams, functions)}))
    session.stop()
