"""Variables of a session: DECLARE, SET VAR and DROP VARIABLE; what reads them, beside Spark; and EXPLAIN of queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import DelticError

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, x INT);"
ROWS = "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);"


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as one:
        one.sql(TABLE + ROWS)
        yield one


def test_a_view_keeps_the_value_that_it_is_defined_with(session: deltic.Session) -> None:
    session.sql("CREATE VIEW base AS SELECT id, x FROM t; DECLARE VARIABLE least INT DEFAULT 15")
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT id, x - least AS over FROM base WHERE x > least; SET VAR least = 5")
    assert session.view("v").rows() == [{"id": 2, "over": 5}, {"id": 3, "over": 15}]
    session.sql("CREATE OR REPLACE VIEW base AS SELECT id, x FROM t WHERE id > 2")
    assert session.view("v").rows() == [{"id": 3, "over": 15}]
    assert session.query("SELECT count(*) AS n FROM t WHERE x > least").rows() == [{"n": 3}]
    session.sql(
        "CREATE FUNCTION above(n INT) RETURN n - least; SET VAR least = 0; CREATE MATERIALIZED VIEW w AS SELECT above(x) AS y FROM t"
    )
    assert session.view("w").rows() == [{"y": 5}, {"y": 15}, {"y": 25}]


def test_statements_of_a_script_read_the_value_where_they_stand(session: deltic.Session) -> None:
    session.sql("DECLARE a = 7; INSERT INTO t VALUES (7, a); SET VAR a = a + 1; UPDATE t SET x = a WHERE id = 1; SET VAR a = DEFAULT")
    assert session.query("SELECT id, x, a FROM t WHERE id IN (1, a) ORDER BY id").rows() == [
        {"id": 1, "x": 8, "a": 7},
        {"id": 7, "x": 7, "a": 7},
    ]


def test_variables_follow_the_script(session: deltic.Session) -> None:
    session.sql("DECLARE a = 7")
    with pytest.raises(DelticError, match="no table 'nope'"):
        session.sql("SET VAR a = 8; INSERT INTO nope VALUES (1)")
    assert session.query("SELECT a").rows() == [{"a": 7}]
    with pytest.raises(DelticError, match="declared already"):
        session.sql("DECLARE VARIABLE a INT")
    session.sql("DECLARE OR REPLACE VARIABLE a INT; DROP TEMPORARY VARIABLE a; DROP VARIABLE IF EXISTS a")
    with pytest.raises(DelticError, match="no column 'a'"):
        session.query("SELECT a")
    with pytest.raises(DelticError, match="no variable a to drop"):
        session.sql("DROP VARIABLE a")


def test_a_state_keeps_the_view_and_no_variable(tmp_path: Path) -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE x > least"
    with deltic.Session(state=tmp_path / "state") as session:
        session.sql(f"{TABLE} DECLARE least = 15; {view}; {ROWS}")
    with deltic.Session(state=tmp_path / "state") as session:
        with pytest.raises(DelticError, match="no column 'least'"):
            session.sql(f"{TABLE} {view}")
        epoch = session.epoch
        session.sql(f"{TABLE} DECLARE least = 15; {view}")
        assert (session.view("v").rows(), session.epoch) == ([{"id": 2}, {"id": 3}], epoch)


READS = [
    "SELECT v, x FROM t WHERE x > v ORDER BY x",
    "SELECT session.v AS a, system.session.v AS b, v AS c",
    "SELECT x FROM t ORDER BY x LIMIT n",
    "SELECT (SELECT max(x) FROM t AS u WHERE u.id < t.id + n AND u.x > v) AS m FROM t ORDER BY id",
    "SELECT id FROM (SELECT 100 AS v) CROSS JOIN t WHERE x < v ORDER BY id",
    "SELECT x AS v, v + 1 AS w FROM t ORDER BY x",
    "SELECT v, count(*) AS n FROM t GROUP BY v",
    "SELECT lag(x, n) OVER (ORDER BY x) AS s FROM t ORDER BY x",
    "SELECT s.a, s.b[1] AS b, session.s.a AS c",
    "SELECT typeof(v) AS a, typeof(n) AS b, typeof(d) AS c, typeof(d + v) AS g, typeof(e) AS f, e FROM VALUES (1) AS k(k)",
    "SELECT v + v AS a, v > 3 AND v < 20 AS b FROM t GROUP BY id HAVING max(x) > v ORDER BY id",
    "SELECT id, x FROM t WHERE EXISTS (SELECT 1 WHERE x > v) ORDER BY id",
]
DECLARED = """
    DECLARE OR REPLACE VARIABLE v INT DEFAULT 15; DECLARE OR REPLACE n = 1; DECLARE OR REPLACE d = 1.5; DECLARE OR REPLACE e DATE;
    DECLARE OR REPLACE VARIABLE s = named_struct('a', 1, 'b', array(1, 2)); SET VAR n = n + 1, v = v - 1; SET VARIABLE d = '2.5'
"""


@pytest.mark.slow
@pytest.mark.spark
def test_spark_reads_the_same_values(session: deltic.Session, spark: Any) -> None:
    session.sql(DECLARED)
    for statement in DECLARED.split(";"):
        spark.sql(statement)
    spark.createDataFrame([(1, 10), (2, 20), (3, 30)], "id INT, x INT").createOrReplaceTempView("t")
    for query in READS:
        expected = [tuple(row) for row in spark.sql(query).collect()]
        assert [tuple(row.values()) for row in session.query(query).rows()] == expected, query
    spark.catalog.dropTempView("t")


def test_explain_shows_the_plan_of_a_query(session: deltic.Session, tmp_path: Path) -> None:
    query = "SELECT id FROM t WHERE x > 15"
    answer = session.query(f"EXPLAIN {query}")
    assert answer.schema.names == ("plan",)
    session.sql(f"CREATE MATERIALIZED VIEW answer AS {query}")
    (shown,) = (row["plan"] for row in answer.rows())
    plan = str(session.explain("answer")).split("circuit:")[0]
    assert shown.split("circuit:")[0] == plan and "3 operators in 1 levels" in shown
    assert "3 rows" in next(line for line in shown.splitlines() if "source" in line)
    with pytest.raises(DelticError, match="expected: a query"):
        session.query("EXPLAIN UPDATE t SET x = 1")
