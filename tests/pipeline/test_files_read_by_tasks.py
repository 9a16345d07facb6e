"""Large Parquet files are read by tasks: rows, offsets, dead letters and errors are those of the driver, and either continues the other."""

from __future__ import annotations

import itertools
import logging
import os
import pickle
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltic
from crashes import PowerLoss, watching
from deltic.connectors.files import remote as remote_files
from deltic.connectors.files import source as file_source
from deltic.connectors.files.offsets import UNSUMMED
from deltic.connectors.files.reader import FileReader
from deltic.connectors.files.source import FileSource
from deltic.connectors.source import POSITION, Json, Offsets, RemoteRows, SourceBatch
from deltic.errors import ConstraintViolation, DataError, FrameError, SourceError
from deltic.schema import BIGINT, INT, STRING, Field, Schema, TableSchema
from parts import slow
from shop import views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYED = TableSchema("t", Schema((Field("id", BIGINT, False), Field("a", INT), Field("b", STRING))), (0,))
PLAIN = TableSchema("t", Schema((Field("id", BIGINT), Field("a", INT), Field("b", STRING))))
ROWS, GROUP = 50, 7


def write(folder: Path, name: str, first: int, *, ops: bool, bad: bool) -> Path:
    """A file of several row groups; with `bad`, values that do not fit and operations that there are not."""
    folder.mkdir(exist_ok=True)
    ids = list(range(first, first + ROWS))
    columns = {
        "id": pa.array([None if bad and i % 11 == 3 else i for i in ids], pa.int64()),
        "a": pa.array([2**40 if bad and i % 13 == 5 else i % 5 for i in ids], pa.int64()),
        "b": pa.array([f"t{i % 4}" for i in ids]),
    }
    if ops:
        columns["_op"] = pa.array(["shout" if bad and i % 17 == 2 else ("upsert", "insert")[i % 2] for i in ids])
    pq.write_table(pa.table(columns), folder / name, row_group_size=GROUP)
    return folder / name


def in_process(function: Callable[[int], Json], count: int) -> list[Json]:
    """Tasks get copies."""
    return [pickle.loads(pickle.dumps(function))(number) for number in range(count)]


def source(folder: Path, table: TableSchema, *, ops: bool, on_error: str, spread: bool) -> FileSource:
    made = FileSource(table, FileReader(table, "parquet", str(folder), op_column="_op" if ops else None, on_error=on_error))
    assert not spread or made.spread(in_process)
    return made


def batches(one: FileSource, limit: int, offsets: Offsets | None = None) -> Iterator[SourceBatch]:
    """All batches, each committed."""
    one.restore(offsets or Offsets())
    one.refresh(force=True)
    while (batch := one.read(limit)) is not None:
        yield batch
        one.committed(batch)


def rows_of(batch: SourceBatch) -> list[tuple[Any, ...]]:
    """The rows with their places, in the order of the batch."""
    assert batch.origin is not None and batch.place is not None
    if not isinstance(batch.changes, RemoteRows):
        rows = [] if batch.changes is None else [tuple(row.values()) for row in batch.changes.to_pylist()]
        return [(*row, batch.origin(i), batch.place(i)) for i, row in enumerate(rows)]
    found = []
    for part in reversed(range(batch.changes.parts)):
        for frame in pickle.loads(pickle.dumps(batch.changes)).frames(part):
            for row in frame.to_pylist():
                position = row.pop(POSITION, None)
                found.append((position, tuple(row.values())))
    if any(position is None for position, _ in found):
        return [(*row, "", ("", 0)) for _, row in found]
    return [(*row, batch.origin(position), batch.place(position)) for position, row in sorted(found)]


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_source, "LARGE_BYTES", 1)
    monkeypatch.setattr(remote_files, "LEAST_ROWS", 1)


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("limit", [3, GROUP, 20, 1_000])
@pytest.mark.parametrize("table", [KEYED, PLAIN], ids=["keyed", "plain"])
@pytest.mark.parametrize("ops", [False, True])
def test_batches_are_those_of_the_driver(tmp_path: Path, table: TableSchema, ops: bool, limit: int) -> None:
    ops_ = ops and bool(table.key)
    for number, name in enumerate(("a.parquet", "b.parquet", "c.parquet")):
        write(tmp_path / "in", name, 1_000 * number, ops=ops_, bad=number != 1)
    local = list(batches(source(tmp_path / "in", table, ops=ops_, on_error="dead_letter", spread=False), limit))
    spread = list(batches(source(tmp_path / "in", table, ops=ops_, on_error="dead_letter", spread=True), limit))
    assert len(local) == len(spread) and all(isinstance(batch.changes, RemoteRows) for batch in spread)
    for mine, theirs in zip(spread, local, strict=True):
        assert (mine.rows, mine.parts, mine.dead_letters) == (theirs.rows, theirs.parts, theirs.dead_letters)
        assert mine.offsets.parts == theirs.offsets.parts
        assert (mine.offsets.cursor or [])[:-1] == (theirs.offsets.cursor or [])[:-1]
        if not table.key:
            assert Counter(row[:3] for row in rows_of(mine)) == Counter(row[:3] for row in rows_of(theirs))
        elif ops_:
            assert rows_of(mine) == rows_of(theirs)
        else:
            assert [(*row[:3], *row[4:]) for row in rows_of(mine)] == rows_of(theirs), "all operations are inserts"
    assert sum(len(batch.dead_letters) for batch in local) > 5


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("begins", [False, True], ids=["local first", "tasks first"])
def test_one_continues_what_the_other_has_begun(tmp_path: Path, begins: bool) -> None:
    write(tmp_path / "in", "a.parquet", 0, ops=True, bad=True)
    write(tmp_path / "in", "b.parquet", 100, ops=True, bad=True)
    open_ = [source(tmp_path / "in", KEYED, ops=True, on_error="dead_letter", spread=spread) for spread in (begins, not begins)]
    expected = [
        row
        for batch in batches(source(tmp_path / "in", KEYED, ops=True, on_error="dead_letter", spread=False), 9)
        for row in rows_of(batch)
    ]
    found: list[tuple[Any, ...]] = []
    parts: dict[str, Json] = {}
    cursor: Json = None
    number = 0
    while True:
        (one, number) = (open_[number % 2], number + 1)
        batch = next(batches(one, 9, Offsets(cursor, parts)), None)
        if batch is None:
            break
        found += rows_of(batch)
        cursor, parts = batch.offsets.cursor, {**parts, **batch.offsets.parts}
    assert found == expected and set(parts) == {"a.parquet", "b.parquet"}


@pytest.mark.usefixtures("all_large")
def test_a_file_that_changes_while_tasks_read_it_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "in", "a.parquet", 0, ops=True, bad=False)
    first = next(batches(source(tmp_path / "in", KEYED, ops=True, on_error="fail", spread=True), 9))
    assert first.offsets.cursor[-1] == UNSUMMED
    os.utime(path, ns=(1, 1))  # the same bytes
    again = source(tmp_path / "in", KEYED, ops=True, on_error="fail", spread=True)
    rest = [row for batch in batches(again, 1_000, first.offsets) for row in rows_of(batch)]
    assert len(rest) == ROWS - 9
    write(tmp_path / "in", "a.parquet", 1, ops=True, bad=False)
    with pytest.raises(SourceError, match="changed when only its first 9 rows had been read"):
        list(batches(source(tmp_path / "in", KEYED, ops=True, on_error="fail", spread=True), 9, first.offsets))


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("limit", [GROUP, 1_000])
def test_the_first_wrong_row_is_reported_as_by_the_driver(tmp_path: Path, limit: int) -> None:
    write(tmp_path / "in", "a.parquet", 0, ops=True, bad=True)
    with pytest.raises(DataError) as local:
        list(batches(source(tmp_path / "in", KEYED, ops=True, on_error="fail", spread=False), limit))
    first = next(batches(source(tmp_path / "in", KEYED, ops=True, on_error="fail", spread=True), limit))
    errors = []
    assert isinstance(first.changes, RemoteRows)
    for part in range(first.changes.parts):
        try:
            list(first.changes.frames(part))
        except (ConstraintViolation, FrameError) as error:
            errors.append((error.ordinal, str(error)))
    assert min(errors)[1] == str(local.value) and min(errors)[0] < 0


@pytest.mark.usefixtures("all_large")
def test_files_that_are_no_parquet_fail_alike(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.parquet").write_bytes(b"PAR1 and no more")
    texts = []
    for spread in (False, True):
        with pytest.raises(SourceError) as caught:
            list(batches(source(tmp_path / "in", KEYED, ops=True, on_error="fail", spread=spread), 9))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_small_files_and_those_that_tasks_do_not_find_are_read_by_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "in", "a.parquet", 0, ops=True, bad=False)
    write(tmp_path / "in", "b.parquet", 100, ops=True, bad=False)
    with open(tmp_path / "in/c.parquet", "wb") as file:
        table = pq.read_table(tmp_path / "in/b.parquet").slice(0, 1)
        pq.write_table(table.set_column(0, "id", pa.array([999])), file)
    monkeypatch.setattr(file_source, "LARGE_BYTES", (tmp_path / "in/b.parquet").stat().st_size)
    one = source(tmp_path / "in", KEYED, ops=True, on_error="fail", spread=True)
    kinds = [(isinstance(batch.changes, RemoteRows), list(batch.parts)) for batch in batches(one, 1_000)]
    large = ["a.parquet", "b.parquet"] if (tmp_path / "in/a.parquet").stat().st_size >= file_source.LARGE_BYTES else ["b.parquet"]
    assert (True, large) in kinds and kinds[-1] == (False, ["c.parquet"])
    absent = FileSource(KEYED, FileReader(KEYED, "parquet", str(tmp_path / "in"), op_column="_op"))
    absent.spread(lambda function, count: [None] * count)
    with caplog.at_level(logging.WARNING):
        assert not any(isinstance(batch.changes, RemoteRows) for batch in batches(absent, 1_000))
    assert "Spark's tasks do not find the files" in caplog.text


def test_sources_that_are_not_spread(tmp_path: Path) -> None:
    assert not FileSource(KEYED, FileReader(KEYED, "json", str(tmp_path))).spread(in_process)
    named = TableSchema("t", Schema((Field(POSITION, BIGINT),)))
    assert not FileSource(named, FileReader(named, "parquet", str(tmp_path))).spread(in_process)


SCRIPT = """
CREATE TABLE t (id BIGINT NOT NULL, a INT, b STRING, PRIMARY KEY (id))
    USING parquet OPTIONS (path 'in', op_column '_op', on_error 'dead_letter', dead_letter_path 'letters');
CREATE TABLE u (id BIGINT, a INT, b STRING) USING parquet OPTIONS (path 'more', append_only 'true');
CREATE MATERIALIZED VIEW sums AS SELECT t.b, count(*) AS n, sum(u.a) AS a FROM t JOIN u ON t.a = u.a GROUP BY t.b;
CREATE MATERIALIZED VIEW copied AS SELECT * FROM t;
CREATE SINK copied_out FROM copied USING parquet OPTIONS (path 'out', mode 'changes');
"""


def run(folder: Path, *, ticks: int | None = None, **options: Any) -> tuple[dict[str, Counter[Any]], list[int]]:
    """Runs the pipeline to its end, or so many ticks; the views, and how many rows each tick has read of `t`."""
    with deltic.Pipeline(SCRIPT, state=str(folder / "state"), base=folder, **options) as pipeline:
        read = list[int]()
        while (ticks is None or len(read) < ticks) and (progress := pipeline.tick()) is not None:
            read.append(progress.rows_in.get("t", 0))
        return views(pipeline), read


def letters(folder: Path) -> Counter[str]:
    return Counter(
        line.replace(str(folder), "") for path in (folder / "letters").glob("letters-*") for line in path.read_text().splitlines()
    )


def fill(folder: Path) -> None:
    for number, name in enumerate(("a.parquet", "b.parquet")):
        write(folder / "in", name, 1_000 * number, ops=True, bad=True)
        write(folder / "more", name, 10 * number, ops=False, bad=False)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("all_large")
def test_a_watermark_is_that_of_rows_that_tasks_read(spark: SparkSession, tmp_path: Path) -> None:
    script = """
        CREATE TABLE readings (id BIGINT, at TIMESTAMP, PRIMARY KEY (id))
            USING parquet OPTIONS (path 'in', append_only 'true', watermark 'at', watermark_delay '10 seconds');
        CREATE MATERIALIZED VIEW recent AS SELECT id FROM readings WHERE at > now() - INTERVAL 5 SECONDS;
    """
    (tmp_path / "in").mkdir()
    moments = pa.array(range(0, 40_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"id": range(40), "at": moments}), tmp_path / "in" / "a.parquet", row_group_size=GROUP)
    found = []
    for number, options in enumerate(({}, {"spark": spark, "shards": 2})):
        with deltic.Pipeline(script, state=str(tmp_path / f"state{number}"), base=tmp_path, rows_per_tick=30, **options) as pipeline:
            pipeline.run_once()
            found.append((pipeline.session.now, views(pipeline)))
    assert found[0] == found[1] and found[0][1]["recent"].total() == 15


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("all_large")
def test_a_pipeline_on_spark_is_that_of_this_process(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("spark", "here"):
        (tmp_path / name).mkdir()
        fill(tmp_path / name)
    expected, _ = run(tmp_path / "here", rows_per_tick=30)

    def not_here(*_: object) -> None:
        raise AssertionError("the driver has read rows")

    monkeypatch.setattr(file_source, "_Reading", not_here)
    run(tmp_path / "spark", spark=spark, shards=2, rows_per_tick=30, ticks=1)
    found, read = run(tmp_path / "spark", spark=spark, shards=2, rows_per_tick=30)
    assert found == expected and sum(read) == 2 * ROWS - 30
    assert letters(tmp_path / "spark") == letters(tmp_path / "here") and letters(tmp_path / "here").total() > 5
    assert run(tmp_path / "spark", spark=spark, shards=2) == (expected, [])


def delivered(folder: Path) -> Counter[Any]:
    """The sum of the changes that the sink has, and of them those that are not of a row that the view has once."""
    total: Counter[Any] = Counter()
    for path in (folder / "out").rglob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            total[row["id"], row["a"], row["b"]] += row["_weight"]
    return Counter({row: weight for row, weight in total.items() if weight})


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("all_large")
def test_runs_that_are_killed_take_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    """At steps of the disk all along a run, one after another, of one pipeline: each kill is that of what the one before has left."""
    for name in ("killed", "here"):
        (tmp_path / name).mkdir()
        fill(tmp_path / name)
    steps, (expected, _) = list[str](), run(tmp_path / "here", rows_per_tick=30)
    kills = 0
    for left in (4 * 2**life for life in itertools.count()):
        passed = itertools.count(left, -1)

        def at(step: str, path: str, passed: Iterator[int] = passed) -> None:
            steps.append(Path(path).parent.name)
            if next(passed) <= 0:
                raise PowerLoss

        try:
            with watching(at):
                found, _ = run(tmp_path / "killed", spark=spark, shards=2, rows_per_tick=30)
            break
        except PowerLoss:
            kills += 1
    assert kills > 3 and {"manifests", "letters", "out"} <= set(steps), (kills, Counter(steps))
    assert found == expected and letters(tmp_path / "killed") == letters(tmp_path / "here")
    assert delivered(tmp_path / "killed") == delivered(tmp_path / "here") == found["copied"]


@pytest.mark.spark
@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("on_error", slow("fail", "dead_letter"))
def test_errors_of_rows_are_those_of_this_process(spark: SparkSession, tmp_path: Path, on_error: str) -> None:
    write(tmp_path / "in", "a.parquet", 0, ops=False, bad=on_error == "fail")
    letters_to = f", dead_letter_path '{tmp_path / 'letters'}'" if on_error == "dead_letter" else ""
    script = f"""
        CREATE TABLE t (id BIGINT NOT NULL, a INT, b STRING, PRIMARY KEY (id))
            USING parquet OPTIONS (path 'in', append_only 'true', on_error '{on_error}'{letters_to});
        CREATE MATERIALIZED VIEW copied AS SELECT * FROM t;
    """
    if on_error == "dead_letter":  # what only the tick finds: keys that occur twice
        write(tmp_path / "in", "b.parquet", ROWS - 8, ops=False, bad=False)
    texts: list[Any] = []
    for number, options in enumerate(({}, {"spark": spark, "shards": 2})):
        with deltic.Pipeline(script, state=str(tmp_path / f"state{number}"), base=tmp_path, **options) as pipeline:
            if on_error == "dead_letter":
                pipeline.run_once()
                found = [line for path in (tmp_path / "letters").iterdir() for line in path.read_text().splitlines()]
                texts.append((Counter(found), Counter(tuple(row.values()) for row in pipeline.session.view("copied").rows())))
                shutil.rmtree(tmp_path / "letters")
                continue
            with pytest.raises(DataError) as caught:
                pipeline.run_once()
            assert pipeline.session.view("copied").rows() == [] and pipeline.session.notes.get("sources") is None
        texts.append((type(caught.value), str(caught.value)))
    assert texts[0] == texts[1]
    if on_error == "dead_letter":
        assert any("already has a row" in letter and "b.parquet" in letter for letter in texts[0][0]) and texts[0][1]


def test_small_row_groups_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_source, "LARGE_BYTES", 1)
    write(tmp_path / "in", "a.parquet", 0, ops=True, bad=True)
    (batch,) = batches(source(tmp_path / "in", KEYED, ops=True, on_error="dead_letter", spread=True), 1_000)
    (local,) = batches(source(tmp_path / "in", KEYED, ops=True, on_error="dead_letter", spread=False), 1_000)
    assert isinstance(batch.changes, RemoteRows) and batch.changes.parts == 1
    assert rows_of(batch) == rows_of(local) and batch.dead_letters == local.dead_letters


@pytest.mark.usefixtures("all_large")
def test_ranges_end_where_row_groups_do() -> None:
    entry = remote_files.Entry("a", 1, 1)
    assert remote_files.ranges_of(entry, [5, 0, 5], 0, 0, 0) == []
    ranges = remote_files.ranges_of(entry, [5, 0, 5], 3, 10, 100)
    assert [(part.start, part.rows, part.first) for part in ranges] == [(3, 2, 10), (5, 5, 12)]
