"""Refreshes that fail, or are killed, and those after them; the tables of a project and its Spark are stood in for."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from deltic.errors import DivisionByZero, QueryError
from deltic.schema import BIGINT, Field
from deltic.session import Session
from pipelines_projects import SPEC, NoSpark, planned, written

pytest.importorskip("pyspark.sql.connect.proto")
pytest.importorskip("yaml")

from deltic.projects import running
from deltic.projects.cost import LEAST_ROWS
from deltic.projects.definitions import Dataset
from deltic.projects.flows import reset
from deltic.projects.notes import ProjectNotes
from deltic.projects.tables import CatalogTables

READ = 'spark.read.schema("k BIGINT, v BIGINT").parquet("FOLDER/src")'
OTHER = f"""\
from pyspark import pipelines as dp


@dp.materialized_view
def other():
    return {READ}.groupBy("k").count()
"""
QUOTIENTS = f"""

@dp.materialized_view(partition_cols=["k"])
def quotients():
    return {READ}.selectExpr("k", "100 DIV v AS w")


@dp.materialized_view
def reader():
    return spark.read.table("quotients").groupBy("k").sum("w")
"""
STREAMS = f"""{OTHER}

@dp.table
def stream():
    return spark.readStream.schema("k BIGINT, v BIGINT").json("FOLDER/in")


@dp.temporary_view
def changes():
    return spark.readStream.schema("k BIGINT, v BIGINT").json("FOLDER/in")


dp.create_streaming_table("keyed")
dp.create_auto_cdc_flow("keyed", "changes", ["k"], "v")
"""


class FakeTables:
    """What has been written, by dataset."""

    def __init__(self, folder: Path) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.folder, self.delta, self.found = folder, set[str](), list[int]()
        self.restored: list[tuple[str, str | None]] = []

    def look_up(self, datasets: Any) -> None:
        list(datasets)

    def differs(self, dataset: Dataset, schema: Any) -> bool:
        return dataset.key not in self.rows

    def create(self, dataset: Dataset, schema: Any, *, from_nothing: bool) -> str:
        if dataset.key in self.rows:
            return "kept"
        self.rows[dataset.key] = []
        return "new"

    def restore(self, dataset: Dataset, schema: Any, location: str | None) -> None:
        self.rows[dataset.key] = []
        self.restored.append((dataset.key, location))

    def format(self, dataset: Dataset) -> str:
        return "delta" if dataset.key in self.delta else "parquet"

    def is_absent(self, dataset: Dataset) -> bool:
        return dataset.key not in self.rows

    def location(self, dataset: Dataset) -> str:
        return str(self.folder / dataset.key / "rows")

    def checkpoint(self, dataset: Dataset, flow: str) -> str:
        return f"{self.checkpoints(dataset)}/{flow}"

    def checkpoints(self, dataset: Dataset) -> str:
        return str(self.folder / "checkpoints" / dataset.key)

    def events(self, dataset: Dataset) -> str:
        return str(self.folder / dataset.key / "events")

    def remove_rows(self, dataset: Dataset) -> None:
        shutil.rmtree(self.location(dataset), ignore_errors=True)

    def empty(self, dataset: Dataset) -> None:
        self.remove_rows(dataset)

    def begin_again(self, dataset: Dataset) -> None:
        pass

    def locate(self, dataset: Dataset, location: str) -> None:
        pass

    def replace(self, dataset: Dataset, frame: pa.Table, before: str | None) -> None:
        self.rows[dataset.key] = frame.to_pylist()


class RemoteTables(FakeTables):
    """As FakeTables, of a project whose storage is in an object store."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._storage, self._notes = "s3://bucket/shop", ProjectNotes()

    _folder, _generation = CatalogTables._folder, CatalogTables._generation  # type: ignore[assignment]
    location, events, begin_again = CatalogTables.location, CatalogTables.events, CatalogTables.begin_again  # type: ignore[assignment]
    checkpoint, checkpoints = CatalogTables.checkpoint, CatalogTables.checkpoints  # type: ignore[assignment]


class Project:
    """A project of `other` and `quotients`, and its source."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tables, self.said = folder, FakeTables(folder / "tables"), list[str]()
        self.spark = NoSpark()
        self.source(1, 2, 3)
        self.define(OTHER + QUOTIENTS)

    def define(self, views: str) -> None:
        self.spec = written(self.folder, {"spark-pipeline.yml": SPEC, "transformations/a.py": views})

    def source(self, *values: int) -> None:
        self.frame = pa.table({"k": range(len(values)), "v": pa.array(values, pa.int64())})

    @contextmanager
    def opened(self) -> Iterator[running.ProjectRun]:
        server: Any = SimpleNamespace(of_rows=lambda rows, schema: rows, message=lambda frame: frame)
        server.table = lambda identifier: SimpleNamespace(limit=lambda rows: identifier)
        server.rows = lambda message: pa.table({"k": self.tables.found}) if isinstance(message, str) else self.frame
        with running.ProjectRun(planned(self.spec, self.spark), server, str(self.folder / "state"), self.said.append) as run:
            run.tables = run.publisher.tables = cast(Any, self.tables)
            if isinstance(self.tables, RemoteTables):
                self.tables._notes = run.notes
            yield run

    def run(self, *refresh: str, full: bool = False) -> None:
        self.said.clear()
        with self.opened() as run:
            run.refresh(running.Selection(frozenset(refresh), full_all=full))

    def check(self) -> None:
        """Whether all tables have what their queries give."""
        rows = self.frame.to_pylist()
        assert counted(self.tables.rows["other"]) == Counter((row["k"], 1) for row in rows)
        for table in ("quotients", "reader"):
            assert counted(self.tables.rows[table]) == Counter((row["k"], 100 // row["v"]) for row in rows)


def counted(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_view_that_fails_on_the_rows_held_is_filled_after_the_source_has_been_repaired(project: Project) -> None:
    project.define(OTHER)
    project.source(1, 0, 2)
    project.run()
    project.define(OTHER + QUOTIENTS)
    with pytest.raises(DivisionByZero):
        project.run()
    assert [line for line in project.said if line.startswith("quotients: not filled before its sources are read: ")]
    with pytest.raises(DivisionByZero):
        project.run(full=True)
    project.source(1, 5, 2)
    project.run()
    project.check()
    project.run()
    assert not [line for line in project.said if "not filled" in line]


def test_a_view_that_is_recomputed_and_fails_is_filled_after_the_source_has_been_repaired(project: Project) -> None:
    project.source(*range(1, LEAST_ROWS + 1))
    project.run()
    project.source(0, *range(3, LEAST_ROWS + 2))
    with pytest.raises(DivisionByZero):
        project.run()
    assert any(line.startswith("quotients: recomputed") for line in project.said)
    project.source(*range(4, LEAST_ROWS + 4))
    project.run()
    project.check()


def test_a_view_that_is_not_refreshed_may_fail(project: Project) -> None:
    project.define(OTHER)
    project.source(1, 0, 2)
    project.run()
    project.define(OTHER + QUOTIENTS)
    project.source(1, 0, 2, 4)
    project.run("other")
    assert len(project.tables.rows["other"]) == 4
    project.source(1, 5, 2)
    project.run()
    project.check()


def test_a_view_that_the_project_did_not_define_for_a_run_is_written_whole(project: Project) -> None:
    project.run()
    project.define(OTHER)
    project.source(4)
    project.run()
    with project.opened() as run:
        assert run.notes.published.keys() == {"other"}
    project.define(OTHER + QUOTIENTS)
    project.run()
    project.check()


def test_a_table_that_a_run_has_created_before_it_was_killed_is_written_whole(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.run()
    del project.tables.rows["other"]
    with monkeypatch.context() as patched:
        patched.setattr(Session, "_replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            project.run()
    assert project.tables.rows["other"] == []
    project.run()
    project.check()


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("fails", ["locate", "reset", "run_events"])
def test_a_stream_that_was_being_emptied_starts_from_nothing(project: Project, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    emptied = list[str]()

    def events(*arguments: Any) -> None:
        emptied.extend(["keyed"] * arguments[-1])

    monkeypatch.setattr(running, "reset", lambda tables, one, flow, first: emptied.append(one.dataset.key))
    monkeypatch.setattr(running, "run_events", events)
    monkeypatch.setattr(running, "run_flow", lambda *_: 0)
    monkeypatch.setattr(running.SourceReads, "dataset", lambda self, key: None)
    project.define(STREAMS)
    project.run()
    if fails == "locate":  # the table had other columns, and is created again
        del project.tables.rows["stream"]
    with monkeypatch.context() as patched:
        patched.setattr(FakeTables if fails == "locate" else running, fails, interrupted)
        with pytest.raises(KeyboardInterrupt):
            project.run(full=True)
    emptied.clear()
    project.run("other")
    assert emptied == []
    project.run()
    assert emptied == (["keyed"] if fails == "run_events" else ["stream"])
    project.run()
    assert len(emptied) == 1, "once"


def test_a_streaming_table_whose_files_were_removed_is_fed_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    emptied = list[str]()
    monkeypatch.setattr(running, "reset", lambda tables, one, flow, first: emptied.append(one.dataset.key))
    for name in ("run_events", "run_flow"):
        monkeypatch.setattr(running, name, lambda *_: 0)
    monkeypatch.setattr(running.SourceReads, "dataset", lambda self, key: None)
    project.define(STREAMS)
    project.run()
    folder = project.folder / "tables"
    log = folder / "stream" / "rows" / "_spark_metadata"
    checkpoint = folder / "checkpoints" / "stream" / "stream"
    offsets, commits = checkpoint / "offsets", checkpoint / "commits"
    for place in (log, offsets, commits):
        place.mkdir(parents=True)
    (log / "0").touch()
    (offsets / "10").touch()
    project.run()
    (commits / "7").touch()  # Spark keeps the last hundred
    project.run()
    (log / "0").rename(log / "9.compact")
    project.run()
    assert emptied == [], "the table has its rows"
    (log / "9.compact").rename(log / "10")
    project.run("other")
    assert emptied == [] and log.exists(), "it is not refreshed"
    project.run()
    assert emptied == ["stream"] and not log.exists()
    assert "stream: its files were removed, so its streams are read again" in project.said


def test_events_whose_files_were_removed_are_read_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    emptied = list[bool]()
    monkeypatch.setattr(running, "run_events", lambda server, tables, events, from_nothing: emptied.append(from_nothing))
    monkeypatch.setattr(running, "run_flow", lambda *_: 0)
    monkeypatch.setattr(running.SourceReads, "dataset", lambda self, key: None)
    project.define(STREAMS)
    project.run()
    folder = project.folder / "tables"
    log, commits = folder / "keyed" / "events" / "_spark_metadata", folder / "checkpoints" / "keyed" / "events" / "commits"
    for place in (log, commits):
        place.mkdir(parents=True)
        (place / "0").touch()
    project.run()
    assert emptied == [False, False], "the events are there"
    project.tables.rows["keyed"] = [{"k": 1, "v": 1}]
    shutil.rmtree(folder / "keyed")
    project.run("other")
    assert len(emptied) == 2, "it is not refreshed"
    project.run()
    assert emptied.pop() is True
    assert "keyed: its files were removed, so its streams are read again" in project.said
    assert project.tables.rows["keyed"] == [], "its rows may be gone, too: it is written whole"
    (commits / "0").unlink()
    project.run()
    assert emptied.pop() is False


FLOWS = """\
from pyspark import pipelines as dp

dp.create_streaming_table("stream")
"""


def flows(*names: str) -> str:
    read = 'return spark.readStream.schema("k BIGINT, v BIGINT").json("FOLDER/in")'
    return FLOWS + "".join(f'\n\n@dp.append_flow(target="stream")\ndef {name}():\n    {read}\n' for name in names)


def ran(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the flows that are run, and `reset`."""
    done = list[str]()
    monkeypatch.setattr(running, "reset", lambda *_: done.append("reset"))
    monkeypatch.setattr(running, "run_flow", lambda server, tables, one, flow: done.append(flow.flow.name) or 0)
    return done


@pytest.mark.parametrize(("before", "now"), [(("fa",), ("fa", "fb")), (("fa", "fb"), ("fa",)), (("fa",), ("other",))])
def test_other_flows_into_a_streaming_table_of_files_are_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, before: tuple[str, ...], now: tuple[str, ...]
) -> None:
    done, (old, new) = ran(project, monkeypatch), (" and ".join(names) for names in (before, now))
    project.define(flows(*before))
    project.run()
    project.define(flows(*now))
    message = rf"a.py:3: stream was fed by {old}, and is now fed by {new}\n.*\n.*--full-refresh stream"
    for _ in range(2):
        with pytest.raises(QueryError, match=message):
            project.run()
    project.define(flows(*before))
    project.run()
    assert done == [old, old], "the table stays as it was"
    project.define(flows(*now))
    project.run(full=True)
    project.run()
    assert done == [old, old, "reset", new, new]
    project.define(flows(*before))
    with pytest.raises(QueryError, match=f"stream was fed by {new}, and is now fed by {old}"):
        project.run()


def test_flows_can_be_added_to_a_streaming_table_with_commits(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    done = ran(project, monkeypatch)
    project.tables.delta.add("stream")
    project.define(flows("fa"))
    project.run()
    project.define(flows("fa", "fb"))
    project.run()
    assert Counter(done) == {"fa": 2, "fb": 1}


def test_files_of_another_checkpoint_are_not_appended_to(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a state that has not noted which flows have fed a table, or whose checkpoint has been removed."""
    done = ran(project, monkeypatch)
    folder = project.folder / "tables"
    log, offsets = folder / "stream" / "rows" / "_spark_metadata", folder / "checkpoints" / "stream" / "fa and fb" / "offsets"
    for place in (log, offsets):
        place.mkdir(parents=True)
    for name in ("8", "9.compact", "10"):
        (log / name).touch()
    project.define(flows("fa", "fb"))
    with pytest.raises(QueryError, match="stream was fed by other flows, and is now fed by fa and fb"):
        project.run()
    (offsets / "9").touch()
    with pytest.raises(QueryError, match="stream was fed by other flows"):
        project.run()
    assert done == []
    (offsets / "10").touch()
    project.run()
    assert done == ["fa and fb"]


def test_a_streaming_table_that_is_emptied_forgets_the_flows_that_it_no_longer_has(tmp_path: Path) -> None:
    tables = FakeTables(tmp_path / "tables")
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.py": flows("fb")})
    one = planned(spec).datasets["stream"]
    for name in ("fa", "fb"):
        (tmp_path / "tables" / "checkpoints" / "stream" / name / "commits").mkdir(parents=True)
    reset(cast(Any, tables), one, one.flows[0], True)
    assert not (tmp_path / "tables" / "checkpoints" / "stream").exists(), "fa would continue after rows that are gone"


@pytest.mark.parametrize("found", [[], [1]])
def test_a_streaming_table_with_commits_that_was_dropped_is_fed_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, found: list[int]
) -> None:
    emptied = list[str]()
    monkeypatch.setattr(running, "reset", lambda tables, one, flow, first: emptied.append(one.dataset.key))
    for name in ("run_events", "run_flow"):
        monkeypatch.setattr(running, name, lambda *_: 0)
    monkeypatch.setattr(running.SourceReads, "dataset", lambda self, key: None)
    project.tables.delta.add("stream")
    project.define(STREAMS)
    project.run()
    commits = project.folder / "tables" / "checkpoints" / "stream" / "stream" / "commits"
    commits.mkdir(parents=True)
    (commits / "0").touch()
    project.run()
    assert emptied == [], "the table is there"
    del project.tables.rows["stream"]
    project.tables.found = found
    project.run()
    assert emptied == ([] if found else ["stream"])
    assert ("stream: it was dropped, so its streams are read again" in project.said) is not bool(found)
    project.run()
    assert emptied == ([] if found else ["stream"]), "once"


def test_a_table_that_a_session_has_dropped_is_read_whole(project: Project) -> None:
    project.run()
    with project.opened() as run:
        (key,) = run.plan.tables
        run.notes.versions[key], run.notes.files[key] = ["x", 1], ["f"]
        run._note()
    with project.opened() as run:
        run.refresh(running.Selection())
        assert (run.notes.versions, run.notes.files) == ({key: ["x", 1]}, {key: ["f"]})
    with Session(state=project.folder / "state") as session:
        session.program("")
    with project.opened() as run:
        run.refresh(running.Selection())
        assert (run.notes.versions, run.notes.files) == ({}, {})
    project.check()


def test_the_notes_of_a_tick_do_not_name_the_views_that_it_leaves_out(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.source(*range(1, LEAST_ROWS + 1))
    project.run()
    project.source(*range(3, LEAST_ROWS + 3))
    monkeypatch.setattr(running.ProjectRun, "_fill", killed)
    with pytest.raises(KeyboardInterrupt):
        project.run()
    monkeypatch.undo()
    with project.opened() as run:
        assert not run.notes.published.keys() & {"quotients", "reader"}
    project.run()
    project.check()


def killed(*_: object) -> None:
    raise KeyboardInterrupt


TOTALS = """

@dp.materialized_view
def total():
    return spark.read.table("stream").groupBy().sum("v")


@dp.materialized_view(table_properties={"deltic.refresh": "full"})
def largest():
    return spark.read.table("other").groupBy().max("count").toDF("n")


@dp.materialized_view
def doubled():
    return spark.read.table("largest").selectExpr("2 * n AS twice")
"""


def test_tables_that_are_read_and_not_refreshed_are_created_over_their_rows(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog of a session ends with it."""
    ran(project, monkeypatch)
    monkeypatch.setattr(running, "run_events", lambda *_: None)
    monkeypatch.setattr(running.SourceReads, "dataset", lambda self, key: None)
    monkeypatch.setattr(running.ProjectRun, "_run", lambda self, one: [f"{one.dataset.key}: by Spark"])
    project.spark = NoSpark(Field("n", BIGINT))
    project.define(STREAMS + TOTALS)
    readers = {"total": "stream", "largest": "other", "doubled": "largest"}
    for reader, table in readers.items():
        with pytest.raises(QueryError, match=rf"{reader} reads {table}, which has no table\n.*--refresh {reader},{table}"):
            project.run(reader)
    assert project.tables.rows == {}
    project.run()
    folder = project.folder / "tables"
    for place in (folder / "stream" / "rows" / "_spark_metadata", folder / "checkpoints" / "stream" / "stream" / "commits"):
        place.mkdir(parents=True)
        (place / "0").touch()
    versions = {key: folder / key / "version" for key in ("other", "largest")}
    with project.opened() as run:
        run.notes.locations |= {key: str(place) for key, place in versions.items()}
        run._note()
    for version in versions.values():
        version.mkdir(parents=True)
    locations = {"stream": str(folder / "stream" / "rows"), **{key: str(place) for key, place in versions.items()}}
    for reader, table in readers.items():
        rows = project.tables.rows.pop(table)
        project.run(reader)
        assert project.tables.restored == [(table, locations[table])]
        assert f"{table}: table created over its rows" in project.said
        project.run(reader)
        assert len(project.tables.restored) == 1, "it is there now"
        project.tables.restored.clear()
        project.tables.rows[table] = rows
    shutil.rmtree(versions["other"])
    del project.tables.rows["other"]
    with pytest.raises(QueryError, match="largest reads other, which has no table"):
        project.run("largest")


def test_checkpoints_and_rows_that_cannot_be_removed_are_exchanged(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows that are read from the beginning do not resume at a checkpoint of before, or at that of a run that was killed, and do not
    append to files of before, whose log would skip their first batches."""
    used, killed = set[str](), [False]

    def flow(server: Any, tables: Any, one: Any, flow: Any) -> int:
        used.update((tables.location(one.dataset), tables.checkpoint(one.dataset, flow.flow.name)))
        if killed[0]:
            raise KeyboardInterrupt
        return 0

    def events(server: Any, tables: Any, events: Any, from_nothing: bool) -> None:
        used.update((tables.events(events.dataset), tables.checkpoint(events.dataset, "events")))

    monkeypatch.setattr(running, "reset", lambda *_: None)
    monkeypatch.setattr(running, "run_flow", flow)
    monkeypatch.setattr(running, "run_events", events)
    monkeypatch.setattr(running.SourceReads, "dataset", lambda self, key: None)
    project.tables = RemoteTables(project.folder)
    project.define(STREAMS)

    def places(*refresh: str, full: bool = False) -> set[str]:
        used.clear()
        project.run(*refresh, full=full)
        return {place.removeprefix("s3://bucket/shop/_deltic_") for place in used}

    first = {"tables/stream/rows", "checkpoints/stream/stream", "tables/keyed/events", "checkpoints/keyed/events"}
    assert places() == places() == first
    killed[0] = True
    with pytest.raises(KeyboardInterrupt):
        places("stream", full=True)
    assert used == {f"s3://bucket/shop/_deltic_{place}" for place in ("tables/stream/rows@1", "checkpoints@1/stream/stream")}
    killed[0] = False
    second = {"tables/stream/rows@2", "checkpoints@2/stream/stream", "tables/keyed/events", "checkpoints/keyed/events"}
    assert places() == places() == second
    third = {"tables/stream/rows@3", "checkpoints@3/stream/stream", "tables/keyed/events@1", "checkpoints@1/keyed/events"}
    assert places(full=True) == places() == third


@pytest.mark.parametrize(
    ("files", "expected"),
    [(["rows/part-0.parquet"], "rows"), ([], "rows"), (["rows@2/_1/part-0.parquet"], "rows@2"), (["rows@1/part-0.parquet"], "rows")],
)
def test_rows_stay_where_a_version_that_exchanged_checkpoints_alone_wrote_them(tmp_path: Path, files: list[str], expected: str) -> None:
    folder = "s3://bucket/shop/_deltic_tables/stream"
    noted = {"generations": {"stream": 2}, "files": {"stream": [f"{folder}/{file}" for file in files]}}
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.py": flows("fb")})
    dataset, tables = planned(spec).datasets["stream"].dataset, RemoteTables(tmp_path)
    for _ in range(2):
        tables._notes = ProjectNotes.of(cast(Any, SimpleNamespace(notes={"pipelines": noted})))
        assert tables.location(dataset) == f"{folder}/{expected}"
        assert tables.checkpoint(dataset, "fb") == "s3://bucket/shop/_deltic_checkpoints@2/stream/fb"
        noted = tables._notes.json()["pipelines"]
    tables.begin_again(dataset)
    assert tables.location(dataset) == f"{folder}/rows@3"
    assert ProjectNotes.of(cast(Any, SimpleNamespace(notes=tables._notes.json()))).rows == {"stream": 3}
