"""TIME in frames and files, in aggregates that change, in functions of users, and in arithmetic; what is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltic
from deltic.errors import ArithmeticOverflow, ConstraintViolation, EvaluationError, FrameError, QueryError
from deltic.times import SIZES, cut, micros_of, parse, render, time_of, unit_of
from tests.support.checked import Checked

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, t TIME, u TIME(3), a ARRAY<TIME>, s STRUCT<x: TIME(0)>, m MAP<TIME, INT>);"
time = datetime.time


def row(**given: Any) -> dict[str, Any]:
    return {**dict.fromkeys(("t", "u", "a", "s", "m")), **given}


def test_a_time_is_its_microseconds_and_its_text() -> None:
    for micros in (0, 1, 999_999, 3_599_999_999, 45_296_789_123, 86_399_999_999):
        value = time_of(micros)
        assert value is not None and micros_of(value) == micros and parse(render(value)) == value
    assert time_of(-1) is None and time_of(86_400_000_000) is None
    assert cut(time(12, 34, 56, 789_123), unit_of(2)) == time(12, 34, 56, 780_000)
    assert cut(time(12, 34, 56, 789_123), SIZES["HOUR"]) == time(12)
    assert [parse(text) for text in ("T5", " 1:2 ", "12:00 am", "1:2:3.1234567PM")] == [
        time(5),
        time(1, 2),
        time(),
        time(13, 2, 3, 123_456),
    ]
    assert not any(map(parse, ("5", "24:00", "1:60", "0:30 AM", "1:2:", "1:2Z", "")))


def test_frames_of_every_kind_bring_and_take_times() -> None:
    """The places of TIME(p) are those that casts keep, and no bound, as in Spark."""
    arrays = {
        "id": pa.array([1], pa.int32()),
        "t": pa.array([3600], pa.time32("s")),
        "u": pa.array([1_000_000], pa.time64("ns")),
        "a": pa.array([[time(3), None]], pa.list_(pa.time64("us"))),
        "s": pa.array([{"x": time(1)}]),
        "m": pa.array([[(time(2), 1)]], pa.map_(pa.time64("us"), pa.int32())),
    }
    frame = pd.DataFrame({"id": [2], "t": [time(4, 5)], "u": [time(1, 2, 3, 456_789)], "a": [None], "s": [None], "m": [None]})
    with deltic.Session() as session:
        session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
        for one in (pa.table(arrays), frame, [{"id": 3, **row(t=time.max, a=[], s={"x": time(5)}, m={time(6): 7})}]):
            with session.transaction() as tx:
                tx.insert("t", one)
        taken = session.view("v").to_arrow().sort_by("id")
        assert taken.schema.field("t").type == pa.time64("us")
        assert taken.schema.field("u").metadata == {b"deltic.type": b"TIME(3)"}
        assert taken.to_pylist() == [
            {"id": 1, "t": time(1), "u": time(0, 0, 0, 1000), "a": [time(3), None], "s": {"x": time(1)}, "m": [(time(2), 1)]},
            {"id": 2, **row(t=time(4, 5), u=time(1, 2, 3, 456_789))},
            {"id": 3, **row(t=time.max, a=[], s={"x": time(5)}, m=[(time(6), 7)])},
        ]
        assert sorted(session.view("v").to_pandas()["t"]) == [time(1), time(4, 5), time.max]


def test_maps_in_several_pieces_are_cast() -> None:
    """Arrow ends the process when it joins pieces of maps whose keys it has cast."""
    kind = pa.map_(pa.time64("ns"), pa.struct([("x", pa.time64("ns"))]))
    pieces = [pa.array([[(time(hour), {"x": time(hour, 1)})], None], kind) for hour in (1, 2)]
    with deltic.Session() as session:
        session.sql("CREATE TABLE n (m MAP<TIME, STRUCT<x: TIME(0)>>); CREATE MATERIALIZED VIEW v AS SELECT * FROM n WHERE m IS NOT NULL")
        with session.transaction() as tx:
            tx.insert("n", pa.table({"m": pa.chunked_array(pieces)}))
            tx.insert("n", pa.table({"m": pa.chunked_array([], kind)}))
        rows = session.view("v").rows()
        assert sorted(row["m"] for row in rows) == [[(time(hour), {"x": time(hour, 1)})] for hour in (1, 2)]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (5, FrameError, "found int 5"),
        ("12:00", FrameError, "found str '12:00'"),
        (datetime.datetime(2024, 1, 1), FrameError, "found datetime"),
        (time(1, tzinfo=datetime.UTC), ConstraintViolation, "does not fit"),
    ],
)
def test_what_is_no_time_is_refused(value: Any, error: type[Exception], message: str) -> None:
    with deltic.Session() as session:
        session.sql(TABLE)
        with pytest.raises(error, match=message), session.transaction() as tx:
            tx.insert("t", [{"id": 1, **row(t=value)}])
        with pytest.raises(ConstraintViolation, match="does not fit"), session.transaction() as tx:
            tx.insert("t", [{"id": 1, **row(a=[value])}])
        session.sql("CREATE TABLE n (t TIME)")
        for column, expected in (
            (pa.array([1], pa.time64("ns")), "does not fit"),
            (pa.array([86_400_000_000]).view(pa.time64("us")), r"a TIME\(6\) outside a day"),
        ):
            with pytest.raises(ConstraintViolation, match=expected), session.transaction() as tx:
                tx.insert("n", pa.table({"t": column}))


def test_aggregates_and_arithmetic_follow_every_change(tmp_path: Path) -> None:
    script = """
        CREATE TABLE shifts (id INT PRIMARY KEY, who STRING, begin TIME, till TIME(0), day DATE);
        CREATE MATERIALIZED VIEW worked AS
            SELECT who, sum(till - begin) AS hours, min(begin) AS first, max(till) AS last, count(DISTINCT begin) AS n,
                   max_by(id, till) AS latest, collect_set(hour(begin)) AS at
            FROM shifts GROUP BY who;
        CREATE MATERIALIZED VIEW starts AS
            SELECT id, make_timestamp_ntz(day, begin) AS at, time_trunc('HOUR', begin) AS hour, time_diff('MINUTE', begin, till) AS minutes,
                   time_from_seconds(CAST(time_to_seconds(till) / 2 AS DECIMAL(14, 6))) AS half, date_part('SECOND', begin) AS seconds
            FROM shifts WHERE begin < TIME '18:00';
        CREATE MATERIALIZED VIEW later AS SELECT begin + INTERVAL '1' MINUTE AS at, count(*) AS n FROM shifts GROUP BY 1;
    """
    checked = Checked(script, session=deltic.Session(state=tmp_path / "state"))
    day = datetime.date(2024, 2, 29)
    rows = [
        (1, "a", time(8, 30), time(17), day),
        (2, "a", time(8, 30), time(12, 0, 0, 5), day),
        (3, "b", time(22, 0, 0, 1), None, day),
        (4, None, None, time(1), None),
    ]
    checked.tick({"shifts": dict.fromkeys(rows, 1)})
    checked.session.close()
    checked.open(deltic.Session(state=tmp_path / "state"))
    checked.tick({"shifts": {rows[0]: -1, (1, "b", time(9), time(17), day): 1, rows[3]: -1}})
    answer = {r["who"]: r for r in checked.session.view("worked").rows()}
    assert answer["a"]["hours"] == datetime.timedelta(hours=3, minutes=30, microseconds=5)
    assert (answer["b"]["first"], answer["b"]["last"], answer["b"]["latest"]) == (time(9), time(17), 1)
    with pytest.raises(ArithmeticOverflow, match="the sum of a TIME and an INTERVAL is outside the day"):
        checked.tick({"shifts": {(9, "c", time(23, 59), time(0), day): 1}})
    checked.session.close()


def test_functions_of_users_take_and_return_times() -> None:
    with deltic.Session() as session:
        session.register("noon", lambda t: t and time(12), returns=datetime.time)
        session.register("kept", lambda t: t, returns="TIME(3)")
        session.register("zoned", lambda n: time(1, tzinfo=datetime.UTC), returns="TIME")
        session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT noon(t) AS t, kept(u) AS u, typeof(kept(u)) AS y FROM t")
        with session.transaction() as tx:
            tx.insert("t", [{"id": 1, **row(t=time(1), u=time(2))}])
        assert session.view("v").rows() == [{"t": time(12), "u": time(2), "y": "time(3)"}]
        with pytest.raises(EvaluationError, match=r"expected: TIME\(6\)"):
            session.sql("CREATE MATERIALIZED VIEW w AS SELECT zoned(id) AS d FROM t")


def test_files_have_times(tmp_path: Path) -> None:
    for folder in "pjc":
        (tmp_path / folder).mkdir()
    pq.write_table(pa.table({"t": pa.array([time(1, 2, 3)], pa.time64("us")), "a": [[time(4)]]}), tmp_path / "p" / "a.parquet")
    texts = ('"01:02:03", "a": ["4:00"]', '"24:00"', '"1:2 PM"', "5")
    (tmp_path / "j" / "a.json").write_text("".join(f'{{"t": {text}}}\n' for text in texts))
    (tmp_path / "c" / "a.csv").write_text('"01:02:03.500000"\n1:2:3.5\n23:59\n12\n')
    letters = "on_error 'dead_letter', dead_letter_path 'letters'"
    script = f"""
        CREATE TABLE p (t TIME, a ARRAY<TIME>) USING parquet OPTIONS (path 'p');
        CREATE TABLE j (t TIME, a ARRAY<TIME>) USING json OPTIONS (path 'j', {letters});
        CREATE TABLE c (t TIME(1)) USING csv OPTIONS (path 'c', {letters});
        CREATE MATERIALIZED VIEW v AS SELECT * FROM p UNION ALL SELECT * FROM j;
        CREATE MATERIALIZED VIEW w AS SELECT t, count(*) AS n FROM c GROUP BY t;
        CREATE SINK out FROM v USING json OPTIONS (path 'out', mode 'changes');
    """
    with deltic.Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        pipeline.run_once()
        assert pipeline.session.view("v").rows() == [{"t": time(1, 2, 3), "a": [time(4)]}] * 2
        assert {r["t"]: r["n"] for r in pipeline.session.view("w").rows()} == {time(1, 2, 3, 500_000): 2, time(23, 59): 1}
    said = "".join(path.read_text() for path in (tmp_path / "letters").iterdir())
    assert said.count("does not parse as TIME(") == 3 and "found the number 5" in said
    written = "".join(path.read_text() for path in (tmp_path / "out").rglob("*.json"))
    assert '"t":"01:02:03.000000","a":["04:00:00.000000"]' in written


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("TIME '24:00'", "invalid TIME"),
        ("CAST('12:00' AS TIME(7))", "invalid TIME"),
        ("CAST(TIMESTAMP '2024-01-01 12:00:00' AS TIME)", r"cannot cast TIMESTAMP to TIME\(6\)"),
        ("CAST(TIME '12:00' AS TIMESTAMP)", r"cannot cast TIME\(6\) to TIMESTAMP"),
        ("CAST(TIME '12:00' AS VARIANT)", r"cannot cast TIME\(6\) to VARIANT"),
        ("CAST(parse_json('1') AS TIME)", r"cannot cast VARIANT to TIME\(6\)"),
        ("CAST(1.5D AS TIME)", r"cannot cast DOUBLE to TIME\(6\)"),
        ("CAST('12:00' AS TIME(0)) = TIME '12:00'", "="),
        ("coalesce(CAST('12:00' AS TIME(0)), TIME '12:00')", "coalesce"),
        ("TIME '12:00' + 1", r"\+ does not accept"),
        ("TIME '12:00' + INTERVAL '1' MONTH", r"\+ does not accept"),
        ("DATE '2024-01-01' + TIME '12:00'", r"\+ does not accept"),
        ("INTERVAL '1' HOUR - TIME '12:00'", "- does not accept"),
        ("sum(TIME '12:00')", "sum"),
        ("extract(DAY FROM TIME '12:00')", r"TIME\(6\) has no field DAY"),
        ("current_time()", "changes without a change of a row"),
        ("current_time", "changes with the time"),
        ("to_time(12)", "argument 1 of to_time has the wrong type"),
        ("to_time('12', 'bbb')", "pattern"),
        ("time_to_seconds('12:00')", "argument 1 of time_to_seconds has the wrong type"),
        ("make_timestamp(DATE '2024-01-01', '12:00')", "argument 2 of make_timestamp has the wrong type"),
        ("date_format(TIME '12:00', 'HH')", "argument 1 of date_format has the wrong type"),
    ],
)
def test_what_spark_refuses_is_refused(sql: str, message: str) -> None:
    with deltic.Session() as session, pytest.raises(QueryError, match=message):
        session.sql(f"CREATE TABLE t (id INT); CREATE MATERIALIZED VIEW v AS SELECT {sql} AS x FROM t")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("time_from_seconds(x)", "are not whole microseconds"),
        ("to_time(concat(x, ''), 's.SSSSSSS')", "are not whole microseconds"),
        ("time_trunc(concat(x, 'DAY'), TIME '12:00')", "time_trunc: unknown unit"),
        ("make_time(24, 0, x)", "is not a time of day"),
        ("time_from_micros(CAST(x * -10000000 AS BIGINT))", "time_from_micros of -11234567 is outside the day"),
    ],
)
def test_what_fails_on_a_row_says_why(sql: str, message: str) -> None:
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (x DECIMAL(8, 7)); CREATE MATERIALIZED VIEW v AS SELECT {sql} AS x FROM t")
        with pytest.raises(EvaluationError, match=message), session.transaction() as tx:
            tx.insert("t", [{"x": Decimal("1.1234567")}])
