"""Views of DataFrames in a session: plans shared with SQL, places of errors, changes, restarts, programs."""

from __future__ import annotations

import functools
import os
import re
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import deltic
from calls import calls_of
from dataframe_programs import TABLES, Notebook
from deltic.errors import CatalogError, QueryError, SyntaxFailure, TypeMismatch, UnknownName, Unsupported
from deltic.optimizer import optimize
from deltic.plan.fingerprint import fingerprint

pytest.importorskip("pyspark.sql.connect.proto")
grpc = pytest.importorskip("grpc")

SAME = {
    "filter": (lambda n: n.orders.filter(n.orders.amount > 50).select("id"), "SELECT id FROM orders WHERE amount > 50"),
    "group": (
        lambda n: n.orders.groupBy("customer").agg(n.F.sum("amount").alias("s"), n.F.count("*").alias("n")),
        "SELECT customer, sum(amount) AS s, count(*) AS n FROM orders GROUP BY customer",
    ),
    "join": (
        lambda n: n.orders.join(n.customers, n.orders.customer == n.customers.id).groupBy("region").agg(n.F.max("amount").alias("m")),
        "SELECT region, max(amount) AS m FROM orders o JOIN customers c ON o.customer = c.id GROUP BY region",
    ),
    "top": (
        lambda n: n.orders.orderBy(n.F.desc("amount"), "id").limit(3).select("id", "amount"),
        "SELECT id, amount FROM (SELECT * FROM orders ORDER BY amount DESC, id LIMIT 3)",
    ),
    "distinct": (lambda n: n.orders.select("day").distinct(), "SELECT DISTINCT day FROM orders"),
    "columns": (
        lambda n: n.orders.withColumn("twice", n.F.col("amount") * 2).drop("note", "day"),
        "SELECT id, customer, amount, amount * 2 AS twice FROM orders",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_a_view_of_dataframes_has_the_plan_of_the_same_sql(name: str) -> None:
    make, query = SAME[name]
    with deltic.Session() as session:
        session.sql(f"{TABLES}; CREATE MATERIALIZED VIEW s AS {query}")
        session.view_of("d", lambda spark: make(Notebook(spark)))
        plans = [fingerprint(optimize(session._catalog.views[view].plan)) for view in ("s", "d")]
    assert plans[0] == plans[1]


def test_values_by_columns_are_cast_and_columns_renamed_in_turn() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id BIGINT, n INT, d DECIMAL(5,2), s STRING, PRIMARY KEY (id)); INSERT INTO t (id) VALUES (1)")
        session.view_of("filled", lambda spark: spark.table("t").fillna({"n": "7", "D": 1, "s": 1.5}))
        session.view_of("renamed", lambda spark: spark.table("t").select("id").withColumnsRenamed({"id": "a", "a": "b"}))
        session.view_of("long", lambda spark: spark.table("t").fillna(3).unpivot("s", ["n", "d"], "k", "v").drop("s"))
        assert session.view("filled").rows() == [{"id": 1, "n": 7, "d": Decimal("1.00"), "s": "1.5"}]
        assert session.view("renamed").rows() == [{"b": 1}]
        assert sorted((row["k"], row["v"]) for row in session.view("long").rows()) == [("d", Decimal("3.00")), ("n", Decimal("3.00"))]


def test_unions_by_name_match_the_fields_of_structs() -> None:
    with deltic.Session() as session:
        session.sql(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, s STRUCT<a: INT, n: STRUCT<x: INT>>, r STRUCT<N: STRUCT<y: STRING, x: BIGINT>, a: INT>)"
        )

        def union(spark: Any) -> Any:
            table = spark.table("t")
            return table.select("id", "s").unionByName(table.selectExpr("r AS s", "-id AS id"), allowMissingColumns=True)

        session.view_of("u", union)
        session.insert(
            "t",
            [
                {"id": 1, "s": {"a": 1, "n": {"x": 2}}, "r": {"N": {"y": "z", "x": 3}, "a": 4}},
                {"id": 2, "s": None, "r": {"N": None, "a": 5}},
            ],
        )
        assert {row["id"]: row["s"] for row in session.view("u").rows()} == {
            1: {"a": 1, "n": {"x": 2, "y": None}},
            -1: {"a": 4, "n": {"x": 3, "y": "z"}},
            2: None,
            -2: {"a": 5, "n": None},
        }


BY_NAME: dict[str, tuple[str, str, bool, list[Any]]] = {
    "arrays": ("array(named_struct('p', 1, 'q', 2), NULL)", "array(named_struct('q', 3L, 'P', 4))", False, [[(1, 2), None], [(4, 3)]]),
    "arrays of arrays": (
        "array(array(named_struct('p', 1, 'q', 2)))",
        "array(array(named_struct('q', 3, 'p', 4)), NULL)",
        False,
        [[[(1, 2)]], [[(4, 3)], None]],
    ),
    "arrays in structs": (
        "named_struct('w', array(named_struct('p', 1, 'q', 2)))",
        "named_struct('w', array(named_struct('q', 3, 'p', 4)))",
        False,
        [([(1, 2)],), ([(4, 3)],)],
    ),
    "fields that a side lacks": (
        "array(named_struct('p', 1, 'q', array(named_struct('x', 2))))",
        "array(named_struct('q', array(named_struct('y', 3)), 'element', 4))",
        True,
        [[(1, [(2, None)], None)], [(None, [(None, 3)], 4)]],
    ),
    "maps by position": (
        "map('k', named_struct('p', 1, 'q', 2))",
        "map('k', named_struct('q', 3, 'p', 4))",
        False,
        [[("k", (1, 2))], [("k", (3, 4))]],
    ),
    "maps in structs": (
        "named_struct('m', map('k', named_struct('p', 1)), 'n', map('k', named_struct('q', 2)))",
        "named_struct('n', map('k', named_struct('p', 3)), 'm', map('k', named_struct('q', 4)))",
        False,
        [([("k", (1,))], [("k", (2,))]), ([("k", (4,))], [("k", (3,))])],
    ),
}
"""The values of two sides, whether fields may be missing, and the values of both, a STRUCT as a tuple: Spark's answers."""


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return tuple(map(_plain, value.values()))
        case list() | tuple():
            return type(value)(map(_plain, value))
    return value


@pytest.mark.parametrize("name", BY_NAME)
def test_unions_by_name_match_fields_at_any_depth(name: str) -> None:
    one, other, missing, expected = BY_NAME[name]
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)")

        def union(spark: Any) -> Any:
            left, right = (spark.table("t").selectExpr(f"{i} AS side", f"{value} AS v") for i, value in enumerate((one, other)))
            return left.unionByName(right, allowMissingColumns=missing)

        session.view_of("u", union)
        assert [_plain(row["v"]) for row in sorted(session.view("u").rows(), key=lambda row: row["side"])] == expected


def test_a_triangle_of_dataframes_is_one_multiway_join() -> None:
    def triangle(spark: Any) -> Any:
        edges = spark.table("edges")
        a, b, c = (edges.toDF(*names) for names in (("x", "y"), ("y", "z"), ("z", "x")))
        return a.join(b, "y").join(c, ["z", "x"]).groupBy().count()

    with deltic.Session() as session:
        session.sql("CREATE TABLE edges (src BIGINT, dst BIGINT, PRIMARY KEY (src, dst))")
        session.view_of("triangles", triangle)
        assert "multiway" in str(session.explain("triangles")).lower()
        with session.transaction() as tx:
            tx.insert("edges", [{"src": a, "dst": b} for a, b in ((1, 2), (2, 3), (3, 1), (3, 4))])
        assert session.view("triangles").rows() == [{"count": 3}]


def test_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by Python nor, as gRPC does, by compiled code; and no process is started."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    before = _sockets()
    monkeypatch.setattr(socket.socket, "__init__", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    seen = list[set[str]]()

    def counted() -> Any:
        orders = session.frame("orders")
        frame = orders.select([column for column in orders.columns if column != "note"]).groupBy("day").count()
        seen.append(_sockets())
        return frame

    with deltic.Session() as session:
        session.sql(TABLES)
        session.view_of("v", counted)
        with session.transaction() as tx:
            tx.insert("orders", [{"id": 1, "customer": 1, "amount": None, "day": None, "note": "a"}])
        assert session.view("v").rows() == [{"day": None, "count": 1}]
    assert seen == [before] and _sockets() == before
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


def _sockets() -> set[str]:
    """The sockets that the process has open."""
    links = []
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor of this listing
            links.append(os.readlink(path))
    return {link for link in links if link.startswith("socket:")}


def test_a_socket_of_compiled_code_is_seen() -> None:
    before = _sockets()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        assert len(_sockets() - before) == 1
        with grpc.insecure_channel(f"127.0.0.1:{listening.getsockname()[1]}") as channel:
            with pytest.raises(grpc.RpcError):
                channel.unary_unary("/some/Method")(b"", timeout=1.0)
            with listening.accept()[0]:
                assert len(_sockets() - before) >= 3, "listening, accepted, and gRPC's own"


def test_a_frame_outside_of_a_definition_is_refused() -> None:
    with deltic.Session() as session, pytest.raises(QueryError, match="for functions that define views"):
        session.frame("orders")


WRONG: dict[str, tuple[Callable[[Notebook], Any], type[QueryError], str]] = {
    "unknown column": (lambda n: n.orders.select("amuont"), UnknownName, "did you mean 'amount'"),
    "unknown table": (lambda n: n.spark.table("order"), UnknownName, "did you mean 'orders'"),
    "column of another frame": (lambda n: n.orders.select(n.customers.name), UnknownName, "not in this one"),
    "ambiguous": (lambda n: n.orders.join(n.customers, n.orders.customer == n.customers.id).select("id"), QueryError, "ambiguous"),
    "type": (lambda n: n.orders.select(n.F.upper(n.F.array("id"))), TypeMismatch, "upper"),
    "rows": (lambda n: n.orders.where(n.F.lit(n.orders.count() > 1)), QueryError, "cannot look at data"),
    "collect": (lambda n: n.orders.collect(), QueryError, "(?s)cannot look at data.*help: return the DataFrame, and read the view's rows"),
    "sample": (lambda n: n.orders.sample(0.5), Unsupported, "nondeterministic"),
    "grouped pandas": (lambda n: n.orders.groupBy("customer").applyInPandas(lambda x: x, "a INT"), Unsupported, "applyInPandas of"),
    "watermark": (lambda n: n.events.withWatermark("ts", "1 minute"), Unsupported, "withWatermark of a DataFrame is not supported"),
    "unknown column to fill": (lambda n: n.orders.fillna({"note": "x", "amuont": 1}), UnknownName, "did you mean 'amount'"),
    "other structs": (
        lambda n: n.events.select("info").unionByName(n.orders.select(n.F.struct("note").alias("info"))),
        UnknownName,
        "'info' of the left DataFrame has no field 'note'",
    ),
    "structs of other names": (
        lambda n: n.orders.selectExpr("named_struct('w', 1, 'v', 2) AS s").unionByName(
            n.orders.selectExpr("named_struct('v', 1, 'u', 2) AS s")
        ),
        UnknownName,
        "'s' of the left DataFrame has no field 'u'",
    ),
    "arrays of structs of other names": (
        lambda n: n.orders.selectExpr("named_struct('n', array(named_struct('p', 1))) AS s").unionByName(
            n.orders.selectExpr("named_struct('n', array(named_struct('r', 1))) AS s")
        ),
        UnknownName,
        "'s.n' of the left DataFrame has no field 'r'",
    ),
    "structs with other types by name": (
        lambda n: n.orders.selectExpr("named_struct('a', 1, 'd', DATE'2020-01-01') AS s").unionByName(
            n.orders.selectExpr("named_struct('d', 1, 'a', DATE'2020-01-01') AS s")
        ),
        TypeMismatch,
        "column 's.a' of unionByName has no common type",
    ),
    "nothing to unpivot": (lambda n: n.orders.select("id").unpivot("id", None, "k", "v"), TypeMismatch, "there are no columns to unpivot"),
    "types to unpivot": (lambda n: n.orders.unpivot("id", ["amount", "note"], "k", "v"), TypeMismatch, "to unpivot have no common type"),
    "limit": (lambda n: n.orders.orderBy("id").limit(-1), Unsupported, "LIMIT requires a whole number"),
    "offset": (lambda n: n.orders.orderBy("id").offset(-1), Unsupported, "OFFSET requires a whole number"),
    "setting": (lambda n: n.spark.conf.set("spark.sql.ansi.enabled", False), QueryError, "cannot set spark.sql.ansi.enabled to 'false'"),
    "stop": (lambda n: (n.spark.stop(), n.orders)[1], QueryError, "the function stopped its SparkSession"),
    "two columns": (lambda n: n.orders.crossJoin(n.customers), QueryError, "two columns of the view are called 'id'"),
    "no columns": (lambda n: n.orders.select(), CatalogError, "view v has no columns"),
    "null": (lambda n: n.orders.select(n.F.lit(None).alias("x")), TypeMismatch, "has no type"),
    "a number": (lambda n: 3, QueryError, "returned int"),
    "sql": (lambda n: n.spark.sql("SELEC 1"), SyntaxFailure, r"py:\d+, sql:1:1: unknown statement"),
    "files": (lambda n: n.spark.read.parquet("/tmp/x"), Unsupported, "reading parquet within a view"),
    "schema of wrong": (lambda n: n.orders.select("amuont").columns, UnknownName, "amuont"),
    "text": (lambda n: n.orders.where("amount >"), QueryError, "something is missing"),
    "pandas": (lambda n: n.orders.toPandas(), QueryError, "cannot look at data"),
    "catalog": (lambda n: n.orders.select(*n.spark.catalog.listColumns("orders")), QueryError, "cannot read the catalog"),
    "crosstab": (lambda n: n.orders.crosstab("customer", "note"), Unsupported, "columns that depend on the rows"),
    "describe": (lambda n: n.orders.describe(), Unsupported, "gives its numbers as texts"),
    "no struct": (lambda n: n.orders.select("day.*"), TypeMismatch, r"\* of a DATE"),
    "no frame": (lambda n: n.orders.select("x.*"), UnknownName, "there is no DataFrame 'x'"),
    "field of no struct": (lambda n: n.orders.select(n.F.col("day").withField("a", n.F.lit(1))), TypeMismatch, "a field of DATE"),
    "all fields": (lambda n: n.events.select(n.F.col("info").dropFields("a", "b")), TypeMismatch, "would have no fields"),
    "field of no field": (lambda n: n.events.select(n.F.col("info").withField("x.y", n.F.lit(1))), TypeMismatch, "has no field x"),
    "no value": (lambda n: n.spark.sql("SELECT id FROM orders WHERE id > :least", args={"most": 1}), UnknownName, "the parameter :least"),
    "a column as a value": (
        lambda n: n.spark.sql("SELECT id FROM orders WHERE id > :least", args={"least": n.F.col("id")}),
        UnknownName,
        "there is no column 'id'",
    ),
    "no parameter": (lambda n: n.orders.select(n.F.udf(lambda a: a, "int")(b="id")), UnknownName, "has no parameter 'b'"),
    "temporary view twice": (
        lambda n: [n.orders.createTempView("o"), n.orders.createTempView("O")],
        CatalogError,
        "there is a temporary view O already",
    ),
    "global view": (lambda n: n.orders.createGlobalTempView("o"), Unsupported, "the temporary view o is not supported here"),
    "wrong temporary view": (
        lambda n: (n.orders.select("amuont").createOrReplaceTempView("o"), n.spark.table("o"))[1],
        UnknownName,
        "did you mean 'amount'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_have_the_place_in_the_program(name: str) -> None:
    make, kind, message = WRONG[name]
    with deltic.Session() as session:
        session.sql(TABLES)
        with pytest.raises(kind, match=message) as caught:
            session.view_of("v", lambda spark: make(Notebook(spark)))
        assert session.views == ()
    span = caught.value.span
    assert span is not None
    own = str(Path(__file__).relative_to(Path.cwd())) if Path(__file__).is_relative_to(Path.cwd()) else f"dataframes/{Path(__file__).name}"
    assert span.name == own or re.fullmatch(rf"{re.escape(own)}:\d+, (sql|expr)", span.name), span
    if span.name == own:
        assert "lambda" in span.picture(), span.picture()


@pytest.mark.parametrize("function", [lambda orders, customers: orders, lambda *, spark: spark])
def test_a_function_with_other_parameters_is_refused(function: Callable[..., Any]) -> None:
    with (
        deltic.Session() as session,
        pytest.raises(QueryError, match=r"(?s)the function requires .*expected: no argument, or the SparkSession"),
    ):
        session.view_of("v", function)


def test_a_function_that_stops_its_session_leaves_the_next_one_alone() -> None:
    with deltic.Session() as session:
        session.sql(TABLES)
        for stop in (lambda spark: spark.stop(), lambda spark: (spark.stop(), spark.table("orders"))[1]):
            with pytest.raises(QueryError):
                session.view_of("v", stop)
            session.view_of("v", lambda spark: spark.table("orders").select("id"))
            session.sql("DROP VIEW v")
        session.view_of("v", lambda spark: (spark.conf.set("spark.sql.ansi.enabled", True), spark.table("orders"))[1])


def test_a_temporary_view_is_of_its_function() -> None:
    def over_view(spark: Any) -> Any:
        spark.table("orders").where("amount > 5").createOrReplaceTempView("customers")  # hides the table
        assert spark.table("customers").columns == ["id", "customer", "amount", "day", "note"]
        spark.table("customers").select("id").createOrReplaceTempView("customers")
        return spark.table("customers")

    with deltic.Session() as session:
        session.sql(TABLES)
        session.view_of("v", over_view)
        session.view_of("w", lambda spark: spark.table("customers"))
        assert session.view("v").schema.names == ("id",) and session.view("w").schema.names == ("id", "name", "region")
        with session.transaction() as tx:
            tx.insert("orders", [{"id": i, "customer": 7, "amount": Decimal(i), "day": None, "note": None} for i in (1, 9)])
        assert session.view("v").rows() == [{"id": 9}]


@pytest.mark.parametrize(
    "step",
    [
        lambda frame, i: frame.where(frame.id > i) if i % 2 else frame.withColumnRenamed(f"note{i or ''}", f"note{i + 2}"),
        lambda frame, i: frame.withColumn(f"c{i}", frame.amount + i),
        lambda frame, i: frame.withColumn("amount", frame["amount"].cast("double") + i),
        lambda frame, i: frame.select("id", (frame.amount.cast("double") + i).alias("amount")),
    ],
    ids=["where", "withColumn", "replaced", "select"],
)
def test_the_work_of_binding_grows_with_the_relations(step: Callable[[Any, int], Any]) -> None:
    def chain(spark: Any, length: int) -> Any:
        return functools.reduce(step, range(length), spark.table("orders"))

    with deltic.Session() as session:
        session.sql(TABLES)
        frames = session._frame_maker()
        calls = [_calls(lambda n=n: frames.define(lambda spark: chain(spark, n)).bound(session._catalog)) for n in (10, 20, 40)]
    assert calls[2] < 6.2 * calls[0], calls


def _calls(work: Callable[[], object]) -> int:
    """How many Python functions it calls: the least of three runs, since the collector may run finalizers within one."""
    work()
    return min(calls_of(work) for _ in range(3))


def test_a_decorated_function_is_part_of_a_program(tmp_path: Path) -> None:
    @deltic.view
    def spend(spark: Any) -> Any:
        return spark.table("orders").groupBy("customer").sum("amount").toDF("customer", "spent")

    @deltic.view(name="rich")
    def of_spend(spark: Any) -> Any:
        return spark.table("spend").where("spent > 5")

    program = deltic.Program(TABLES, spend, of_spend)
    row = {"id": 1, "customer": 7, "amount": None, "day": None, "note": None}
    for _ in range(2):  # the second time, with the state of the first
        with deltic.Session(state=tmp_path) as session:
            session.program(program)
            if not session.view("rich").rows():
                with session.transaction() as tx:
                    tx.insert("orders", [{**row, "amount": Decimal("9.50")}])
            assert [answer["customer"] for answer in session.view("rich").rows()] == [7]


def test_a_view_is_replaced() -> None:
    with deltic.Session() as session:
        session.sql(TABLES)
        session.view_of("v", lambda spark: spark.table("orders").select("id"))
        session.view_of("v", lambda spark: spark.table("orders").select("customer"), replace=True)
        assert session.view("v").to_arrow().schema.names == ["customer"]


def test_a_view_reads_a_replaced_view() -> None:
    with deltic.Session() as session:
        session.sql(f"{TABLES}; CREATE VIEW big AS SELECT id FROM orders WHERE amount > 50")
        session.view_of("v", lambda spark: spark.table("big").groupBy().count())
        session.sql("CREATE OR REPLACE VIEW big AS SELECT id FROM orders")
        with session.transaction() as tx:
            tx.insert("orders", [{"id": 1, "customer": 7, "amount": None, "day": None, "note": None}])
        assert session.view("v").rows() == [{"count": 1}]
