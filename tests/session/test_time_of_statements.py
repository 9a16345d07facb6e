"""now() and the functions like it where a statement runs once: in queries, in changes of rows, and in the values of variables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from typing import Any, Final

import pytest

import deltic
from deltic.errors import QueryError
from deltic.session.state_query import StateQueries

NOON: Final = datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
TABLE: Final = "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, at TIMESTAMP, day DATE)"
FUNCTIONS: Final = (
    "now()",
    "current_timestamp",
    "current_timestamp()",
    "current_date",
    "current_date()",
    "curdate()",
    "localtimestamp()",
    "unix_timestamp()",
)


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        session.sql(TABLE)
        yield session


def value(session: deltic.Session, expression: str) -> Any:
    return session.query(f"SELECT {expression} AS v").rows()[0]["v"]


def test_the_time_of_a_session_is_that_of_its_queries_and_changes(session: deltic.Session) -> None:
    session.advance_to(NOON)
    assert value(session, "now()") == value(session, "CURRENT_TIMESTAMP") == value(session, "current_timestamp()") == NOON
    assert value(session, "current_date") == value(session, "curdate()") == date(2024, 5, 1)
    assert value(session, "localtimestamp") == NOON.replace(tzinfo=None)
    assert value(session, "current_time") == time_of_day(12, 0, 0, 123456)
    assert value(session, "current_time(3)") == time_of_day(12, 0, 0, 123000) and value(session, "typeof(current_time(3))") == "time(3)"
    assert value(session, "unix_timestamp()") == int(NOON.timestamp())
    assert value(session, "unix_timestamp('2024-05-01 12:00:00', 'yyyy-MM-dd HH:mm:ss')") == int(NOON.timestamp())
    session.sql("INSERT INTO t VALUES (1, now() - INTERVAL 1 HOUR, current_date - INTERVAL 1 DAY), (2, now(), current_date())")
    assert [row["id"] for row in session.query("SELECT id FROM t WHERE at < now() OR day > current_date").rows()] == [1]
    session.sql("UPDATE t SET day = current_date WHERE at < current_timestamp; DELETE FROM t WHERE at >= now()")
    assert session.query("SELECT * FROM t").rows() == [{"id": 1, "at": NOON - timedelta(hours=1), "day": date(2024, 5, 1)}]


def test_without_a_clock_the_time_is_that_of_the_wall(session: deltic.Session) -> None:
    before = datetime.now(UTC)
    session.sql(
        "INSERT INTO t SELECT 1, now(), current_date; BEGIN; INSERT INTO t VALUES (2, now(), NULL); UPDATE t SET day = NULL; COMMIT"
    )
    assert session.now is None
    first, second = (row["at"] for row in session.query("SELECT at FROM t ORDER BY id").rows())
    assert before <= first <= second <= value(session, "now()") <= datetime.now(UTC)
    assert value(session, "(SELECT count(*) FROM t WHERE at BETWEEN now() - INTERVAL 1 HOUR AND now())") == 2


def test_a_session_on_the_wall_clock_writes_its_time_and_reads_that_of_the_last_tick() -> None:
    with deltic.Session(clock="wall") as session:
        session.sql(TABLE + "; CREATE MATERIALIZED VIEW past AS SELECT id FROM t WHERE at <= now()")
        before = datetime.now(UTC)
        session.sql("INSERT INTO t VALUES (1, now(), NULL)")
        assert session.view("past").rows() == [{"id": 1}]
        assert session.now is not None
        assert before <= value(session, "(SELECT at FROM t)") <= session.now == value(session, "now()")


def test_a_watermark_is_the_time_of_statements() -> None:
    with deltic.Session(clock=deltic.Watermark("t", "at", delay="1 hour")) as session:
        session.sql(TABLE + "; CREATE MATERIALIZED VIEW past AS SELECT id FROM t WHERE at <= now()")
        session.apply({"t": [{"id": 1, "at": NOON, "day": None, "_weight": 1}]})
        session.sql("INSERT INTO t VALUES (2, now(), current_date)")
        assert session.query("SELECT id, at, now() AS now FROM t WHERE at = now()").rows() == [
            {"id": 2, "at": NOON - timedelta(hours=1), "now": NOON - timedelta(hours=1)}
        ]


@pytest.mark.parametrize(
    "moment", [datetime(1, 1, 1, tzinfo=UTC), datetime(999, 12, 31, 23, 5, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
def test_the_time_may_be_anywhere_in_the_calendar(session: deltic.Session, moment: datetime) -> None:
    session.advance_to(moment)
    assert value(session, "now()") == moment and value(session, "current_date") == moment.date()
    assert value(session, "localtimestamp") == moment.replace(tzinfo=None) and value(session, "current_time") == moment.time()


def test_variables_keep_the_time_of_their_statement(session: deltic.Session) -> None:
    session.advance_to(NOON)
    session.sql("""
        DECLARE since TIMESTAMP DEFAULT now();
        DECLARE day DATE; SET VAR day = date_add(current_date, 1);
        CREATE MATERIALIZED VIEW later AS SELECT id FROM t WHERE at > since;
        INSERT INTO t VALUES (1, since, NULL), (2, since + INTERVAL 1 SECOND, NULL)""")
    session.advance_to(NOON + timedelta(days=9))
    assert session.view("later").rows() == [{"id": 2}]
    assert session.query("SELECT since AS since, session.day AS d").rows() == [{"since": NOON, "d": date(2024, 5, 2)}]


def test_a_column_hides_the_function_of_its_name(session: deltic.Session) -> None:
    session.advance_to(NOON)
    assert session.query("SELECT current_date FROM VALUES (7) AS v(current_date)").rows() == [{"current_date": 7}]


def test_a_view_and_a_function_have_no_such_time(session: deltic.Session) -> None:
    for statement in ("CREATE MATERIALIZED VIEW v AS SELECT current_date AS d FROM t", "CREATE FUNCTION f() RETURN now()"):
        with pytest.raises(QueryError, match=r"(current_date|now)\(\) is not supported here"):
            session.sql(statement)


@pytest.mark.parametrize(
    ("query", "message"), [("SELECT now(1)", "takes 0 arguments"), ("SELECT current_time(7)", "invalid number of digits")]
)
def test_invalid_arguments(session: deltic.Session, query: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        session.query(query)


def test_a_state_without_its_session_has_the_time_of_its_last_tick(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path) as session:
        session.sql(TABLE)
        session.advance_to(NOON)
    queries = StateQueries(tmp_path)
    assert queries.query("SELECT now() AS v").rows() == [{"v": NOON}]
    queries.close()


@pytest.mark.spark
def test_columns_have_the_names_and_types_of_spark(spark: Any, session: deltic.Session) -> None:
    for function in (*FUNCTIONS, "date_sub(current_date, 7)", "current_time", "current_time(3)"):
        ours, theirs = session.query(f"SELECT {function}").schema.fields[0], spark.sql(f"SELECT {function}").schema.fields[0]
        assert (ours.name, ours.type.sql.lower(), ours.nullable) == (theirs.name, theirs.dataType.simpleString(), theirs.nullable), function
