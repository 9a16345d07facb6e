"""DEFAULT of columns: what statements store, what definitions keep and refuse, and that nothing is filled again. Spark does the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

import deltic
from altered_tables import arrangements
from deltic.errors import CatalogError, CorruptState, DelticError, EvaluationError, QueryError, TypeMismatch, UnknownName, Unsupported
from deltic.frontends.sql.parse_dataset import parse_definitions
from deltic.session.state_query import StateQueries
from deltic.storage.program import DEFAULTS, ProgramDescription

NOON: Final = datetime(2024, 5, 1, 12, tzinfo=UTC)
TABLE: Final = (
    "CREATE TABLE t (id INT, n INT NOT NULL DEFAULT 0, at TIMESTAMP DEFAULT current_timestamp(), day DATE DEFAULT current_date, s STRING)"
)


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        session.advance_to(NOON)
        session.sql(TABLE)
        yield session


def rows(session: deltic.Session, table: str = "t") -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in session.query(f"SELECT * FROM {table} ORDER BY ALL").rows()]


STORED: Final = (0, NOON, date(2024, 5, 1), None)


STATEMENTS: Final = (
    "INSERT INTO t (id) VALUES (1)",
    "INSERT INTO t (id) SELECT 1",
    "INSERT INTO t (s, id, day) VALUES (DEFAULT, 1, DEFAULT)",
    "INSERT INTO t VALUES (1, DEFAULT, DEFAULT, default, NULL)",
    "INSERT INTO t VALUES (1, (DEFAULT), DEFAULT, DEFAULT, DEFAULT)",
    "INSERT INTO t SELECT 1, DEFAULT, DEFAULT, DEFAULT, DEFAULT",
    "INSERT INTO t SELECT *, DEFAULT, DEFAULT FROM (SELECT 1, 0, now())",
    "INSERT INTO t (id, n) SELECT col1, DEFAULT FROM VALUES (1) ORDER BY col1 LIMIT 1",
    "INSERT INTO t (id, n) SELECT * FROM VALUES (1, DEFAULT) AS v(x, y)",
    "INSERT INTO t (id, n) (VALUES (1, DEFAULT))",
    "INSERT INTO t (id, n) FROM VALUES (1) |> SELECT col1, DEFAULT",
    "INSERT INTO t BY NAME SELECT 1 AS id",
    "INSERT INTO t VALUES (1, 5, NULL, NULL, 'x'); UPDATE t SET n = DEFAULT, at = DEFAULT, day = DEFAULT, s = DEFAULT WHERE id = 1",
    "MERGE INTO t USING (SELECT 1 AS k) ON id = k WHEN NOT MATCHED THEN INSERT (id, n, s) VALUES (k, DEFAULT, DEFAULT)",
    "INSERT INTO t VALUES (1, 5, NULL, NULL, 'x'); MERGE INTO t USING (SELECT 1 AS k) ON id = k"
    " WHEN MATCHED THEN UPDATE SET n = DEFAULT, at = DEFAULT, t.day = DEFAULT, s = DEFAULT",
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_store_defaults(session: deltic.Session, statement: str) -> None:
    session.sql(statement)
    assert rows(session) == [(1, *STORED)]


def test_every_statement_has_its_own_time(session: deltic.Session) -> None:
    session.sql("INSERT INTO t (id) VALUES (1)")
    session.advance_to(NOON + timedelta(days=1))
    session.sql("INSERT INTO t (id) VALUES (2); UPDATE t SET day = DEFAULT WHERE id = 1")
    assert rows(session) == [
        (1, 0, NOON, date(2024, 5, 2), None),
        (2, 0, NOON + timedelta(days=1), date(2024, 5, 2), None),
    ]


def test_rows_with_and_without_a_value_have_the_type_of_the_column(session: deltic.Session) -> None:
    session.sql("INSERT INTO t (id, day) VALUES (1, DEFAULT), (2, DATE'2020-01-01'), (3, NULL), (4, TIMESTAMP'2020-01-01 10:00:00')")
    assert [row[3] for row in rows(session)] == [date(2024, 5, 1), date(2020, 1, 1), None, date(2020, 1, 1)]


def test_a_column_called_default_hides_the_word(session: deltic.Session) -> None:
    session.sql("CREATE TABLE z (a INT, default INT DEFAULT 3); INSERT INTO z VALUES (1, 77); INSERT INTO z SELECT 2, DEFAULT FROM z")
    session.sql("INSERT INTO z VALUES (3, DEFAULT)")
    assert rows(session, "z") == [(1, 77), (2, 77), (3, 3)]


def test_a_stream_has_defaults(session: deltic.Session) -> None:
    session.sql("CREATE STREAM e (id INT, n INT DEFAULT 4); CREATE MATERIALIZED VIEW v AS SELECT id, sum(n) AS n FROM e GROUP BY id")
    session.sql("INSERT INTO e (id) VALUES (1), (1)")
    assert session.view("v").rows() == [{"id": 1, "n": 8}]


def test_frames_give_every_column(session: deltic.Session) -> None:
    with pytest.raises(DelticError, match="n"):
        session.apply({"t": [{"id": 1, "at": None, "day": None, "s": None, "_weight": 1}]})
    assert rows(session) == []


# What Spark stores for a default of a type, beside what a query returns. Spark 4.2 stores the same.
VALUES: Final = {
    "b INT DEFAULT 5.7": 5,
    "b INT DEFAULT '12'": 12,
    "b INT DEFAULT 7L + 1": 8,
    "b TINYINT DEFAULT 12.6": 12,
    "b DATE DEFAULT '2020-01-01'": date(2020, 1, 1),
    "b DATE DEFAULT TIMESTAMP'2020-01-01 10:00:00'": date(2020, 1, 1),
    "b TIMESTAMP_NTZ DEFAULT DATE'2020-01-01'": datetime(2020, 1, 1),
    "b STRING DEFAULT 5": "5",
    "b STRING DEFAULT true": "true",
    "b STRING DEFAULT DATE'2020-01-01'": "2020-01-01",
    "b STRING DEFAULT 'it''s'": "it's",
    "b DECIMAL(5, 2) DEFAULT 1.239": Decimal("1.24"),
    "b DOUBLE DEFAULT 1": 1.0,
    "b INT DEFAULT length('abc')": 3,
    "b BIGINT DEFAULT NULL": None,
    "b BINARY DEFAULT 'ab'": b"ab",
    "b CHAR(4) DEFAULT 'ab'": "ab  ",
    "b VARCHAR(3) DEFAULT 'abc  '": "abc",
    "b BOOLEAN DEFAULT NOT false": True,
    "b INT DEFAULT transform(array(1), x -> x + 1)[0]": 2,
    "b ARRAY<BIGINT> DEFAULT array(1, 2)": [1, 2],
    "b STRUCT<x: INT, y: STRING> DEFAULT named_struct('p', 1, 'q', 'z')": {"x": 1, "y": "z"},
    "b INT DEFAULT 1 NOT NULL COMMENT 'one'": 1,
}
REFUSED: Final = (
    "b INT DEFAULT 'x'",
    "b TINYINT DEFAULT 300",
    "b BOOLEAN DEFAULT 1",
    "b BOOLEAN DEFAULT 'true'",
    "b INT DEFAULT true",
    "b INT DEFAULT DATE'2020-01-01'",
    "b ARRAY<INT> DEFAULT '1'",
    "b STRING DEFAULT array(1)",
    "b VARCHAR(3) DEFAULT 'abcdef'",
    "b INT DEFAULT a",
    "b INT DEFAULT (SELECT 1)",
    "b BIGINT DEFAULT sum(1)",
    "b INT DEFAULT row_number() OVER (ORDER BY 1)",
    "b STRING DEFAULT uuid()",
    "b DOUBLE DEFAULT rand()",
    "b INT DEFAULT *",
    "b INT DEFAULT DEFAULT",
    "b INT DEFAULT 1 DEFAULT 2",
    "b INT DEFAULT nope(1)",
)
REFUSED_STATEMENTS: Final = (
    "INSERT INTO x VALUES (1)",
    "INSERT INTO x SELECT 1",
    "INSERT INTO x VALUES (1, DEFAULT + 1)",
    "INSERT INTO x VALUES (DEFAULT)",
    "INSERT INTO x BY NAME SELECT 1 AS a, DEFAULT AS b",
    "INSERT INTO x SELECT 1, DEFAULT AS q",
    "INSERT INTO x SELECT a, DEFAULT FROM x WHERE DEFAULT = 1",
)


@pytest.mark.parametrize("column", VALUES)
def test_values_of_all_types(column: str) -> None:
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE x (a INT, {column}); INSERT INTO x (a) VALUES (1); INSERT INTO x VALUES (2, DEFAULT)")
        session.sql("CREATE TABLE y (a INT); INSERT INTO y VALUES (1), (2)")
        if "NOT NULL" not in column:
            session.sql(f"ALTER TABLE y ADD COLUMN {column}")
            assert rows(session, "x") == rows(session, "y")
        assert rows(session, "x") == [(1, VALUES[column]), (2, VALUES[column])]


@pytest.mark.parametrize("column", REFUSED)
def test_what_is_refused(column: str) -> None:
    with deltic.Session() as session:
        with pytest.raises(QueryError) as raised:
            session.sql(f"CREATE TABLE x (a INT, {column})")
        assert raised.value.span is not None
        assert not session.tables


@pytest.mark.parametrize("statement", REFUSED_STATEMENTS)
def test_statements_that_are_refused(statement: str) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE x (a INT, b INT DEFAULT 2)")
        with pytest.raises(QueryError):
            session.sql(statement)


@pytest.mark.spark
def test_spark_stores_and_refuses_the_same(spark: SparkSession, tmp_path: Path) -> None:
    made = 0

    def create(table: str) -> None:
        nonlocal made
        made += 1
        spark.sql(f"{table} USING parquet LOCATION '{tmp_path / str(made)}'")

    try:
        for column, value in VALUES.items():
            if "->" in column:  # Spark does not resolve a lambda in a DEFAULT
                continue
            create(f"CREATE TABLE x (a INT, {column})")
            spark.sql("INSERT INTO x (a) VALUES (1)")
            spark.sql("INSERT INTO x VALUES (2, DEFAULT)")
            stored = [row.asDict(recursive=True)["b"] for row in spark.table("x").collect()]
            assert stored == [value, value], column
            spark.sql("DROP TABLE x")
        create(TABLE)
        inserts = [statement for statement in STATEMENTS if "UPDATE" not in statement and "MERGE" not in statement]  # parquet has no others
        for statement in inserts:
            spark.sql(statement)
        days = "id, n, at BETWEEN now() - INTERVAL 1 HOUR AND now() AS at, day BETWEEN current_date - 1 AND current_date AS day, s"
        assert [tuple(row) for row in spark.sql(f"SELECT {days} FROM t").collect()] == [(1, 0, True, True, None)] * len(inserts)
        for column in REFUSED:
            with pytest.raises(Exception, match=r"INVALID_DEFAULT_VALUE|UNRESOLVED_ROUTINE|EXCEED_LIMIT_LENGTH|DUPLICATE"):
                create(f"CREATE TABLE x (a INT, {column})")
        create("CREATE TABLE x (a INT, b INT DEFAULT 2)")
        for statement in REFUSED_STATEMENTS:
            with pytest.raises(Exception, match=r"ARITY_MISMATCH|DEFAULT_PLACEMENT_INVALID|UNRESOLVED_COLUMN"):
                spark.sql(statement)
    finally:
        for table in ("x", "t"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")


MISUSES: Final = {
    "INSERT INTO r VALUES (DEFAULT, 1)": (TypeMismatch, "column a of table r is NOT NULL and has no DEFAULT"),
    "INSERT INTO r (b) VALUES (1)": (TypeMismatch, "column a of table r is NOT NULL and gets no value"),
    "UPDATE r SET a = DEFAULT": (TypeMismatch, "column a of table r is NOT NULL and has no DEFAULT"),
    "UPDATE r SET a = DEFAULT + 1": (UnknownName, "DEFAULT has no meaning here"),
    "DELETE FROM r WHERE a = DEFAULT": (UnknownName, "DEFAULT has no meaning here"),
    "INSERT INTO r (nope) VALUES (DEFAULT)": (UnknownName, "table r has no column 'nope'"),
    "INSERT INTO r VALUES (DEFAULT, DEFAULT, DEFAULT)": (TypeMismatch, "column a of table r is NOT NULL and has no DEFAULT"),
    "INSERT INTO r (b) VALUES (DEFAULT, 1)": (TypeMismatch, "the query does not fit the columns of INSERT"),
    "DECLARE v INT DEFAULT 4; CREATE TABLE q (a INT DEFAULT v)": (TypeMismatch, "a DEFAULT reads no columns and no variables"),
    "DECLARE v INT DEFAULT 4; ALTER TABLE r ADD COLUMN c INT DEFAULT v": (TypeMismatch, "a DEFAULT reads no columns and no variables"),
    "CREATE FUNCTION f() RETURN 1; CREATE TABLE q (a INT DEFAULT f())": (
        Unsupported,
        "a DEFAULT calls no functions of your own, such as f",
    ),
    "CREATE TABLE q (a INT DEFAULT 1) USING json OPTIONS (path 'q')": (CatalogError, "table q has a source, whose rows give every column"),
    "CREATE TABLE q (a INT) USING json OPTIONS (path 'q'); ALTER TABLE q ALTER a SET DEFAULT 1": (CatalogError, "table q has a source"),
    "ALTER TABLE r ALTER COLUMN a SET DEFAULT NULL": (TypeMismatch, "column a is NOT NULL, and its DEFAULT is NULL"),
    "ALTER TABLE r ALTER COLUMN b SET DEFAULT a": (TypeMismatch, "a DEFAULT reads no columns and no variables"),
    "ALTER TABLE r ALTER COLUMN c SET DEFAULT 1": (UnknownName, "table r has no column 'c'"),
    "ALTER TABLE r ALTER COLUMN c DROP DEFAULT": (UnknownName, "table r has no column 'c'"),
    "ALTER TABLE nope ALTER COLUMN c SET DEFAULT 1": (UnknownName, "there is no table 'nope'"),
    "CREATE VIEW w AS SELECT 1 AS c; ALTER TABLE w ALTER COLUMN c SET DEFAULT 1": (UnknownName, "w is a view, not a table"),
}


@pytest.mark.parametrize("script", MISUSES)
def test_misuse(session: deltic.Session, script: str) -> None:
    session.sql("CREATE TABLE r (a INT NOT NULL, b INT); INSERT INTO r VALUES (1, 1)")
    kind, message = MISUSES[script]
    epoch, tables = session.epoch, session.tables
    with pytest.raises(DelticError) as raised:
        session.sql(script)
    assert type(raised.value) is kind
    assert raised.value.message.startswith(message)
    assert raised.value.span is not None
    assert (session.epoch, session.tables, rows(session, "r")) == (epoch, tables, [(1, 1)])


def test_a_default_that_fails_at_a_time_fails_with_its_place(session: deltic.Session) -> None:
    session.sql(
        "CREATE TABLE q (a INT, b DOUBLE DEFAULT 1 / (year(current_date) - 2024), c INT NOT NULL DEFAULT nullif(year(now()), 2025))"
    )
    with pytest.raises(EvaluationError, match="division by zero") as raised:
        session.sql("INSERT INTO q (a) VALUES (1)")
    assert raised.value.span is not None and raised.value.span.written == "1 / (year(current_date) - 2024)"
    session.sql("INSERT INTO q (a, b) VALUES (1, 2)")
    session.advance_to(NOON + timedelta(days=365))
    with pytest.raises(TypeMismatch, match="column c is NOT NULL, and its DEFAULT is NULL"):
        session.sql("INSERT INTO q (a) VALUES (1)")
    assert rows(session, "q") == [(1, 2.0, 2024)]


def test_alter_table_changes_defaults(session: deltic.Session) -> None:
    session.sql("CREATE TABLE u (a INT); INSERT INTO u VALUES (1)")
    session.sql("ALTER TABLE u ADD COLUMN b INT DEFAULT 7, c DATE NOT NULL DEFAULT current_date")
    session.advance_to(NOON + timedelta(days=1))
    session.sql("INSERT INTO u (a) VALUES (2)")
    session.sql("ALTER TABLE u ALTER COLUMN B SET DEFAULT 8, a SET DEFAULT -1; INSERT INTO u (c) VALUES (DEFAULT)")
    session.sql("ALTER TABLE u CHANGE b DROP DEFAULT; ALTER TABLE u ALTER b DROP DEFAULT; INSERT INTO u (a) VALUES (4)")
    today = date(2024, 5, 2)
    assert rows(session, "u") == [(-1, 8, today), (1, 7, date(2024, 5, 1)), (2, 7, today), (4, None, today)]
    session.sql("ALTER TABLE u RENAME COLUMN c TO d; ALTER TABLE u DROP COLUMN a; ALTER TABLE u ADD COLUMN c INT")
    session.sql("INSERT INTO u (b) VALUES (9)")
    assert rows(session, "u")[-1] == (9, today, None)
    session.sql("ALTER TABLE u DROP COLUMN d")
    session.sql("ALTER TABLE u ADD COLUMN d INT; INSERT INTO u (b) VALUES (10)")
    assert rows(session, "u")[-1] == (10, None, None)
    session.sql("DROP TABLE u")
    session.sql("CREATE TABLE u (a INT, b INT); INSERT INTO u (b) VALUES (1)")
    assert rows(session, "u") == [(None, 1)]


def test_a_table_in_a_transaction_and_if_not_exists_keep_their_defaults(session: deltic.Session) -> None:
    session.sql("CREATE TABLE IF NOT EXISTS t (id INT, n INT DEFAULT 9)")
    session.sql(
        "BEGIN; INSERT INTO t (id) VALUES (1); UPDATE t SET s = 'x' WHERE n = 0; INSERT INTO t (id) SELECT id + n + 1 FROM t; COMMIT"
    )
    assert rows(session) == [(1, 0, NOON, date(2024, 5, 1), "x"), (2, *STORED)]


def test_parameters_keep_their_values(session: deltic.Session) -> None:
    session.sql(
        "CREATE TABLE q (a INT, b STRING DEFAULT upper(:name), c DATE DEFAULT :day)", args={"name": "it's", "day": date(2024, 1, 1)}
    )
    session.sql("INSERT INTO q (a) VALUES (1)")
    assert rows(session, "q") == [(1, "IT'S", date(2024, 1, 1))]
    assert session._catalog.defaults("q")["b"].text == "upper('it''s')"
    assert session._catalog.defaults("q")["c"].text == "DATE '2024-01-01'"


SCRIPT: Final = """
    CREATE TABLE t (id INT PRIMARY KEY, n INT{}, s STRING);
    CREATE MATERIALIZED VIEW v AS SELECT n, count(*) AS c FROM t GROUP BY n;
"""


@pytest.mark.parametrize("commit_log", [False, True])
def test_the_script_of_a_state_says_its_defaults_and_fills_nothing(tmp_path: Path, commit_log: bool) -> None:
    def opened(script: str) -> deltic.Session:
        session = deltic.Session(state=tmp_path, commit_log=commit_log)
        session.sql(script)
        return session

    with opened(SCRIPT.format(" DEFAULT 1 + 1")) as session:
        session.sql("INSERT INTO t (id) VALUES (1)")
        kept = arrangements(session)
    with opened(SCRIPT.format(" DEFAULT 1 + 1")) as session:
        assert arrangements(session) == kept
    with opened(SCRIPT.format(" DEFAULT 3")) as session:
        assert arrangements(session) == kept
        assert session.last_tick is not None and not session.last_tick.counters, "nothing is filled again"
        session.sql("INSERT INTO t (id) VALUES (2)")
        session.sql("ALTER TABLE t ALTER COLUMN s SET DEFAULT 'x'; INSERT INTO t (id) VALUES (3)")
        assert arrangements(session) == kept
    with StateQueries(tmp_path) as state:
        assert state.program.defaults == {"t": {"n": "3", "s": "'x'"}}
        assert (state.program.default_of("T", "N"), state.program.default_of("t", "id")) == ("3", None)
    with opened("CREATE TABLE other (a INT DEFAULT 5)") as session:
        assert session._runtime.committed.program.defaults == {"t": {"n": "3", "s": "'x'"}, "other": {"a": "5"}}
    with opened(SCRIPT.format("")) as session:
        session.sql("INSERT INTO t (id) VALUES (4)")
        assert rows(session) == [(1, 2, None), (2, 3, None), (3, 3, "x"), (4, None, None)]
        assert session._runtime.committed.program.defaults == {"other": {"a": "5"}}
        session.sql("DROP TABLE other")
        assert session._runtime.committed.program.defaults == {}


def test_a_script_with_alter_table_has_its_defaults_at_every_start(tmp_path: Path) -> None:
    script = SCRIPT.format("") + "ALTER TABLE t ADD COLUMN d DATE DEFAULT current_date; ALTER TABLE t ALTER COLUMN n SET DEFAULT 4;"
    for day in range(3):
        with deltic.Session(state=tmp_path) as session:
            session.advance_to(NOON + timedelta(days=day))
            session.sql(script)
            session.sql(f"INSERT INTO t (id) VALUES ({day})")
    with StateQueries(tmp_path) as state:
        assert [tuple(row.values()) for row in state.query("SELECT id, n, d FROM t ORDER BY id").rows()] == [
            (day, 4, date(2024, 5, 1 + day)) for day in range(3)
        ]


def test_a_program_has_defaults(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path) as session:
        session.program(deltic.Program(SCRIPT.format(" DEFAULT 5"), "CREATE TABLE u (at TIMESTAMP DEFAULT now(), a INT)"))
        session.advance_to(NOON)
        session.sql("INSERT INTO t (id) VALUES (1); INSERT INTO u (a) VALUES (1)")
        assert (rows(session), rows(session, "u")) == ([(1, 5, None)], [(NOON, 1)])
        session.program(SCRIPT.format(" DEFAULT 6"))
        session.sql("INSERT INTO t (id) VALUES (2)")
        assert rows(session) == [(1, 5, None), (2, 6, None)]
        assert session._runtime.committed.program.defaults == {"t": {"n": "6"}}
    with pytest.raises(Unsupported, match="the definitions of a program have no time"):
        deltic.Program(SCRIPT.format(""), "ALTER TABLE t ADD COLUMN d DATE DEFAULT current_date")


def test_a_pipeline_has_defaults_and_a_table_with_a_source_keeps_none(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"a": 1}\n')
    script = "CREATE TABLE q (a INT) USING json OPTIONS (path 'in'); CREATE TABLE u (k INT, at TIMESTAMP DEFAULT now());"
    for more in ("", "ALTER TABLE q ADD COLUMN b INT DEFAULT 1; ALTER TABLE u ALTER COLUMN k SET DEFAULT 3;"):
        with deltic.Pipeline(script + more, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
            pipeline.run_once()
    with StateQueries(tmp_path / "state") as state:
        assert state.program.defaults == {"u": {"at": "now()", "k": "3"}}
        assert state.query("SELECT * FROM q").rows() == [{"a": 1, "b": 1}], "it is the value of the rows that the table had"


def test_a_variable_may_be_cast_by_its_declaration(session: deltic.Session) -> None:
    session.sql("DECLARE VARIABLE v ARRAY<BIGINT> DEFAULT array(1, 2)")
    assert session.query("SELECT v AS v").rows() == [{"v": [1, 2]}]


@pytest.mark.parametrize("note", [[], {"t": []}, {"t": {"n": 1}}])
def test_malformed_defaults_are_refused(note: Any) -> None:
    with pytest.raises(CorruptState):
        ProgramDescription.of({DEFAULTS: note})
    assert ProgramDescription.of({DEFAULTS: {"t": {"n": "1"}}}).defaults == {"t": {"n": "1"}}


def test_a_dataset_of_a_project_has_none() -> None:
    with pytest.raises(Unsupported, match="DEFAULT of a dataset's column is not supported") as raised:
        list(parse_definitions("CREATE STREAMING TABLE s (a INT, b INT DEFAULT 3)", "a.sql"))
    assert raised.value.span is not None and raised.value.span.written == "3"


@pytest.mark.spark
def test_defaults_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(spark=spark, state=tmp_path, shards=2) as session:
        session.sql(SCRIPT.format(" DEFAULT 5"))
        session.sql("INSERT INTO t (id) VALUES (1), (2); UPDATE t SET n = 1, s = 'x' WHERE id = 2; UPDATE t SET n = DEFAULT WHERE s = 'x'")
        session.sql("ALTER TABLE t ALTER COLUMN n SET DEFAULT 6; INSERT INTO t VALUES (3, DEFAULT, DEFAULT)")
        assert rows(session) == [(1, 5, None), (2, 5, "x"), (3, 6, None)]
        assert sorted(row["n"] for row in session.view("v").rows()) == [5, 6]
