"""The Spark runtime on a hand-built circuit, compared with the embedded runtime on the same changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

import hand_circuit
from deltic.circuit.pending import PendingRows
from deltic.errors import AbsentRow, CorruptState, DataError, DuplicateKey, FrameError, StateInUse
from deltic.runtimes import Runtime, TickResult
from deltic.runtimes.embedded import Embedded
from deltic.schema import Op
from deltic.storage.merging import RATIO
from deltic.trace.counters import Counters
from deltic.trace.merge import merge
from hand_circuit import CUSTOMERS, ORDERS, FailOnce, pending, shown, spend_circuit
from parts import slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltic.runtimes.spark import SparkRuntime

pytestmark = pytest.mark.spark
Open = Callable[..., "SparkRuntime"]


@pytest.fixture
def runtime(spark: SparkSession, tmp_path: Path) -> Iterator[Open]:
    """Opens runtimes on one state folder, and closes them."""
    from deltic.runtimes.spark import SparkRuntime  # noqa: PLC0415  needs the extra

    opened: list[SparkRuntime] = []

    def make(shards: int | None = 2, **options: int) -> SparkRuntime:
        opened.append(SparkRuntime(spark, str(tmp_path / "state"), shards, **options))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def content(runtime: Runtime, view: str = "spend") -> dict[tuple[object, ...], int]:
    batches = [spine.scan(Counters()) for spine in runtime.snapshot(f"view-{view}")]
    return shown(merge(batches), runtime.strings)


def changed(runtime: Runtime, result: TickResult, view: str = "spend") -> dict[tuple[object, ...], int]:
    return shown(result.changes[view], runtime.strings) if view in result.changes else {}


def random_changes(runtime: Runtime, step: int, rows: int) -> dict[str, PendingRows]:
    """New customers, orders of these and of unknown ones, and deletions of a third of the orders in the same tick."""
    rng = np.random.default_rng(step)
    people = [(100 * step + i, None if i % 5 == 4 else f"region {i % 7}") for i in range(max(rows // 10, 1))]
    orders = [(int(rng.integers(0, 100 * step + len(people) + 3)), 1000 * step + i, i % 9, 1) for i in range(rows)]
    removed = [(*row[:3], -1) for row in orders[: rows // 3]]
    return {
        "customers": pending(CUSTOMERS, people, runtime.strings),
        "orders": pending(ORDERS, orders + removed, runtime.strings, Op.WEIGHT),
    }


def test_views_and_changes_are_those_of_the_embedded_runtime(runtime: Open) -> None:
    on_spark, here = runtime(), Embedded(2)
    for one in (on_spark, here):
        one.install(spend_circuit())
    for step, rows in enumerate((1, 30, 0, 700, 5, 2)):
        results = [one.tick(random_changes(one, step, rows) if rows else {}) for one in (on_spark, here)]
        assert changed(on_spark, results[0]) == changed(here, results[1])
        assert content(on_spark) == content(here)
        counted = [{node: (c.rows_in, c.rows_out) for node, c in r.counters.items() if c.rows_in or c.rows_out} for r in results]
        assert counted[0] == counted[1] and bool(counted[0]) == (rows > 0)
    assert len(content(on_spark)) > 50


def test_a_tick_is_one_job(spark: SparkSession, runtime: Open) -> None:
    one = runtime()
    one.install(spend_circuit())
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("tick", "one tick")
    try:
        one.tick({"customers": pending(CUSTOMERS, [(1, "a"), (2, "b")], one.strings), "orders": pending(ORDERS, [(1, 1, 5)], one.strings)})
    finally:  # the session, and what the thread has set in it, is that of all tests
        for name in ("spark.jobGroup.id", "spark.job.description"):
            spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]  # its annotation lacks None, which clears it
    assert len(tracker.getJobIdsForGroup("tick")) == 1
    (stages,) = (tracker.getJobInfo(job).stageIds for job in tracker.getJobIdsForGroup("tick"))
    assert len(stages) == 3


def test_state_is_present_after_reopening(runtime: Open) -> None:
    one = runtime()
    one.install(spend_circuit())
    one.tick(
        {
            "customers": pending(CUSTOMERS, [(1, "ä"), (2, None)], one.strings),
            "orders": pending(ORDERS, [(1, 1, 5), (2, 2, 6)], one.strings),
        }
    )
    before = content(one)
    one.close()
    again = runtime(None)
    again.install(spend_circuit())
    assert content(again) == before == {("ä", 1, 5): 1, (None, 2, 6): 1}
    again.tick({"orders": pending(ORDERS, [(1, 3, 7)], again.strings)})
    assert content(again) == {**before, ("ä", 3, 7): 1}


@pytest.mark.parametrize("shards", [3, *slow(1)])
def test_the_least_user_error_is_raised_and_nothing_changes(runtime: Open, shards: int) -> None:
    one = runtime(shards)
    one.install(spend_circuit())
    one.tick({"customers": pending(CUSTOMERS, [(i, "x") for i in range(20)], one.strings)})
    epoch, before = one.epoch, content(one)
    with pytest.raises(DuplicateKey, match="id=7") as caught:
        people = pending(CUSTOMERS, [(30, "new"), (7, "y"), (9, "y"), (11, "y")], one.strings)
        one.tick({"customers": people, "orders": pending(ORDERS, [(1, 1, 1)], one.strings)})
    assert (caught.value.table, caught.value.ordinal) == ("customers", 1)
    with pytest.raises(AbsentRow, match="orders"):
        one.tick({"orders": pending(ORDERS, [(1, 1, 1, -1)], one.strings, Op.WEIGHT)})
    assert (one.epoch, content(one)) == (epoch, before)
    one.tick({"customers": pending(CUSTOMERS, [(30, "new")], one.strings)})
    assert one.epoch == epoch + 1


def test_a_new_view_is_filled_and_a_dropped_one_is_removed(runtime: Open) -> None:
    one = runtime()
    one.install(spend_circuit("old"))
    one.tick(
        {
            "customers": pending(CUSTOMERS, [(1, "a")], one.strings),
            "orders": pending(ORDERS, [(1, i, i) for i in range(50)], one.strings),
        }
    )
    before = content(one, "old")
    kept = one.statistics()["table-orders"]
    result = one.install(spend_circuit("new"))
    assert content(one, "new") == before == changed(one, result, "new")
    assert one.statistics()["table-orders"] == kept
    assert "view-old" not in one.statistics()
    epoch = one.epoch
    one.install(spend_circuit("new"))
    assert one.epoch == epoch


def test_small_batches_are_merged_by_the_ticks(runtime: Open) -> None:
    one = runtime()
    one.install(spend_circuit())
    one.tick({"customers": pending(CUSTOMERS, [(1, "a"), (2, "b"), (3, "c")], one.strings)})
    for i in range(RATIO + 1):
        rows = [(1, i, 5), (2, i, 6), (3, i, 7)]
        result = one.tick({"orders": pending(ORDERS, rows, one.strings)})
        assert changed(one, result) == {("a", i, 5): 1, ("b", i, 6): 1, ("c", i, 7): 1}
    assert max(len(spine.batches) for name in one.statistics() for spine in one.snapshot(name)) < RATIO
    assert len(content(one)) == 3 * (RATIO + 1)


@pytest.mark.parametrize("ticks", [2, *slow(13)])
def test_large_changes_are_read_from_files_and_large_state_is_merged_in_the_background(runtime: Open, ticks: int) -> None:
    one, here = runtime(retain=2), Embedded(2)
    for each in (one, here):
        each.install(spend_circuit())
        each.tick({"customers": pending(CUSTOMERS, [(i, f"r{i % 50}") for i in range(500)], each.strings)})
    for tick in range(ticks):
        for each in (one, here):
            rows = [(i % 500, tick * 12000 + i, 5) for i in range(12000)]
            result = each.tick({"orders": pending(ORDERS, rows, each.strings)})
            assert len(result.changes["spend"]) == 12000
    one.settle()
    assert max(len(spine.batches) for name in one.statistics() for spine in one.snapshot(name)) <= 6
    assert content(one) == content(here)


def test_messages_larger_than_a_row_are_exchanged(runtime: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    one, here = runtime(), Embedded(2)
    monkeypatch.setattr("deltic.runtimes.spark.runtime.BUNDLE_BYTES", 100)
    monkeypatch.setattr("deltic.runtimes.spark.message.CHUNK_BYTES", 1000)
    for each in (one, here):
        each.install(spend_circuit())
        each.tick(random_changes(each, 0, 900))
    assert content(one) == content(here)
    assert len(content(one)) > 300


@pytest.mark.parametrize(("how", "level"), [("kill", 1), *slow(("raise", 2), ("raise", 0), ("raise", 1), ("kill", 0), ("kill", 2))])
def test_a_task_that_fails_once_gives_the_same_result(runtime: Open, tmp_path: Path, how: Literal["raise", "kill"], level: int) -> None:
    pyspark = pytest.importorskip("pyspark")
    one, here = runtime(), Embedded(2)
    flag = tmp_path / "failed"
    pyspark.cloudpickle.register_pickle_by_value(hand_circuit)  # the workers cannot import the tests
    try:
        one.install(spend_circuit(failing=FailOnce(str(flag), how), level=level))
    finally:
        pyspark.cloudpickle.unregister_pickle_by_value(hand_circuit)
    here.install(spend_circuit())
    for step in range(2):
        results = [each.tick(random_changes(each, step, 40)) for each in (one, here)]
        assert changed(one, results[0]) == changed(here, results[1])
        assert flag.exists()
    assert content(one) == content(here)


@pytest.mark.parametrize("sequence", [None, "at"])
def test_changes_that_stay_on_spark(spark: SparkSession, runtime: Open, sequence: str | None) -> None:
    from deltic.runtimes.spark import SparkChanges  # noqa: PLC0415  needs the extra

    one = runtime()
    one.install(spend_circuit())
    rows = [(1, "wrong", "insert", 1), (2, None, "insert", 1), (3, "c", "insert", 1)]
    rows += [(1, "a", "update", 3), (3, None, "delete", 2), (3, "d", "insert", 7)] if sequence else []
    rows = rows if sequence else [(1, "a", "insert", 1), *rows[1:]]
    frame = spark.createDataFrame(rows, "id bigint, region string, _op string, at int").repartition(3)
    frame = frame if sequence else frame.drop("at")
    one.tick({"customers": SparkChanges(frame, CUSTOMERS, sequence), "orders": pending(ORDERS, [(i, i, 5) for i in range(5)], one.strings)})
    assert content(one) == {("a", 1, 5): 1, (None, 2, 5): 1, ("d" if sequence else "c", 3, 5): 1}


def test_errors_in_changes_that_stay_on_spark(spark: SparkSession, runtime: Open) -> None:
    from deltic.runtimes.spark import SparkChanges  # noqa: PLC0415  needs the extra

    one = runtime()
    one.install(spend_circuit())
    epoch = one.epoch
    twice = spark.createDataFrame([(1, "a", "upsert"), (1, "b", "upsert")], "id bigint, region string, _op string").repartition(2)
    with pytest.raises(DataError, match="has two changes of id=1 in one tick, in no known order"):
        one.tick({"customers": SparkChanges(twice, CUSTOMERS)})
    wrong = spark.createDataFrame([(1, "a", "put")], "id bigint, region string, _op string")
    with pytest.raises(FrameError, match="_op is 'put'"):
        one.tick({"customers": SparkChanges(wrong, CUSTOMERS)})
    with pytest.raises(FrameError, match="the sequence column region is of type string"):
        one.tick({"customers": SparkChanges(twice, CUSTOMERS, "region")})
    assert one.epoch == epoch
    assert content(one) == {}


def test_a_second_runtime_on_the_folder_is_rejected(runtime: Open) -> None:
    runtime()
    with pytest.raises(StateInUse):
        runtime()


def test_damaged_state_is_named(runtime: Open) -> None:
    one = runtime(1)
    one.install(spend_circuit())
    one.tick({"customers": pending(CUSTOMERS, [(1, "a")], one.strings)})
    epoch = one.epoch
    name = next(s.file for s in one._state.manifest.segments() if s.arrangement == "customers-by-id")
    path = Path(one._state.root) / "data" / name
    data = bytearray(path.read_bytes())
    one.close()
    os.truncate(path, len(data) - 64)
    again = runtime(1)
    again.install(spend_circuit())
    with pytest.raises(CorruptState, match=name):
        again.tick({"orders": pending(ORDERS, [(1, 1, 1)], again.strings)})
    assert again.epoch == epoch + 1
