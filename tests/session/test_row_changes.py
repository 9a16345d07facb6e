"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE in session.sql: by hand, at random beside DuckDB, in transactions, and what they refuse."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import deltic
from deltic.errors import DelticError, EvaluationError
from seeds import rotating

TABLES = "CREATE TABLE t (id INT PRIMARY KEY, x INT, s STRING); CREATE TABLE u (id INT, y INT)"


def rows(session: deltic.Session, table: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in session.query(f"SELECT * FROM {table} ORDER BY ALL").rows()]


@pytest.fixture
def session() -> Any:
    with deltic.Session() as session:
        session.sql(TABLES + "; CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(x) AS s FROM t")
        session.sql("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, NULL), (3, NULL, 'c'); INSERT INTO u VALUES (1, 1), (1, 1), (4, 4)")
        yield session


def test_an_overwritten_table_changes_by_the_difference(session: deltic.Session) -> None:
    session.sql("CREATE MATERIALIZED VIEW copied AS SELECT id, y FROM u")
    session.sql("BEGIN; INSERT INTO u VALUES (5, 5); INSERT OVERWRITE u SELECT * FROM u WHERE id > 3 UNION ALL SELECT 6, 6; COMMIT")
    assert sorted(tuple(row.values()) for row in session.view("copied").changes().to_pylist()) == [(1, 1, -2), (5, 5, 1), (6, 6, 1)]
    session.sql("CREATE STREAM arrivals (id INT)")
    with pytest.raises(DelticError, match="rows of stream arrivals can only be inserted"):
        session.sql("INSERT OVERWRITE arrivals VALUES (1)")


@pytest.mark.parametrize(
    ("statement", "table", "expected"),
    [
        ("INSERT INTO t (s, id) VALUES ('z', 9)", "t", [(1, 10, "a"), (2, 20, None), (3, None, "c"), (9, None, "z")]),
        ("INSERT INTO TABLE u SELECT x, id FROM t WHERE x > 10", "u", [(1, 1), (1, 1), (4, 4), (20, 2)]),
        ("INSERT INTO u BY NAME SELECT 7 AS y, 5L AS id", "u", [(1, 1), (1, 1), (4, 4), (5, 7)]),
        ("INSERT INTO u (FROM u |> WHERE id = 4)", "u", [(1, 1), (1, 1), (4, 4), (4, 4)]),
        ("INSERT INTO t VALUES (9, 1.6, 2)", "t", [(1, 10, "a"), (2, 20, None), (3, None, "c"), (9, 1, "2")]),
        (
            "WITH q AS (SELECT * FROM u), r AS (SELECT id FROM q) INSERT INTO u SELECT id, 0 FROM r WHERE id > 1",
            "u",
            [(1, 1), (1, 1), (4, 0), (4, 4)],
        ),
        ("WITH q AS (SELECT 5) INSERT INTO u (id) WITH r AS (SELECT * FROM q) SELECT * FROM r", "u", [(1, 1), (1, 1), (4, 4), (5, None)]),
        ("WITH q AS (SELECT id FROM t WHERE x > 10) UPDATE u SET y = (SELECT max(id) FROM q) WHERE id < 2", "u", [(1, 2), (1, 2), (4, 4)]),
        ("WITH q AS (SELECT 1 AS a), r AS (SELECT a FROM q) DELETE FROM u WHERE id IN (SELECT a FROM r)", "u", [(4, 4)]),
        (
            "WITH RECURSIVE n(id) AS (SELECT 3 UNION ALL SELECT id + 1 FROM n WHERE id < 5)"
            " MERGE INTO u USING n ON u.id = n.id WHEN MATCHED THEN UPDATE SET y = 0 WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)",
            "u",
            [(1, 1), (1, 1), (3, None), (4, 0), (5, None)],
        ),
        ("INSERT OVERWRITE u SELECT id, y + 1 FROM u WHERE id = 1", "u", [(1, 2), (1, 2)]),
        ("INSERT OVERWRITE TABLE t (id, s) VALUES (1, 'a'), (5, 'e')", "t", [(1, None, "a"), (5, None, "e")]),
        ("INSERT OVERWRITE t BY NAME SELECT 2 AS id, 20 AS x WHERE FALSE", "t", []),
        ("UPDATE t SET x = x + id, s = 'q' WHERE id < 3", "t", [(1, 11, "q"), (2, 22, "q"), (3, None, "c")]),
        ("UPDATE t AS r SET r.id = r.id + 1", "t", [(2, 10, "a"), (3, 20, None), (4, None, "c")]),
        ("UPDATE u SET y = 0 WHERE id IN (SELECT id FROM t)", "u", [(1, 0), (1, 0), (4, 4)]),
        ("UPDATE u SET y = y WHERE TRUE", "u", [(1, 1), (1, 1), (4, 4)]),
        ("DELETE FROM u WHERE id = 1", "u", [(4, 4)]),
        ("DELETE FROM t AS r WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = r.id)", "t", [(1, 10, "a")]),
        ("DELETE FROM t", "t", []),
        ("TRUNCATE TABLE u", "u", []),
        (
            "MERGE INTO t USING u ON t.id = u.id AND u.id > 1 WHEN NOT MATCHED AND u.id > 1 THEN INSERT (id, x) VALUES (u.id, u.y + 1)",
            "t",
            [(1, 10, "a"), (2, 20, None), (3, None, "c"), (4, 5, None)],
        ),
        (
            "MERGE INTO t USING (VALUES (1, 5), (2, 6), (3, 7)) AS n(id, x) ON t.id = n.id "
            "WHEN MATCHED AND n.x = 5 THEN DELETE WHEN MATCHED AND t.x IS NOT NULL THEN UPDATE SET x = t.x + n.x",
            "t",
            [(2, 26, None), (3, None, "c")],
        ),
        (
            "MERGE INTO u USING (SELECT * FROM t WHERE id < 3) AS n ON u.id = n.id WHEN MATCHED THEN UPDATE SET y = n.x "
            "WHEN NOT MATCHED BY TARGET THEN INSERT (id) VALUES (n.id) WHEN NOT MATCHED BY SOURCE THEN DELETE",
            "u",
            [(1, 10), (1, 10), (2, None)],
        ),
        ("MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE", "t", [(2, 20, None), (3, None, "c")]),
        (
            "MERGE INTO t USING (VALUES (3, 1, 'n'), (5, 2, 'o')) AS n(id, x, s) ON t.id = n.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            "t",
            [(1, 10, "a"), (2, 20, None), (3, 1, "n"), (5, 2, "o")],
        ),
    ],
)
def test_statements(session: deltic.Session, statement: str, table: str, expected: list[tuple[Any, ...]]) -> None:
    epoch = session.epoch
    session.sql(statement)
    assert rows(session, table) == expected
    assert session.epoch == epoch + 1
    assert session.view("v").rows() == session.query("SELECT count(*) AS n, sum(x) AS s FROM t").rows()


NESTED = """
    CREATE TABLE n (id INT PRIMARY KEY, st STRUCT<p: INT, q: STRUCT<r: BIGINT, w: STRING>>, p INT);
    INSERT INTO n VALUES (1, named_struct('p', 10, 'q', named_struct('r', 100L, 'w', 'a')), 1), (2, NULL, 2),
        (3, named_struct('p', 30, 'q', NULL), 3);
"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE n SET st.p = id + st.p WHERE id = 1", {1: {"p": 11, "q": {"r": 100, "w": "a"}}}),
        ("UPDATE n SET st.p = 7", {1: {"p": 7, "q": {"r": 100, "w": "a"}}, 2: {"p": 7, "q": None}, 3: {"p": 7, "q": None}}),
        ("UPDATE n AS st SET st.p = 7 WHERE st.id = 2", {}),
        ("UPDATE n AS m SET m.st.Q.r = 7, ST.q.w = 8", {i: {"p": p, "q": {"r": 7, "w": "8"}} for i, p in ((1, 10), (2, None), (3, 30))}),
        ("UPDATE default.n SET default.n.st.p = 7, default.n.p = 8 WHERE id = 1", {1: {"p": 7, "q": {"r": 100, "w": "a"}}}),
        (
            "MERGE INTO n USING (SELECT 1 AS id, 5 AS p) AS s ON n.id = s.id WHEN MATCHED THEN UPDATE SET n.st.p = s.p, p = 0",
            {1: {"p": 5, "q": {"r": 100, "w": "a"}}},
        ),
    ],
)
def test_fields_are_set_as_in_spark(statement: str, expected: dict[int, Any]) -> None:
    """A field of NULL is set in a STRUCT of NULLs."""
    before = {1: {"p": 10, "q": {"r": 100, "w": "a"}}, 2: None, 3: {"p": 30, "q": None}}
    with deltic.Session() as session:
        session.sql(NESTED)
        session.sql(statement)
        assert {row["id"]: row["st"] for row in session.query("SELECT * FROM n").rows()} == before | expected


def test_many_fields_are_set_in_the_time_of_their_text() -> None:
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE w (id INT PRIMARY KEY, s STRUCT<{', '.join(f'f{i}: INT' for i in range(40))}>)")
        session.sql("INSERT INTO w VALUES (1, NULL)")
        start = time.process_time()
        session.sql("UPDATE w SET " + ", ".join(f"s.f{i} = {i}" for i in range(30)))
        session.sql("UPDATE w SET " + ", ".join(f"s.f{i} = s.f{i + 1}" for i in range(1, 40, 2) if i < 39))
        assert time.process_time() - start < 5
        wanted = {f"f{i}": (i + i % 2 if i + i % 2 < 30 else None) for i in range(40)} | {"f39": None}
        assert session.query("SELECT s FROM w").rows() == [{"s": wanted}]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE n SET st.x = 1", "column st of table n has no field 'x'"),
        ("UPDATE n SET p.x = 1", "column p of table n is INT"),
        ("UPDATE n SET x.p = 1", "table n has no column 'x'"),
        ("UPDATE n AS m SET n.p = 1", "table n has no column 'n'"),
        ("UPDATE n SET st.p = 1, st = NULL", "'st' and 'st.p' are both given"),
        ("UPDATE n SET st.q.r = 1, st.q = NULL", "'st.q' and 'st.q.r' are both given"),
        ("UPDATE n SET st.q.r = 1, ST.Q.R = NULL", "the column 'st.q.r' is given twice"),
        ("UPDATE n SET st.p = 'x'", "column st.p of table n is INT"),
        ("UPDATE n SET st.p = DEFAULT", "DEFAULT has no meaning here"),
    ],
)
def test_fields_that_cannot_be_set(statement: str, message: str) -> None:
    with deltic.Session() as session:
        session.sql(NESTED)
        with pytest.raises(DelticError, match=message):
            session.sql(statement)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("INSERT INTO t VALUES (1, 1, 'a')", "already has a row with primary key id=1"),
        ("INSERT INTO t VALUES (9, 1)", "the query does not fit the columns"),
        ("INSERT INTO t VALUES ('9', 1, 'a')", "column id of table t is INT"),
        ("INSERT INTO t VALUES (9, true, 'a')", "column x of table t is INT"),
        ("INSERT INTO t VALUES (9, 3000000000, 'a')", "3000000000"),
        ("INSERT INTO t (x) VALUES (9)", "NOT NULL and gets no value"),
        ("INSERT INTO t SELECT y, y, 'a' FROM (SELECT CAST(NULL AS INT) AS y)", "id"),
        ("INSERT INTO t (id, ID) VALUES (9, 9)", "given twice"),
        ("INSERT INTO t (id, nope) VALUES (9, 9)", "no column 'nope'"),
        ("INSERT OVERWRITE t PARTITION (id = 9) VALUES (9, 'a')", "PARTITION is not supported in INSERT"),
        ("INSERT INTO t REPLACE WHERE id = 9 VALUES (9, 9, 'a')", "REPLACE WHERE is not supported in INSERT"),
        ("INSERT INTO v VALUES (1, 2)", "v is a view"),
        ("INSERT INTO nope VALUES (1)", "no table 'nope'"),
        ("WITH t AS (SELECT 1 AS a) DELETE FROM t WHERE id IN (SELECT a FROM t)", "the CTE 't' hides the table"),
        ("WITH q AS (SELECT 1 AS a) DELETE FROM t WHERE nope IN (SELECT a FROM q)", "nope"),
        ("WITH q AS (SELECT 1 AS a) TRUNCATE TABLE t", "TRUNCATE"),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE", "WITH SCHEMA EVOLUTION is not supported"),
        ("UPDATE t SET x = 1 / (id - 2)", "division by zero"),
        ("UPDATE t SET id = 7", "already has a row with primary key id=7"),
        ("UPDATE t SET x = explode(array())", r"1:18: explode\(\) is a table function, which is not allowed here"),
        (
            "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET x = explode(array(5))",
            r"explode\(\) is a table function, which is not allowed here",
        ),
        (
            "MERGE INTO t USING u ON t.id = u.id WHEN NOT MATCHED THEN INSERT (id, x) VALUES (u.id, stack(1, 2))",
            r"stack\(\) is a table function, which is not allowed here",
        ),
        ("UPDATE t SET nope = 7", "no column 'nope'"),
        ("UPDATE t SET x = 7, x = 8", "given twice"),
        ("UPDATE t SET s = array(1)", "column s of table t is STRING"),
        ("DELETE FROM t WHERE x", "not BOOLEAN"),
        ("MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET x = u.y", "several rows of the source of MERGE match one row"),
        ("MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE", "takes all rows"),
        ("MERGE INTO t USING u ON t.id = u.id WHEN NOT MATCHED THEN INSERT *", "the source has no column 'x'"),
        ("MERGE INTO t USING u ON t.id = u.id", "WHEN MATCHED"),
        ("BEGIN; INSERT INTO u VALUES (1, 1); INSERT INTO t VALUES (1, 1, 'a'); COMMIT", "already has a row"),
        ("INSERT INTO u VALUES (5, 5); DELETE FROM u WHERE nope", "no column 'nope'"),
        ("INSERT INTO u VALUES (5, 5); CREATE TABLE t (a INT)", "t"),
        ("BEGIN; INSERT INTO u VALUES (5, 5); CREATE TABLE x (a INT); COMMIT", "a definition in a transaction"),
        ("INSERT INTO u VALUES (5, 5); DECLARE RECURSIVE VIEW r (a INT)", "view r is declared, but not created"),
        (
            "INSERT INTO u VALUES (5, 5); DECLARE RECURSIVE VIEW r (a INT); CREATE VIEW r AS SELECT a + 1 AS a FROM r",
            "r has no base case",
        ),
        ("CREATE TABLE x (a INT); INSERT INTO x VALUES ('a')", "column a of table x is INT"),
        ("BEGIN; INSERT INTO u VALUES (5, 5)", "BEGIN without COMMIT"),
        ("INSERT INTO u VALUES (5, 5); COMMIT", "COMMIT without BEGIN"),
        ("BEGIN; BEGIN; COMMIT", "BEGIN in a transaction"),
        ("INSERT INTO u VALUES (5, 5); ROLLBACK", "ROLLBACK without BEGIN"),
        ("BEGIN; INSERT INTO u VALUES (5, 5); ROLLBACK TO s", "savepoints"),
        ("BEGIN; INSERT INTO nope VALUES (5, 5); ROLLBACK", "no table 'nope'"),
    ],
)
def test_what_is_refused_changes_nothing(session: deltic.Session, script: str, message: str) -> None:
    before = rows(session, "t"), rows(session, "u"), session.tables, session.epoch
    with pytest.raises(DelticError, match=message):
        session.sql(script)
    assert (rows(session, "t"), rows(session, "u"), session.tables, session.epoch) == before


def test_what_is_rolled_back_changes_nothing(session: deltic.Session) -> None:
    before, epoch = rows(session, "u"), session.epoch
    session.sql("BEGIN; INSERT INTO u VALUES (50, 5); DELETE FROM u; ROLLBACK TRANSACTION")
    assert (rows(session, "u"), session.epoch) == (before, epoch)
    session.sql("BEGIN; DELETE FROM u; ROLLBACK; BEGIN; INSERT INTO u VALUES (51, 5); COMMIT; START TRANSACTION; DELETE FROM u; ROLLBACK")
    assert (len(rows(session, "u")), session.epoch) == (len(before) + 1, epoch + 1)


def test_a_transaction_is_one_tick_and_sees_its_own_changes(session: deltic.Session) -> None:
    changes: list[Any] = []
    session.view("v").subscribe(lambda change: changes.append(change.to_pylist()))
    epoch = session.epoch
    session.sql("""
        BEGIN TRANSACTION;
        INSERT INTO t VALUES (7, 70, 'new');
        UPDATE t SET x = x + 1 WHERE s = 'new';
        DELETE FROM t WHERE id = 1;
        INSERT INTO t SELECT 1, s, 'sum' FROM v;
        COMMIT;
    """)
    assert session.epoch == epoch + 1
    assert rows(session, "t") == [(1, 91, "sum"), (2, 20, None), (3, None, "c"), (7, 71, "new")]
    assert len(changes) == 1


def test_a_statement_that_fails_leaves_those_before_it(session: deltic.Session) -> None:
    with pytest.raises(DelticError, match="division by zero"):
        session.sql("INSERT INTO u VALUES (5, 5); UPDATE u SET y = 1 / (id - 5)")
    assert rows(session, "u") == [(1, 1), (1, 1), (4, 4), (5, 5)]


@pytest.mark.parametrize(
    ("script", "place", "left"),
    [
        (
            "INSERT INTO a VALUES (0);\nCREATE VIEW p AS SELECT k FROM a; CREATE MATERIALIZED VIEW f AS SELECT 1 / k FROM p",
            "3, column 13",
            [(0,)],
        ),
        ("INSERT INTO a VALUES (1);\nBEGIN; INSERT INTO a VALUES (2);\nUPDATE a SET k = 1 / 0; COMMIT", "3, column 8", [(1,)]),
        ("BEGIN; INSERT INTO a VALUES (1); ROLLBACK;\nINSERT INTO a SELECT 1 / 0", "3, column 1", []),
        ("CREATE MATERIALIZED VIEW f AS SELECT 1 / k AS x FROM a;\nINSERT INTO a VALUES (0)", "3, column 1", []),
    ],
)
def test_an_error_says_which_statements_are_applied(session: deltic.Session, script: str, place: str, left: list[tuple[int]]) -> None:
    with pytest.raises(EvaluationError, match="division by zero") as error:
        session.sql(f"CREATE TABLE a (k INT);\n{script}")
    assert error.value.__notes__ == [f"the statements of the script before line {place} are applied; that one and those after it are not"]
    assert rows(session, "a") == left


def test_a_variable_is_not_set_after_a_statement_that_fails(session: deltic.Session) -> None:
    session.sql("DECLARE VARIABLE z INT DEFAULT 1")
    for first in ("", "DROP TABLE IF EXISTS w; CREATE TABLE w (k INT);"):
        with pytest.raises(EvaluationError):
            session.sql(f"{first} INSERT INTO u SELECT 1 / 0, 1; SET VAR z = 2; INSERT INTO u VALUES (z, z)")
        assert session.query("SELECT z").rows() == [{"z": 1}]
    session.sql("SET VAR z = 3; BEGIN; INSERT INTO u VALUES (z, z); SET VAR z = 4; INSERT INTO u VALUES (z, z); COMMIT; SET VAR z = z + 1")
    assert rows(session, "u") == [(1, 1), (1, 1), (3, 3), (4, 4), (4, 4)]
    assert session.query("SELECT z").rows() == [{"z": 5}]


def test_an_error_of_the_first_statement_has_no_note(session: deltic.Session) -> None:
    for script in ("INSERT INTO t SELECT 1 / 0, 1, 'a'; INSERT INTO u VALUES (9, 9)", "CREATE TABLE a (k INT); INSERT INTO a VALUES ('x')"):
        with pytest.raises(DelticError) as error:
            session.sql(script)
        assert not hasattr(error.value, "__notes__")
        assert len(rows(session, "u")) == 3
        assert session.tables == ("t", "u")


def test_a_view_that_fails_rolls_the_statement_back(session: deltic.Session) -> None:
    session.sql("CREATE MATERIALIZED VIEW inverse AS SELECT 1 / y AS i FROM u")
    with pytest.raises(DelticError, match="division by zero"):
        session.sql("UPDATE u SET y = 0 WHERE id = 4")
    assert rows(session, "u") == [(1, 1), (1, 1), (4, 4)]


def test_definitions_and_rows_in_one_script_with_parameters() -> None:
    with deltic.Session() as session:
        session.sql(
            "CREATE STREAM s (a INT); CREATE TABLE sales.t (a CHAR(3), b ARRAY<INT>, c STRUCT<x: INT>);"
            "CREATE MATERIALIZED VIEW v AS SELECT a, b FROM sales.t; CREATE MATERIALIZED VIEW w AS SELECT a FROM s;"
            "INSERT INTO sales.t VALUES (:a, array(1, 2L), named_struct('x', 1)), (NULL, NULL, NULL); INSERT INTO s VALUES (3)",
            args={"a": "q"},
        )
        assert session.view("v").rows() == [{"a": None, "b": None}, {"a": "q  ", "b": [1, 2]}]
        assert session.view("w").rows() == [{"a": 3}]
        with pytest.raises(DelticError, match="can only be inserted"):
            session.sql("DELETE FROM s")


def test_definitions_between_changes_of_rows() -> None:
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE t (a INT PRIMARY KEY, b INT);
            INSERT INTO t VALUES (1, 10);
            CREATE MATERIALIZED VIEW v AS SELECT sum(b) AS total FROM t;
            CREATE TABLE u (a INT);
            BEGIN; INSERT INTO t VALUES (2, 20); INSERT INTO u SELECT total FROM v; COMMIT;
            ALTER TABLE t ADD COLUMN c INT DEFAULT 5;
            INSERT INTO t VALUES (3, 30, 7);
            DROP TABLE u;
            DELETE FROM t WHERE a = 1;
            CREATE TABLE u (a INT);
        """)
        assert rows(session, "t") == [(2, 20, 5), (3, 30, 7)]
        assert rows(session, "v") == [(50,)]
        assert rows(session, "u") == []


def test_all_of_a_script_is_checked_before_its_first_tick(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path) as session:
        for end in ("CREATE MATERIALIZED VIEW v AS SELECT nope FROM t", "DROP TABLE nope", "CREATE TABLE t (a INT)", "COMMIT"):
            with pytest.raises(DelticError):
                session.sql(f"CREATE TABLE t (a INT); INSERT INTO t VALUES (0); CREATE TABLE w (a INT); INSERT INTO w VALUES (1); {end}")
            assert session.tables == ()
        with pytest.raises(DelticError, match="division by zero"):
            session.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (0); CREATE MATERIALIZED VIEW v AS SELECT 1 / a AS b FROM t")
        assert (rows(session, "t"), session.views) == ([(0,)], ())
    with deltic.Session(state=tmp_path) as session:
        session.sql("CREATE TABLE t (a INT); UPDATE t SET a = 2; CREATE MATERIALIZED VIEW v AS SELECT 1 / a AS b FROM t")
        assert rows(session, "v") == [(0.5,)]


def test_a_pipeline_has_no_changes_of_rows() -> None:
    with pytest.raises(DelticError, match="a change of rows is not a definition"):
        deltic.Program("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")


def random_statement(rng: Random) -> str:
    """One that both systems have, and that may fail only by its key."""

    def number() -> str:
        return rng.choice(("NULL", *map(str, range(6))))

    match rng.randrange(6):
        case 0:
            return f"INSERT INTO u VALUES ({number()}, {number()}), ({number()}, {number()})"
        case 1:
            return (
                f"INSERT INTO u SELECT y, id FROM u WHERE id > {number()} LIMIT 0"
                if rng.random() < 0.2
                else (f"INSERT INTO u SELECT id, x FROM t WHERE x < {number()}")
            )
        case 2:
            return f"UPDATE u SET y = y + {number()}, id = {rng.choice(('id', 'y'))} WHERE id <= {number()}"
        case 3:
            return f"DELETE FROM u WHERE y >= {number()} AND id IN (SELECT id FROM t WHERE x = {number()})"
        case 4:
            return (
                f"MERGE INTO t USING (SELECT id, max(y) AS y FROM u WHERE id IS NOT NULL GROUP BY id) AS n ON t.id = n.id "
                f"WHEN MATCHED AND n.y > {number()} THEN DELETE WHEN MATCHED THEN UPDATE SET x = n.y "
                f"WHEN NOT MATCHED AND n.id <> {number()} THEN INSERT (id, x) VALUES (n.id, n.y)"
            )
        case _:
            return f"UPDATE t SET x = {number()} WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.y < {number()})"


def equals_duckdb(seed: int, count: int, **options: Any) -> None:
    rng = Random(seed)
    with duckdb.connect() as base, deltic.Session(**options) as session:
        session.sql(
            TABLES + "; CREATE MATERIALIZED VIEW v AS SELECT u.id, sum(x) AS x, count(*) AS n FROM u JOIN t ON u.id = t.id GROUP BY u.id"
        )
        base.execute("CREATE TABLE t (id INT PRIMARY KEY, x INT, s VARCHAR); CREATE TABLE u (id INT, y INT)")
        for _ in range(count):
            statements = [random_statement(rng) for _ in range(rng.choice((1, 1, 2, 3)))]
            session.sql(statements[0] if len(statements) == 1 else f"BEGIN; {'; '.join(statements)}; COMMIT")
            for statement in statements:
                base.execute(statement)
            for table in ("t", "u"):
                assert sorted(rows(session, table), key=repr) == sorted(base.execute(f"SELECT * FROM {table}").fetchall(), key=repr), (
                    statements
                )
        computed = "SELECT u.id, sum(x) AS x, count(*) AS n FROM u JOIN t ON u.id = t.id GROUP BY u.id"
        assert sorted(rows(session, "v"), key=repr) == sorted(base.execute(computed).fetchall(), key=repr)


def test_random_statements_equal_duckdb() -> None:
    equals_duckdb(1, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", rotating(20))
def test_many_random_statements_equal_duckdb(seed: int) -> None:
    equals_duckdb(seed, 40, shards=1 + seed % 2)


@pytest.mark.slow
@pytest.mark.spark
def test_random_statements_on_spark_equal_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    equals_duckdb(3, 6, spark=spark, state=tmp_path / "state", shards=2)
