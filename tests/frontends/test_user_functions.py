"""Functions of users in SQL: those in SQL are their bodies, those in Python are called once a row; definitions, replacement, errors."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltic
from deltic.errors import CatalogError, CircuitError, DelticError, EvaluationError, StateError
from goldens import Goldens
from session_rows import rows_of_view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "CREATE TABLE t (k BIGINT, b INT, s STRING, PRIMARY KEY (k));"
DEFINED = """
    CREATE FUNCTION plus(x BIGINT, y BIGINT DEFAULT 10) RETURNS BIGINT COMMENT 'adds' RETURN x + y;
    CREATE OR REPLACE TEMPORARY FUNCTION twice(x BIGINT) RETURN plus(x, X);
    CREATE FUNCTION IF NOT EXISTS label(n BIGINT, s STRING DEFAULT concat('n', 'one')) RETURN CASE WHEN n > 5 THEN upper(s) ELSE `s` END;
    CREATE FUNCTION ten() RETURNS DECIMAL(4, 1) LANGUAGE SQL DETERMINISTIC RETURN 10;
"""
MEANINGS = {
    "plus(k)": "k + 10L",
    "plus(b, k)": "CAST(b AS BIGINT) + k",
    "twice(k + 1)": "(k + 1) + (k + 1)",
    "twice(twice(b))": "(CAST(b AS BIGINT) + b) + (CAST(b AS BIGINT) + b)",
    "label(k, s)": "CASE WHEN k > 5 THEN upper(s) ELSE s END",
    "label(k)": "CASE WHEN k > 5 THEN 'NONE' ELSE 'none' END",
    "ten()": "CAST(10 AS DECIMAL(4, 1))",
    "sum(twice(b))": "sum(CAST(b AS BIGINT) + b)",
    "twice(sum(b))": "sum(b) + sum(b)",
    "coalesce(plus(b), -1)": "coalesce(CAST(b AS BIGINT) + 10L, -1)",
}


def filled(session: deltic.Session) -> None:
    session.sql(TABLE)
    session.apply({"t": [{"k": k, "b": None if k % 3 == 0 else k * 2, "s": "ab"[k % 2] * k, "_weight": 1} for k in range(1, 9)]})


@pytest.mark.parametrize("call", MEANINGS)
def test_a_function_in_sql_is_its_body(call: str) -> None:
    with deltic.Session() as session:
        filled(session)
        session.sql(DEFINED)
        group = "GROUP BY k, s" if "sum" in call else ""
        session.sql(f"CREATE MATERIALIZED VIEW called AS SELECT k, {call} AS x FROM t {group}")
        session.sql(f"CREATE MATERIALIZED VIEW written AS SELECT k, {MEANINGS[call]} AS x FROM t {group}")
        assert rows_of_view(session, "called") == rows_of_view(session, "written")
        assert session.view("called").to_arrow().schema == session.view("written").to_arrow().schema


def test_names_of_columns_and_every_clause() -> None:
    with deltic.Session() as session:
        filled(session)
        session.sql(DEFINED)
        session.sql(
            """CREATE MATERIALIZED VIEW v AS SELECT twice(t.b), count(*) AS n FROM t JOIN t u ON plus(t.k, 1) = twice(u.k) / 2
            WHERE label(t.k) = 'none' GROUP BY twice(t.b) HAVING plus(count(*)) > 10"""
        )
        assert session.view("v").to_arrow().schema.names == ["twice(b)", "n"]
        assert rows_of_view(session, "v") == [(16, 1), (20, 1), (4, 1), (8, 1), (None, 1)]


def test_a_replaced_function_changes_its_views_and_what_reads_them() -> None:
    with deltic.Session() as session:
        filled(session)
        session.sql(f"{DEFINED} CREATE VIEW a AS SELECT twice(k) AS x FROM t; CREATE MATERIALIZED VIEW b AS SELECT sum(x) AS total FROM a")
        assert rows_of_view(session, "b") == [(72,)]
        session.sql("CREATE OR REPLACE FUNCTION plus(x BIGINT, y BIGINT) RETURN x * y")
        assert rows_of_view(session, "b") == [(204,)]
        with pytest.raises(CatalogError, match="view a reads plus and would no longer be valid"):
            session.sql("CREATE OR REPLACE FUNCTION plus(x BIGINT) RETURN x")
        assert rows_of_view(session, "b") == [(204,)]
        with pytest.raises(CatalogError, match="function plus is called by view a"):
            session.sql("DROP FUNCTION plus")
        session.sql("DROP VIEW b; DROP VIEW a; DROP FUNCTION twice; DROP FUNCTION plus; DROP TEMPORARY FUNCTION IF EXISTS plus")


def test_functions_that_are_called_through_a_replaced_one() -> None:
    with deltic.Session() as session:
        filled(session)
        session.sql(
            "CREATE FUNCTION f(x BIGINT) RETURN x; CREATE FUNCTION g(x BIGINT) RETURN f(x); CREATE FUNCTION h(x BIGINT) RETURN 2 * x"
        )
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(g(k)) AS total FROM t; CREATE OR REPLACE FUNCTION f(x BIGINT) RETURN h(x)")
        assert rows_of_view(session, "v") == [(72,)]
        session.sql("CREATE OR REPLACE FUNCTION h(x BIGINT) RETURN 3 * x")
        assert rows_of_view(session, "v") == [(108,)]
        for name in ("h", "f", "g"):
            with pytest.raises(CatalogError, match=f"function {name} is called by"):
                session.sql(f"DROP FUNCTION {name}")
        with pytest.raises(CatalogError, match="the function h would call itself"):
            session.sql("CREATE OR REPLACE FUNCTION h(x BIGINT) RETURN g(x)")


def test_a_function_that_is_not_called_any_more_can_be_dropped() -> None:
    with deltic.Session() as session:
        filled(session)
        session.sql(
            "CREATE FUNCTION f(x BIGINT) RETURN x; CREATE FUNCTION g(x BIGINT) RETURN f(x); CREATE FUNCTION h(x BIGINT) RETURN g(x)"
        )
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(h(k)) AS total FROM t")
        with pytest.raises(CatalogError, match="function f is called by view v") as error:
            session.sql("DROP FUNCTION f")
        assert "drop v, g, h first" in str(error.value)
        session.sql("CREATE OR REPLACE FUNCTION g(x BIGINT) RETURN 2 * x; DROP FUNCTION f")
        assert rows_of_view(session, "v") == [(72,)]
        session.sql("CREATE FUNCTION f(x BIGINT) RETURN h(x)")
        with pytest.raises(CatalogError, match="the function g would call itself"):
            session.sql("CREATE OR REPLACE FUNCTION g(x BIGINT) RETURN f(x)")


ERRORS = (
    "CREATE FUNCTION abs(x INT) RETURN x",
    "CREATE FUNCTION sum(x INT) RETURN x",
    "CREATE FUNCTION f(x INT, X INT) RETURN x",
    "CREATE FUNCTION f(x INT DEFAULT 1, y INT) RETURN x",
    "CREATE FUNCTION f(x INT) RETURN k",
    "CREATE FUNCTION f(x INT) RETURN f(x)",
    "CREATE FUNCTION f(x INT) RETURN sum(x)",
    "CREATE FUNCTION f(x INT) RETURN x IN (SELECT k, k FROM t)",
    "CREATE FUNCTION f(x INT) RETURN SELECT x, x",
    "CREATE FUNCTION f(x INT) RETURNS TABLE (a INT) RETURN x",
    "CREATE FUNCTION f(x DATE) RETURNS INT RETURN x",
    "CREATE FUNCTION f() RETURNS INT RETURN 'x'",
    "CREATE FUNCTION f(x) RETURN x",
    "CREATE FUNCTION f(x INT) RETURN",
    "CREATE FUNCTION f(x INT) x",
    "CREATE FUNCTION f AS 'Class'",
    "CREATE FUNCTION f() NOT DETERMINISTIC RETURN 1",
    "CREATE FUNCTION f() RETURN rand()",
    "CREATE OR REPLACE FUNCTION IF NOT EXISTS f() RETURN 1",
    "CREATE FUNCTION plus() RETURN 1",
    "CREATE MATERIALIZED VIEW v AS SELECT plus(k, k, k) AS x FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT plus(DISTINCT k) AS x FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT plus('a') AS x FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT shout() AS x FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT shout(NULL) AS x FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT shuot(s) AS x FROM t",
    "DROP FUNCTION nothing",
    "DROP MATERIALIZED FUNCTION plus",
)


def test_errors(goldens: Goldens) -> None:
    with deltic.Session() as session:
        session.sql(TABLE + DEFINED)
        session.register("shout", str.upper, str)
        for script in ERRORS:
            with pytest.raises(DelticError) as caught:
                session.sql(script)
            goldens.check(script, str(caught.value))
        assert session.views == ()


def test_errors_goldens_are_those_of_the_scripts(goldens: Goldens) -> None:
    goldens.check_names(list(ERRORS))


def shout(text: str | None) -> str | None:
    return None if text is None else text.upper() + "!"


def digits(number: int | None, base: int = 10) -> int | None:
    return None if number is None else number % base


PYTHON = """
    CREATE MATERIALIZED VIEW v AS SELECT shout(s) AS s, digits(k) AS k, digits(b, 4) AS b, halves(b) AS h, count(*) AS n FROM t
    WHERE digits(k) <> 3 GROUP BY ALL
"""


def python_functions() -> tuple[deltic.UDF, ...]:
    """Functions that travel by value: Spark's workers cannot import this module."""

    def halves(numbers: pa.Array) -> pa.Array:
        return pc.divide(pc.cast(numbers, pa.float64()), 2)

    return (
        deltic.UDF("shout", lambda text: None if text is None else text.upper() + "!", str),
        deltic.UDF("digits", lambda number, base=10: None if number is None else number % base, "BIGINT"),
        deltic.UDF("halves", halves, float, on_batches=True),
    )


def expected(rows: dict[int, tuple[int | None, str | None]]) -> list[tuple[Any, ...]]:
    counts: dict[tuple[Any, ...], int] = {}
    for k, (b, s) in rows.items():
        if digits(k) != 3:
            key = shout(s), digits(k), digits(b, 4), None if b is None else b / 2
            counts[key] = counts.get(key, 0) + 1
    return sorted(((*key, n) for key, n in counts.items()), key=repr)


def changes(chance: random.Random, rows: dict[int, tuple[int | None, str | None]]) -> list[dict[str, Any]]:
    """Some upserts and deletions, and their effect on the rows."""
    changed: list[dict[str, Any]] = []
    for k in chance.sample(range(30), 6):
        if k in rows and chance.random() < 0.4:
            del rows[k]
            changed.append({"k": k, "_op": "delete"})
        else:
            b, s = chance.choice([None, *range(-3, 9)]), chance.choice([None, "a", "ß", "bc"])
            rows[k] = b, s
            changed.append({"k": k, "b": b, "s": s, "_op": "upsert"})
    return changed


def run(open_session: Callable[[], deltic.Session], seed: int, ticks: int, restart: bool) -> None:
    chance, rows = random.Random(seed), {}
    session = open_session()
    for _ in range(ticks):
        session.apply({"t": changes(chance, rows)})
        assert rows_of_view(session, "v") == expected(rows)
        if restart:
            session.close()
            session = open_session()
            assert rows_of_view(session, "v") == expected(rows)
    session.close()


def define(session: deltic.Session) -> deltic.Session:
    session.program(deltic.Program(*python_functions(), TABLE, PYTHON))
    return session


@pytest.mark.parametrize("shards", [1, 3])
def test_python_functions_under_changes(shards: int) -> None:
    run(lambda: define(deltic.Session(shards=shards)), 1, 12, restart=False)


def test_python_functions_after_restarts(tmp_path: Path) -> None:
    run(lambda: define(deltic.Session(state=tmp_path / "state")), 2, 4, restart=True)


@pytest.mark.spark
@pytest.mark.slow
def test_python_functions_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    run(lambda: define(deltic.Session(spark=spark, state=tmp_path / "state", shards=2)), 3, 4, restart=False)


def test_a_state_names_its_functions(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path / "state") as session:
        filled(session)
        session.register("shout", shout, str)
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT k, shout(s) AS s FROM t")
    with deltic.Session(state=tmp_path / "state") as session:
        with pytest.raises(StateError, match=r"the function .*shout"):
            session.sql(f"{TABLE} CREATE MATERIALIZED VIEW v AS SELECT k, s FROM t")
        assert session.views == ()


def test_registered_functions_are_replaced_in_their_views() -> None:
    with deltic.Session() as session:
        filled(session)
        session.register("f", lambda x: x + 1, int)
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(f(k)) AS total FROM t")
        assert rows_of_view(session, "v") == [(44,)]
        session.register("F", lambda x: x + 2, "BIGINT")
        assert rows_of_view(session, "v") == [(52,)]


def test_functions_of_pyspark_are_taken_as_they_are() -> None:
    functions = pytest.importorskip("pyspark.sql.functions")
    types = pytest.importorskip("pyspark.sql.types")
    by_row = functions.udf(lambda x: None if x is None else x * 2, types.LongType())
    pandas = functions.pandas_udf(lambda x: x.str.len(), types.LongType())
    with deltic.Session() as session:
        filled(session)
        session.register("by_row", by_row)
        session.register("lengths", pandas)
        if hasattr(functions, "arrow_udf"):
            session.register("arrays", functions.arrow_udf(lambda x: pc.add(x, 1), types.LongType()))
            session.sql("CREATE MATERIALIZED VIEW arrows AS SELECT sum(arrays(k)) AS n FROM t")
            assert rows_of_view(session, "arrows") == [(44,)]
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(by_row(b)) AS n, sum(lengths(s)) AS m FROM t")
        assert rows_of_view(session, "v") == [(108, 36)]
        with pytest.raises(CircuitError, match="declared nondeterministic"):
            session.register("drawn", functions.udf(lambda x: x, types.LongType()).asNondeterministic())


def test_functions_of_pandas_udf_take_nested_values_as_there() -> None:
    functions = pytest.importorskip("pyspark.sql.functions")
    types = pytest.importorskip("pyspark.sql.types")
    pandas = pytest.importorskip("pandas")
    pair = types.StructType([types.StructField("a", types.IntegerType()), types.StructField("b", types.StringType())])
    words = types.MapType(types.StringType(), types.IntegerType())

    def swapped(s):  # type: ignore[no-untyped-def]  # PySpark reads the annotations
        return pandas.DataFrame({"b": s["b"].str.upper(), "a": s["a"].fillna(0) * 2})

    def hour(at):  # type: ignore[no-untyped-def]  # as above
        assert str(at.dtype) == "datetime64[ns]"  # PySpark's
        return at.dt.hour

    with deltic.Session() as session:
        session.register("swapped", functions.pandas_udf(swapped, pair))
        session.register("by_place", functions.pandas_udf(lambda x: pandas.DataFrame({0: x, 1: x.astype(str)}), pair))
        session.register("hour_of", functions.pandas_udf(hour, types.IntegerType()))
        session.register("of_k", functions.pandas_udf(lambda m: m.map(lambda d: d and d.get("k")), types.IntegerType()))
        session.register("twice", functions.pandas_udf(lambda xs: xs.map(lambda x: x * 2), types.ArrayType(types.IntegerType())))
        session.register("as_map", functions.pandas_udf(lambda x: x.map(lambda v: {"v": v}), words))
        session.register("wrong", functions.pandas_udf(lambda x: x, pair))
        session.sql("""
            CREATE TABLE t (id INT, s STRUCT<a: INT, b: STRING>, at TIMESTAMP, m MAP<STRING, INT>, xs ARRAY<INT>);
            CREATE MATERIALIZED VIEW v AS
                SELECT swapped(s) AS s, by_place(id) AS p, hour_of(at) AS h, of_k(m) AS k, twice(xs) AS xs, as_map(id) AS m FROM t;
            CREATE MATERIALIZED VIEW w AS SELECT wrong(id) AS x FROM t WHERE id > 5
        """)
        row = {"id": 1, "s": {"a": None, "b": "x"}, "at": datetime(2026, 1, 1, 5, tzinfo=UTC), "m": {"k": 7}, "xs": [1, 2]}
        with session.transaction() as tx:
            tx.insert("t", [row])
        assert session.view("v").rows() == [
            {"s": {"a": 0, "b": "X"}, "p": {"a": 1, "b": "1"}, "h": 5, "k": 7, "xs": [2, 4], "m": [("v", 1)]}
        ]
        with pytest.raises(DelticError, match="a Series, where a STRUCT requires a pandas DataFrame"), session.transaction() as tx:
            tx.insert("t", [{**row, "id": 6}])


def test_functions_of_iterators_get_a_change_as_one_batch() -> None:
    functions = pytest.importorskip("pyspark.sql.functions")
    types = pytest.importorskip("pyspark.sql.types")
    pandas = pytest.importorskip("pandas")

    def next_one(batches):  # type: ignore[no-untyped-def]  # PySpark reads the annotations
        for x in batches:
            yield x[:1] + 1  # in two parts
            yield x[1:] + 1

    def total(batches):  # type: ignore[no-untyped-def]  # as above
        return (x + y for x, y in batches)

    def negative(batches):  # type: ignore[no-untyped-def]  # as above
        return (pc.negate(x) for x in batches)

    def fewer(batches):  # type: ignore[no-untyped-def]  # as above
        return (x[:1] for x in batches)

    series, arrays = Iterator[pandas.Series], Iterator[pa.Array]
    next_one.__annotations__ = {"batches": series, "return": series}
    total.__annotations__ = {"batches": Iterator[tuple[pandas.Series, ...]], "return": series}
    negative.__annotations__ = fewer.__annotations__ = {"batches": arrays, "return": arrays}
    with deltic.Session() as session:
        for name, function in (("next_one", next_one), ("total", total)):
            session.register(name, functions.pandas_udf(function, types.LongType()))
        for name, function in (("minus", negative), ("fewer", fewer)):
            session.register(name, functions.arrow_udf(function, types.LongType()))
        session.sql("""
            CREATE TABLE t (id INT, x BIGINT);
            CREATE MATERIALIZED VIEW v AS SELECT id, next_one(x) AS a, total(x, id) AS b, minus(x) AS c FROM t;
            INSERT INTO t VALUES (1, 5), (2, NULL), (3, 7)
        """)
        assert sorted(session.view("v").rows(), key=lambda row: row["id"]) == [
            {"id": 1, "a": 6, "b": 6, "c": -5},
            {"id": 2, "a": None, "b": None, "c": None},
            {"id": 3, "a": 8, "b": 10, "c": -7},
        ]
        with pytest.raises(DelticError, match="returned 1 values") as caught:
            session.sql("CREATE MATERIALIZED VIEW w AS SELECT fewer(x) AS x FROM t")
        assert caught.value.expected == "an Arrow array of 3 values"


def test_missing_values_in_nested_results_of_pandas_udf_are_null_as_there() -> None:
    functions = pytest.importorskip("pyspark.sql.functions")
    types = pytest.importorskip("pyspark.sql.types")
    integers, doubles = types.ArrayType(types.IntegerType()), types.ArrayType(types.DoubleType())
    with deltic.Session() as session:
        for name, type_ in (("ints", integers), ("doubles", doubles), ("variants", types.VariantType())):
            session.register(name, functions.pandas_udf(lambda x: x, type_))
        session.register("shown", functions.pandas_udf(lambda x: x.map(str), types.StringType()))
        session.sql("""
            CREATE TABLE t (xs ARRAY<INT>, ds ARRAY<DOUBLE>, v VARIANT);
            CREATE MATERIALIZED VIEW v AS SELECT ints(xs) AS xs, shown(xs) AS text, doubles(ds) AS ds, variants(v) AS v FROM t;
            INSERT INTO t VALUES (array(1, NULL, 3), array(1D, double('NaN'), NULL), parse_json('[1]')), (NULL, NULL, NULL)
        """)
        first, second = sorted(session.view("v").rows(), key=lambda row: row["xs"] is None)
        assert first == {"xs": [1, None, 3], "text": "[1 None 3]", "ds": [1.0, None, None], "v": deltic.Variant.of([1])}
        assert second == {"xs": None, "text": "None", "ds": None, "v": None}


@pytest.mark.parametrize(
    ("type", "result", "value"),
    [
        ("MAP<STRING, INT>", (("k", 1),), [("k", 1)]),
        ("ARRAY<INT>", (7,), [7]),
        ("ARRAY<ARRAY<INT>>", ((7,),), [[7]]),
        ("STRUCT<a: INT>", (7,), {"a": 7}),
        ("ARRAY<INT>", ([7],), [7]),
        (pa.list_(pa.int32()), [7], [7]),
        (pa.int16(), 7, 7),
    ],
)
def test_a_nested_result_of_one_part_is_no_tuple_of_one_result(type: Any, result: Any, value: Any) -> None:
    with deltic.Session() as session:
        session.register("f", lambda x: result, returns=type)
        session.sql("CREATE TABLE t (x INT); CREATE MATERIALIZED VIEW v AS SELECT f(x) AS y FROM t; INSERT INTO t VALUES (1)")
        assert session.view("v").rows() == [{"y": value}]


def test_types_of_pyspark_say_what_a_function_returns() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    pair = types.StructType([types.StructField("a", types.IntegerType()), types.StructField("b", types.DecimalType(5, 2))])
    assert deltic.UDF("f", lambda x: x, pair).type.sql == "STRUCT<a: INT, b: DECIMAL(5,2)>"
    for wrong in (types.IntegerType, pa.uint32(), types.NullType()):
        with pytest.raises(CircuitError, match=r"invalid type .+ of the result"):
            deltic.UDF("f", lambda x: x, wrong)


def test_functions_of_pyspark_take_nested_values_as_there() -> None:
    functions = pytest.importorskip("pyspark.sql.functions")
    types = pytest.importorskip("pyspark.sql.types")
    pair = types.StructType([types.StructField("a", types.IntegerType()), types.StructField("xs", types.ArrayType(types.IntegerType()))])

    class Entries:
        def eval(self, m: Any) -> Any:
            for key, item in (m or {}).items():
                yield key, item.a

    with deltic.Session() as session:
        session.register("is_list", functions.udf(lambda xs: xs == [1, None], types.BooleanType()))
        session.register("has_key", functions.udf(lambda m: "k" in m and m["k"].xs == [2], types.BooleanType()))
        session.register("twice", functions.udf(lambda s: s and (s.a + s["a"], [*s.asDict()["xs"], 7]), pair))
        session.register("entries", functions.udtf(Entries, returnType="word: string, n: int"))
        session.register("plain", lambda xs: xs == (1, None), bool)
        session.sql("""
            CREATE TABLE t (id INT, xs ARRAY<INT>, s STRUCT<a: INT, xs: ARRAY<INT>>, m MAP<STRING, STRUCT<a: INT, xs: ARRAY<INT>>>);
            CREATE MATERIALIZED VIEW v AS SELECT is_list(xs) AS l, has_key(m) AS k, twice(s) AS t, plain(xs) AS p FROM t;
            CREATE MATERIALIZED VIEW w AS SELECT e.* FROM t, LATERAL entries(m) AS e
        """)
        with session.transaction() as tx:
            struct = {"a": 3, "xs": [2]}
            tx.insert("t", [{"id": 1, "xs": [1, None], "s": struct, "m": {"k": struct}}, {"id": 2, "xs": [], "s": None, "m": {}}])
        rows = sorted(session.view("v").rows(), key=repr)
        assert rows == [{"l": False, "k": False, "t": None, "p": False}, {"l": True, "k": True, "t": {"a": 6, "xs": [2, 7]}, "p": True}]
        assert session.view("w").rows() == [{"word": "k", "n": 3}]


def test_invalid_results_and_exceptions_of_functions() -> None:
    with deltic.Session() as session:
        filled(session)
        session.register("f", lambda x: "text", int)
        session.register("g", lambda x: 1 // 0, int)
        with pytest.raises(EvaluationError, match="returned 'text'"):
            session.sql("CREATE MATERIALIZED VIEW v AS SELECT f(k) AS x FROM t")
        with pytest.raises(EvaluationError, match="raised ZeroDivisionError"):
            session.sql("CREATE MATERIALIZED VIEW v AS SELECT g(k) AS x FROM t")
        assert session.views == ()


def test_functions_that_cannot_be_registered() -> None:
    with deltic.Session() as session:
        for arguments, message in (
            (("abs", abs, int), "abs is a builtin function"),
            (("", shout, str), "invalid name of a function"),
            (("f", 5, int), "cannot be called"),
            (("f", shout), "the type of the result is missing"),
            (("f", shout, "ARRAY"), "invalid type 'ARRAY' of the result"),
            (("f", lambda *, x: x, int), "requires x by keyword"),
        ):
            with pytest.raises(DelticError, match=message):
                session.register(*arguments)


def test_a_program_with_functions_is_a_value() -> None:
    program = deltic.Program(deltic.UDF("shout", shout, str | None), TABLE, "CREATE VIEW v AS SELECT shout(s) AS s FROM t")
    assert program == deltic.Program(deltic.UDF("shout", shout, str | None), TABLE, "CREATE VIEW v AS SELECT shout(s) AS s FROM t")
    assert pickle.loads(pickle.dumps(program)) == program
    with pytest.raises(CatalogError, match="function Shout is defined already"):
        deltic.Program(deltic.UDF("shout", shout, str), deltic.UDF("Shout", shout, str))


def test_char_and_varchar_are_read_as_strings_after_returns_and_in_declared_views() -> None:
    session = deltic.Session()
    session.sql("""
        CREATE TABLE t (s STRING);
        CREATE FUNCTION f(x CHAR(3)) RETURNS VARCHAR(2) RETURN x || 'c';
        CREATE FUNCTION g() RETURNS CHAR(3) RETURN 'a';
        DECLARE RECURSIVE VIEW r (a CHAR(3));
        CREATE MATERIALIZED VIEW r AS SELECT f(s) AS a FROM t UNION SELECT g() AS a FROM r;
    """)
    with session.transaction() as tx:
        tx.insert("t", [{"s": "ab"}])
    assert sorted(row["a"] for row in session.view("r").rows()) == ["a", "abc"]


CALLS: list[int] = []


def counted(x: int) -> int:
    import test_user_functions  # noqa: PLC0415  a global that changes would be part of the function

    test_user_functions.CALLS.append(x)
    return x + 1


def test_registering_a_function_again_keeps_the_views_of_the_state(tmp_path: Path) -> None:
    script = "CREATE TABLE t (x BIGINT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT counted(x) AS y FROM t"
    for start in range(3):
        with deltic.Session(state=tmp_path / "state") as session:
            session.register("counted", counted, returns="BIGINT")
            if start == 1:
                continue  # ends before it defines anything
            session.sql(script)
            session.apply({"t": [{"x": start, "_op": "insert"}]})
            assert sorted(row["y"] for row in session.view("v").rows()) == [1, 3][: 1 + start // 2]
    assert CALLS == [0, 2]
    with deltic.Session(state=tmp_path / "state") as session:
        session.register("counted", lambda x: x + 2, returns="BIGINT")
        with pytest.raises(StateError, match="the state has views that use the function"):
            session.sql(script)
