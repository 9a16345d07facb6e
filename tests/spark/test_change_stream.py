"""A view's changes by `spark.readStream.format("deltic")`: the rows of a query in each batch, also across restarts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable

import deltic
from deltic.runtimes.spark.datasource import DelticSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCRIPT = """
    CREATE TABLE t (k BIGINT NOT NULL, g STRING NOT NULL, v BIGINT NOT NULL, PRIMARY KEY (k));
    CREATE MATERIALIZED VIEW sums AS SELECT g, sum(v) AS total FROM t GROUP BY g;
"""
Row = tuple[Any, ...]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[deltic.Session]:
    with deltic.Session(state=str(tmp_path / "state"), shards=2, retain=20) as session:
        session.sql(SCRIPT)
        insert(session, (1, "a", 10), (2, "b", 20))
        yield session


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> SparkSession:
    from deltic.spark import register  # noqa: PLC0415  needs the extra

    register(spark)
    return spark


class Reading:
    """A query over the changes of `sums` that can be run repeatedly, each time with the new changes."""

    def __init__(self, spark: SparkSession, tmp_path: Path, **options: Any) -> None:
        self._spark, self._options = spark, options
        self._state, self._checkpoint = str(tmp_path / "state"), str(tmp_path / "checkpoint")
        self.batches: list[list[Row]] = []

    def run(self) -> list[Row]:
        """The rows of the run, in order: (g, total, _weight, _epoch)."""
        self.batches.clear()
        frame = self._spark.readStream.format("deltic").option("view", "sums").option("changes", "true").options(**self._options)
        stream = frame.load(self._state).writeStream.foreachBatch(self._take).option("checkpointLocation", self._checkpoint)
        query = stream.trigger(availableNow=True).start()
        query.awaitTermination()
        return [row for batch in self.batches for row in batch]

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        self.batches.append(sorted(tuple(row) for row in batch.collect()))


def insert(session: deltic.Session, *rows: tuple[int, str, int]) -> int:
    with session.transaction() as tx:
        tx.insert("t", [{"k": k, "g": g, "v": v} for k, g, v in rows])
    return session.epoch


def totals(rows: list[Row]) -> Counter[Row]:
    counted: Counter[Row] = Counter()
    for g, total, weight, _ in rows:
        counted[g, total] += weight
    return Counter({row: n for row, n in counted.items() if n})


class Query:
    """The calls that Spark makes for a query over the changes of `sums` with availableNow, in this process."""

    def __init__(self, state: Path) -> None:
        self._options = {"path": str(state), "view": "sums", "changes": "true"}
        self._offset: str | None = None

    def run(self) -> list[Row]:
        """The rows since the last run; each run has its own reader and resumes from the JSON offset."""
        source = DelticSource(dict(self._options))
        stream = source.streamReader(source.schema())
        start = stream.initialOffset() if self._offset is None else json.loads(self._offset)
        rows: list[Row] = []
        stream.prepareForTriggerAvailableNow()
        while (end := stream.latestOffset(start, ReadAllAvailable())) != start:
            batches = [batch for part in stream.partitions(start, end) for batch in stream.read(part)]
            rows += sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())
            stream.commit(end)
            start = end
        stream.stop()
        self._offset = json.dumps(start)
        return rows


def test_a_reader_gives_the_content_first_and_then_each_change_once(session: deltic.Session, tmp_path: Path) -> None:
    query = Query(tmp_path / "state")
    started = session.epoch
    assert query.run() == [("a", 10, 1, started), ("b", 20, 1, started)]
    first = insert(session, (3, "a", 5))
    second = insert(session, (4, "c", 1))
    assert query.run() == [("a", 10, -1, first), ("a", 15, 1, first), ("c", 1, 1, second)]
    assert query.run() == []


def test_a_batch_may_take_longer_than_its_epochs_are_retained(session: deltic.Session, tmp_path: Path) -> None:
    source = DelticSource({"path": str(tmp_path / "state"), "view": "sums", "changes": "true"})
    stream = source.streamReader(source.schema())
    ends, seen = [stream.initialOffset()], Counter[Row]()
    for k in range(3, 6):
        ends.append(stream.latestOffset(ends[-1], ReadAllAvailable()))
        parts = stream.partitions(*ends[-2:])
        for i in range(30):  # more than the 20 that are retained, before the tasks start
            insert(session, (100 * k + i, "a", 1))
        read = [row for part in parts for batch in stream.read(part) for row in batch.to_pylist()]
        seen.update(totals([tuple(row.values()) for row in read]))
        stream.commit(ends[-1])
    stream.stop()
    assert {row: n for row, n in seen.items() if n} == {("a", 70): 1, ("b", 20): 1}


def test_a_batch_is_read_although_its_epoch_is_no_longer_retained(session: deltic.Session, tmp_path: Path) -> None:
    source = DelticSource({"path": str(tmp_path / "state"), "view": "sums"})
    reader = source.reader(source.schema())
    parts = reader.partitions()
    for k in range(3, 33):
        insert(session, (k, "a", 1))
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]  # type: ignore[union-attr]
    assert sorted(map(str, rows)) == ["{'g': 'a', 'total': 10}", "{'g': 'b', 'total': 20}"]


@pytest.mark.parametrize("streams", [False, True])
def test_changes_are_read_although_their_epochs_are_no_longer_retained(session: deltic.Session, tmp_path: Path, streams: bool) -> None:
    source = DelticSource({"path": str(tmp_path / "state"), "view": "sums", "changes": "true", "startingEpoch": "earliest"})
    for k in range(3, 9):
        insert(session, (k, "a", 1))
    if streams:
        stream = source.streamReader(source.schema())
        start = stream.initialOffset()
        stream = source.streamReader(source.schema())  # of a query that starts again
        stream.prepareForTriggerAvailableNow()
        reader: Any = stream
        parts = stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
    else:
        reader = source.reader(source.schema())
        parts = reader.partitions()
    for k in range(9, 100):
        insert(session, (k, "a", 1))
    rows = [tuple(row.values()) for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert totals(rows) == Counter({("a", 16): 1, ("b", 20): 1})


@pytest.mark.parametrize("between", [False, True])
def test_a_reader_follows_a_view_that_is_dropped_and_created_again(session: deltic.Session, tmp_path: Path, between: bool) -> None:
    query = Query(tmp_path / "state")
    seen = query.run()
    session.sql("DROP VIEW sums")
    dropped = session.epoch
    if between:
        insert(session, (3, "a", 5))
    session.sql("CREATE MATERIALIZED VIEW sums AS SELECT g, sum(v) AS total FROM t GROUP BY g")
    created = session.epoch
    insert(session, (4, "c", 1))
    again = query.run()
    assert {epoch for *_, weight, epoch in again if weight < 0} == {dropped}
    assert {epoch for *_, weight, epoch in again if weight > 0} == {created, session.epoch}
    assert totals(seen + again) == Counter({("a", 15 if between else 10): 1, ("b", 20): 1, ("c", 1): 1})
    insert(session, (5, "c", 1))
    assert query.run() == [("c", 1, -1, session.epoch), ("c", 2, 1, session.epoch)]


@pytest.mark.slow
@pytest.mark.spark
def test_the_content_comes_first_and_then_each_change_once(registered: SparkSession, session: deltic.Session, tmp_path: Path) -> None:
    reading = Reading(registered, tmp_path)
    first_epoch = session.epoch
    assert reading.run() == [("a", 10, 1, first_epoch), ("b", 20, 1, first_epoch)]
    first = insert(session, (3, "a", 5))
    second = insert(session, (4, "c", 1))
    assert reading.run() == [("a", 10, -1, first), ("a", 15, 1, first), ("c", 1, 1, second)]
    assert reading.run() == []


@pytest.mark.slow
@pytest.mark.spark
def test_a_stream_can_start_at_an_epoch_or_with_the_next_change(registered: SparkSession, session: deltic.Session, tmp_path: Path) -> None:
    first_epoch = session.epoch
    latest = Reading(registered, tmp_path, startingEpoch="latest")
    assert latest.run() == []
    now = insert(session, (3, "a", 5))
    assert latest.run() == [("a", 10, -1, now), ("a", 15, 1, now)]
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "state").symlink_to(tmp_path / "state")
    assert Reading(registered, tmp_path / "n", startingEpoch=first_epoch).run() == [
        ("a", 10, -1, now), ("a", 10, 1, first_epoch), ("a", 15, 1, now), ("b", 20, 1, first_epoch),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.spark
def test_a_redefined_view_removes_its_old_rows(registered: SparkSession, session: deltic.Session, tmp_path: Path) -> None:
    reading = Reading(registered, tmp_path)
    seen = reading.run()
    session.sql("CREATE OR REPLACE MATERIALIZED VIEW sums AS SELECT g, sum(v + 1) AS total FROM t GROUP BY g")
    insert(session, (3, "a", 5))
    seen += reading.run()
    assert totals(seen) == {("a", 17): 1, ("b", 21): 1}
    session.sql("CREATE OR REPLACE MATERIALIZED VIEW sums AS SELECT g, count(*) AS n FROM t GROUP BY g")
    with pytest.raises(Exception, match="n, a BIGINT, is absent"):
        reading.run()


@pytest.mark.slow
@pytest.mark.spark
def test_changes_that_are_not_retained_are_named(registered: SparkSession, session: deltic.Session, tmp_path: Path) -> None:
    reading = Reading(registered, tmp_path)
    reading.run()
    lost = session.epoch + 1
    (tmp_path / "state" / "leases").rename(tmp_path / "leases")
    for k in range(10, 40):
        insert(session, (k, "a", 1))
    with pytest.raises(Exception, match=f"does not have the changes of epoch {lost}"):
        reading.run()


@pytest.mark.slow
@pytest.mark.spark
def test_a_stream_without_the_columns_of_changes_is_rejected(registered: SparkSession, session: deltic.Session, tmp_path: Path) -> None:
    stream = registered.readStream.format("deltic").option("view", "sums").load(str(tmp_path / "state")).writeStream
    query = stream.foreachBatch(lambda batch, batch_id: None).option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(Exception, match="lacks the columns _weight and _epoch"):
        query.awaitTermination()
