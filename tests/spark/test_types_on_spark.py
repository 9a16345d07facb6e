"""Nested values, BINARY, TIMESTAMP_NTZ, CHAR, VARCHAR, intervals and TIME on Spark: its engine, and its data source."""

from __future__ import annotations

import datetime
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.types import frozen

SCRIPT = """
CREATE TABLE t (
    id BIGINT NOT NULL, s STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, DOUBLE>, b BINARY, n TIMESTAMP_NTZ, PRIMARY KEY (id)
);
CREATE MATERIALIZED VIEW v AS SELECT id, s, m, b, n, s.a AS a, element_at(s.b, 1) AS first FROM t;
CREATE MATERIALIZED VIEW words AS SELECT w, count(*) AS n, max(s) AS top FROM t LATERAL VIEW explode(s.b) AS w GROUP BY w;
"""
FIRST = [
    {"id": 1, "s": {"a": 1, "b": ["x", "y"]}, "m": [("k", 1.5)], "b": b"\x00\xff", "n": datetime.datetime(2024, 1, 1)},
    {"id": 2, "s": {"a": None, "b": ["x"]}, "m": [], "b": None, "n": None},
]
SECOND = [{"id": 2, "s": {"a": 5, "b": ["y", "y" * 40]}, "m": None, "b": b"", "n": None}]


def content(rows: list[dict[str, Any]]) -> set[Any]:
    return {frozen(row) for row in rows}


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_every_type_comes_from_spark_and_goes_back(spark: Any, tmp_path: Path) -> None:
    """A DataFrame that stays on Spark, a tick on its workers, and the view through the data source."""
    from deltic.spark import register  # noqa: PLC0415  needs the extra

    session = deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=1)
    session.sql("""
        CREATE TABLE t (
            id INT PRIMARY KEY, i INTERVAL DAY TO SECOND, h INTERVAL HOUR, m INTERVAL YEAR TO MONTH, y INTERVAL YEAR,
            c CHAR(3), v VARCHAR(4), a ARRAY<INTERVAL DAY TO SECOND>, s STRUCT<p: MAP<STRING, DATE>>
        );
        CREATE MATERIALIZED VIEW w AS
            SELECT id, i, h, i + h AS b, CAST(CAST(y AS INTERVAL MONTH) AS INT) AS y, c, v, a, s, CAST(m AS STRING) AS m FROM t;
        CREATE MATERIALIZED VIEW sums AS SELECT c, sum(i) AS i, avg(m) AS m FROM t GROUP BY c;
    """)
    frame = spark.sql("""
        SELECT 1 AS id, INTERVAL '1 02:03:04.5' DAY TO SECOND AS i, INTERVAL 26 HOURS AS h, INTERVAL '-1-2' YEAR TO MONTH AS m,
               INTERVAL 2 YEARS AS y, 'x' AS c, 'yz  ' AS v, array(INTERVAL '5' SECOND, NULL) AS a,
               named_struct('p', map('k', DATE '2024-02-29')) AS s, 'insert' AS _op
        UNION ALL SELECT 2, NULL, NULL, INTERVAL 5 MONTHS, NULL, 'x', NULL, NULL, NULL, 'insert'
    """)
    session.apply({"t": frame})
    assert session.view("sums").rows() == [{"c": "x  ", "i": timedelta(days=1, seconds=7384.5), "m": -5}]
    session.close()
    register(spark)
    read = spark.read.format("deltic").option("path", str(tmp_path / "state"))
    rows = {row["id"]: row for row in read.option("view", "w").load().collect()}
    first = rows[1]
    assert (first["i"], first["h"]) == (timedelta(days=1, seconds=7384.5), timedelta(hours=26))
    assert first["b"] == timedelta(days=2, seconds=14584.5)
    assert (first["y"], first["m"], first["c"], first["v"]) == (24, "INTERVAL '-1-2' YEAR TO MONTH", "x  ", "yz  ")
    assert (first["a"], first["s"]["p"]) == ([timedelta(seconds=5), None], {"k": datetime.date(2024, 2, 29)})
    assert rows[2].asDict() == {**dict.fromkeys(first.asDict()), "id": 2, "c": "x  ", "m": "INTERVAL '0-5' YEAR TO MONTH"}
    changes = {row["id"]: row for row in read.option("view", "w").option("changes", "true").load().collect()}
    assert changes[1].asDict() == {**first.asDict(), "_weight": 1, "_epoch": changes[1]["_epoch"]}
    with pytest.raises(Exception, match="PySpark cannot read INTERVAL YEAR TO MONTH from a Python data source"):
        read.option("view", "sums").load()


@pytest.mark.spark
def test_a_view_as_a_frame_has_the_types_of_its_columns(spark: Any, driver_ticks: None, tmp_path: Path) -> None:
    """In any time zone of the session: a TIMESTAMP_NTZ is not a moment."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=1) as session:
            session.sql("""
                CREATE TABLE t (
                    id INT PRIMARY KEY, n TIMESTAMP_NTZ, z TIMESTAMP, a ARRAY<TIMESTAMP_NTZ>, c STRING COLLATE UTF8_LCASE,
                    t TIME, j VARIANT, i INTERVAL DAY TO SECOND, s STRUCT<m: MAP<STRING, DATE>>
                );
                CREATE MATERIALIZED VIEW v AS SELECT * FROM t;
                CREATE MATERIALIZED VIEW months AS SELECT id, make_ym_interval(1, id) AS m FROM t;
            """)
            frame = spark.sql("""
                SELECT 1 AS id, TIMESTAMP_NTZ '2024-03-10 02:30:00' AS n, TIMESTAMP '2024-03-10 03:30:00' AS z,
                       array(TIMESTAMP_NTZ '1700-01-01 00:00:00') AS a, 'x' COLLATE UTF8_LCASE AS c, TIME '01:02:03' AS t,
                       parse_json('[1]') AS j, INTERVAL '1' DAY AS i, named_struct('m', map('k', DATE '2024-02-29')) AS s
            """)
            session.apply({"t": frame.selectExpr("*", "'insert' AS _op")})
            view = session.view("v").to_spark()
            assert view.schema["i"].dataType.simpleString() == "interval day to second"
            assert view.drop("i").schema.simpleString() == frame.drop("i").schema.simpleString()
            assert str(view.collect()) == str(frame.collect())
            session.apply({"t": view.selectExpr("*", "'update' AS _op")})
            assert str(session.view("v").to_spark().collect()) == str(frame.collect())
            assert [tuple(row) for row in session.view("months").to_spark().collect()] == [(1, 13)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_the_spark_engine_and_its_data_source_give_what_the_embedded_engine_gives(spark: Any, tmp_path: Path) -> None:
    from deltic.spark import register  # noqa: PLC0415  needs the extra

    embedded, on_spark = deltic.Session(), deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2)
    for session in (embedded, on_spark):
        session.sql(SCRIPT)
        with session.transaction() as tx:
            tx.insert("t", FIRST)
        with session.transaction() as tx:
            tx.upsert("t", SECOND)
    for view in ("v", "words"):
        assert content(on_spark.view(view).rows()) == content(embedded.view(view).rows())
    on_spark.close()
    register(spark)
    frame = spark.read.format("deltic").option("path", str(tmp_path / "state")).option("view", "v").load()
    read = {row["id"]: row for row in frame.collect()}
    assert read[1]["s"].asDict() == {"a": 1, "b": ["x", "y"]}
    assert read[1]["m"] == {"k": 1.5}
    assert (bytes(read[1]["b"]), read[1]["n"]) == (b"\x00\xff", datetime.datetime(2024, 1, 1))
    assert read[2]["s"]["b"] == ["y", "y" * 40]
    assert frame.selectExpr("explode(s.b) AS w").count() == 4
    embedded.close()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_times_come_from_spark_and_go_back(spark: Any, tmp_path: Path) -> None:
    from deltic.spark import register  # noqa: PLC0415  needs the extra

    session = deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2)
    session.sql("""
        CREATE TABLE t (id INT PRIMARY KEY, t TIME, n TIME(3), a ARRAY<TIME>, m MAP<TIME, STRUCT<x: TIME(0)>>);
        CREATE MATERIALIZED VIEW v AS SELECT id, t, n, a, m, t - n AS d, CAST(t AS TIME(0)) AS s FROM t;
        CREATE MATERIALIZED VIEW g AS SELECT t, max(n) AS n, count(*) AS c FROM t GROUP BY t;
    """)
    one = "SELECT 1 AS id, TIME '12:34:56.789123' AS t, CAST('01:02:03.456789' AS TIME(3)) AS n, array(TIME '00:00:01', NULL) AS a"
    frame = spark.sql(f"""
        {one}, map(TIME '10:00:00', named_struct('x', CAST('11:00' AS TIME(0)))) AS m, 'insert' AS _op
        UNION ALL SELECT 2, NULL, NULL, NULL, NULL, 'insert'
    """)
    session.apply({"t": frame})
    time = datetime.time
    assert {(r["t"], r["n"], r["c"]) for r in session.view("g").rows()} == {
        (time(12, 34, 56, 789_123), time(1, 2, 3, 456_789), 1),
        (None, None, 1),
    }
    session.close()
    register(spark)
    spark.conf.set("spark.sql.timeType.enabled", "false")
    try:
        loaded = spark.read.format("deltic").option("path", str(tmp_path / "state")).option("view", "v").load()
        rows = {row["id"]: row for row in loaded.collect()}
    finally:
        spark.conf.set("spark.sql.timeType.enabled", "true")
    assert [field.dataType.simpleString() for field in loaded.schema][1:4] == ["time(6)", "time(3)", "array<time(6)>"]
    first = rows[1]
    assert (first["t"], first["n"], first["s"]) == (time(12, 34, 56, 789_123), time(1, 2, 3, 456_789), time(12, 34, 56))
    assert (first["a"], first["m"][time(10)]["x"]) == ([time(0, 0, 1), None], time(11))
    assert first["d"] == timedelta(hours=11, minutes=32, seconds=53, microseconds=332_334)
    assert rows[2]["t"] is None
    assert loaded.where("t > TIME '12:00:00'").count() == 1
