"""States of earlier versions of Deltic: those that cannot be continued are rejected by name, and can be read.

`old_states/hash_1` has two shards and four ticks of users; its strings have ids by an unkeyed hash. `old_states/rows_of_streams` kept all
rows of a stream to sum them up, and does not name the views whose rows are of earlier ticks.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.errors import StateError
from deltic.runtimes.stored_view import StoredView
from deltic.spark import register
from deltic.storage.reader import StateReader

BY_CITY = [
    {"city": None, "n": 4, "first": "user11"},
    {"city": "Lima", "n": 5, "first": "user1"},
    {"city": "Oslo", "n": 5, "first": "user0"},
]
READINGS = """
    CREATE STREAM readings (at BIGINT LATENESS 10, sensor BIGINT, value BIGINT);
    CREATE TABLE names (id BIGINT PRIMARY KEY, name STRING);
    CREATE MATERIALIZED VIEW named AS SELECT name, value FROM readings JOIN names ON id = sensor;
    CREATE MATERIALIZED VIEW hourly AS SELECT at DIV 100 AS h, sensor, count(*) AS n FROM integrate(readings) GROUP BY 1, 2;
    CREATE MATERIALIZED VIEW before AS SELECT * FROM delay(readings);
    CREATE MATERIALIZED VIEW closed AS SELECT at DIV 100 AS h, count(*) AS n FROM readings GROUP BY 1 EMIT ON WINDOW CLOSE;
"""
TOTALS = "CREATE MATERIALIZED VIEW Totals AS SELECT sensor, sum(value) AS total, max(value) AS most FROM integrate(readings) GROUP BY 1;"
GROWN = [{"name": "user12", "age": 19}, {"name": "user13", "age": 22}]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(Path(__file__).parent / "old_states" / "hash_1", tmp_path / "old.state"))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for kind in ("data", "manifests") for path in (folder / kind).iterdir()}


def test_a_session_rejects_it_by_name_and_leaves_it_unchanged(old: Path) -> None:
    before = content(old)
    for shards in (None, 3):
        with pytest.raises(StateError) as caught:
            deltic.Session(state=str(old), shards=shards)
        assert f"the state folder {old} has string ids of version 1" in str(caught.value)
        assert "deltic state export" in str(caught.value)
    assert content(old) == before


def test_it_can_be_exported(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", "export", str(old), str(tmp_path / "out")]) == Exit.OK
    assert rows(pq.read_table(tmp_path / "out" / "by_city.parquet")) == BY_CITY
    assert rows(pq.read_table(tmp_path / "out" / "grown.parquet")) == GROWN
    assert main(["state", "verify", str(old)]) == Exit.OK
    capsys.readouterr()


def test_its_last_changes_are_readable(old: Path) -> None:
    with StateReader.open(str(old)) as reader:
        changes = StoredView(reader, "grown").changes()
    assert sorted(zip(changes["name"].to_pylist(), changes["_weight"].to_pylist(), strict=True)) == [
        ("user10", -1),
        ("user12", 1),
        ("user13", 1),
    ]


def test_rows_of_earlier_ticks_in_another_form_are_refused_and_can_be_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = Path(shutil.copytree(Path(__file__).parent / "old_states" / "rows_of_streams", tmp_path / "old.state"))
    with deltic.Session(state=str(old)) as session:
        for define in (session.sql, session.program):
            with pytest.raises(StateError, match="kept other rows of earlier ticks for view Totals") as caught:
                define(READINGS + TOTALS)
        assert "deltic state export" in str(caught.value)
    assert main(["state", "export", str(old), str(tmp_path / "out"), "--view", "totals"]) == Exit.OK
    totals = pq.read_table(tmp_path / "out" / "Totals.parquet").sort_by("sensor").to_pylist()
    assert totals == [{"sensor": 1, "total": 158, "most": 131}, {"sensor": 2, "total": 161, "most": 132}]
    with deltic.Session(state=str(old)) as session:
        session.sql(READINGS)
        session.apply({"readings": [{"at": 300, "sensor": 1, "value": 1, "_weight": 1}]})
        assert session.view("hourly").lookup((0, 1)) == [{"h": 0, "sensor": 1, "n": 2}], "other views have their rows"
        assert session.view("closed").rows() == [{"h": 1, "n": 2}]
        session.sql(TOTALS)
        assert session.view("totals").rows() == [], "after the program has run without it, it begins again"
    capsys.readouterr()


def test_a_state_without_defaults_of_columns_gets_those_of_the_script(tmp_path: Path) -> None:
    old = Path(shutil.copytree(Path(__file__).parent / "old_states" / "rows_of_streams", tmp_path / "old.state"))
    with deltic.Session(state=str(old)) as session:
        assert session._runtime.committed.program.defaults == {}
        session.sql(READINGS.replace("name STRING", "name STRING DEFAULT 'none'"))
        session.sql("INSERT INTO names (id) VALUES (77)")
        assert session.query("SELECT name FROM names WHERE id = 77").rows() == [{"name": "none"}]
        assert session._runtime.committed.program.defaults == {"names": {"name": "'none'"}}


@pytest.mark.spark
def test_spark_reads_it_and_filters_it_whole(old: Path, spark: SparkSession) -> None:
    register(spark)
    frame = spark.read.format("deltic").option("view", "grown").load(str(old))
    assert [row.asDict() for row in frame.orderBy("name").collect()] == GROWN
    assert [row.asDict() for row in frame.where("name = 'user13'").collect()] == GROWN[1:]


def rows(table: pa.Table) -> list[dict[str, object]]:
    actual: list[dict[str, object]] = table.sort_by(table.column_names[0]).to_pylist()
    return sorted(actual, key=lambda row: str(row[table.column_names[0]] or ""))
