"""Pipelines fed by Structured Streaming: each batch is one tick, exactly once, wherever the query or a sink fails."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from threading import Semaphore
from typing import TYPE_CHECKING, Any

import pytest

from deltic.errors import AbsentRow, CatalogError, ClosedError, DataError, FrameError, SetupError, SinkError, StateError
from parts import slow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from deltic.spark import StreamingPipeline

pytestmark = pytest.mark.spark

SCRIPT = """
    CREATE TABLE customers (id BIGINT NOT NULL, region STRING NOT NULL, PRIMARY KEY (id));
    CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL, amount DOUBLE NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW sales AS
        SELECT region, count(*) AS n, sum(amount) AS total FROM orders JOIN customers ON orders.customer = customers.id GROUP BY region;
    CREATE SINK changes FROM sales USING json OPTIONS (path 'changes', mode 'changes');
"""
CUSTOMERS = "id BIGINT, region STRING, _op STRING"
ORDERS = "id BIGINT, customer BIGINT, amount DOUBLE"
Row = dict[str, Any]


class Feed:
    """A folder of JSON files for each table, which streams read one by one in order of names."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self._spark, self._root = spark, root
        self._written = 0

    def write(self, table: str, *rows: Row) -> None:
        folder = self._root / table
        folder.mkdir(exist_ok=True)
        self._written += 1
        staged = self._root / "staged"
        staged.write_text("".join(json.dumps(row) + "\n" for row in rows))
        staged.rename(folder / f"{self._written:04d}.json")

    def read(self, table: str, columns: str) -> DataFrame:
        (self._root / table).mkdir(exist_ok=True)
        return self._spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).json(str(self._root / table))


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path)


@pytest.fixture
def pipelines(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    """Opens pipelines over one state, each after the one before has been closed."""
    from deltic.spark import StreamingPipeline  # noqa: PLC0415  needs the extra

    made: list[StreamingPipeline] = []

    def make(script: str = SCRIPT) -> StreamingPipeline:
        for before in made:
            before.close()
        made.append(StreamingPipeline(script, spark, state=str(tmp_path / "state"), shards=2, base=tmp_path))
        return made[-1]

    yield make
    for pipeline in made:
        pipeline.close()


def both(pipeline: StreamingPipeline, feed: Feed) -> StreamingPipeline:
    return pipeline.stream("customers", feed.read("customers", CUSTOMERS)).stream("orders", feed.read("orders", ORDERS))


def run(pipeline: StreamingPipeline) -> None:
    pipeline.start(availableNow=True).awaitTermination()


def sales(pipeline: StreamingPipeline) -> list[Row]:
    return sorted(pipeline.session.view("sales").rows(), key=lambda row: row["region"])


def delivered(tmp_path: Path) -> list[tuple[int, str, int, int]]:
    """The rows that the sink received, as (epoch, region, n, weight)."""
    files = sorted((tmp_path / "changes").glob("changes-*.json"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sorted((row["_epoch"], row["region"], row["n"], row["_weight"]) for row in rows)


def batches(pipeline: StreamingPipeline) -> dict[str, int]:
    return {name: seen[0] for name, seen in pipeline.session.notes["batches"].items()}


def fill(feed: Feed) -> None:
    feed.write("customers", {"id": 1, "region": "north", "_op": "insert"}, {"id": 2, "region": "south", "_op": "insert"})
    feed.write("orders", {"id": 10, "customer": 1, "amount": 5.0}, {"id": 11, "customer": 2, "amount": 7.0})


@pytest.mark.slow
def test_streams_of_one_pipeline_meet_in_one_tick(pipelines: Any, feed: Feed, tmp_path: Path) -> None:
    pipeline = both(pipelines(), feed)
    fill(feed)
    running = pipeline.start(availableNow=True)
    assert running.awaitTermination(60)
    assert not running.isActive
    assert running.exception() is None
    assert sales(pipeline) == [{"region": "north", "n": 1, "total": 5.0}, {"region": "south", "n": 1, "total": 7.0}]
    (progress,) = running.recentProgress
    assert progress.rows_in == {"customers": 2, "orders": 2}
    assert progress.rows_out == {"sales": 2}
    assert set(progress.seconds) == {"read", "tick", "sinks"}
    epoch = progress.epoch
    assert delivered(tmp_path) == [(epoch, "north", 1, 1), (epoch, "south", 1, 1)]
    assert batches(pipeline) == {"query:streams": 0}
    feed.write("customers", {"id": 2, "region": "north", "_op": "update"})
    run(pipeline)
    assert sales(pipeline) == [{"region": "north", "n": 2, "total": 12.0}]
    assert batches(pipeline) == {"query:streams": 1}


@pytest.mark.parametrize("moment", ["after the commit", *slow("before the commit")])
def test_a_batch_that_fails_is_run_again_once(
    pipelines: Any, feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    from deltic.storage.state import State  # noqa: PLC0415

    fill(feed)
    pipeline = both(pipelines(), feed)
    commit, first_epoch = State.commit, pipeline.session.epoch

    def failing(state: State, change: Any) -> Any:
        if moment == "after the commit":
            commit(state, change)
        raise StateError("the machine has failed")

    with monkeypatch.context() as patch:
        patch.setattr(State, "commit", failing)
        with pytest.raises(StateError, match="the machine has failed"):
            run(pipeline)
    pipeline = both(pipelines(), feed)
    run(pipeline)
    assert [row["total"] for row in sales(pipeline)] == [5.0, 7.0]
    assert batches(pipeline) == {"query:streams": 0}
    assert [(region, weight) for _, region, _, weight in delivered(tmp_path)] == [("north", 1), ("south", 1)]
    assert pipeline.session.epoch > first_epoch


def test_a_sink_that_fails_gets_its_epoch_when_the_batch_is_run_again(
    pipelines: Any, feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltic.connectors.files.sinks import ChangesSink  # noqa: PLC0415

    fill(feed)
    pipeline = both(pipelines(), feed)
    with monkeypatch.context() as patch:
        patch.setattr(ChangesSink, "deliver", refuse)
        with pytest.raises(SinkError, match="the disk is full"):
            run(pipeline)
    assert batches(pipeline) == {"query:streams": 0}
    assert delivered(tmp_path) == []
    epoch = pipeline.session.epoch
    run(pipeline)
    assert delivered(tmp_path) == [(epoch, "north", 1, 1), (epoch, "south", 1, 1)]
    assert pipeline.session.notes["batches"]["query:streams"][0] == 0


def refuse(sink: object, epoch: int, rows: object) -> None:
    raise SinkError("the disk is full")


def test_a_rejected_batch_has_no_effect(pipelines: Any, feed: Feed, tmp_path: Path) -> None:
    pipeline = both(pipelines(), feed)
    feed.write("customers", {"id": 7, "region": "north", "_op": "update"})
    feed.write("orders", {"id": 10, "customer": 1, "amount": 5.0})
    epoch = pipeline.session.epoch
    running = pipeline.start(availableNow=True)
    with pytest.raises(AbsentRow, match="id=7"):
        running.awaitTermination()
    assert isinstance(running.exception(), AbsentRow)
    assert pipeline.session.epoch == epoch
    assert delivered(tmp_path) == []
    (tmp_path / "customers" / "0001.json").write_text('{"id": 7, "region": "north", "_op": "insert"}\n')
    run(pipeline)
    assert batches(pipeline) == {"query:streams": 0}


@pytest.mark.slow
def test_each_batch_of_foreach_batch_is_a_tick(pipelines: Any, feed: Feed, tmp_path: Path) -> None:
    pipeline = pipelines()
    fill(feed)
    feed.write("orders", {"id": 12, "customer": 1, "amount": 1.0})
    queries = [
        feed.read(table, columns).writeStream.foreachBatch(pipeline.foreach_batch(table))
        .option("checkpointLocation", str(tmp_path / f"checkpoint-{table}")).trigger(availableNow=True).start()
        for table, columns in (("customers", CUSTOMERS), ("orders", ORDERS))
    ]  # fmt: skip
    for query in queries:
        query.awaitTermination()
    assert sales(pipeline) == [{"region": "north", "n": 2, "total": 6.0}, {"region": "south", "n": 1, "total": 7.0}]
    assert batches(pipeline) == {"table:customers": 0, "table:orders": 1}
    assert len(pipeline.recentProgress) == 3
    assert len({progress.epoch for progress in pipeline.recentProgress}) == 3


@pytest.mark.slow
def test_a_checkpoint_of_another_state_is_rejected(pipelines: Any, feed: Feed, tmp_path: Path) -> None:
    pipeline = both(pipelines(), feed)
    fill(feed)
    run(pipeline)
    epoch = pipeline.session.epoch
    with pytest.raises(StateError, match="stream query:streams had another checkpoint up to batch 0"):
        pipeline.start(availableNow=True, checkpoint=str(tmp_path / "other")).awaitTermination()
    assert pipeline.session.epoch == epoch


@pytest.mark.parametrize(
    ("seen", "batch_id", "message"),
    [
        (None, 3, "delivers batch 3, but the state has none of its batches"),
        ([5, "a"], 7, "delivers batch 7, but the state has its batches up to 5"),
        ([5, None], 0, "delivers batch 0, but the state has its batches up to 5"),
        ([5, "b"], 6, "its query was b and is now a"),
    ],
)
def test_batches_out_of_sequence_are_rejected(seen: Any, batch_id: int, message: str) -> None:
    pytest.importorskip("pyspark")
    from deltic.spark.opening import _committed  # noqa: PLC0415  needs the extra

    with pytest.raises(StateError, match=message):
        _committed("orders", batch_id, "a", seen)


def test_next_and_repeated_batches() -> None:
    pytest.importorskip("pyspark")
    from deltic.spark.opening import _committed  # noqa: PLC0415  needs the extra

    assert not _committed("orders", 0, "a", None)
    assert not _committed("orders", 6, "a", [5, "a"])
    assert _committed("orders", 5, "a", [5, "a"])
    assert _committed("orders", 5, None, [5, "a"])


@pytest.mark.parametrize(
    ("changed", "now"),
    [
        (("orders", "customers"), "orders, customers"),
        (("customers",), "customers"),
        (("customers", "orders", "orders"), "customers, orders, orders"),
    ],
)
def test_streams_of_other_positions_are_refused(pipelines: Any, feed: Feed, changed: tuple[str, ...], now: str) -> None:
    columns = {"customers": CUSTOMERS, "orders": ORDERS}
    pipeline = both(pipelines(), feed)
    fill(feed)
    run(pipeline)
    pipeline = pipelines()
    for table in changed:
        pipeline.stream(table, feed.read(table, columns[table]))
    with pytest.raises(StateError) as raised:
        pipeline.start(availableNow=True)
    assert (
        raised.value.message
        == f"stream query:streams had streams of the tables customers, orders, in this order, and has now those of {now}"
    )
    pipeline = both(pipelines(), feed)
    feed.write("orders", {"id": 12, "customer": 1, "amount": 1.0})
    run(pipeline)
    assert sales(pipeline)[0] == {"region": "north", "n": 2, "total": 6.0}


def test_a_running_query_is_stopped_after_its_tick(pipelines: Any, feed: Feed) -> None:
    pipeline = both(pipelines(), feed)
    fill(feed)
    running = pipeline.start(processingTime="0 seconds")
    with pytest.raises(SetupError, match="the pipeline is already running"):
        pipeline.start()
    running.query.processAllAvailable()
    assert running.isActive
    assert running.awaitTermination(0.01) is False
    running.stop()
    assert not running.isActive
    assert running.exception() is None
    assert len(sales(pipeline)) == 2


def test_a_session_is_fed_by_streams_also_several_of_one_table(spark: SparkSession, feed: Feed, tmp_path: Path) -> None:
    import deltic  # noqa: PLC0415
    from deltic.spark import StreamingPipeline  # noqa: PLC0415  needs the extra

    fill(feed)
    feed.write("more", {"id": 12, "customer": 1, "amount": 1.0, "_weight": 1})
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2) as session:
        session.sql(SCRIPT.partition("CREATE SINK")[0])
        with both(StreamingPipeline(session, state=str(tmp_path / "state")), feed) as pipeline:
            run(pipeline.stream("orders", feed.read("more", f"{ORDERS}, _weight BIGINT")))
            with pytest.raises(SetupError, match="a pipeline over a session cannot run on a Spark Connect server"):
                pickle.dumps(pipeline)
        with pytest.raises(ClosedError, match="the pipeline is closed"):
            pipeline.start(availableNow=True)
        assert sorted(row["n"] for row in session.view("sales").rows()) == [1, 2]


@pytest.mark.parametrize("late", [pytest.param(False, id="plain"), pytest.param(True, id="rows that may be late, which are read twice")])
def test_a_listener_gets_the_rows_of_each_table(spark: SparkSession, feed: Feed, tmp_path: Path, late: bool) -> None:
    from pyspark.sql.streaming.listener import StreamingQueryListener  # noqa: PLC0415  needs the extra

    from deltic.spark import StreamingPipeline  # noqa: PLC0415  needs the extra

    class Listener(StreamingQueryListener):
        def __init__(self) -> None:
            self.counts: list[dict[str, int]] = []
            self.ended = Semaphore(0)

        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            if (counted := event.progress.observedMetrics.get("deltic")) is not None:
                self.counts.append(counted.asDict())

        def onQueryIdle(self, event: Any) -> None:
            pass

        def onQueryTerminated(self, event: Any) -> None:
            self.ended.release()

    lateness = " LATENESS INTERVAL 1 DAY" if late else ""
    script = f"""
        CREATE TABLE orders (id BIGINT NOT NULL, at TIMESTAMP{lateness});
        CREATE TABLE customers (id BIGINT NOT NULL, PRIMARY KEY (id));
        CREATE MATERIALIZED VIEW days AS SELECT CAST(at AS DATE) AS day, count(*) AS n FROM orders GROUP BY CAST(at AS DATE);
    """
    feed.write("a", {"id": 1, "at": "2026-01-01T00:00:00Z"}, {"id": 2, "at": "2026-01-02T00:00:00Z"})
    feed.write("b", {"id": 3, "at": "2026-01-02T00:00:00Z"})
    feed.write("c", {"id": 1}, {"id": 2})
    listener = Listener()
    spark.streams.addListener(listener)
    try:
        with StreamingPipeline(script, spark, state=str(tmp_path / "state"), shards=2) as pipeline:
            for name in ("a", "b"):
                pipeline.stream("orders", feed.read(name, "id BIGINT, at TIMESTAMP"))
            run(pipeline.stream("customers", feed.read("c", "id BIGINT")))
            assert sum(row["n"] for row in pipeline.session.view("days").rows()) == 3
            assert [tick.rows_in for tick in pipeline.recentProgress] == [{"orders": 3, "customers": 2}]
            feed.write("c", {"id": 3})
            run(pipeline)
        assert listener.ended.acquire(timeout=30) and listener.ended.acquire(timeout=30)
    finally:
        spark.streams.removeListener(listener)
    assert listener.counts == [{"orders": 3, "customers": 2}, {"orders": 0, "customers": 1}]


def test_only_the_definition_is_sent_to_a_server(pipelines: Any) -> None:
    pipeline = pipelines()
    function = pipeline.foreach_batch("orders")
    assert pipeline.session.epoch > 0
    copy = pickle.loads(pickle.dumps(function))
    assert copy._pipeline._definition == pipeline._definition
    assert copy._pipeline._opened is None


@pytest.mark.slow
def test_files_of_the_script_and_streams_feed_one_state(pipelines: Any, feed: Feed, tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "PRIMARY KEY (id));\n    CREATE TABLE orders",
        "PRIMARY KEY (id)) USING json OPTIONS (path 'files', op_column '_op');\n    CREATE TABLE orders",
    )
    pipeline = pipelines(script)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "1.json").write_text('{"id": 1, "region": "north", "_op": "insert"}\n')
    with pytest.raises(CatalogError, match="table customers is read from files by the script"):
        pipeline.stream("customers", feed.read("customers", CUSTOMERS))
    feed.write("orders", {"id": 10, "customer": 1, "amount": 5.0})
    running = pipeline.stream("orders", feed.read("orders", ORDERS)).start(availableNow=True)
    assert running.awaitTermination(60)
    assert sales(pipeline) == [{"region": "north", "n": 1, "total": 5.0}]
    assert sum(progress.rows_in.get("customers", 0) for progress in running.recentProgress) == 1


def test_a_script_of_files_alone_runs_in_a_thread(pipelines: Any, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "1.json").write_text('{"k": 1, "v": 2}\n')
    pipeline = pipelines("""
        CREATE TABLE t (k BIGINT NOT NULL, v BIGINT, PRIMARY KEY (k)) USING json OPTIONS (path 'files', append_only 'true');
        CREATE MATERIALIZED VIEW sales AS SELECT 'all' AS region, sum(v) AS total FROM t;
    """)
    running = pipeline.start(availableNow=True)
    assert running.awaitTermination()
    assert sales(pipeline) == [{"region": "all", "total": 2}]
    assert running.lastProgress is not None
    assert running.lastProgress.rows_in == {"t": 1}
    (tmp_path / "files" / "2.json").write_text('{"k": 1, "v": 3}\n')
    running = pipeline.start(processingTime="10 milliseconds")
    with pytest.raises(DataError, match=r"2\.json"):
        running.awaitTermination()
    assert running.exception() is not None
    assert not running.isActive


@pytest.mark.parametrize(
    ("columns", "sequence", "message"),
    [
        ("id BIGINT, customer BIGINT", None, "table orders: the stream has no column amount"),
        (f"{ORDERS}, note STRING", None, "table orders: column note of the stream is not in the table"),
        (f"{ORDERS}, ID BIGINT", None, r"table orders: the stream has the column ID twice \(case does not count\)"),
        (f"{ORDERS}, _op STRING, _weight BIGINT", None, "a stream with both _op and _weight"),
        (f"{ORDERS}, at TIMESTAMP", "at", "the sequence at needs a column at and a column _op"),
    ],
)
def test_streams_that_do_not_fit_their_table_are_rejected(columns: str, sequence: str | None, message: str) -> None:
    pytest.importorskip("pyspark")
    from deltic.runtimes.spark.streams import tagged_table  # noqa: PLC0415  needs the extra
    from deltic.schema import BIGINT, DOUBLE, Field, Schema, TableSchema  # noqa: PLC0415

    table = TableSchema("orders", Schema((Field("id", BIGINT), Field("customer", BIGINT), Field("amount", DOUBLE))), (0,))
    with pytest.raises(FrameError, match=message):
        tagged_table([column.split()[0] for column in columns.split(", ")], table, sequence)


def test_streams_of_columns_whose_names_have_dots_and_backquotes(spark: SparkSession, feed: Feed) -> None:
    from deltic.runtimes.spark.streams import tagged  # noqa: PLC0415  needs the extra

    (_, struct) = tagged([feed.read("orders", ORDERS).selectExpr("id AS `c``d`", "id AS `a.b`")]).schema.fields
    assert struct.dataType.fieldNames() == ["c`d", "a.b"]


def test_pipelines_that_cannot_start_are_rejected(spark: SparkSession, pipelines: Any, feed: Feed) -> None:
    from deltic.spark import StreamingPipeline  # noqa: PLC0415  needs the extra

    with pytest.raises(SetupError, match="a pipeline on Spark without a state folder"):
        StreamingPipeline(SCRIPT, spark)
    pipeline = pipelines()
    with pytest.raises(SetupError, match="the pipeline has nothing to run"):
        pipeline.start()
    with pytest.raises(CatalogError, match="there is no table order"):
        pipeline.foreach_batch("order")
    with pytest.raises(FrameError, match="the frame is not a stream"):
        pipeline.stream("orders", spark.createDataFrame([], ORDERS))
    both(pipeline, feed)
    with pytest.raises(SetupError, match="more than one trigger"):
        pipeline.start(availableNow=True, once=True)
    with pytest.raises(SetupError, match="invalid trigger processingTime 'often'"):
        pipeline.start(processingTime="often")
    with pytest.raises(SetupError, match="invalid trigger processingTime 5"):
        pipeline.start(processingTime=5)
