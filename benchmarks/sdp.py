"""A Declarative Pipelines project by Spark and by Deltic: `python -m benchmarks.sdp [--sf 1] [--rounds N] [--data FOLDER]`.

The project is examples/shop_pipeline, over TPC-H's tables (of tpchgen-cli) in Delta with change feeds. One Spark Connect server runs it
twice, each under a schema of its own: by `spark-pipelines run`, which computes every materialized view again, and by Deltic. After a first
run come rounds, in each of which 0.05 % of the orders and their items are deleted and as many are inserted, and events are appended to the
streams. Both refresh the streaming tables first, which takes `streams_s` and is Spark's work for both, and then the materialized views: the
times of these refreshes are compared. Deltic's has one view more, and the target of AUTO CDC that it reads. After every round each table is
compared, with its duplicates. `plan_s` is what comes before the refreshes; times are by wall.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql.connect.session import SparkSession

from benchmarks import harness
from benchmarks.connect import DELTA, connect_server
from benchmarks.harness import ROOT, Figures
from benchmarks.tpch import generate

PROJECT: Final = ROOT / "examples" / "shop_pipeline"
TABLES: Final = ("customer", "lineitem", "nation", "orders", "part", "region", "supplier")
STREAMS: Final = {
    "web_visits": "customer BIGINT, page STRING, at TIMESTAMP",
    "app_visits": "customer BIGINT, page STRING, at TIMESTAMP",
    "customer_changes": "id BIGINT, segment STRING, deleted BOOLEAN, at BIGINT",
}
STREAMING: Final = ("visits", "checkouts", "customer_events")
VIEWS: Final = (
    *("order_totals", "customer_spend", "nation_spend", "monthly_revenue", "top_customers", "newest_orders", "late_orders"),
    *("pricing_summary", "supplier_revenue", "part_demand", "quiet_customers", "priority_by_month", "checkout_spend"),
)
COMPARED: Final = (*VIEWS, *STREAMING)
"""What both compute. Spark 4.2 does not run AUTO CDC, so the project that it runs is without it, and what reads it."""
VISITS: Final = """
@dp.append_flow(target="visits")
def visits_of_both() -> DataFrame:
    web, app = (spark.readStream.table(f"tpch.{name}_visits").withColumn("channel", F.lit(name)) for name in ("web", "app"))
    return web.unionByName(app)


"""
"""The two flows of `visits` as one."""
ONE_IN: Final = 2000
TIMEOUT_S: Final = 3600.0


def project(folder: Path, schema: str, *, for_spark: bool) -> Path:
    """A copy of the project, with a schema and a storage of its own; returns its spec.

    for_spark: without AUTO CDC, and its tables are Parquet: spark-pipelines 4.2 fails on a Delta table that is there already
    (DELTA_CANNOT_CHANGE_PROVIDER). Two flows into one table of Parquet take the number of a batch from each other, so that rows are lost:
    they are one flow of a union.
    """
    for path in PROJECT.rglob("*.*"):
        if path.suffix not in (".py", ".sql", ".yml"):
            continue
        text = path.read_text().replace("/tmp/shop_pipeline", str(folder)).replace("database: shop", f"database: {schema}")
        if path.name == "ingest.py" and for_spark:
            text = _without(text, 'dp.create_streaming_table("segments"', "dp.create_sink(")
            text = _without(text, '@dp.append_flow(target="visits")', '@dp.table(format="delta")\ndef checkouts').replace(
                "@dp.table", VISITS + "@dp.table", 1
            )
        if path.name == "marts.py" and for_spark:
            text = _without(text, '@dp.materialized_view(format="delta")\ndef visits_by_segment', None)
        if for_spark:
            text = text.replace('format="delta"', 'format="parquet"').replace("USING delta", "USING parquet")
        made = folder / path.relative_to(PROJECT)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text)
    return folder / "spark-pipeline.yml"


def _without(text: str, first: str, last: str | None) -> str:
    """The text without the part from one that begins so to another."""
    start = text.index(first)
    return text[:start] + ("" if last is None else text[text.index(last, start) :])


def create(spark: SparkSession, data: Path) -> None:
    """The sources, as tables of Delta with change feeds."""
    spark.sql("CREATE DATABASE IF NOT EXISTS tpch")
    fed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    for table in TABLES:
        spark.sql(f"CREATE TABLE tpch.{table} {fed} AS SELECT * FROM parquet.`{data / table}.parquet`")
    for name, columns in STREAMS.items():
        spark.sql(f"CREATE TABLE tpch.{name} ({columns}) {fed}")
    events(spark, 0, 1000)


def events(spark: SparkSession, number: int, rows: int) -> None:
    """Appends to the streams."""
    moment = f"timestamp_seconds(1700000000 + {number} * 86400 + id)"
    for channel in ("web", "app"):
        page = "CASE WHEN id % 5 = 0 THEN 'checkout' ELSE 'home' END"
        spark.sql(f"INSERT INTO tpch.{channel}_visits SELECT id % 150 + 1, {page}, {moment} FROM range({rows})")
    segment, deleted = f"concat('segment', (id + {number}) % 5)", f"id % 17 = {number} % 17"
    spark.sql(f"INSERT INTO tpch.customer_changes SELECT id % 150 + 1, {segment}, {deleted}, {number} * 100000 + id FROM range({rows})")


def change(spark: SparkSession, number: int) -> int:
    """A round of deletes and inserts; returns how many rows change."""
    moved = number * 10_000_000_000
    changed = 0
    for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
        chosen = f"pmod(xxhash64({key}, {number}), {ONE_IN})"
        columns = spark.table(f"tpch.{table}").columns
        shifted = ", ".join(f"{name} + {moved} AS {name}" if name == key else name for name in columns)
        changed += spark.sql(f"SELECT * FROM tpch.{table} WHERE {chosen} < 2").count()
        spark.sql(f"INSERT INTO tpch.{table} SELECT {shifted} FROM tpch.{table} WHERE {chosen} = 1")
        spark.sql(f"DELETE FROM tpch.{table} WHERE {chosen} = 0 AND {key} < {moved}")
    events(spark, number, 20)
    return changed + 60


def by_deltic(spec: Path, remote: str) -> Figures:
    figure = harness.run([sys.executable, "-m", "benchmarks.sdp_case", str(spec), remote], TIMEOUT_S)
    if "absent" in figure:
        raise SystemExit(f"deltic: {figure['absent']}")
    return figure


def by_spark(spec: Path, remote: str) -> Figures:
    """`spark-pipelines run`, of the streaming tables and then of the views."""
    streams, views = (spark_run(spec, remote, names) for names in (STREAMING, VIEWS))
    return {"plan_s": views["plan_s"], "streams_s": streams["refresh_s"], "refresh_s": views["refresh_s"]}


def spark_run(spec: Path, remote: str, names: Sequence[str]) -> Figures:
    """Of some datasets. The refresh begins with its first event."""
    command = [str(Path(sys.executable).parent / "spark-pipelines"), "run", "--spec", str(spec), "--remote", remote]
    command += ["--refresh", ",".join(names)]
    start, first, lines = time.perf_counter(), None, list[str]()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if first is None and "Flow" in line:
                first = time.perf_counter()
    if process.returncode:
        raise SystemExit(f"spark-pipelines ended with exit code {process.returncode}:\n{''.join(lines[-30:])}")
    first = start if first is None else first
    return {"plan_s": first - start, "refresh_s": time.perf_counter() - first}


def differences(spark: SparkSession) -> dict[str, int]:
    """By table, how many rows the two have that the other has not."""
    found = {}
    for name in COMPARED:
        for schema in ("shop_spark", "shop_deltic"):
            spark.sql(f"REFRESH TABLE {schema}.{name}")  # this session keeps the list of files that a run has replaced
        sides = [spark.table(f"{schema}.{name}") for schema in ("shop_spark", "shop_deltic")]
        left, right = (side.select(*sorted(side.columns)) for side in sides)
        if rows := left.exceptAll(right).count() + right.exceptAll(left).count():
            found[name] = rows
    return found


def measure(scale: float, rounds: int, data: Path, folder: Path) -> Figures:
    generate(data, scale)
    (folder / "server").mkdir()
    with connect_server(folder / "server", {**DELTA, "spark.driver.memory": "2g"}) as remote:
        spark = SparkSession.builder.remote(remote).create()
        create(spark, data)
        for schema in ("shop_spark", "shop_deltic"):
            spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
        specs = {name: project(folder / name, f"shop_{name}", for_spark=name == "spark") for name in ("spark", "deltic")}
        runs: dict[str, list[Figures]] = {"spark": [], "deltic": []}
        changed, wrong = [0], dict[str, int]()
        for number in range(rounds + 1):
            if number:
                changed.append(change(spark, number))
            runs["deltic"].append(by_deltic(specs["deltic"], remote))
            runs["spark"].append(by_spark(specs["spark"], remote))
            wrong |= differences(spark)
            seconds = ", ".join(f"{name} {figures[-1]['refresh_s']:.1f} s" for name, figures in runs.items())
            harness.progress(f"round {number}: {changed[-1]} rows change; {seconds}; {wrong or 'equal'}")
        spark.stop()
    return result(runs, changed, wrong)


def result(runs: dict[str, list[Figures]], changed: Sequence[int], wrong: dict[str, int]) -> Figures:
    figures: dict[str, Any] = {}
    for name, each in runs.items():
        later = [1e3 * one["refresh_s"] for one in each[1:]] or [0.0]
        figures[name] = {
            "load_s": round(each[0]["refresh_s"], 2),
            "tick_ms": harness.summary(later),
            "plan_s": round(statistics.median(one["plan_s"] for one in each), 2),
            "streams_s": round(statistics.median(one["streams_s"] for one in each[1:] or each), 2),
            "correct": not wrong,
        }
    read = [one["rows_read"] / rows for one, rows in zip(runs["deltic"][1:], changed[1:], strict=True)]
    faster = figures["spark"]["tick_ms"]["median"] / figures["deltic"]["tick_ms"]["median"] if read else None
    own = {"rows_read_per_change": round(max(read), 2) if read else None, "faster": None if faster is None else round(faster, 1)}
    return {**figures["deltic"], **own, "differences": wrong, "peers": {"spark-pipelines": figures["spark"]}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sdp", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sf", type=float, default=1.0, help="the scale factor")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--data", type=Path, help="a folder of the tables as Parquet, which is filled if it is empty")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as made:
        folder = Path(made)
        figures = measure(options.sf, options.rounds, options.data or folder / "data", folder)
    harness.emit({"benchmark": "sdp", "engine": "deltic", **figures, "params": {"sf": options.sf, "rounds": options.rounds}})


if __name__ == "__main__":
    main()
