"""LATENESS of DATEs and whole numbers, and AHEAD: rows that would make all later ones late are rejected."""

from __future__ import annotations

import datetime
import json
from datetime import UTC, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic import Pipeline, Session
from deltic.errors import CircuitError, DataError, DelticError, EvaluationError
from deltic.expr.interpreter import evaluate as value_of
from deltic.expr.nodes import Column
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.nodes import Plan, Project
from deltic.plan.relation import Relation
from deltic.plan.window_ends import window_end
from deltic.schema import BIGINT
from parts import slow
from seeds import rotating

FIRST = datetime.date(2024, 2, 27)
LEAST, MOST = -(1 << 63), (1 << 63) - 1
PROGRAM = """
    CREATE STREAM days (day DATE LATENESS INTERVAL 36 HOURS, k BIGINT);
    CREATE STREAM numbers (n BIGINT LATENESS 10, k BIGINT);
    CREATE TABLE kept (k BIGINT, n INT LATENESS 25);
    CREATE MATERIALIZED VIEW daily AS SELECT day, count(*) AS c, max(k) AS top FROM days GROUP BY day EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW weekly AS SELECT date_trunc('week', day) AS w, k, count(*) AS c FROM days GROUP BY 1, 2 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW monthly AS SELECT trunc(day, 'MM') AS m, min(k) AS least FROM days GROUP BY 1 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW pairs AS
        SELECT time_bucket(INTERVAL 2 DAYS, CAST(day AS TIMESTAMP)) AS b, sum(k) AS s FROM days GROUP BY 1 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW ever AS SELECT trunc(day, 'week') AS w, max(k) AS top FROM integrate(days) GROUP BY 1;
    CREATE MATERIALIZED VIEW each AS SELECT n, count(*) AS c FROM numbers GROUP BY n EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW tens AS SELECT n div 10 AS t, max(k) AS top FROM numbers GROUP BY 1 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW starts AS SELECT 7 * (n div 7) AS start, sum(k) AS s FROM numbers GROUP BY 1 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW of_ticks AS
        SELECT t * 10 AS t, count(*) AS c FROM (SELECT n div 10 AS t, max(k) AS top FROM numbers GROUP BY 1) GROUP BY 1
        EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW ever_of_numbers AS SELECT DISTINCT n div 5 * 5 AS start, k FROM integrate(numbers);
    CREATE MATERIALIZED VIEW held AS SELECT n div 20 AS w, k, count(*) AS c FROM kept GROUP BY 1, 2 EMIT ON WINDOW CLOSE;
"""


def opened(options: dict[str, Any]) -> Session:
    session = Session(**options)
    program = deltic.Program(PROGRAM)
    circuit = deltic.Circuit(program)
    circuit.output("open_days", circuit.input("days").while_open("day"))
    circuit.output("closing", circuit.input("kept").when_closed("n div 20"))
    session.program(deltic.Program(program, circuit))
    return session


def plans_of(session: Session) -> dict[str, Plan]:
    return {view.name: view.plan for view in session._definitions.catalog.views.values()}


def rows(session: Session, view: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in session.view(view).rows())


@pytest.mark.parametrize("seed", [1, 2, *slow(*rotating(38))])
def test_random_ticks_equal_the_oracle(seed: int, tmp_path: Path) -> None:
    rng = Random(f"days {seed}")
    options: dict[str, Any] = [{}, {"shards": 3}, {"state": tmp_path / "s"}, {"state": tmp_path / "s", "shards": 2}][seed % 4]
    session, position = opened(options), rng.choice([0, -200])
    names = {name: session.table(name).schema.names for name in session.tables}
    moments = [Moment({name: Relation() for name in names})]
    for number in range(14):
        if "state" in options and rng.random() < 0.3:
            session.close()
            session = opened({**options, "shards": rng.randrange(1, 4)})
        position += rng.choice([0, 1, 3, 20, 90])
        n = [position - rng.randrange(10) for _ in range(rng.randrange(5))]
        drawn = {
            "days": Relation(((FIRST + timedelta(days=position + rng.randrange(2)), k), 1) for k in range(rng.randrange(4))),
            "numbers": Relation(((one, rng.randrange(4)), 1) for one in n if not late(moments, "numbers", one, 10)),
            "kept": Relation(((rng.randrange(2), one), 1) for one in n if not late(moments, "kept", one, 25)),
        }
        drawn["days"] = Relation((row, 1) for row, _ in drawn["days"].items() if not late(moments, "days", row[0], 1))
        frames = {
            name: [dict(zip(names[name], row, strict=True)) | {"_weight": weight} for row, weight in change.pairs()]
            for name, change in drawn.items()
        }
        session.apply({name: frame for name, frame in frames.items() if frame})
        moments.append(Moment({**drawn, "kept": moments[-1].tables["kept"] + drawn["kept"]}))
        for name, plan in plans_of(session).items():
            expected = evaluate(plan, moments[-1].tables, past=moments[:-1])
            assert Relation((tuple(row.values()), 1) for row in session.view(name).rows()) == expected, (seed, number, name)
    session.close()


def late(moments: list[Moment], table: str, value: Any, delay: int) -> bool:
    column = 1 if table == "kept" else 0
    known = [row[column] for moment in moments for row in moment.tables[table]]
    return bool(known) and value < max(known) - (timedelta(days=delay) if table == "days" else delay)


def test_late_rows_of_days_and_numbers_are_errors_after_a_restart_too(tmp_path: Path) -> None:
    with opened({"state": tmp_path}) as session, session.transaction() as tx:
        tx.insert("days", [{"day": FIRST, "k": 1}])
        tx.insert("numbers", [{"n": 100, "k": 1}])
        tx.insert("kept", [{"n": 100, "k": 1}])
    with opened({"state": tmp_path}) as session:
        session.apply({"days": [{"day": FIRST - timedelta(days=1), "k": 1, "_weight": 1}], "numbers": [{"n": 90, "k": 1, "_weight": 1}]})
        with pytest.raises(DataError, match="a row is late: day is 2024-02-25, before the watermark 2024-02-25 12:00:00"):
            session.apply({"days": [{"day": FIRST - timedelta(days=2), "k": 1, "_weight": 1}]})
        with pytest.raises(DataError, match=r"stream numbers: a row is late: n is 89, before the watermark 90\n.*at most 10 less than the"):
            session.apply({"numbers": [{"n": 89, "k": 1, "_weight": 1}]})
        with pytest.raises(DataError, match="table kept: a row is late: n is 74, before the watermark 75"):
            session.apply({"kept": [{"n": 100, "k": 1, "_weight": -1}, {"n": 74, "k": 1, "_weight": 1}]})


def test_a_lateness_that_is_added_counts_the_numbers_of_the_table(tmp_path: Path) -> None:
    with Session(state=tmp_path) as session:
        session.sql("CREATE TABLE t (n BIGINT NOT NULL, day DATE NOT NULL)")
        session.apply({"t": [{"n": 50, "day": FIRST, "_weight": 1}]})
    added = {"n BIGINT LATENESS 5, day DATE NOT NULL": "n is 40", "n BIGINT NOT NULL, day DATE LATENESS INTERVAL 1 DAY": "day is"}
    for columns, message in added.items():
        with Session(state=tmp_path) as session:
            session.sql(f"CREATE TABLE t ({columns})")
            with pytest.raises(DataError, match=f"a row is late: {message}"):
                session.apply({"t": [{"n": 40, "day": FIRST - timedelta(days=9), "_weight": 1}]})


def test_the_ends_of_the_range_of_numbers() -> None:
    with opened({}) as session:
        for n in (LEAST, 0, MOST, MOST):
            session.apply({"numbers": [{"n": n, "k": 1, "_weight": 1}]})
            if n == 0:
                assert rows(session, "each") == [(LEAST, 1)] and rows(session, "tens") == [(-922337203685477580, 1)]
        assert rows(session, "each") == rows(session, "tens") == []
        assert len(rows(session, "ever_of_numbers")) == 3
        with pytest.raises(DataError, match=f"before the watermark {MOST - 10}"):
            session.apply({"numbers": [{"n": LEAST, "k": 1, "_weight": 1}]})


def test_an_error_in_a_window_of_numbers_names_the_watermark() -> None:
    with Session() as session:
        session.sql(
            "CREATE STREAM numbers (n INT LATENESS 0, k BIGINT);"
            "CREATE MATERIALIZED VIEW v AS SELECT n div 10 AS t, 1 / sum(k) AS x FROM numbers GROUP BY 1 EMIT ON WINDOW CLOSE"
        )
        session.apply({"numbers": [{"n": 5, "k": 0, "_weight": 1}]})
        with pytest.raises(EvaluationError, match="it is in a window of numbers that ends at or before the watermark 30"):
            session.apply({"numbers": [{"n": 30, "k": 0, "_weight": 1}]})
        assert "closed_windows is bounded by the rows of open windows of numbers" in str(session.explain("v"))


@pytest.mark.parametrize("of_rows", [True, False])
@pytest.mark.parametrize("text", ["n", "n * 3", "n div 1", "n div 7", "5 * (n div 7)", "n div 7 * 7 * 2"])
def test_the_end_of_a_window_is_after_its_numbers_and_not_after_those_of_the_next(text: str, of_rows: bool) -> None:
    """of_rows: the rows have the number, or the window alone."""
    with Session() as session:
        session.sql(f"CREATE TABLE t (n BIGINT NOT NULL); CREATE VIEW v AS SELECT {text} AS w FROM t")
        plan = plans_of(session)["v"]
    assert isinstance(plan, Project)
    ((_, window),) = plan.columns
    end = window_end(window, 0, None if of_rows else Column(0, BIGINT, False))
    assert end is not None
    windows: dict[int, list[int]] = {}
    ends = {}
    for n in range(-40, 41):
        value: Any = value_of(window, (n,))
        windows.setdefault(value, []).append(n)
        last: Any = value_of(end.moment, (n,) if of_rows else (value,))
        assert ends.setdefault(value, last + end.offset) == last + end.offset
    ordered = list(windows)[:-1]  # the last one is cut off
    assert [ends[value] for value in ordered] == [windows[value][-1] + 1 for value in ordered]


AHEAD = """
    CREATE STREAM readings (at TIMESTAMP LATENESS INTERVAL '10 minutes' AHEAD INTERVAL 1 DAY, v BIGINT) @;
    CREATE STREAM days (day DATE LATENESS INTERVAL 1 DAY AHEAD INTERVAL 0 DAYS);
    CREATE STREAM numbers (n BIGINT LATENESS 10 AHEAD 1000);
    CREATE MATERIALIZED VIEW ever AS SELECT v FROM integrate(readings);
"""
NOW = datetime.datetime(2026, 5, 1, 10, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.session.lateness.wall_us", lambda: int(NOW.timestamp()) * 1_000_000)


def test_rows_too_far_ahead_are_errors_and_do_not_move_the_watermark(clock: None) -> None:
    far = datetime.datetime(9999, 12, 31, tzinfo=UTC)
    with Session() as session:
        session.sql(AHEAD.replace("@", ""))
        for moment in (NOW + timedelta(days=1), NOW + timedelta(hours=23, minutes=50)):
            session.apply({"readings": [{"at": moment, "v": 1, "_weight": 1}]})
        with pytest.raises(DataError, match="a row is too far ahead: at is 9999-12-31 00:00:00, more than 1 day, 0:00:00 after the clock"):
            session.apply({"readings": [{"at": far, "v": 1, "_weight": 1}]})
        session.apply({"days": [{"day": NOW.date(), "_weight": 1}]})
        with pytest.raises(DataError, match="day is 2026-05-02, more than 0:00:00 after the clock"):
            session.apply({"days": [{"day": NOW.date() + timedelta(days=1), "_weight": 1}]})
        for n in (MOST - 2000, MOST - 1000, MOST):
            session.apply({"numbers": [{"n": n, "_weight": 1}]})
        with pytest.raises(DataError, match="a row is late"):
            session.apply({"numbers": [{"n": 0, "_weight": 1}]})
    with Session() as session:
        session.stream("numbers", schema={"n": int}, lateness={"n": 10}, ahead=1000)
        session.apply({"numbers": [{"n": 7, "_weight": 1}]})
        with pytest.raises(DataError, match="a row is too far ahead: n is 1008, more than 1000 after the greatest value"):
            session.apply({"numbers": [{"n": 5, "_weight": 1}, {"n": 1008, "_weight": 1}]})
        session.apply({"numbers": [{"n": 1007, "_weight": 1}]})


def test_rows_too_far_ahead_are_dead_letters_where_the_table_says_so(clock: None, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    source = f"USING json OPTIONS (path '{folder}', on_error 'dead_letter', dead_letter_path '{tmp_path / 'letters'}')"
    moments = [NOW, datetime.datetime(9999, 12, 31, tzinfo=UTC), NOW + timedelta(hours=1)]
    (folder / "a.json").write_text("".join(json.dumps({"at": at.isoformat(), "v": v}) + "\n" for v, at in enumerate(moments)))
    with Pipeline(AHEAD.replace("@", source), state=tmp_path / "state") as pipeline:
        assert pipeline.run_once().letters == {"readings": 1}
        (folder / "b.json").write_text("".join(json.dumps({"at": at.isoformat(), "v": 5}) + "\n" for at in (moments[0], moments[2])))
        assert pipeline.run_once().letters == {"readings": 1}
        assert sorted(row["v"] for row in pipeline.session.view("ever").rows()) == [0, 2, 5]
    letters = [json.loads(line) for path in sorted((tmp_path / "letters").iterdir()) for line in path.read_text().splitlines()]
    assert [letter["reason"] for letter in letters] == [
        "the row is too far ahead: at is 9999-12-31 00:00:00, more than 1 day, 0:00:00 after the clock of the machine",
        "the row is late: at is 2026-05-01 10:00:00, before the watermark 2026-05-01 10:50:00",
    ]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("at STRING LATENESS INTERVAL 1 DAY", "LATENESS of column at, which is STRING"),
        ("at DOUBLE LATENESS 1", "LATENESS of column at, which is DOUBLE"),
        ("at DECIMAL(10, 0) LATENESS 1", "expected: a column of type TIMESTAMP, DATE or a whole number"),
        ("at INT LATENESS 1.5", "invalid LATENESS 1.5"),
        ("at INT LATENESS 99999999999999999999", "LATENESS 100, for example"),
        ("at INT LATENESS INTERVAL 1 DAY", "a whole number, as the column is INT"),
        ("at DATE LATENESS 3", "expected: an INTERVAL of days or less"),
        ("at DATE LATENESS INTERVAL 1 DAY AHEAD 3", "invalid AHEAD"),
        ("at INT LATENESS 3 AHEAD INTERVAL 1 DAY", "invalid AHEAD"),
        ("at INT LATENESS 3 AHEAD", "AHEAD INTERVAL 1 HOUR, for example, or AHEAD 100 of a whole number"),
        ("at INT LATENESS -3", "LATENESS INTERVAL 1 HOUR, for example"),
    ],
)
def test_errors_have_a_place(column: str, message: str) -> None:
    with Session() as session, pytest.raises(DelticError) as error:
        session.sql(f"CREATE STREAM s ({column})")
    assert message in str(error.value) and "^" in str(error.value), str(error.value)


@pytest.mark.parametrize(
    ("type_", "lateness", "ahead"),
    [
        (int, "1 hour", None),
        (int, True, None),
        (int, -1, None),
        (int, 5, "1 day"),
        (datetime.date, 5, None),
        (datetime.date, "1 day", 5),
        (float, 1, None),
    ],
)
def test_errors_in_python(type_: type, lateness: Any, ahead: Any) -> None:
    with pytest.raises(CircuitError, match=r"lateness|ahead"):
        deltic.Circuit().stream("s", schema={"x": type_}, lateness={"x": lateness}, ahead=ahead)
    with pytest.raises(CircuitError, match="ahead=5, but no lateness"):
        deltic.Circuit().stream("s", schema={"x": int}, ahead=5)


@pytest.mark.slow
@pytest.mark.spark
def test_days_and_numbers_of_spark_frames(spark: Any) -> None:
    with Session(spark=spark) as session:
        session.sql(
            "CREATE STREAM s (day DATE LATENESS INTERVAL 1 DAY); CREATE STREAM t (n INT LATENESS 5 AHEAD 100);"
            "CREATE MATERIALIZED VIEW v AS SELECT day, count(*) AS c FROM s GROUP BY day EMIT ON WINDOW CLOSE;"
            "CREATE MATERIALIZED VIEW w AS SELECT n div 10 AS t, count(*) AS c FROM t GROUP BY 1 EMIT ON WINDOW CLOSE"
        )
        for days in (0, 3):
            session.apply({"s": spark.createDataFrame([(FIRST + timedelta(days=days), 1)], "day DATE, _weight BIGINT")})
        assert rows(session, "v") == [(FIRST, 1)]
        for n in (3, 18):
            session.apply({"t": spark.createDataFrame([(n, 1)], "n INT, _weight BIGINT")})
        assert rows(session, "w") == [(0, 1)]
        with pytest.raises(DataError, match="day is 2024-02-27, before the watermark 2024-02-29"):
            session.apply({"s": spark.createDataFrame([(FIRST, 1)], "day DATE, _weight BIGINT")})
        with pytest.raises(DataError, match="n is 200, more than 100 after the greatest value"):
            session.apply({"t": spark.createDataFrame([(200, 1)], "n INT, _weight BIGINT")})
