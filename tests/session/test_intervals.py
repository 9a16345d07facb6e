"""Intervals in frames and files, in aggregates that change, in functions of users, and as differences of dates and times."""

from __future__ import annotations

import datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltic
from deltic.errors import ArithmeticOverflow, ConstraintViolation, FrameError
from deltic.intervals import FIRST
from tests.support.checked import Checked

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, g INT, i INTERVAL DAY TO SECOND, m INTERVAL YEAR TO MONTH, d INTERVAL DAY, y INTERVAL YEAR);"


def span(**parts: float) -> datetime.timedelta:
    return datetime.timedelta(**parts)


def rows_of(view: str, *inserts: Any) -> list[dict[str, Any]]:
    """The rows of a view over the table, after an insert of each frame."""
    with deltic.Session() as session:
        session.sql(TABLE + f"CREATE MATERIALIZED VIEW v AS {view}")
        for frame in inserts:
            with session.transaction() as tx:
                tx.insert("t", frame)
        return sorted(session.view("v").rows(), key=str)


def test_frames_of_every_kind_bring_and_take_intervals() -> None:
    durations = pa.table({"id": [1], "g": [1], "i": pa.array([90], pa.duration("s")), "m": [14], "d": [span(days=2)], "y": [24]})
    months = pa.table({"id": [2], "g": [1], "i": [span(hours=1)], "m": [pa.MonthDayNano([14, 0, 0])], "d": [None], "y": [-12]})
    frame = pd.DataFrame({"id": [3], "g": [1], "i": [pd.Timedelta("1h")], "m": [3], "d": [pd.Timedelta("1D")], "y": [0]})
    dicts = [{"id": 4, "g": 1, "i": np.timedelta64(5, "s").item(), "m": pa.MonthDayNano([1, 0, 0]), "d": None, "y": None}]
    with deltic.Session() as session:
        session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT id, i, m, d, y FROM t")
        for one in (durations, months, frame, dicts):
            with session.transaction() as tx:
                tx.insert("t", one)
        taken = session.view("v").to_arrow().sort_by("id")
        assert taken.schema.field("i").type == pa.duration("us") and taken.schema.field("m").type == pa.int32()
        assert taken.schema.field("y").metadata == {b"deltic.type": b"INTERVAL YEAR"}
        assert taken.column("i").to_pylist() == [span(seconds=90), span(hours=1), span(hours=1), span(seconds=5)]
        assert taken.column("m").to_pylist() == [14, 14, 3, 1]
        assert session.view("v").to_pandas()["i"].dtype.kind == "m"


@pytest.mark.parametrize(
    ("column", "value", "error", "message"),
    [
        ("i", 5, FrameError, "found int 5"),
        ("i", span(microseconds=FIRST - 1), ConstraintViolation, "does not fit"),
        ("i", datetime.timedelta.max, ConstraintViolation, "does not fit"),
        ("d", span(hours=25), ConstraintViolation, "an INTERVAL DAY with a part of a day"),
        ("y", 13, ConstraintViolation, "an INTERVAL YEAR with a part of a year"),
        ("m", 2**31, ConstraintViolation, "does not fit"),
        ("m", pa.MonthDayNano([1, 1, 0]), ConstraintViolation, "does not fit"),
        ("m", span(days=30), FrameError, "found timedelta"),
    ],
)
def test_what_is_no_interval_of_the_type_is_refused(column: str, value: Any, error: type[Exception], message: str) -> None:
    row = {"id": 1, "g": 1, "i": None, "m": None, "d": None, "y": None, column: value}
    with pytest.raises(error, match=message):
        rows_of("SELECT * FROM t", [row])


def test_aggregates_of_intervals_follow_every_change() -> None:
    """Sums, means and extremes of random rows, with deletes: equal to those of the oracle after each tick."""
    script = (
        TABLE
        + """
        CREATE MATERIALIZED VIEW sums AS
            SELECT g, sum(i) AS i, avg(i) AS ai, try_sum(m) AS tm, try_avg(i) AS ti, sum(m) AS m,
                   avg(m) AS am, count(d) AS n, sum(d) AS d, avg(y) AS y FROM t GROUP BY g;
        CREATE MATERIALIZED VIEW ends AS
            SELECT g, min(i) AS a, max(i) AS b, min(m) AS c, max(y) AS d, max_by(i, m) AS e, count(DISTINCT m) AS n FROM t GROUP BY g;
        CREATE MATERIALIZED VIEW ranks AS
            SELECT g, percentile(i, array(0.1, 0.5)) AS p, percentile_disc(0.4) WITHIN GROUP (ORDER BY m DESC) AS q, median(m) AS r,
                   percentile_cont(0.3) WITHIN GROUP (ORDER BY d) AS s, approx_percentile(y, 0.5) AS t FROM t GROUP BY g;
        CREATE MATERIALIZED VIEW joined AS SELECT a.g, sum(a.i) AS i, avg(b.m) AS m FROM t AS a JOIN t AS b ON a.g = b.g GROUP BY a.g;
    """
    )
    rng, checked = Random(3), Checked(script, session=deltic.Session(shards=2))
    rows: dict[int, tuple[Any, ...]] = {}

    def of(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    for _ in range(8):
        changes: dict[tuple[Any, ...], int] = {}
        for id_ in rng.sample(range(12), 5):
            if (old := rows.pop(id_, None)) is not None:
                changes[old] = changes.get(old, 0) - 1
            if old is None or rng.random() < 0.5:
                micros = rng.choice([rng.randrange(-(10**12), 10**12), 2**52, -(2**52)])
                parts = (span(microseconds=micros), rng.randrange(-40, 40), span(days=rng.randrange(9)), 12 * rng.randrange(-5, 5))
                row = (id_, rng.randrange(2), *map(of, parts))
                rows[id_] = row
                changes[row] = changes.get(row, 0) + 1
        checked.tick({"t": {row: n for row, n in changes.items() if n}})
    checked.session.close()


def test_percentiles_pass_through_doubles_as_in_spark() -> None:
    top = span(microseconds=2**53 + 1)
    rows = [{"id": i, "g": 1, "i": top - span(microseconds=i), "m": m, "d": None, "y": None} for i, m in ((0, -1), (1, -4))]
    call = "percentile(m, 0.3) AS a, median(m) AS b, percentile_disc(1.0) WITHIN GROUP (ORDER BY i) AS c, typeof(median(d)) AS d"
    assert rows_of(f"SELECT {call} FROM t", rows) == [{"a": -3, "b": -2, "c": span(microseconds=2**53), "d": "interval day to second"}]


def test_a_sum_out_of_range_rolls_the_tick_back() -> None:
    rows = [{"id": i, "g": 1, "i": span(microseconds=2**62), "m": 2**30, "d": None, "y": None} for i in range(2)]
    for call in ("sum(i)", "sum(m)"):
        with pytest.raises(ArithmeticOverflow, match="INTERVAL"):
            rows_of(f"SELECT {call} AS s FROM t", rows)
    assert rows_of("SELECT try_sum(i) AS s, try_avg(m) AS a FROM t", rows) == [{"s": None, "a": None}]


def test_differences_of_dates_and_times_are_intervals_of_columns() -> None:
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE visits (id INT PRIMARY KEY, arrived TIMESTAMP, gone TIMESTAMP, day DATE);
            CREATE MATERIALIZED VIEW stays AS
                SELECT id, gone - arrived AS stay, gone + (gone - arrived) / 2 AS later, day - DATE '2024-01-01' AS days,
                       CAST(gone - arrived AS STRING) AS said, extract(MINUTE FROM gone - arrived) AS minutes
                FROM visits WHERE gone - arrived > INTERVAL 90 MINUTES;
        """)
        noon = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
        with session.transaction() as tx:
            tx.insert("visits", [{"id": i, "arrived": noon, "gone": noon + span(hours=i, minutes=1), "day": noon.date()} for i in range(3)])
        expected = {
            "id": 2,
            "stay": span(hours=2, minutes=1),
            "later": noon + span(hours=3, seconds=90),
            "days": span(days=121),
            "said": "INTERVAL '0 02:01:00' DAY TO SECOND",
            "minutes": 1,
        }
        assert session.view("stays").rows() == [expected]


def test_functions_of_users_take_and_return_intervals() -> None:
    with deltic.Session() as session:
        session.register("doubled", lambda x: x and 2 * x, returns=datetime.timedelta)
        session.register("later", lambda m: m + 1, returns="INTERVAL MONTH")
        session.register("half_a_day", lambda n: span(hours=12), returns="INTERVAL DAY")
        session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT doubled(i) AS i, later(m) AS m, typeof(later(m)) AS t FROM t")
        with session.transaction() as tx:
            tx.insert("t", [{"id": 1, "g": 1, "i": span(days=1), "m": 13, "d": None, "y": None}])
        assert session.view("v").rows() == [{"i": span(days=2), "m": 14, "t": "interval month"}]
        with pytest.raises(deltic.errors.EvaluationError, match="expected: INTERVAL DAY"):
            session.sql("CREATE MATERIALIZED VIEW w AS SELECT half_a_day(id) AS d FROM t")


def test_files_have_intervals_as_spark_writes_them(tmp_path: Path) -> None:
    """Parquet from Spark has microseconds as BIGINT; CSV and JSON have the text of a cast."""
    (tmp_path / "p").mkdir()
    pq.write_table(pa.table({"i": pa.array([93_784_500_000], pa.int64()), "m": pa.array([14], pa.int32())}), tmp_path / "p" / "a.parquet")
    (tmp_path / "j").mkdir()
    texts = ('"INTERVAL \'1 02:03:04.5\' DAY TO SECOND", "m": "INTERVAL \'1-2\' YEAR TO MONTH"', '"1 00:00:00", "m": 14', '"1"')
    lines = [f'{{"i": {text}}}' for text in texts]
    (tmp_path / "j" / "a.json").write_text("\n".join(lines) + "\n")
    script = """
        CREATE TABLE p (i INTERVAL DAY TO SECOND, m INTERVAL YEAR TO MONTH) USING parquet OPTIONS (path 'p');
        CREATE TABLE j (i INTERVAL DAY TO SECOND, m INTERVAL YEAR TO MONTH)
            USING json OPTIONS (path 'j', on_error 'dead_letter', dead_letter_path 'letters');
        CREATE MATERIALIZED VIEW v AS SELECT * FROM p UNION ALL SELECT * FROM j;
    """
    with deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        pipeline.run_once()
        first = {"i": span(days=1, hours=2, minutes=3, seconds=4.5), "m": 14}
        assert sorted(pipeline.session.view("v").rows(), key=str) == sorted([first, first, {"i": span(days=1), "m": 14}], key=str)
    assert "does not parse as INTERVAL DAY TO SECOND" in next((tmp_path / "letters").iterdir()).read_text()


def test_a_view_groups_by_buckets_of_time() -> None:
    """A change of one row changes the groups of its old and its new bucket."""
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE clicks (id INT PRIMARY KEY, at TIMESTAMP);
            CREATE MATERIALIZED VIEW quarters AS
                SELECT time_bucket(INTERVAL 15 MINUTES, at) AS start, count(*) AS n, max(struct(id AS last, at)) AS latest
                FROM clicks GROUP BY time_bucket(INTERVAL 15 MINUTES, at);
        """)
        noon = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
        with session.transaction() as tx:
            tx.insert("clicks", [{"id": i, "at": noon + span(minutes=7 * i)} for i in range(3)])
        with session.transaction() as tx:
            tx.upsert("clicks", [{"id": 1, "at": noon + span(minutes=29)}])
        expected = [
            {"start": noon, "n": 2, "latest": {"last": 2, "at": noon + span(minutes=14)}},
            {"start": noon + span(minutes=15), "n": 1, "latest": {"last": 1, "at": noon + span(minutes=29)}},
        ]
        assert sorted(session.view("quarters").rows(), key=lambda row: row["start"]) == expected


def test_pandas_gets_nested_values_and_intervals() -> None:
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE n (id INT PRIMARY KEY, a ARRAY<INTERVAL DAY>, m MAP<STRING, INTERVAL HOUR>, s STRUCT<x: INT>, i INTERVAL SECOND);
            CREATE MATERIALIZED VIEW v AS SELECT * FROM n;
        """)
        with session.transaction() as tx:
            tx.insert("n", [{"id": 1, "a": [span(days=1)], "m": {"k": span(hours=2)}, "s": {"x": 3}, "i": span(seconds=0.5)}])
        (row,) = session.view("v").to_pandas().to_dict("records")
        assert (row["a"].tolist(), row["m"], row["s"]) == ([span(days=1)], [("k", span(hours=2))], {"x": 3})
        assert row["i"] == pd.Timedelta("500ms")
