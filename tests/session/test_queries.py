"""session.query: answers over tables and views as of the last commit, in the order of ORDER BY, without a trace in the session."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltic
from deltic.errors import DataError, EvaluationError, QueryError, SyntaxFailure
from deltic.expr.rows.ordering import order_key
from deltic.plan.evaluate import evaluate
from deltic.session.state_query import StateQueries
from deltic.types import frozen
from sql_data import ROWS, TABLES, bound, weighted
from sql_queries import queries

FEW = 20
"""Every so many queries are in the fast suite."""


def loaded(**options: Any) -> deltic.Session:
    """A session with the tables of sql_data, and a view over one."""
    session = deltic.Session(**options)
    for table in TABLES.values():
        columns = ", ".join(f"{field.name} {field.type.sql}" for field in table.schema)
        session.sql(f"CREATE TABLE {table.name} ({columns}{', PRIMARY KEY (id)' * bool(table.key)})")
    session.sql(
        "CREATE MATERIALIZED VIEW by_k AS SELECT k, sum(id) AS ids FROM t GROUP BY k; CREATE VIEW some AS SELECT id FROM t WHERE id > 3"
    )
    with session.transaction() as tx:
        for name, rows in ROWS.items():
            tx.insert(name, [dict(zip(TABLES[name].schema.names, row, strict=True)) for row in rows])
    return session


def multiset(table: pa.Table) -> Counter[Any]:
    columns = [list(map(frozen, column.to_pylist())) for column in table.columns]
    return Counter(tuple(map(order_key, row)) for row in zip(*columns, strict=True))


def equals_oracle(session: deltic.Session, query: str) -> None:
    plan = bound(query)
    try:
        expected = evaluate(plan, {name: weighted(rows) for name, rows in ROWS.items()})
    except EvaluationError as error:
        with pytest.raises(EvaluationError, match=r".*") as caught:
            session.query(query)
        assert caught.value.message == error.message
        return
    rows = Counter[Any]()
    for row, weight in expected.pairs():
        rows[tuple(map(order_key, row))] += weight  # -0.0 and 0.0 are one
    assert multiset(session.query(query).to_arrow()) == rows, query


def answerable() -> list[str]:
    return [query for query in queries() if all(field.type.name != "VOID" for field in bound(query).schema)]


def test_answers_equal_the_oracle() -> None:
    with loaded() as session:
        for query in answerable()[::FEW]:
            equals_oracle(session, query)


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 3])
def test_all_answers_equal_the_oracle(shards: int) -> None:
    with loaded(shards=shards) as session:
        for query in answerable():
            equals_oracle(session, query)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("SELECT id FROM t ORDER BY id DESC", [8, 7, 6, 5, 4, 3, 2, 1]),
        ("SELECT id FROM t ORDER BY k DESC NULLS FIRST, id LIMIT 4", [5, 6, 7, 8]),
        ("SELECT id FROM t SORT BY k DESC NULLS FIRST, id LIMIT 4", [5, 6, 7, 8]),
        ("SELECT id FROM t DISTRIBUTE BY k % 2, id SORT BY id DESC", [8, 7, 6, 5, 4, 3, 2, 1]),
        ("SELECT id FROM t WHERE id < 4 CLUSTER BY -id", [3, 2, 1]),
        ("FROM t |> SORT BY id DESC |> LIMIT 2 |> SELECT id", [8, 7]),
        ("SELECT id FROM t WHERE id < 7 ORDER BY x, id", [6, 2, 3, 1, 5, 4]),  # NULL, -0.0 = 0.0, 1.5, NaN
        ("SELECT id FROM t WHERE id < 7 ORDER BY x DESC, id DESC", [4, 5, 1, 3, 2, 6]),
        ("SELECT DISTINCT id FROM t ORDER BY -id OFFSET 5", [3, 2, 1]),
        ("SELECT id FROM t WHERE id < 3 UNION ALL SELECT id FROM u WHERE id > 3 ORDER BY id DESC", [9, 4, 2, 1]),
        ("SELECT id FROM t WHERE id < 5 ORDER BY array(k, -id)", [2, 1, 4, 3]),
        ("FROM t |> ORDER BY id DESC |> WHERE k = 1 |> SELECT id", [2, 1]),
        ("SELECT id FROM some ORDER BY s COLLATE UTF8_LCASE, id", None),
        ("SELECT max(id) AS id FROM t GROUP BY k ORDER BY sum(id)", [2, 4, 6, 8]),
        ("(SELECT id FROM t ORDER BY id DESC)", [8, 7, 6, 5, 4, 3, 2, 1]),
        ("WITH q AS (SELECT id FROM some) SELECT id FROM q ORDER BY id % 2, id", [4, 6, 8, 5, 7]),
    ],
)
def test_rows_have_the_order_of_the_query(query: str, ids: list[int] | None) -> None:
    with loaded() as session:
        if ids is None:
            with pytest.raises(QueryError, match="no column 's'"):
                session.query(query)
        else:
            assert [row["id"] for row in session.query(query).rows()] == ids


def test_texts_are_sorted_by_their_bytes_or_their_collation() -> None:
    with deltic.Session() as session:
        names = ["b", "A", "a", "é", "B", "a" * 40 + "2", "a" * 40 + "1"]
        session.sql("CREATE TABLE n (s STRING)")
        with session.transaction() as tx:
            tx.insert("n", [{"s": name} for name in names])
        assert [row["s"] for row in session.query("SELECT s FROM n ORDER BY s").rows()] == sorted(names, key=str.encode)
        folded = session.query("SELECT s FROM n WHERE length(s) = 1 ORDER BY s COLLATE UTF8_LCASE, s").rows()
        assert [row["s"] for row in folded] == ["A", "a", "B", "b", "é"]


def test_a_query_leaves_nothing() -> None:
    with loaded() as session:
        before = session.epoch, session.views, len(session.circuit), len(session._runtime.strings)
        answer = session.query("SELECT concat(s, :more) AS s, ids FROM t JOIN by_k USING (k) WHERE id = :id", args={"more": "!", "id": 1})
        assert answer.rows() == [{"s": "a!", "ids": 3}]
        assert (session.epoch, session.views, len(session.circuit), len(session._runtime.strings)) == before
        assert (answer.epoch, len(answer), answer.schema.names) == (session.epoch, 1, ("s", "ids"))
        assert answer.to_pandas().to_dict("records") == answer.to_polars().to_dicts() == answer.rows()


def test_a_materialized_view_is_read_and_not_computed() -> None:
    with loaded() as session:
        session.sql("CREATE MATERIALIZED VIEW failing AS SELECT id, 1 / (id - id) AS x FROM t WHERE id > 100")
        assert session.query("SELECT sum(ids) AS n FROM by_k").rows() == [{"n": 36}]
        assert session.query("SELECT * FROM failing").rows() == []


def test_a_view_whose_columns_are_all_its_key_in_another_order(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path) as session:
        session.sql("CREATE TABLE t (a INT NOT NULL, b INT NOT NULL); CREATE MATERIALIZED VIEW v AS SELECT b, a FROM t GROUP BY a, b")
        session.sql("INSERT INTO t VALUES (1, 2), (3, 4), (3, 4)")
        with StateQueries(tmp_path) as state:
            for source in (session, state):
                assert sorted(map(str, source.query("SELECT a, b FROM v").rows())) == ["{'a': 1, 'b': 2}", "{'a': 3, 'b': 4}"]
                assert source.query("SELECT a FROM v WHERE b = 4").rows() == [{"a": 3}]


@pytest.mark.parametrize("shards", [1, 3])
def test_a_materialized_view_over_a_stream_has_the_rows_of_the_last_tick(shards: int) -> None:
    with deltic.Session(shards=shards) as session:
        session.sql("""
            CREATE STREAM e (a INT, s STRING);
            CREATE TABLE t (a INT PRIMARY KEY, b INT);
            CREATE MATERIALIZED VIEW v AS SELECT a, s FROM e;
            CREATE MATERIALIZED VIEW n AS SELECT s, count(*) AS n FROM e GROUP BY s;
            CREATE MATERIALIZED VIEW d AS SELECT a FROM delay(t);
            CREATE VIEW w AS SELECT a FROM v UNION ALL SELECT a + 100 AS a FROM v;
            CREATE VIEW x AS SELECT a FROM d;
            CREATE VIEW y AS SELECT a FROM e;
        """)
        assert session.query("SELECT * FROM v").rows() == []
        session.sql("BEGIN; INSERT INTO t VALUES (1, 10), (2, 20); INSERT INTO e VALUES (1, 'x'), (1, 'x'), (3, 'y'); COMMIT")
        assert session.query("SELECT * FROM v ORDER BY a").rows() == [{"a": 1, "s": "x"}] * 2 + [{"a": 3, "s": "y"}]
        assert session.query("SELECT n FROM n WHERE s = 'x'").rows() == [{"n": 2}]
        joined = "SELECT b, v.s FROM v LEFT JOIN t USING (a) WHERE s IN (SELECT s FROM n WHERE n = 2)"
        assert (
            session.query(f"{joined} UNION ALL SELECT a, '' FROM v WHERE a = 3 ORDER BY 1").rows()
            == [{"b": 3, "s": ""}] + [{"b": 10, "s": "x"}] * 2
        )
        assert session.query("SELECT a FROM w WHERE a > 2 ORDER BY a").to_arrow()["a"].to_pylist() == [3, 101, 101, 103]
        session.sql("INSERT INTO t SELECT a, 30 FROM v WHERE a = 3")
        assert session.query("SELECT * FROM v").rows() == [] and session.query("SELECT b FROM t WHERE a = 3").rows() == [{"b": 30}]
        assert session.query("SELECT a FROM x ORDER BY a").rows() == [{"a": 1}, {"a": 2}]
        with pytest.raises(deltic.errors.Unsupported, match="the stream e has rows in a tick alone"):
            session.query("SELECT a FROM y")


def test_columns_of_one_name() -> None:
    with loaded() as session:
        answer = session.query("SELECT t.id, u.id FROM t JOIN u ON t.id = u.id ORDER BY t.id")
        assert answer.to_arrow().columns[0].to_pylist() == [1, 2, 3, 4]
        with pytest.raises(DataError, match="two columns are called 'id'"):
            answer.rows()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT nope FROM t", "no column 'nope'"),
        ("CREATE TABLE x (a INT)", "expected one query"),
        ("SELECT 1; SELECT 2", "expected one query"),
        ("", "expected one query"),
        ("SELECT 1 / 0 AS x", "division by zero"),
        ("SELECT * EXCEPT (ids, k) FROM by_k", r"(?s)the query has no columns\n.*\^.*expected: at least one column"),
        ("SELECT id FROM clicks", "the stream clicks has rows in a tick alone"),
    ],
)
def test_invalid_queries(query: str, message: str) -> None:
    with loaded() as session:
        session.sql("CREATE STREAM clicks (id INT)")
        with pytest.raises(deltic.errors.DelticError, match=message):
            session.query(query)


def test_a_state_answers_after_a_restart(tmp_path: Path) -> None:
    for shards in (1, 2):
        state = tmp_path / str(shards)
        with loaded(state=state, shards=shards) as session:
            expected = session.query("SELECT k, ids, s FROM by_k JOIN t USING (k) ORDER BY t.id").rows()
        with deltic.Session(state=state) as session:
            with pytest.raises(QueryError, match="no table or view"):
                session.query("SELECT * FROM t")
            session.sql(
                "CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, x DOUBLE, s STRING, d DATE, ts TIMESTAMP, m DECIMAL(10, 2), b BOOLEAN)"
            )
            session.sql("CREATE MATERIALIZED VIEW by_k AS SELECT k, sum(id) AS ids FROM t GROUP BY k")
            assert session.query("SELECT k, ids, s FROM by_k JOIN t USING (k) ORDER BY t.id").rows() == expected


def test_queries_beside_ticks_see_whole_commits() -> None:
    with deltic.Session() as session:
        session.sql(
            "CREATE TABLE a (x INT, s STRING); CREATE TABLE b (x INT, s STRING); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM a"
        )
        session._runtime._collect_bytes = 1  # type: ignore[attr-defined]  # strings are dropped after every tick
        failures: list[BaseException] = []
        done = threading.Event()

        def read() -> None:
            sums = "(SELECT count(*) AS n, max(concat(s, '!')) AS s FROM {0}) AS {0}"
            query = f"SELECT (a.n = b.n AND a.n = v.n AND a.s <=> b.s) AS same FROM {sums.format('a')}, {sums.format('b')}, n AS v"
            try:
                while not done.is_set():
                    assert session.query(query).rows() == [{"same": True}]
            except BaseException as error:
                failures.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        for i in range(30):
            with session.transaction() as tx:
                for table in ("a", "b"):
                    tx.insert(table, [{"x": i, "s": f"text {i}"}])
                    if i > 2:
                        tx.delete(table, [{"x": i - 2, "s": f"text {i - 2}"}])
        done.set()
        reader.join()
        assert not failures


@pytest.mark.parametrize("function", ["first", "first_value", "last", "last_value", "any_value"])
def test_ignore_nulls_without_over_is_the_second_argument(function: str) -> None:
    with deltic.Session() as session:
        session.sql(
            f"CREATE TABLE t (id INT PRIMARY KEY, g INT, s INT); CREATE MATERIALIZED VIEW v AS SELECT g, {function}(s) IGNORE NULLS AS x, "
            f"{function}(s, true) AS y, {function}(s) FILTER (WHERE id > 1) RESPECT NULLS AS z FROM t GROUP BY g"
        )
        session.sql("INSERT INTO t VALUES (1, 1, 2), (2, 1, NULL), (3, 1, 5), (4, 2, NULL)")
        most = 5 if function.startswith("last") else 2
        assert session.view("v").rows() == [{"g": 1, "x": most, "y": most, "z": 5}, {"g": 2, "x": None, "y": None, "z": None}]
        session.sql("DELETE FROM t WHERE id = 3")
        assert session.view("v").rows() == [{"g": 1, "x": 2, "y": 2, "z": None}, {"g": 2, "x": None, "y": None, "z": None}]
        assert session.query(f"SELECT {function}(s) IGNORE NULLS FROM t").rows() == [{f"{function}(s)": 2}]


@pytest.mark.parametrize("function", ["first", "last", "any_value"])
def test_ignore_nulls_may_stand_in_the_parentheses(function: str) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT PRIMARY KEY, s INT); INSERT INTO t VALUES (1, NULL), (2, 5), (3, NULL)")
        assert session.query(f"SELECT {function}(s IGNORE NULLS), count(*) filter FROM t").rows() == [{f"{function}(s)": 5, "filter": 3}]
        for call in (f"{function}(s RESPECT NULLS)", f"{function}(DISTINCT s IGNORE NULLS)", f"{function}(s, true IGNORE NULLS)"):
            with pytest.raises(SyntaxFailure, match=r"syntax error at '(RESPECT|IGNORE)'"):
                session.query(f"SELECT {call} FROM t")
        for after in ("OVER (ORDER BY id)", "FILTER (WHERE id > 1)", "IGNORE NULLS"):
            with pytest.raises(
                SyntaxFailure, match=rf"expected: {function}\(x\) \[FILTER \(WHERE condition\)\] IGNORE NULLS \[OVER window\]"
            ):
                session.query(f"SELECT {function}(s IGNORE NULLS) {after} FROM t")


def test_pivot_and_unpivot_are_steps_of_pipe_syntax() -> None:
    with deltic.Session() as session:
        session.sql(
            """
            CREATE TABLE t (id INT PRIMARY KEY, g INT, s INT, p INT);
            CREATE MATERIALIZED VIEW wide AS FROM t |> SELECT g, s, p
                |> PIVOT (sum(p) FOR s IN (2 AS two, 3 AS three)) |> EXTEND g + 1 AS h;
            CREATE MATERIALIZED VIEW long AS FROM t |> DROP g |> UNPIVOT (v FOR n IN (s, p AS pp)) |> WHERE t.id < 3;
            INSERT INTO t VALUES (1, 1, 2, 3), (2, 1, NULL, 5), (3, 2, 3, 7), (4, 1, 2, 1);
            """
        )
        assert session.view("wide").rows() == [{"g": 1, "two": 4, "three": None, "h": 2}, {"g": 2, "two": None, "three": 7, "h": 3}]
        long = sorted(tuple(row.values()) for row in session.view("long").rows())
        assert long == [(1, "pp", 3), (1, "s", 2), (2, "pp", 5)]
        session.sql("DELETE FROM t WHERE id = 1")
        assert session.view("wide").rows()[0] == {"g": 1, "two": 1, "three": None, "h": 2}
        assert session.view("long").rows() == [{"id": 2, "n": "pp", "v": 5}]
        assert session.query("FROM t |> PIVOT (sum(id) FOR g IN (1)) AS q |> SELECT q.p |> ORDER BY p DESC |> LIMIT 1").rows() == [{"p": 7}]
        with pytest.raises(QueryError, match="there is no column 'q'"):
            session.query("FROM t |> PIVOT (sum(p) FOR q IN (1))")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT id, NULL FROM t", [{"id": 1, "NULL": None}, {"id": 2, "NULL": None}]),
        ("SELECT NULL AS n", [{"n": None}]),
        ("SELECT NULL AS n, id FROM t ORDER BY n, id DESC", [{"n": None, "id": 2}, {"n": None, "id": 1}]),
        ("SELECT NULL AS n, count(*) AS c FROM t GROUP BY 1", [{"n": None, "c": 2}]),
        ("SELECT DISTINCT CASE WHEN id > 1 THEN NULL END AS n FROM t UNION ALL SELECT NULL", [{"n": None}, {"n": None}]),
        ("SELECT max(NULL) AS n, array() AS a, struct(NULL AS x) AS s FROM t", [{"n": None, "a": [], "s": {"x": None}}]),
    ],
)
def test_columns_that_are_only_null_are_answered(query: str, rows: list[dict[str, Any]]) -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
        answer = session.query(query)
        assert answer.rows() == rows
        assert [pa.types.is_null(field.type) for field in answer.to_arrow().schema] == [
            name in ("n", "NULL") for name in answer.to_arrow().schema.names
        ]
