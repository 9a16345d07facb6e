"""LATENESS: late rows are rejected or become dead letters, and windows that the watermark has closed are final."""

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
from deltic.errors import CatalogError, CircuitError, DataError, DelticError, EvaluationError
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.nodes import Plan
from deltic.plan.relation import Relation
from deltic.schema import TableSchema
from parts import slow
from seeds import rotating
from session_rows import touched_rows

READINGS = "CREATE STREAM readings (at TIMESTAMP LATENESS INTERVAL 1 HOUR, sensor BIGINT, v BIGINT);"
HOURLY = """
    CREATE MATERIALIZED VIEW hourly AS
    SELECT date_trunc('hour', at) AS hour, sensor, count(*) AS n, max(v) AS top FROM readings GROUP BY 1, 2 EMIT ON WINDOW CLOSE;
"""
DAY = datetime.datetime(2024, 2, 28, tzinfo=UTC)


def at(hours: float) -> datetime.datetime:
    return DAY + timedelta(hours=hours)


def insert(session: Session, *rows: tuple[float, int, int], table: str = "readings") -> None:
    with session.transaction() as tx:
        tx.insert(table, [{"at": at(hours), "sensor": sensor, "v": v} for hours, sensor, v in rows])


def rows(session: Session, view: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in session.view(view).rows())


def test_a_late_row_fails_its_tick_and_nothing_has_happened() -> None:
    with Session() as session:
        session.sql(READINGS + "CREATE MATERIALIZED VIEW ever AS SELECT * FROM integrate(readings)")
        insert(session, (10, 1, 1), (2, 1, 1))
        insert(session, (9, 1, 2))
        with pytest.raises(DataError) as error:
            insert(session, (12, 1, 1), (8.5, 1, 3), (1, 1, 1))
        assert "stream readings: a row is late: at is 2024-02-28 08:30:00, before the watermark 2024-02-28 09:00:00" in str(error.value)
        assert len(rows(session, "ever")) == 3
        insert(session, (9, 1, 4))
        assert len(rows(session, "ever")) == 4


def test_the_watermark_is_durable_and_does_not_go_back(tmp_path: Path) -> None:
    with Session(state=tmp_path) as session:
        session.sql(READINGS)
        insert(session, (10, 1, 1))
    more = READINGS.replace("1 HOUR", "5 HOURS")
    with Session(state=tmp_path, shards=3) as session:
        session.sql(more)
        with pytest.raises(DataError, match="a row is late"):
            insert(session, (8, 1, 1))
        insert(session, (20, 1, 1))
        insert(session, (15, 1, 1))
        session.sql("DROP STREAM readings")
        session.sql(READINGS)
        insert(session, (1, 1, 1))


@pytest.mark.parametrize("shards", [1, 3])
def test_a_lateness_that_is_added_counts_the_rows_of_the_table(tmp_path: Path, shards: int) -> None:
    table = "CREATE TABLE t (at TIMESTAMP NOT NULL, sensor BIGINT, v BIGINT);"
    with Session(state=tmp_path, shards=shards) as session:
        session.sql(table)
        insert(session, (20, 1, 1), (2, 1, 1), table="t")
    with Session(state=tmp_path, shards=shards) as session:
        session.sql(
            table.replace("NOT NULL", "LATENESS INTERVAL 1 HOUR")
            + "CREATE MATERIALIZED VIEW h AS SELECT date_trunc('hour', at) AS h, count(*) AS n FROM t GROUP BY 1 EMIT ON WINDOW CLOSE;"
        )
        made = deltic.Circuit(session)
        made.output("open", made.input("t").while_open("date_trunc('hour', at)"))
        session.install(made)
        assert rows(session, "open") == [(at(20), 1, 1)]
        with pytest.raises(DataError, match="before the watermark 2024-02-28 19:00:00"):
            insert(session, (2, 1, 1), table="t")
        insert(session, (30, 1, 1), table="t")
        assert rows(session, "h") == [(at(20), 1)]


def test_a_shorter_lateness_counts_all_rows_from_the_next_tick_on(tmp_path: Path) -> None:
    with Session(state=tmp_path) as session:
        session.sql(READINGS.replace("1 HOUR", "5 HOURS") + HOURLY)
        insert(session, (10, 1, 1), (20, 1, 1))
    with Session(state=tmp_path) as session:
        session.sql(READINGS + HOURLY)
        insert(session, (16, 1, 1))
        assert rows(session, "hourly") == [(at(16), 1, 1, 1)]
        with pytest.raises(DataError, match="before the watermark 2024-02-28 19:00:00"):
            insert(session, (18, 1, 1))


def test_a_table_rejects_late_changes_and_only_rows_that_are_added_move_the_watermark() -> None:
    with Session() as session:
        session.sql("CREATE TABLE t (at TIMESTAMP LATENESS INTERVAL 1 HOUR, sensor BIGINT, v BIGINT)")
        insert(session, (10, 1, 1), (9, 1, 1), table="t")
        with session.transaction() as tx:
            tx.delete("t", [{"at": at(10), "sensor": 1, "v": 1}])
        insert(session, (12, 1, 1), table="t")
        with pytest.raises(DataError, match="table t: a row is late"), session.transaction() as tx:
            tx.delete("t", [{"at": at(9), "sensor": 1, "v": 1}])


def test_each_window_comes_once_when_it_closes(tmp_path: Path) -> None:
    with Session(state=tmp_path) as session:
        session.sql(READINGS + HOURLY)
        heard: list[Any] = []
        session.view("hourly").subscribe(lambda changes: heard.extend(changes.to_pylist()))
        insert(session, (0.5, 1, 5), (0.75, 2, 7))
        insert(session, (1.75, 1, 3))
        assert rows(session, "hourly") == []
        insert(session, (0.8, 1, 9))
        insert(session, (2, 1, 1))
        assert rows(session, "hourly") == [(at(0), 1, 2, 9), (at(0), 2, 1, 7)]
        insert(session, (2.5, 1, 1))
        assert rows(session, "hourly") == []
    with Session(state=tmp_path, shards=2) as session:
        session.sql(READINGS + HOURLY)
        insert(session, (4.5, 1, 1), (1.6, 2, 4))
        assert rows(session, "hourly") == [(at(1), 1, 1, 3), (at(1), 2, 1, 4), (at(2), 1, 2, 1)]
    assert [(row["hour"], row["_weight"]) for row in heard] == [(at(0), 1), (at(0), 1)]


PROGRAM = """
    CREATE STREAM s (at TIMESTAMP LATENESS INTERVAL 90 MINUTES, k BIGINT, v BIGINT);
    CREATE TABLE t (k BIGINT, at TIMESTAMP LATENESS INTERVAL 3 HOURS);
    CREATE TABLE names (k BIGINT, name STRING);
    CREATE MATERIALIZED VIEW hours AS
        SELECT date_trunc('hour', at) AS hour, k, sum(v) AS total, min(v) AS least FROM s WHERE v > 0 GROUP BY 1, 2 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW days AS SELECT CAST(at AS DATE) AS day, count(DISTINCT k) AS n FROM s GROUP BY 1 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW months AS SELECT date_trunc('MONTH', at) AS month, max(v) AS top FROM s GROUP BY 1 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW once AS SELECT DISTINCT at, k FROM s EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW named AS
        SELECT time_bucket(INTERVAL 5 HOURS, at) AS start, name, count(*) AS n FROM s JOIN names ON s.k = names.k GROUP BY 1, 2
        HAVING count(*) > 1 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW long AS
        SELECT time_bucket(INTERVAL 1 MONTH, at, TIMESTAMP '2024-01-31 03:00:00') AS start, count(*) AS n FROM s GROUP BY 1
        EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW ever AS
        SELECT date_trunc('hour', at) AS hour, k, sum(v) AS total, max(v) AS top FROM integrate(s) WHERE v <> 1 GROUP BY 1, 2;
    CREATE MATERIALIZED VIEW ever_once AS SELECT DISTINCT time_bucket(INTERVAL 2 HOURS, at) AS start, k FROM integrate(s);
    CREATE MATERIALIZED VIEW sliding AS
        SELECT window.end AS e, k, count(*) AS n FROM s WHERE v > 0 GROUP BY window(at, '3 hours', '2 hours', '30 minutes'), k
        EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW ever_sliding AS
        SELECT window.start AS b, max(v) AS top FROM integrate(s) GROUP BY window(at, '2 hours', '1 hour');
    CREATE MATERIALIZED VIEW stored AS SELECT date_trunc('DAY', at) AS day, k, count(*) AS n FROM t GROUP BY 1, 2 EMIT ON WINDOW CLOSE;
"""


def circuit(program: deltic.Program) -> deltic.Circuit:
    made = deltic.Circuit(program)
    stream, table = made.input("s"), made.input("t")
    made.output("closing", stream.when_closed("date_trunc('hour', at)"))
    recent = stream.while_open("time_bucket(INTERVAL 2 HOURS, at)")
    made.output("recent", recent)
    made.output("tops", recent.index_with("k").aggregate(top="max(v)", n="count(*)"))
    made.output("pairs", stream.index_with("k").join(recent.index_with("k"), lambda k, one, other: (k, one.v, other.v)))
    made.output("open_rows", table.while_open("at"))
    made.output("ever_closed", table.when_closed("date_trunc('DAY', at)").integrate())
    return made


def plans_of(session: Session) -> dict[str, Plan]:
    return {view.name: view.plan for view in session._definitions.catalog.views.values()}


@pytest.mark.parametrize("seed", [1, 2, *slow(*rotating(38))])
def test_random_ticks_equal_the_oracle(seed: int, tmp_path: Path) -> None:
    run_against_oracle(seed, [{}, {"shards": 3}, {"state": tmp_path / "s"}, {"state": tmp_path / "s", "shards": 2}][seed % 4])


def test_groups_of_a_tick_in_a_view_stay_groups_of_a_tick() -> None:
    with Session() as session:
        session.sql(
            READINGS
            + """
            CREATE MATERIALIZED VIEW of_ticks AS SELECT at, max(v) AS top FROM readings GROUP BY at;
            CREATE MATERIALIZED VIEW tops AS
                SELECT date_trunc('hour', at) AS hour, sum(top) AS total, count(*) AS n FROM of_ticks GROUP BY 1 EMIT ON WINDOW CLOSE;
            CREATE MATERIALIZED VIEW each_top AS SELECT DISTINCT at, top FROM of_ticks WHERE top <> 2 EMIT ON WINDOW CLOSE;
            CREATE MATERIALIZED VIEW both AS
                SELECT DISTINCT max(top) AS top, at FROM (SELECT * FROM of_ticks) GROUP BY at EMIT ON WINDOW CLOSE;
            CREATE MATERIALIZED VIEW different AS
                SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM (SELECT DISTINCT at FROM readings) GROUP BY 1
                EMIT ON WINDOW CLOSE;
            """
        )
        for v in (1, 5, 2):
            insert(session, (9.5, 1, v), (9.5, 1, 0))
        insert(session, (12, 1, 0))
        assert rows(session, "tops") == [(at(9), 8, 3)]
        assert rows(session, "different") == [(at(9), 3)]
        assert rows(session, "each_top") == [(at(9.5), 1), (at(9.5), 5)]
        assert rows(session, "both") == [(5, at(9.5))]
        for query in ("SELECT * FROM of_ticks", "SELECT at FROM (SELECT DISTINCT at FROM readings)"):
            with pytest.raises(DelticError, match="EMIT ON WINDOW CLOSE of a query without windows"):
                session.sql(f"CREATE VIEW none AS {query} EMIT ON WINDOW CLOSE")


def test_an_error_in_a_window_that_closes_names_it_and_what_to_do() -> None:
    view = (
        "CREATE OR REPLACE MATERIALIZED VIEW h AS SELECT date_trunc('hour', at) AS w, @ AS n FROM readings GROUP BY 1 EMIT ON WINDOW CLOSE"
    )
    with Session() as session:
        session.sql(READINGS + view.replace("@", "10 / sum(v)"))
        insert(session, (9.5, 1, 0))
        with pytest.raises(EvaluationError) as error:
            insert(session, (12, 1, 1))
        shown = str(error.value)
        assert "it is in a window of readings that ends at or before the watermark 2024-02-28 11:00:00" in shown, shown
        assert "replace the view" in shown
        session.sql(view.replace("@", "try_divide(10, sum(v))"))
        insert(session, (9.5, 1, 0))
        insert(session, (12, 1, 1))
        assert rows(session, "h") == [(at(9), None)]


def test_windows_at_the_end_of_the_calendar_never_close() -> None:
    last = datetime.datetime(9999, 12, 31, 23, tzinfo=UTC)
    units = ("hour", "week", "month", "quarter", "year")
    with Session() as session:
        session.sql(
            READINGS
            + "".join(
                f"CREATE MATERIALIZED VIEW {unit}s AS SELECT date_trunc('{unit}', at) AS w, count(*) AS n FROM readings GROUP BY 1"
                f" EMIT ON WINDOW CLOSE; CREATE MATERIALIZED VIEW ever_{unit} AS SELECT date_trunc('{unit}', at) AS w, count(*) AS n"
                " FROM integrate(readings) GROUP BY 1;"
                for unit in units
            )
        )
        insert(session, (0, 1, 1))
        with session.transaction() as tx:
            tx.insert("readings", [{"at": last, "sensor": 1, "v": 1}])
        assert [len(rows(session, f"{unit}s")) for unit in units] == [1] * 5
        with session.transaction() as tx:
            tx.insert("readings", [{"at": last, "sensor": 1, "v": 1}])
        assert [rows(session, f"{unit}s") for unit in units] == [[]] * 5
        assert [[n for _, n in rows(session, f"ever_{unit}")] for unit in units] == [[1, 2]] * 5


DEFINED_LATER = """
    CREATE MATERIALIZED VIEW later AS SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM t GROUP BY 1 EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW later_named AS
        SELECT time_bucket(INTERVAL 4 HOURS, at) AS start, name, count(*) AS n FROM t JOIN names ON t.k = names.k GROUP BY 1, 2
        EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW later_sums AS SELECT date_trunc('hour', hour) AS hour, sum(n) AS n FROM later GROUP BY 1;
"""


def define_more(session: Session) -> None:
    session.sql(DEFINED_LATER)
    made = deltic.Circuit(session)
    table = made.input("t")
    made.output("later_closed", table.when_closed("time_bucket(INTERVAL 3 HOURS, at)"))
    made.output("later_open", table.while_open("time_bucket(INTERVAL 3 HOURS, at)"))
    session.install(made)


@pytest.mark.parametrize("options", [{}, {"shards": 3}])
def test_windows_hold_the_rows_that_the_table_had_before_the_view(options: dict[str, Any]) -> None:
    with Session(**options) as session:
        session.sql("CREATE TABLE t (at TIMESTAMP LATENESS INTERVAL 1 HOUR, sensor BIGINT, v BIGINT)")
        insert(session, (20, 1, 1), (2, 1, 1), table="t")
        session.sql("CREATE MATERIALIZED VIEW h AS SELECT date_trunc('hour', at), count(*) FROM t GROUP BY 1 EMIT ON WINDOW CLOSE")
        made = deltic.Circuit(session)
        made.output("closed", made.input("t").when_closed("date_trunc('hour', at)"))
        session.install(made)
        assert rows(session, "h") == rows(session, "closed") == []
        insert(session, (20.5, 1, 2), (30, 1, 1), table="t")
        assert rows(session, "h") == [(at(20), 2)]
        assert rows(session, "closed") == [(at(20), 1, 1), (at(20.5), 1, 2)]


@pytest.mark.parametrize("seed", [100, 103, *slow(*rotating(18))])
def test_views_that_are_defined_between_ticks_equal_the_oracle(seed: int, tmp_path: Path) -> None:
    options: list[dict[str, Any]] = [{}, {"shards": 3}, {"state": tmp_path / "s"}, {"state": tmp_path / "s", "shards": 2}]
    run_against_oracle(seed, options[seed % 4], defined_later=True)


@pytest.mark.slow
@pytest.mark.spark
def test_windows_on_spark(spark: Any, tmp_path: Path) -> None:
    run_against_oracle(0, {"spark": spark, "state": tmp_path / "s", "shards": 2}, ticks=6)


@pytest.mark.slow
@pytest.mark.spark
def test_late_rows_of_a_spark_frame(spark: Any) -> None:
    with Session(spark=spark) as session:
        session.sql(READINGS + HOURLY)
        frames = [
            spark.createDataFrame([(at(hours).replace(tzinfo=None), 1, 1, 1)], "at TIMESTAMP, sensor BIGINT, v BIGINT, _weight BIGINT")
            for hours in (10, 13, 5)
        ]
        session.apply({"readings": frames[0]})
        session.apply({"readings": frames[1]})
        assert len(rows(session, "hourly")) == 1
        with pytest.raises(DataError, match="a row is late"):
            session.apply({"readings": frames[2]})


def opened(options: dict[str, Any]) -> Session:
    """All definitions at once: those that a state has and a first definition lacks are dropped."""
    session = Session(**options)
    session.program(deltic.Program(PROGRAM, circuit(deltic.Program(PROGRAM))))
    return session


def run_against_oracle(seed: int, options: dict[str, Any], ticks: int = 14, *, defined_later: bool = False) -> None:
    """Random ticks; a session with a state is closed and opened again between some of them, on other shards.

    defined_later: more views over tables, whose rows are kept, are defined between two ticks. What they denote does not depend on it.
    """
    rng, session = Random(f"lateness {seed}"), opened(options)
    definition = rng.randrange(1, 6) if defined_later else None
    tables: dict[str, TableSchema] = {name: session.table(name) for name in session.tables}
    held = {name: Relation() for name in tables}
    moments, hour = [Moment(held)], 0.0
    for number in range(ticks):
        if "state" in options and rng.random() < 0.3:
            session.close()
            session = opened({**options, "shards": rng.randrange(1, 4)} if "spark" not in options else options)
            if definition is not None and number > definition:
                definition = number  # the program has dropped the later views, so they are filled again
        if number == definition:
            define_more(session)
        hour += rng.choice([0, 0.25, 1, 7, 30, 400])
        changes = drawn(rng, hour, moments, tables)
        frames = {
            name: [dict(zip(tables[name].schema.names, row, strict=True)) | {"_weight": weight} for row, weight in change.pairs()]
            for name, change in changes.items()
        }
        session.apply({name: frame for name, frame in frames.items() if frame})
        held = {**{name: held[name] + changes[name] for name in ("t", "names")}, "s": changes["s"]}
        moments.append(Moment(held))
        for name, plan in plans_of(session).items():
            expected = evaluate(plan, held, past=moments[:-1])
            assert Relation((tuple(row.values()), 1) for row in session.view(name).rows()) == expected, (seed, number, name)
    session.close()


def drawn(rng: Random, hour: float, moments: list[Moment], tables: dict[str, TableSchema]) -> dict[str, Relation]:
    """Changes that are not late, of times around the hour."""
    drawn: dict[str, Relation] = {}
    for name, kind in tables.items():
        if kind.lateness is None:
            continue
        column = kind.lateness.column
        known = [row[column] for moment in moments for row in moment.tables[name]]
        least = max(known) - timedelta(microseconds=kind.lateness.delay) if known else at(-1000)
        times = [at(hour - rng.choice([0, 0.2, 0.5, 1, 1.5, 2.9]) + rng.randrange(3)) for _ in range(rng.randrange(5))]
        made = [(moment, rng.randrange(3), rng.randrange(-2, 5)) for moment in times if moment >= least]
        drawn[name] = Relation((row if name == "s" else (row[1], row[0]), 1) for row in made)
        removable = [row for row, _ in moments[-1].tables[name].items() if row[column] >= least] if name == "t" else []
        drawn[name] += Relation((row, -1) for row in rng.sample(removable, min(len(removable), rng.randrange(2))))
    present = dict(moments[-1].tables["names"])
    chosen = [(k, f"n{k % 2}") for k in rng.sample(range(3), rng.randrange(3))]
    return {**drawn, "names": Relation((row, -1 if row in present else 1) for row in chosen)}


def test_state_of_closed_windows_is_dropped() -> None:
    """The work and the state of a tick depend on the rows of open windows, not on those that have gone by."""
    with Session() as session:
        session.sql(READINGS + HOURLY)
        sizes, touched = [], []
        for number in range(1_200):
            insert(session, (number / 60, number % 7, number), (number / 60, 1, 1))
            sizes.append(sum(rows for rows, _ in session._runtime.statistics().values()))
            touched.append(touched_rows(session))
        assert max(sizes) < 1_500 and max(sizes[-300:]) <= max(sizes[:600]) * 1.5, "of 2,400 rows"
        assert max(touched[-300:]) <= max(touched[:600]) * 1.5


def test_a_relation_of_windows_keeps_the_rows_of_open_ones_alone() -> None:
    with Session() as session:
        session.sql(
            READINGS
            + "CREATE MATERIALIZED VIEW ever AS "
            + HOURLY.split(" AS\n")[1].replace("EMIT ON WINDOW CLOSE", "").replace("FROM readings", "FROM integrate(readings)")
        )
        assert "Windows open" in str(session.explain("ever"))
        sizes, touched = [], []
        for number in range(400):
            insert(session, (number / 15, 1, number), (number / 15, 1, 1))
            sizes.append(sum(rows for rows, _ in session._runtime.statistics().values()))
            touched.append(touched_rows(session))
        assert max(sizes) < 900 and max(sizes[-100:]) <= max(sizes[:200]) * 1.5, f"{max(sizes)}, of 800 rows in two arrangements"
        assert max(touched[-100:]) <= max(touched[:200]) * 1.5
        assert len(rows(session, "ever")) == 27 and rows(session, "ever")[3] == (at(3), 1, 30, 59)


def test_late_rows_of_a_source_are_dead_letters_where_the_table_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    script = f"""
        CREATE STREAM readings (at TIMESTAMP LATENESS INTERVAL 1 HOUR, sensor BIGINT, v BIGINT)
            USING json OPTIONS (path '{folder}', on_error 'dead_letter', dead_letter_path '{tmp_path / "letters"}');
        CREATE MATERIALIZED VIEW ever AS SELECT v FROM integrate(readings);
    """

    def write(name: str, *rows: tuple[float, int]) -> None:
        lines = [json.dumps({"at": at(hours).isoformat(), "sensor": 1, "v": v}) for hours, v in rows]
        (folder / name).write_text("\n".join(lines) + "\n")

    with Pipeline(script, state=tmp_path / "state") as pipeline:
        write("a.json", (10, 1), (2, 2))
        assert pipeline.run_once().letters == {}
        write("b.json", (11, 3), (8, 4), (9.5, 5), (1, 6))
        assert pipeline.run_once().letters == {"readings": 2}
        assert sorted(row["v"] for row in pipeline.session.view("ever").rows()) == [1, 2, 3, 5]
        write("c.json", (3, 7))
        assert pipeline.run_once().letters == {"readings": 1}
    letters = [json.loads(line) for path in sorted((tmp_path / "letters").iterdir()) for line in path.read_text().splitlines()]
    assert [(Path(letter["file"]).name, letter["row"], letter["column"], json.loads(letter["text"])["v"]) for letter in letters] == [
        ("b.json", 2, "at", 4),
        ("b.json", 4, "at", 6),
        ("c.json", 1, "at", 7),
    ]
    assert letters[0]["file"] == str(folder / "b.json")  # as of rows that are not valid
    assert letters[0]["reason"] == "the row is late: at is 2024-02-28 08:00:00, before the watermark 2024-02-28 09:00:00"
    (folder / "d.json").write_text(json.dumps({"at": at(2).isoformat(), "sensor": 1, "v": 1}) + "\n")
    kept = script.replace(f", on_error 'dead_letter', dead_letter_path '{tmp_path / 'letters'}'", "")
    with Pipeline(kept, state=tmp_path / "state") as pipeline, pytest.raises(DataError, match=r"d\.json, row 1.*a row is late"):
        pipeline.run_once()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE STREAM a (at BIGINT LATENESS INTERVAL 1 HOUR)", "LATENESS 100, for example: a whole number, as the column is BIGINT"),
        ("CREATE STREAM a (at TIMESTAMP LATENESS INTERVAL 1 MONTH)", "invalid LATENESS"),
        ("CREATE STREAM a (at TIMESTAMP LATENESS INTERVAL -1 HOUR)", "invalid LATENESS"),
        ("CREATE STREAM a (at TIMESTAMP LATENESS INTERVAL 60000000 DAYS)", "at most 3,652,058 DAYS"),
        *[
            (f"CREATE VIEW a AS SELECT at, count(*) AS n FROM {source} GROUP BY at {rest} EMIT ON WINDOW CLOSE", f"of a query with {named}")
            for source, rest, named in (
                ("(SELECT at FROM readings UNION ALL SELECT at FROM readings)", "", "UNION"),
                ("current(readings)", "", "current()"),
                ("delay(readings)", "", "delay()"),
                ("(SELECT at FROM integrate(readings) WHERE at <= now())", "", "now()"),
                ("readings", "ORDER BY n LIMIT 3", "LIMIT"),
                ("(SELECT old.at FROM readings JOIN old ON readings.v = old.v)", "", "windows of a table that is joined to a stream"),
            )
        ],
        ("CREATE STREAM a (at TIMESTAMP LATENESS 3)", "expected: an INTERVAL of days or less"),
        ("CREATE TABLE a (k INT PRIMARY KEY, at TIMESTAMP LATENESS INTERVAL 1 HOUR)", "LATENESS in a table with a PRIMARY KEY"),
        ("CREATE STREAM a (at TIMESTAMP LATENESS INTERVAL 1 HOUR, b TIMESTAMP LATENESS INTERVAL 1 HOUR)", "LATENESS of two columns"),
        ("DECLARE RECURSIVE VIEW a (at TIMESTAMP LATENESS INTERVAL 1 HOUR)", "a view has no LATENESS"),
        ("CREATE VIEW a AS SELECT v FROM readings EMIT ON WINDOW CLOSE", "EMIT ON WINDOW CLOSE of a query without windows"),
        ("CREATE VIEW a AS SELECT v, max(at) FROM readings GROUP BY v EMIT ON WINDOW CLOSE", "EMIT ON WINDOW CLOSE of a query without"),
        ("CREATE VIEW a AS SELECT at, v FROM readings GROUP BY at, v EMIT ON CLOSE", "syntax error"),
    ],
)
def test_errors_have_a_place(statement: str, message: str) -> None:
    with Session() as session:
        session.sql(READINGS + "CREATE TABLE old (at TIMESTAMP LATENESS INTERVAL 1 HOUR, v BIGINT)")
        session.advance_to(DAY)
        with pytest.raises(DelticError) as error:
            session.sql(statement)
        assert message in str(error.value) and "^" in str(error.value), str(error.value)


def test_a_stream_is_created_from_python() -> None:
    with Session() as session:
        session.stream("readings", schema={"at": datetime.datetime, "sensor": int, "v": int}, lateness={"at": "1 hour"})
        session.sql(HOURLY)
        insert(session, (0, 1, 1), (3, 1, 1))
        assert rows(session, "hourly") == [(at(0), 1, 1, 1)]
        with pytest.raises(CatalogError, match="readings is defined already"):
            session.stream("readings", schema={"at": datetime.datetime})


def test_errors_of_circuits() -> None:
    schema = {"at": datetime.datetime, "k": int}
    for lateness in ({"when": "1 hour"}, {"k": "1 hour"}, {"at": "soon"}, {"at": timedelta(-1)}, {}, "at"):
        with pytest.raises(CircuitError, match="lateness"):
            deltic.Circuit().stream("s", schema=schema, lateness=lateness)  # type: ignore[arg-type]
    with pytest.raises(CircuitError, match="a key and a lateness"):
        deltic.Circuit().input("s", schema=schema, key=["k"], lateness={"at": "1 hour"})
    stream = deltic.Circuit().stream("s", schema=schema, lateness={"at": timedelta(hours=1)})
    with pytest.raises(CircuitError, match="k is not a window"):
        stream.when_closed("k")
    with Session() as session:
        session.sql("CREATE STREAM s (at TIMESTAMP NOT NULL, k BIGINT NOT NULL)")
        circuit = deltic.Circuit()
        circuit.output("v", circuit.stream("s", schema=schema, lateness={"at": "1 hour"}).when_closed("at"))
        with pytest.raises(CircuitError, match="input s"):
            session.install(circuit)


def test_explain_says_what_bounds_the_state_of_each_operator() -> None:
    with Session() as session:
        session.sql(
            READINGS
            + HOURLY
            + """
            CREATE TABLE names (k BIGINT, name STRING);
            CREATE STREAM plain (k BIGINT);
            CREATE MATERIALIZED VIEW latest AS SELECT sensor, name FROM current(readings) JOIN names ON k = sensor;
            CREATE MATERIALIZED VIEW ever AS SELECT k, count(*) AS n FROM integrate(plain) GROUP BY k;
            CREATE MATERIALIZED VIEW late AS SELECT k FROM delay(plain);
            CREATE MATERIALIZED VIEW all_names AS SELECT * FROM names;
            """
        )
        circuit = deltic.Circuit(session)
        plain = circuit.input("plain")
        circuit.output("seen", plain.index_with("k").stream_aggregate(lambda held, rows: (held or 0) + 1, schema={"n": int}))

        @circuit.feedback("folded", schema={"k": int | None})
        def folded(before: deltic.Stream) -> deltic.Stream:
            return plain.current().plus(before).distinct().index_with("k").semijoin(circuit.input("names").index_with("k"))

        circuit.output("folded", folded)
        session.install(circuit)
        bounds = {view: [str(bound).split(" ", 3)[3] for bound in session.explain(view).bounds] for view in session.views}
    assert bounds["hourly"] == ["closed_windows is bounded by the rows of open windows of readings"]
    assert "current is bounded by the rows of one tick" in bounds["latest"]
    assert "trace_append is bounded by one tick of stream readings, table names" in bounds["latest"]
    assert "fold_sums grows with every new key of stream plain" in bounds["ever"]
    assert bounds["late"] == ["delay is bounded by the rows of one tick"]
    assert "stream_aggregate grows with every new key of stream plain" in bounds["seen"]
    assert "feedback_over_ticks is bounded by the change of one tick" in bounds["folded"]
    assert "trace_append grows with what every tick feeds back, unless the feedback drops it" in bounds["folded"]
    assert bounds["all_names"] == []
