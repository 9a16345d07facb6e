"""The public API on Spark."""

from __future__ import annotations

import socket
from datetime import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deltic
from deltic import errors
from deltic.storage.local import LocalFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_transactions_of_every_operation(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(spark=spark, state=str(tmp_path / "state")) as session:
        session.sql("""
            CREATE TABLE t (a INT, b STRING, c STRING NOT NULL, PRIMARY KEY (a, b));
            CREATE MATERIALIZED VIEW v AS SELECT c, count(*) AS n FROM t GROUP BY c;
        """)
        with session.transaction() as tx:
            tx.insert("t", [{"a": 1, "b": "x", "c": "p"}, {"a": 2, "b": "y", "c": "p"}, {"a": 3, "b": "z", "c": "q"}])
            tx.upsert("t", spark.createDataFrame([(1, "x", "r")], "a int, b string, c string"))
            tx.delete("t", [(2, "y")])
        assert sorted(row["c"] for row in session.view("v").to_spark().collect()) == ["q", "r"]
        with session.transaction() as tx:
            tx.delete("t", [(1, "x")])
            tx.delete("t", [{"a": 3, "b": "z", "c": "q"}])
        assert session.view("v").rows() == []
        assert sorted(session.view("v").changes()["_weight"].to_pylist()) == [-1, -1]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("SELECT 1 AS a, 2 AS A, 'insert' AS _op", "table t: the frame has the column A twice (case does not count)"),
        (None, "table t: the frame is a stream"),
        ("SELECT 1 AS a, named_struct('n', 1) AS at, 'insert' AS _op", "table t: the sequence at is of type struct<n: int32 not null>"),
    ],
)
def test_frames_of_spark_that_are_no_changes_are_refused(spark: SparkSession, tmp_path: Path, source: str | None, message: str) -> None:
    frame = spark.readStream.format("rate").load() if source is None else spark.sql(source)
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=1) as session:
        session.sql("CREATE TABLE t (a INT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        with pytest.raises(errors.FrameError) as raised:
            session.apply({"t": frame}, sequence="at" if "at" in frame.columns else None)
        assert raised.value.message == message
        if frame.isStreaming:
            with pytest.raises(errors.FrameError, match=message):
                session.insert("t", frame)


def test_columns_whose_names_have_dots_and_backquotes(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=1) as session:
        session.sql("""
            CREATE TABLE t (id INT PRIMARY KEY, `a.b` INT, `c``d` INT);
            CREATE MATERIALIZED VIEW v AS SELECT id, `a.b`, `c``d` FROM t;
        """)
        frame = spark.sql("SELECT 1 AS id, 2 AS `a.b`, 3 AS `c``d`, 'insert' AS _op, 1 AS `se.q`")
        session.apply({"t": frame}, sequence="se.q")
        assert session.view("v").rows() == [{"id": 1, "a.b": 2, "c`d": 3}]


def test_nulls_of_structs_whose_fields_are_not_null(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=1) as session:
        session.sql("""
            CREATE TABLE t (id BIGINT PRIMARY KEY, l ARRAY<STRUCT<z: STRING>>, s STRUCT<z: STRING>, at TIME);
            CREATE MATERIALIZED VIEW v AS SELECT * FROM t;
        """)
        columns = "array(named_struct('z', 'q'), NULL) AS l, if(id = 2, NULL, named_struct('z', 'q')) AS s, TIME '01:02:03' AS at"
        frame = spark.sql(f"SELECT id, {columns} FROM range(1, 3)")
        spark.conf.set("spark.sql.timeType.enabled", "false")  # as by default, when casts to TIME are refused
        try:
            session.insert("t", frame)
        finally:
            spark.conf.set("spark.sql.timeType.enabled", "true")
        session.apply({"t": spark.sql(f"SELECT id, {columns}, 'insert' AS _op FROM range(3, 4)")})
        lists, at = [{"z": "q"}, None], time(1, 2, 3)
        assert sorted(session.view("v").rows(), key=lambda row: int(row["id"])) == [
            {"id": 1, "l": lists, "s": {"z": "q"}, "at": at},
            {"id": 2, "l": lists, "s": None, "at": at},
            {"id": 3, "l": lists, "s": {"z": "q"}, "at": at},
        ]


SCRIPT = """
CREATE TABLE sales (id BIGINT NOT NULL, shop STRING, amount INT, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) AS total, max(amount) AS most FROM sales GROUP BY shop;
CREATE MATERIALIZED VIEW best AS SELECT id, shop FROM sales ORDER BY amount DESC, id LIMIT 3;
"""


def test_state_moves_between_engines_and_numbers_of_shards(spark: SparkSession, tmp_path: Path) -> None:
    turns = ((spark, 2), (None, None), (None, 1), (spark, 3), (spark, None), (None, 4), (spark, 2))
    with deltic.Session() as expected:
        expected.sql(SCRIPT)
        known = None
        for turn, (engine, shards) in enumerate(turns):
            with deltic.Session(spark=engine, state=str(tmp_path), shards=shards) as session:
                session.sql(SCRIPT)
                known = known or session._state_id
                assert session._state_id == known
                for one in (session, expected):
                    with one.transaction() as tx:
                        tx.insert("sales", [{"id": i, "shop": f"shop {i % 5}", "amount": i} for i in range(20 * turn, 20 * turn + 20)])
                        if turn:
                            tx.delete("sales", [row["id"] for row in one.view("best").rows()])
                for view in ("totals", "best"):
                    order = [(name, "ascending") for name in session.view(view).schema.names]
                    assert session.view(view).to_arrow().sort_by(order).equals(expected.view(view).to_arrow().sort_by(order)), turn
                    changes, other = (one.view(view).changes().sort_by([*order, ("_weight", "ascending")]) for one in (session, expected))
                    assert changes.equals(other), turn


@pytest.mark.parametrize("state", ["folder", None])
def test_a_local_folder_cannot_be_the_state_of_a_cluster(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("deltic.runtimes.spark.reach.master", lambda spark: "spark://host:7077")
    with pytest.raises(errors.StateError) as caught:
        deltic.Session(spark=spark, state=state)
    folder = "the folder folder" if state else "a temporary folder"
    assert str(caught.value) == (
        f"[DELTIC-5000] {folder} of this machine cannot keep the state of a Spark session on spark://host:7077\n"
        "expected: a state folder that tasks can reach from every machine\n"
        "help: name a folder that every machine of the cluster has under one path and give shared_state=True, or an object store's URL"
    )
    assert not list(tmp_path.iterdir())


def test_tasks_check_a_folder_that_is_declared_as_shared(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.spark.reach.master", lambda spark: "spark://host:7077")
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shared_state=True) as session:
        session.sql(SCRIPT)
        assert not list((tmp_path / "state" / "probe").iterdir())
    elsewhere = Elsewhere(tmp_path / "state")
    monkeypatch.setattr("deltic.runtimes.spark.reach.open_folder", lambda root: elsewhere)
    with pytest.raises(errors.StateError) as caught:
        deltic.Session(spark=spark, state="shared", shared_state=True)
    assert str(caught.value) == (
        f"[DELTIC-5000] the folder shared is not shared: tasks on {socket.gethostname()} do not see what the driver writes there\n"
        "expected: a folder that every machine of the cluster has under one path\n"
        "help: name a folder that every machine of the cluster has under one path and give shared_state=True, or an object store's URL"
    )


class Elsewhere(LocalFolder):
    """A folder that the tasks see under another path."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.root = "/nowhere"
