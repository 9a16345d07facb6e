"""Watermarks from rows that stay on Spark: the same time and the same views as in one process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deltic
import deltic.spark
from waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

START = datetime(2024, 5, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SCRIPT = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, at TIMESTAMP) OPTIONS (watermark 'at', watermark_delay '10 seconds');
    CREATE TABLE clicks (at TIMESTAMP, page STRING) OPTIONS (watermark 'at');
    CREATE MATERIALIZED VIEW open AS SELECT id FROM orders WHERE at <= now() AND now() < at + INTERVAL 1 MINUTE;
    CREATE MATERIALIZED VIEW recent AS SELECT page, count(*) AS n FROM clicks WHERE at > now() - INTERVAL 30 SECONDS GROUP BY page;
"""
ORDERS = "id BIGINT, at TIMESTAMP, _op STRING"
Tick = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]


def at(seconds: int | None) -> datetime | None:
    return None if seconds is None else START + seconds * SECOND


TICKS: list[Tick] = [
    ([(1, at(0), "insert"), (2, at(30), "INSERT"), (3, None, "i")], []),
    ([(1, at(80), "update")], [(at(5), "a", 1), (at(90), "b", -1)]),
    ([(1, at(40), "update")], [(at(5), "a", 1)]),
    ([(2, at(30), "delete"), (4, at(70), "upsert")], [(at(50), "b", 2), (None, "c", 1)]),
    ([(5, at(20), "insert")], [(at(41), "a", 1)]),
]


def ticked(session: deltic.Session, spark: SparkSession | None) -> list[Any]:
    """The outcome of each tick; None for a failed one."""
    actual: list[Any] = []
    for orders, clicks in TICKS:
        frames: dict[str, Any] = {
            "orders": [dict(zip(("id", "at", "_op"), row, strict=True)) for row in orders],
            "clicks": [dict(zip(("at", "page", "_weight"), row, strict=True)) for row in clicks],
        }
        if spark is not None:
            frames = {
                "orders": spark.createDataFrame(orders, ORDERS),
                "clicks": spark.createDataFrame(clicks, "at TIMESTAMP, page STRING, _weight BIGINT"),
            }
        try:
            session.apply({name: frame for name, frame in frames.items() if name == "orders" or clicks})
        except deltic.errors.DelticError:
            actual.append(None)
            continue
        actual.append((session.now, *(sorted(map(str, session.view(view).rows())) for view in ("open", "recent"))))
    return actual


@pytest.mark.slow
def test_frames_that_stay_on_spark_determine_the_time(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(clock="manual") as session:
        session.sql(SCRIPT)
        expected = ticked(session, None)
    assert expected.count(None) == 1 and all(tick[1] or tick[2] for tick in expected[3:])
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2) as session:
        session.sql(SCRIPT)
        assert ticked(session, spark) == expected
        now = session.now
    with deltic.Session(state=str(tmp_path / "state")) as session:
        session.sql(SCRIPT)
        assert session.now == now


def test_several_tables_of_one_frame_determine_the_time(spark: SparkSession) -> None:
    from deltic.runtimes.spark.changes import TaggedChanges, TaggedTable  # noqa: PLC0415  needs the extra
    from deltic.runtimes.spark.streams import tagged  # noqa: PLC0415

    with deltic.Session() as session:
        session.sql(SCRIPT)
        tables = [session.table(name) for name in ("orders", "clicks")]
    orders = spark.createDataFrame([(1, at(3), "insert"), (2, at(9), "delete"), (3, at(5), "upsert")], ORDERS)
    clicks = spark.createDataFrame([(at(1), "a"), (None, "b")], "at TIMESTAMP, page STRING")
    changes = TaggedChanges(tagged([orders, clicks]), (TaggedTable(tables[0]), TaggedTable(tables[1], inserts=True)))
    expected = {name: int((START + n * SECOND).timestamp()) * 1_000_000 for name, n in (("orders", 5), ("clicks", 1))}
    assert changes.latest({"orders": "at", "clicks": "at"}) == expected
    assert changes.latest({"clicks": "at"}) == {"clicks": expected["clicks"]}


@pytest.mark.slow
def test_rows_that_come_due_cause_a_tick_without_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    script = """
        CREATE TABLE offers (id BIGINT PRIMARY KEY, until TIMESTAMP);
        CREATE MATERIALIZED VIEW open AS SELECT id FROM offers WHERE now() < until;
        CREATE SINK changes FROM open USING json OPTIONS (path 'out', mode 'changes');
    """
    (tmp_path / "in").mkdir()
    until = datetime.now(UTC) + 20 * SECOND
    (tmp_path / "in" / "1.json").write_text(f'{{"id": 1, "until": "{until.isoformat()}"}}\n{{"id": 2, "until": "2100-01-01T00:00:00Z"}}\n')
    with deltic.spark.StreamingPipeline(script, spark, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        pipeline.stream("offers", spark.readStream.schema("id BIGINT, until TIMESTAMP").json(str(tmp_path / "in")))
        running = pipeline.start(processingTime="1 second")
        view = pipeline.session.view("open")
        wait_until(lambda: [row["id"] for row in view.rows()] == [2] or not running.isActive, 120)
        assert running.isActive, running.exception()
        running.stop()
        assert pipeline.session.now is not None and pipeline.session.now >= until
        assert running.awaitTermination() and not running.isActive
    assert list((tmp_path / "out").glob("changes-*"))
