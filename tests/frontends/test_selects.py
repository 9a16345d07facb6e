"""LIMIT and OFFSET, UNION BY NAME, stars, names with a schema, and parameters: by hand, and beside DuckDB."""

from __future__ import annotations

import datetime
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pandas
import pytest

import deltic
from deltic.errors import QueryError

TABLES = "CREATE TABLE t (a INT, b INT, c STRING); CREATE TABLE sales.u (b INT, d INT)"
QUERIES = (
    "SELECT a, b FROM t ORDER BY a, b LIMIT 2 OFFSET 1",
    "SELECT a, c FROM t ORDER BY a DESC, c OFFSET 2",
    "SELECT b, count(*) AS n FROM t GROUP BY b ORDER BY b LIMIT 2 OFFSET 1",
    "SELECT DISTINCT a FROM t ORDER BY a LIMIT 3 OFFSET 2",
    "SELECT a, b FROM t UNION ALL BY NAME SELECT d, b FROM sales.u",
    "SELECT b, d FROM sales.u UNION BY NAME SELECT a, b FROM t",
    "SELECT * REPLACE (a + 1 AS a) FROM t",
    "SELECT t.* RENAME (a AS x), sales.u.d FROM t JOIN sales.u ON t.b = u.b",
    "SELECT sum(d) AS s FROM (SELECT * FROM sales.u ORDER BY b, d LIMIT 4 OFFSET 1)",
    "SELECT count(*) AS n FROM (SELECT a FROM t LIMIT 2)",
)


def _rows(rng: Random, count: int) -> dict[str, list[dict[str, Any]]]:
    def number() -> int | None:
        return rng.choice((None, 0, 1, 2, 3, 4))

    return {
        "t": [{"a": number(), "b": number(), "c": rng.choice((None, "x", "y"))} for _ in range(count)],
        "sales.u": [{"b": number(), "d": number()} for _ in range(count)],
    }


def _answers(content: dict[str, list[dict[str, Any]]]) -> list[list[tuple[Any, ...]]]:
    with duckdb.connect() as base:
        base.execute("CREATE SCHEMA sales; CREATE TABLE t (a INT, b INT, c VARCHAR); CREATE TABLE sales.u (b INT, d INT)")
        base.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for table, rows in content.items():
            for row in rows:
                base.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", list(row.values()))
        return [sorted(base.execute(query).fetchall(), key=repr) for query in QUERIES]


def test_views_equal_duckdb_while_the_tables_change() -> None:
    rng = Random(3)
    with deltic.Session() as session:
        session.sql(TABLES)
        for i, query in enumerate(QUERIES):
            session.sql(f"CREATE MATERIALIZED VIEW v{i} AS {query}")
        content: dict[str, list[dict[str, Any]]] = {"t": [], "sales.u": []}
        for _ in range(4):
            with session.transaction() as tx:
                for table, added in _rows(rng, 3).items():
                    removed = [content[table].pop(rng.randrange(len(content[table]))) for _ in range(min(2, len(content[table])))]
                    tx.delete(table, removed)
                    tx.insert(table, added)
                    content[table] += added
            expected = _answers(content)
            for i, query in enumerate(QUERIES):
                assert sorted((tuple(row.values()) for row in session.view(f"v{i}").rows()), key=repr) == expected[i], query


def test_a_limit_without_an_order_keeps_the_least_rows() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT, b STRING); CREATE MATERIALIZED VIEW v AS SELECT b, a FROM t LIMIT 2")
        with session.transaction() as tx:
            tx.insert("t", [{"a": 1, "b": "z"}, {"a": 2, "b": "y"}, {"a": 3, "b": "x"}])
        assert sorted(row["b"] for row in session.view("v").rows()) == ["x", "y"]
        with session.transaction() as tx:
            tx.delete("t", [{"a": 3, "b": "x"}])
        assert sorted(row["b"] for row in session.view("v").rows()) == ["y", "z"]


def test_a_table_of_a_schema_is_one_name() -> None:
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE Sales.orders (id INT PRIMARY KEY, s STRUCT<x: INT>);
            CREATE VIEW sales.some AS SELECT orders.id, sales.orders.s.x FROM sales.Orders WHERE sales.orders.id > 0;
            CREATE MATERIALIZED VIEW default.v AS SELECT some.* FROM sales.some WHERE sales.some.id = 1;
        """)
        with session.transaction() as tx:
            tx.insert("sales.orders", [{"id": 1, "s": {"x": 7}}, {"id": 2, "s": None}])
        assert session.tables == ("Sales.orders",)
        assert session.view("v").rows() == [{"id": 1, "x": 7}]
        session.sql("DROP VIEW v; DROP VIEW sales.some; DROP TABLE sales.orders")
        with pytest.raises(QueryError, match=r"no table or view 'sales\.orders'"):
            session.sql("CREATE VIEW v AS SELECT * FROM sales.orders")


@pytest.mark.parametrize(
    ("value", "type", "name"),
    [
        (7, "INT", "7"),
        (2**40, "BIGINT", str(2**40)),
        (True, "BOOLEAN", "true"),
        (1.5, "DOUBLE", "1.5"),
        ("it's", "STRING", "it's"),
        (b"\x01", "BINARY", None),
        (Decimal("1.50"), "DECIMAL(3,2)", "1.50"),
        (Decimal("1E+3"), "DECIMAL(4,0)", None),
        (datetime.date(2024, 5, 1), "DATE", None),
        (datetime.time(12, 30), "TIME(6)", None),
        (datetime.timedelta(hours=1), "INTERVAL DAY TO SECOND", None),
        (pandas.Timedelta("1us"), "INTERVAL DAY TO SECOND", None),
        (datetime.datetime(2024, 5, 1, 12), "TIMESTAMP_NTZ", None),
        (datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC), "TIMESTAMP", None),
        ([1, None, 3], "ARRAY<INT>", None),
    ],
)
def test_parameters_have_the_types_of_pyspark(value: Any, type: str, name: str | None) -> None:
    with deltic.Session() as session:
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT :p, typeof(:p) AS type", args={"p": value})
        row = session.view("v").rows()[0]
        assert list(row.values()) == [value, type.lower()]
        assert name is None or name in row


def test_parameters_are_bound_when_a_view_is_defined() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT); CREATE VIEW w AS SELECT a FROM t")
        session.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT a + :more AS a FROM w WHERE a IN (:low, 3) ORDER BY a LIMIT :n OFFSET :n - 1",
            args={"more": 10, "low": 1, "n": 1},
        )
        session.sql("CREATE MATERIALIZED VIEW p AS SELECT a FROM w WHERE a BETWEEN ? AND ?", args=[2, 3])
        with session.transaction() as tx:
            tx.insert("t", [{"a": a} for a in range(5)])
        assert session.view("v").rows() == [{"a": 11}]
        session.sql("CREATE OR REPLACE VIEW w AS SELECT a + 1 AS a FROM t")  # binds v and p again
        assert session.view("v").rows() == [{"a": 11}]
        assert session.view("p").rows() == [{"a": 2}, {"a": 3}]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"other": 1}, "the parameter :a has no value"),
        (None, "the parameter :a has no value"),
        ({"a": {1}}, "the parameter :a is"),
        ({"a": 2**70}, "the parameter :a is"),
        ({"a": Decimal("NaN")}, "the parameter :a is"),
        ({"a": Decimal("1E+50")}, "the parameter :a is"),
        ({"a": datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-3)))}, "the parameter :a is"),
        ({"a": datetime.timedelta.max}, "the parameter :a is"),
        ({"a": ["x", "\ud800"]}, r"the parameter :a is '\\ud800'"),
        ({"a": deltic.Variant.of(1)}, "the parameter :a is Variant"),
        ({"a": pandas.NaT}, "the parameter :a is NaT"),
        ({"a": pandas.Timestamp("2024-01-01 00:00:00.000000001")}, "the parameter :a is Timestamp"),
        ({"a": pandas.Timedelta("1ns")}, "the parameter :a is Timedelta"),
        ("a", "invalid args"),
        ({1: 2}, "invalid args"),
    ],
)
def test_invalid_parameters(args: Any, message: str) -> None:
    with deltic.Session() as session, pytest.raises(QueryError, match=message):
        session.sql("CREATE VIEW v AS SELECT :a AS a", args=args)
    assert session.views == ()
