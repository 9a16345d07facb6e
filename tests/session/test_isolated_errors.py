"""Sessions that isolate errors: a failing view cannot be read, others go on, and it shows the difference once it has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.errors import CatalogError, DivisionByZero, EvaluationError, FailedView, SetupError
from session_rows import touched_rows

SCRIPT = """
CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, s STRING);
CREATE MATERIALIZED VIEW v AS SELECT id, a % b AS q FROM t;
CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM t;
CREATE MATERIALIZED VIEW over_v AS SELECT max(q) AS most FROM v;
"""


def opened(state: Path | None = None, **options: Any) -> deltic.Session:
    session = deltic.Session(on_view_error="isolate", state=state, **options)
    session.sql(SCRIPT)
    return session


def put(session: deltic.Session, *rows: tuple[int, int, int]) -> None:
    session.apply({"t": [{"id": id, "a": a, "b": b, "s": "x", "_op": "upsert"} for id, a, b in rows]})


def drop(session: deltic.Session, *ids: int) -> None:
    with session.transaction() as tx:
        tx.delete("t", list(ids))


READS: dict[str, Callable[[deltic.Session], Any]] = {
    "rows": lambda session: session.view("v").rows(),
    "arrow": lambda session: session.view("v").to_arrow(),
    "changes": lambda session: session.view("v").changes(),
    "lookup": lambda session: session.view("v").lookup(1),
    "query": lambda session: session.query("SELECT count(*) FROM v"),
    "a view over it": lambda session: session.view("over_v").rows(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_view_with_errors_cannot_be_read(read: Callable[[deltic.Session], Any]) -> None:
    with opened() as session:
        put(session, (1, 7, 4))
        read(session)
        put(session, (2, 1, 0), (3, 1, 0))
        with pytest.raises(FailedView, match=r"division by zero, in a % b of the row id = 2, a = 1, b = 0 \(and 1 more\)") as raised:
            read(session)
        assert "<sql>:3:" in str(raised.value) and "^^^^^" in str(raised.value)
        assert session.view("counted").rows() == [{"n": 3}]
        drop(session, 2, 3)
        read(session)


def test_errors_are_rows_with_weights() -> None:
    with deltic.Session(on_view_error="isolate") as session:
        session.sql(
            "CREATE TABLE t (a INT, s STRING); CREATE MATERIALIZED VIEW v AS SELECT CAST(s AS INT) / a AS q FROM t WHERE 10 % a < 9"
        )
        assert session.view("v").errors().to_pylist() == []
        session.apply({"t": [{"a": 0, "s": "1", "_weight": 2}, {"a": 2, "s": "two", "_weight": 3}, {"a": 2, "s": "4", "_weight": 1}]})
        assert session.view("v").errors().to_pylist() == [
            {
                "error": "[DELTIC-3002] division by zero",
                "place": "<sql>:1:109",
                "expression": "10 % a < 9",
                "row": "a = 0",
                "weight": 2,
            },
            {
                "error": "[DELTIC-3003] the value 'two' of type STRING cannot be cast to INT because it is malformed",
                "place": "<sql>:1:72",
                "expression": "CAST(s AS INT) / a",
                "row": "a = 2, s = two",
                "weight": 3,
            },
        ]
        session.apply({"t": [{"a": 0, "s": "1", "_weight": -2}, {"a": 2, "s": "two", "_weight": -3}]})
        assert session.view("v").errors().num_rows == 0
        assert session.view("v").rows() == [{"q": 2.0}]


def test_the_text_of_an_error_is_bounded(tmp_path: Path) -> None:
    """Of a long value it shows the beginning and the end; two rows that differ between are two errors of one text."""
    script = """
        CREATE TABLE long (id INT PRIMARY KEY, s STRING, l ARRAY<STRING>);
        CREATE MATERIALIZED VIEW numbers AS SELECT CAST(concat(s, l[0]) AS INT) AS n FROM long;
    """
    with deltic.Session(on_view_error="isolate", state=tmp_path) as session:
        session.sql(script)
        session.insert("long", [{"id": 1, "s": "a" * 2_000_000 + "z", "l": ["b" * 1_000_000]}])
        (error,) = session.view("numbers").errors().to_pylist()
        assert len(error["row"]) < 500 and error["row"].startswith("id = 1, s = aaa") and "aaz, l = ('bbb" in error["row"]
        assert len(error["error"]) < 2_100 and error["error"].endswith("because it is malformed")
    with deltic.Session(on_view_error="isolate", state=tmp_path) as session:
        session.sql(script)
        assert session.view("numbers").errors().to_pylist() == [error]
        session.delete("long", [1])
        assert session.view("numbers").errors().num_rows == 0 and session.view("numbers").rows() == []


def test_a_row_of_many_columns_is_bounded() -> None:
    with deltic.Session(on_view_error="isolate") as session:
        columns = [f"c{i}" for i in range(100)]
        session.sql(f"CREATE TABLE wide ({', '.join(f'{name} STRING' for name in columns)})")
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT CAST(concat({', '.join(columns)}) AS INT) AS n FROM wide")
        session.insert("wide", [dict.fromkeys(columns, "x" * 1_000)])
        (error,) = session.view("v").errors().to_pylist()
        assert len(error["row"]) <= 2_000 and len(error["error"]) < 2_100


@pytest.mark.filterwarnings("ignore::deltic.errors.PlanWarning")
def test_the_value_and_the_condition_of_not_in_fail_apart() -> None:
    """The value is evaluated where the condition holds, which is not where that fails."""
    with deltic.Session(on_view_error="isolate") as session:
        session.sql(
            "CREATE TABLE t (id INT, a INT); CREATE TABLE u (id INT, a INT); CREATE MATERIALIZED VIEW v AS "
            "SELECT id FROM t WHERE id NOT IN (SELECT 10 % u.id FROM u WHERE 10 % t.a > u.a)"
        )
        session.insert("u", [{"id": 0, "a": 3}])
        session.insert("t", [{"id": 7, "a": 0}])
        assert [row["expression"] for row in session.view("v").errors().to_pylist()] == ["10 % t.a > u.a"]
        session.insert("t", [{"id": 8, "a": 6}])
        assert sorted(row["expression"] for row in session.view("v").errors().to_pylist()) == ["10 % t.a > u.a", "10 % u.id"]
        session.delete("u", [{"id": 0, "a": 3}])
        assert sorted(row["id"] for row in session.view("v").rows()) == [7, 8]


def test_a_group_whose_sum_does_not_fit_is_an_error() -> None:
    with deltic.Session(on_view_error="isolate") as session:
        session.sql("CREATE TABLE t (k INT, x BIGINT NOT NULL); CREATE MATERIALIZED VIEW v AS SELECT k, sum(x) AS s FROM t GROUP BY k")
        session.apply({"t": [{"k": k, "x": 2**62, "_weight": k} for k in (1, 2)]})
        (error,) = session.view("v").errors().to_pylist()
        assert (error["error"], error["row"]) == ("[DELTIC-3001] an aggregate is out of range for BIGINT", "k = 2")
        session.apply({"t": [{"k": 2, "x": 2**62, "_weight": -1}]})
        assert session.view("v").rows() == [{"k": 1, "s": 2**62}, {"k": 2, "s": 2**62}]


def test_subscribers_get_the_difference_when_the_errors_are_gone() -> None:
    received: list[list[Any]] = []
    with opened() as session:
        put(session, (1, 7, 4))
        session.view("v").subscribe(lambda change: received.append(sorted(map(tuple, (row.values() for row in change.to_pylist())))))
        put(session, (2, 1, 0), (3, 5, 4))
        drop(session, 1)
        put(session, (3, 6, 4))
        assert received == []
        drop(session, 2)
        assert received == [[(1, 3, -1), (3, 2, 1)]]
        assert session.view("v").changes().num_rows == 2
        drop(session, 3)
        assert received[1:] == [[(3, 2, -1)]]


@pytest.mark.parametrize("select", ["id, b, a / b AS q", "id, a / b + 1 AS q"], ids=["other columns", "the same columns"])
def test_a_view_that_is_replaced_while_it_has_errors_starts_again(select: str) -> None:
    with deltic.Session(on_view_error="isolate") as session:
        session.sql("CREATE TABLE t (id INT PRIMARY KEY, a DOUBLE, b DOUBLE)")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT id, a / b AS q FROM t; INSERT INTO t VALUES (1, 6, 2), (2, 1, 0), (3, 1, 1)")
        session.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT {select} FROM t; DELETE FROM t WHERE id = 3")
        session.delete("t", [2])
        assert session.view("v").changes().to_pylist() == [{**row, "_weight": 1} for row in session.view("v").rows()]


def test_a_state_keeps_errors(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        put(session, (1, 7, 4), (2, 1, 0))
    with deltic.open(tmp_path) as state:
        assert state.view("v").errors().num_rows == 1
        for read in (lambda: state.view("v").rows(), lambda: state.view("v").lookup(1)):
            with pytest.raises(FailedView, match="division by zero"):
                read()
        assert state.view("counted").rows() == [{"n": 2}]
    with opened(tmp_path) as session:
        with pytest.raises(FailedView, match="division by zero"):
            session.view("v").rows()
        put(session, (2, 1, 1))
        assert session.view("v").rows() == [{"id": 1, "q": 3}, {"id": 2, "q": 0}]
    with deltic.open(tmp_path) as state:
        assert len(state.view("v").rows()) == 2 and state.view("v").errors().num_rows == 0


@pytest.mark.parametrize("options", [{}, {"commit_log": True}, {"shards": 3}], ids=["manifests", "commit log", "three shards"])
def test_a_restart_while_a_view_has_errors_keeps_its_changes(tmp_path: Path, options: dict[str, Any]) -> None:
    with opened(tmp_path, **options) as session:
        put(session, (1, 7, 4), (4, 5, 3))
        put(session, (2, 1, 0), (3, 5, 4))
        drop(session, 1)
    with opened(tmp_path, **options) as session:
        received: list[list[Any]] = []
        session.view("v").subscribe(lambda change: received.append(sorted(map(tuple, (row.values() for row in change.to_pylist())))))
        put(session, (3, 6, 4))
        assert received == []
        drop(session, 2)
        assert received == [[(1, 3, -1), (3, 2, 1)]]
        assert session.view("v").changes().num_rows == 2
        drop(session, 4)
        assert received[1:] == [[(4, 2, -1)]]


def test_after_a_restart_the_changes_of_retained_epochs_are_known(tmp_path: Path) -> None:
    with opened(tmp_path, retain=2) as session:
        put(session, (1, 7, 4))
        put(session, (1, 7, 0))
        for id in range(2, 6):
            put(session, (id, 7, 4))
    with opened(tmp_path, retain=2) as session:
        put(session, (1, 6, 4))
        changes = session.view("v").changes().to_pylist()
        assert {"id": 1, "q": 2, "_weight": 1} in changes and {"id": 1, "q": 3, "_weight": -1} not in changes
        assert {"id": 2, "q": 3, "_weight": 1} not in changes and {"id": 5, "q": 3, "_weight": 1} in changes


def test_without_isolation_the_tick_is_rolled_back() -> None:
    with deltic.Session() as session:
        session.sql(SCRIPT)
        with pytest.raises(DivisionByZero):
            put(session, (1, 1, 0))
        assert session.view("counted").rows() == [{"n": 0}]
        assert session.view("v").errors().num_rows == 0


def test_what_is_not_isolated_is_rolled_back() -> None:
    with deltic.Session(on_view_error="isolate") as session:
        session.sql("CREATE TABLE t (b BINARY); CREATE MATERIALIZED VIEW v AS SELECT bitmap_construct_agg(length(b)) AS m FROM t")
        with pytest.raises(EvaluationError, match="bitmap"):
            session.apply({"t": [{"b": b"x" * 40_000, "_op": "insert"}]})
        assert session.epoch == 1


def test_options_and_names() -> None:
    with pytest.raises(SetupError, match=r"on_view_error='ignore'\nexpected: 'rollback' or 'isolate'"):
        deltic.Session(on_view_error="ignore")  # type: ignore[arg-type]
    with deltic.Session() as session, pytest.raises(CatalogError, match="reserved for the errors of a view"):
        session.sql("CREATE VIEW `v!errors` AS SELECT 1 AS one")


@pytest.mark.parametrize("rows", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_row_that_fails_touches_few_rows(rows: int) -> None:
    with deltic.Session(on_view_error="isolate") as session:
        session.sql("""CREATE TABLE t (id INT PRIMARY KEY, k INT, a INT, b INT);
            CREATE MATERIALIZED VIEW v AS SELECT k, sum(a % b) AS s FROM t GROUP BY k""")
        ids = pa.array(np.arange(rows, dtype=np.int32))
        ones = pa.array(np.ones(rows, np.int32))
        session.apply({"t": pa.table({"id": ids, "k": ids, "a": ids, "b": ones, "_op": pa.array(["insert"] * rows)})})
        for b in (0, 1):
            session.apply({"t": [{"id": 5, "k": 5, "a": 1, "b": b, "_op": "upsert"}]})
            assert session.last_tick is not None
            assert touched_rows(session) < 400
            assert session.view("v").errors().num_rows == (b == 0)


@pytest.mark.slow
@pytest.mark.spark
def test_errors_on_spark(spark: Any, tmp_path: Path) -> None:
    from deltic.spark import register  # noqa: PLC0415  needs the extra

    register(spark)
    with deltic.Session(spark=spark, state=tmp_path / "state", shards=2, on_view_error="isolate") as session:
        session.sql(SCRIPT)
        put(session, (1, 7, 4), (2, 1, 0), (3, 1, 0))
        assert session.failing == {"v": 2, "over_v": 2} and session.view("counted").rows() == [{"n": 3}]
        (first, second) = session.view("v").errors().to_pylist()
        assert (first["row"], second["row"]) == ("id = 2, a = 1, b = 0", "id = 3, a = 1, b = 0")
        reader = spark.read.format("deltic").option("path", str(tmp_path / "state"))
        with pytest.raises(Exception, match="division by zero"):
            reader.option("view", "v").load().collect()
        assert [tuple(row) for row in reader.option("view", "counted").load().collect()] == [(3,)]
        put(session, (2, 9, 4), (3, 9, 5))
        assert session.failing == {}
        assert sorted(map(tuple, reader.option("view", "v").load().collect())) == [(1, 3), (2, 1), (3, 4)]


def test_a_row_on_which_a_table_function_fails_is_an_error_with_its_place() -> None:
    with deltic.Session(on_view_error="isolate") as session:
        session.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, s INT); CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM t;\n"
            "CREATE MATERIALIZED VIEW v AS SELECT id, y FROM t LATERAL VIEW explode(sequence(2, s, 1)) v AS y"
        )
        session.sql("INSERT INTO t VALUES (1, -5), (2, 2147483647), (3, 3), (4, NULL)")
        assert session.view("counted").rows() == [{"n": 4}]
        errors = sorted(session.view("v").errors().to_pylist(), key=lambda error: str(error["row"]))
        assert [(error["error"], error["row"]) for error in errors] == [
            ("[DELTIC-3000] a sequence from 2 to -5 by 1 never ends", "id = 1, s = -5"),
            ("[DELTIC-3000] from 2 to 2147483647 by 1 there are more than 10,000,000 elements", "id = 2, s = 2147483647"),
        ]
        assert {(error["place"], error["expression"]) for error in errors} == {("<sql>:2:64", "explode(sequence(2, s, 1))")}
        drop(session, 1, 2)
        assert session.view("v").rows() == [{"id": 3, "y": 2}, {"id": 3, "y": 3}]


def test_a_table_function_that_fails_says_where() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (s INT); CREATE MATERIALIZED VIEW v AS SELECT explode(sequence(2, s, 1)) AS y FROM t")
        with pytest.raises(EvaluationError, match=r"<sql>:1:62: a sequence from 2 to -5 by 1 never ends"):
            session.sql("INSERT INTO t VALUES (-5)")


@pytest.mark.parametrize("window", ["window(tm, '1 day')", "window(tm, '3 hours', '90 minutes')", "session_window(tm, '1 day')"])
@pytest.mark.parametrize("key", ["w", "{window}"])
def test_a_window_past_the_calendar_is_an_error_with_its_place(window: str, key: str) -> None:
    definitions = (
        f"CREATE TABLE m (tm TIMESTAMP);\n"
        f"CREATE MATERIALIZED VIEW v AS SELECT {window} AS w, count(*) AS n FROM m GROUP BY {key.format(window=window)}"
    )
    insert = "INSERT INTO m VALUES (TIMESTAMP '9999-12-31 23:00:00')"
    with deltic.Session(on_view_error="isolate") as session:
        session.sql(definitions)
        session.sql(insert)
        error = session.view("v").errors().to_pylist()[0]
        assert error["place"].startswith("<sql>:2:") and error["expression"] == window
        assert error["error"] == "[DELTIC-3001] a timestamp is outside the years 1 to 9999"
    with deltic.Session() as session:
        session.sql(definitions)
        with pytest.raises(EvaluationError) as raised:
            session.sql(insert)
        _, line, marks = str(raised.value).splitlines()[:3]
        assert "<sql>:2:" in str(raised.value) and line[marks.index("^") :].startswith(window) and marks.count("^") == len(window)
