"""Views in tables of Delta: what happens if a write fails before or after its commit, or another writer changes the table."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

import deltic
from deltic.errors import QueryError

pytest.importorskip("pyspark.sql.connect.proto")
deltalake = pytest.importorskip("deltalake")

from pyspark.sql.connect.types import pyspark_types_to_proto_types  # noqa: E402  needs the extra

from deltic.frontends.dataframes import Frames  # noqa: E402  needs the extra
from deltic.frontends.dataframes.types import type_of  # noqa: E402  needs the extra
from deltic.projects import publishing  # noqa: E402  needs the extra
from deltic.projects.definitions import Dataset, FilePlace  # noqa: E402  needs the extra
from deltic.projects.direct import DirectTable, Replacement  # noqa: E402  needs the extra
from deltic.projects.names import Names  # noqa: E402  needs the extra
from deltic.projects.notes import ProjectNotes  # noqa: E402  needs the extra
from deltic.projects.publishing import Publisher  # noqa: E402  needs the extra
from deltic.projects.server import Server  # noqa: E402  needs the extra
from deltic.projects.tables import DEFAULT_FORMAT, CatalogTables  # noqa: E402  needs the extra
from deltic.schema import Schema  # noqa: E402  needs the extra

PLACE = FilePlace("a.sql", 1)
TABLES = "CREATE TABLE t (k BIGINT, v BIGINT); CREATE MATERIALIZED VIEW v AS SELECT k, sum(v) AS s FROM t GROUP BY k"


class FakeTables:
    """A table of Delta in a folder, and what Spark would be asked to write to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = str(folder), list[str]()

    def format(self, dataset: Dataset) -> str:
        return "delta"

    def direct(self, dataset: Dataset) -> DirectTable:
        table = DirectTable.at(self.folder)
        assert table is not None
        return table

    def replace(self, dataset: Dataset, frame: pa.Table, before: str | None) -> None:
        self.asked.append("replace")
        deltalake.write_deltalake(self.folder, frame, mode="overwrite")

    def merge(self, dataset: Dataset, change: Any, frame: pa.Table, transaction: tuple[str, int]) -> None:
        self.asked.append("merge")

    def rows(self) -> Counter[str]:
        return Counter(map(repr, deltalake.DeltaTable(self.folder).to_pyarrow_table().to_pylist()))


class Published:
    """A session whose view `v` is published, and its table."""

    def __init__(self, folder: Path, program: str = TABLES) -> None:
        self.session = deltic.Session(state=folder / "state", retain=20)
        self.session.sql(program)
        self.view = self.session.view("v")
        self.tables = FakeTables(folder / "table")
        deltalake.DeltaTable.create(self.tables.folder, deltalake.Schema.from_arrow(self.view.schema.arrow))
        server = SimpleNamespace(of_rows=lambda rows, schema: rows)
        self.publisher = Publisher(self.session, cast(Any, server), cast(Any, self.tables), ProjectNotes())
        self.plan: Any = SimpleNamespace(dataset=Dataset("v", "`v`", "materialized view", FilePlace("a.sql", 1)))

    def tick(self, *rows: tuple[int, int]) -> None:
        self.session.apply({"t": [{"k": k, "v": v, "_weight": 1} for k, v in rows]})

    def publish(self) -> str:
        """Publishes the view; returns what there is to say."""
        return self.publisher.publish(self.plan)

    def check(self) -> None:
        assert self.tables.rows() == Counter(map(repr, self.view.rows()))


@pytest.fixture
def published(tmp_path: Path) -> Published:
    return Published(tmp_path)


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException, before: Callable[[], None] | None, *, commits: bool) -> None:
    """deltalake raises an error after its commit, or without one. before: what another writer does after the table was opened."""
    write = deltalake.write_deltalake

    def written(table: Any, rows: pa.Table, **options: Any) -> None:
        monkeypatch.setattr(deltalake, "write_deltalake", write)
        if before is not None:
            before()
        if commits:
            write(table, rows, **options)
        raise error

    monkeypatch.setattr(deltalake, "write_deltalake", written)


ERRORS = (OSError("the disk is full"), deltalake.exceptions.DeltaError("a checkpoint failed"), RuntimeError("unknown"))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_write_that_fails_after_its_commit_has_been_done(published: Published, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    published.tick((1, 1), (2, 2))
    published.publish()
    published.tick((1, 5), (3, 3))
    raising(monkeypatch, error, None, commits=True)
    assert published.publish() == "v: incremental, 3 rows written"
    assert published.tables.asked == []
    published.check()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_write_that_fails_before_its_commit_is_done_by_spark(
    published: Published, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    published.tick((1, 1), (2, 2))
    published.publish()
    published.tick((1, 5), (3, 3))
    raising(monkeypatch, error, None, commits=False)
    assert published.publish().startswith("v: incremental, 3 rows written by Spark")
    assert published.tables.asked == ["replace"], "a change is not merged into a table of which nothing is known"
    published.check()


def test_rows_that_another_writer_adds_meanwhile_do_not_stay(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    published.tick((1, 1))
    published.publish()
    published.tick((2, 2))
    folder, direct = published.tables.folder, published.tables.direct
    other = pa.table({"k": [99], "s": [99]}, schema=published.view.schema.arrow)

    def then_changed(dataset: Dataset) -> DirectTable:
        table = direct(dataset)
        deltalake.write_deltalake(folder, other, mode="append")
        return table

    monkeypatch.setattr(published.tables, "direct", then_changed)
    assert "written by Spark" in published.publish()
    published.check()


def test_the_transaction_of_an_earlier_commit_is_not_taken_for_this_one(published: Published) -> None:
    schema = published.view.schema
    rows = [pa.table({"k": [number], "s": [number]}, schema=schema.arrow) for number in (1, 2)]
    first = published.tables.direct(published.plan.dataset)
    assert first.replace(schema, rows[0], ("a", 7)) is Replacement.WRITTEN
    stale = published.tables.direct(published.plan.dataset)
    deltalake.write_deltalake(published.tables.folder, rows[1], mode="append")
    assert stale.replace(schema, rows[1], ("a", 7)) is Replacement.FAILED
    assert published.tables.rows() == Counter(["{'k': 1, 's': 1}", "{'k': 2, 's': 2}"])


def test_equal_rows_count_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "REPLACED_VALUES", 10)
    published = Published(tmp_path, "CREATE TABLE t (k BIGINT, v BIGINT); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    published.tick(*[(1, 1)] * 10)
    assert published.publish() == "v: incremental, 10 rows written"
    published.tick((1, 1))
    assert published.publish() == "v: incremental, 1 different rows merged"
    assert published.tables.asked == ["merge"]


def test_the_table_of_a_view_that_was_dropped_and_filled_again_is_written_whole(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "REPLACED_VALUES", -1)  # by merges
    published.tick((1, 1), (2, 2))
    published.publish()
    published.tick((2, 5))
    published.session.sql("DROP VIEW v")
    published.session.apply({"t": [{"k": 1, "v": 1, "_weight": -1}]})
    published.session.sql("CREATE MATERIALIZED VIEW v AS SELECT k, sum(v) AS s FROM t GROUP BY k")
    published.view = published.session.view("v")
    assert published.publisher.lag(published.plan) > 0
    assert published.publish() == "v: incremental, 1 rows"
    assert published.tables.asked == ["replace", "replace"], "the row of the key 1 is in no change of the view"
    published.check()
    published.tick((3, 3))
    assert published.publish() == "v: incremental, 1 keys merged"


def test_notes_of_views_that_a_project_does_not_define_are_forgotten() -> None:
    notes = ProjectNotes(published={"v": ["a", 1], "w": ["b", 1]}, files={"t": ["f"], "u": ["g"]}, versions={"t": ["x", 1]})
    notes.keep(["t"], ["v"])
    assert (notes.published, notes.files, notes.versions) == ({"v": ["a", 1]}, {"t": ["f"]}, {"t": ["x", 1]})


class FakeSession:
    """A session's settings."""

    def __init__(self) -> None:
        self.settings = {DEFAULT_FORMAT: "parquet"}
        self.conf = SimpleNamespace(get=lambda key, default=None: self.settings.get(key, default), set=self.set, unset=self.settings.pop)

    def set(self, key: str, value: str) -> None:
        self.settings[key] = value


@pytest.mark.parametrize("looked_up", [True, False])
def test_the_default_format_is_not_that_of_a_flow_that_runs(looked_up: bool) -> None:
    server = Server(Names(), {}, "sc://nowhere")
    server._session = cast(Any, FakeSession())
    tables, dataset = (
        CatalogTables(server, "/storage", "/state", ProjectNotes()),
        Dataset("v", "`v`", "streaming table", FilePlace("a.sql", 1)),
    )
    if looked_up:
        tables.look_up([])
    runs, ends = threading.Event(), threading.Event()

    def flow() -> None:
        with server.under(Names(), {DEFAULT_FORMAT: "delta"}):
            runs.set()
            ends.wait(10)

    def asked(formats: list[str]) -> None:
        formats.append(tables.format(dataset))

    formats = list[str]()
    threads = [threading.Thread(target=flow), threading.Thread(target=asked, args=(formats,))]
    threads[0].start()
    runs.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    ends.set()
    for thread in threads:
        thread.join()
    assert formats == ["parquet"]
    with server.under(Names(), {DEFAULT_FORMAT: "delta"}):
        assert tables.format(dataset) == "parquet"


@pytest.mark.parametrize("changed", ["", None, "__HIVE_DEFAULT_PARTITION__", "x"])
def test_the_partition_of_null_has_empty_strings_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str | None) -> None:
    published = Published(tmp_path, "CREATE TABLE t (k STRING, n INT, v BIGINT); CREATE MATERIALIZED VIEW v AS SELECT v, n, k FROM t")
    rows = [{"k": k, "n": None, "v": 1} for k in ("", None, "x", "__HIVE_DEFAULT_PARTITION__")]
    published.session.apply({"t": [{**row, "_weight": 1} for row in rows]})
    published.publisher.notes.published["v"] = [published.view._arrangement, published.session.epoch]
    published.publisher.notes.locations["v"] = str(tmp_path)
    published.plan.dataset = replace(published.plan.dataset, partitions=("N", "k"))
    written = list[Any]()
    monkeypatch.setattr(published.tables, "format", lambda dataset: "parquet")
    monkeypatch.setattr(
        published.tables,
        "replace_partitions",
        lambda dataset, frame, before, folders: written.append((frame, folders)) or "new",
        raising=False,
    )
    published.session.apply({"t": [{"k": changed, "n": None, "v": 2, "_weight": 1}]})
    assert published.publish() == "v: incremental, 1 partitions written"
    ((frame, folders),) = written
    texts = {"x"} if changed == "x" else {"", None, "__HIVE_DEFAULT_PARTITION__"}
    assert folders == {("__HIVE_DEFAULT_PARTITION__", "x" if changed == "x" else "__HIVE_DEFAULT_PARTITION__")}
    assert set(frame["k"].to_pylist()) == texts and frame.num_rows == len(texts) + 1


def test_partitions_of_delta_that_mix_null_and_empty_strings_are_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "REPLACED_VALUES", -1)
    published = Published(tmp_path, "CREATE TABLE t (k STRING, n INT, v BIGINT); CREATE MATERIALIZED VIEW v AS SELECT v, n, k FROM t")
    published.plan.dataset = replace(published.plan.dataset, partitions=("N", "K"))
    expected = {"x": "merge", None: "merge", "": "replace"}
    published.publish()
    for number, changed in enumerate(("x", None, "x", "", "x", None)):
        published.tables.asked.clear()
        published.session.apply({"t": [{"k": changed, "n": None, "v": number, "_weight": 1}]})
        published.publish()
        assert published.tables.asked == ["replace" if number == 5 else expected[changed]], number


@pytest.mark.parametrize("pending", [False, True])
def test_a_table_that_is_written_whole_does_not_take_the_transaction_of_a_merge(pending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views are written at the same time, in one session, whose settings a MERGE's transaction is."""
    server, seen, merging, ends = Server(Names(), {}, "sc://nowhere"), list[Any](), threading.Event(), threading.Event()
    server._session = session = cast(Any, FakeSession())

    def sql(statement: str, **frames: Any) -> list[Any]:
        if statement.startswith("MERGE"):
            merging.set()
            ends.wait(10)
        else:
            seen.append(dict(session.settings))
        return []

    monkeypatch.setattr(server, "sql", sql)
    tables, dataset = (
        CatalogTables(server, "/storage", "/state", ProjectNotes()),
        Dataset("v", "`v`", "materialized view", PLACE, format="delta"),
    )
    if pending:
        tables._pending["v"] = Schema(()), "delta"
    frame: Any = SimpleNamespace(format=lambda name: frame, mode=lambda name: frame, saveAsTable=lambda name: sql("saveAsTable"))
    frame.write = frame
    change: Any = SimpleNamespace(rows=pa.table({"k": [1]}), key=("k",), unique=True)
    merge = threading.Thread(target=tables.merge, args=(Dataset("w", "`w`", "materialized view", PLACE), change, frame, ("deltic", 7)))
    whole = threading.Thread(target=tables.replace, args=(dataset, frame, None))
    merge.start()
    assert merging.wait(10) and len(session.settings) == 3
    whole.start()
    whole.join(0.05)
    ends.set()
    merge.join()
    whole.join()
    assert seen == [{DEFAULT_FORMAT: "parquet"}]


def test_files_of_earlier_versions_go_and_events_stay(tmp_path: Path) -> None:
    catalog = SimpleNamespace(refreshTable=lambda name: None)
    server = SimpleNamespace(sql=lambda text: [], session=SimpleNamespace(catalog=catalog), forget=lambda name: None)
    tables, dataset = (
        CatalogTables(cast(Any, server), f"file://{tmp_path}", "", ProjectNotes()),
        Dataset("v", "`v`", "streaming table", FilePlace("a.py", 1)),
    )
    for name in ("first", "second", "third", "events"):
        (tmp_path / "_deltic_tables" / "v" / name).mkdir(parents=True)
    tables._locate_version(dataset, f"file://{tmp_path}/_deltic_tables/v/third", f"file://{tmp_path}/_deltic_tables/v/second")
    assert {one.name for one in (tmp_path / "_deltic_tables" / "v").iterdir()} == {"second", "third", "events"}


def test_errors_of_spark_have_the_place_of_the_dataset(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import PySparkException  # noqa: PLC0415  an extra

    def fails(*_: object) -> None:
        raise PySparkException("[NO_SPACE] the disk is full\nplan")

    published.tick((1, 1))
    monkeypatch.setattr(publishing, "REPLACED_VALUES", -1)
    monkeypatch.setattr(published.tables, "replace", fails)
    with pytest.raises(QueryError) as raised:
        published.publish()
    assert raised.value.message == "a.sql:1: v: Spark: [NO_SPACE] the disk is full"
    monkeypatch.undo()
    assert published.publish() == "v: incremental, 1 rows written", "the next run completes it"
    published.check()


@pytest.mark.parametrize("count", [0, 1])
def test_rows_are_sent_with_the_types_of_their_columns_also_if_there_are_none(count: int) -> None:
    """PySpark takes the type of a moment without a zone for TIMESTAMP, and refuses to send no rows."""
    types = (
        "TIMESTAMP_NTZ",
        "TIMESTAMP",
        "STRUCT<x INT, y ARRAY<STRING>>",
        "INTERVAL DAY TO SECOND",
        "DECIMAL(20, 3)",
        "MAP<STRING, DATE>",
    )
    columns = ", ".join(f"c{i} {type}" for i, type in enumerate(types))
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t ({columns}); CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
        session.apply({"t": [{"_weight": 1, **{f"c{i}": None for i in range(len(types))}}] * count})
        view, server = session.view("v"), Server(Names(), {}, "sc://nowhere")
        server._session = Frames(lambda: None).spark  # type: ignore[arg-type, return-value]
        row = pyspark_types_to_proto_types(server.of_rows(view.to_arrow(), view.schema).schema).struct
        assert [(one.name, type_of(one.data_type, None)) for one in row.fields] == [(one.name, one.type) for one in view.schema]
