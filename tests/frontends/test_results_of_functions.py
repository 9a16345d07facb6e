"""What functions in Python may return: types as SQL spells them, errors with place and arguments, nested values as tables take them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pandas
import pyarrow as pa
import pytest

import deltic
from deltic.domains import has_fields, with_fields
from deltic.errors import CircuitError, ConstraintViolation, DataError, DelticError, EvaluationError, QueryError, StateError
from deltic.frontends.sql.bind_schema import type_in

LATERAL = "CREATE MATERIALIZED VIEW v AS SELECT t.x, f.n FROM t, LATERAL f(t.x) AS f"


class Word:
    """A table function whose rows have the given shape."""

    def eval(self, x: int) -> Iterator[Any]:
        yield {1: (x, "a", 3), 2: "text", 4: (7,)}[x] if x != 3 else int("no")


def returned(returns: Any, function: Callable[..., Any], **options: Any) -> Any:
    """What a view of one row has for a function's value."""
    with deltic.Session() as session:
        session.register("f", function, returns, **options)
        session.sql("CREATE TABLE t (x INT); CREATE MATERIALIZED VIEW v AS SELECT f(x) AS y FROM t")
        session.apply({"t": [{"x": 1, "_weight": 1}]})
        return session.view("v").rows()[0]["y"]


def array_of(value: Any) -> pa.Array:
    """An array of this value; a list of pairs is a map."""
    if isinstance(value, list) and isinstance(value[0], tuple):
        item = pa.struct([("z", pa.int32())]) if isinstance(value[0][1], dict) else pa.int32()
        return pa.array([value], pa.map_(pa.string(), item))
    return pa.array([value])


@pytest.mark.parametrize(
    ("notation", "type_"),
    [
        ("MAP<STRING,INT>", "MAP<STRING, INT>"),
        ("map<string, int>", "MAP<STRING, INT>"),
        ("array<int>", "ARRAY<INT>"),
        ("STRUCT<a:INT,b:STRING>", "STRUCT<a: INT, b: STRING>"),
        ("struct<aB int, b: array<long>>", "STRUCT<aB: INT, b: ARRAY<BIGINT>>"),
        ("long", "BIGINT"),
        ("TIMESTAMP_LTZ", "TIMESTAMP"),
        ("decimal(10, 2)", "DECIMAL(10,2)"),
    ],
)
def test_a_result_has_a_type_in_any_spelling_of_sql(notation: str, type_: str) -> None:
    assert deltic.UDF("f", lambda x: x, notation).type.sql == type_
    assert deltic.UDF("f", Word, f"n {notation}, `a b`: {notation}").type.sql == f"STRUCT<n: {type_}, `a b`: {type_}>"


@pytest.mark.parametrize("columns", ["", "INT", "n CHAR(3)", "n INT NOT NULL", "n INT, N INT", "struct<>", "n INT) -- x"])
def test_invalid_columns_of_a_table_function_are_refused(columns: str) -> None:
    with pytest.raises(CircuitError, match="f: "):
        deltic.UDF("f", Word, columns)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1, r"returned \(1, 'a', 3\), called with \(1\)\n.*\n.*\nexpected: a tuple of 1 value$"),
        (2, r"returned 'text' as value 1, called with \(2\)\n.*\n.*\nexpected: INT$"),
        (3, r"raised ValueError: .*, called with \(3\)\n"),
    ],
)
def test_an_error_of_a_table_function_has_place_and_arguments(x: int, text: str) -> None:
    with deltic.Session() as session:
        session.register("f", Word, "n INT")
        session.sql("CREATE TABLE t (x INT, pw STRING)")
        session.sql(LATERAL)
        with pytest.raises(EvaluationError, match=r"<sql>:1:63: .*Word " + text) as caught:
            session.apply({"t": [{"x": 4, "pw": "secret", "_weight": 1}, {"x": x, "pw": "secret", "_weight": 1}]})
        assert "secret" not in str(caught.value)
        session.apply({"t": [{"x": 4, "pw": "secret", "_weight": 1}]})
        assert session.view("v").rows() == [{"x": 4, "n": 7}]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("STRUCT<a: INT>", {"z": 1}),
        ("STRUCT<a: INT, b: INT>", {"a": 1}),
        ("STRUCT<a: INT>", {"a": 1, "c": 2}),
        ("ARRAY<STRUCT<a: INT>>", [{"z": 1}]),
        ("MAP<STRING, STRUCT<a: INT>>", [("k", {"z": 1})]),
        ("MAP<STRING, INT>", [("k", 1), ("k", 2)]),
    ],
)
def test_a_nested_value_with_other_fields_is_an_error(type_: str, value: Any) -> None:
    with pytest.raises(EvaluationError, match="returned "):
        returned(type_, lambda x: value)
    with pytest.raises(EvaluationError, match="returned "):
        returned(type_, lambda x: array_of(value), on_batches=True)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("STRUCT<a: INT, b: STRING>", {"A": 1, "B": "x"}, {"a": 1, "b": "x"}),
        ("ARRAY<STRUCT<a: INT>>", [{"A": 1}, None], [{"a": 1}, None]),
        ("ARRAY<ARRAY<STRUCT<a: INT>>>", [[{"A": 1}], [], [{"A": None}]], [[{"a": 1}], [], [{"a": None}]]),
    ],
)
def test_names_of_fields_are_of_any_case(type_: str, value: Any, expected: Any) -> None:
    assert returned(type_, lambda x: value) == expected
    assert returned(type_, lambda x: array_of(value), on_batches=True) == expected


def test_a_table_takes_nested_fields_of_any_case() -> None:
    frame = pa.table({"a": pa.array([None, [{"X": 1}], [], [{"X": 2}, None, {"X": None}]])}).slice(1)
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a ARRAY<STRUCT<x: INT>>); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        session.apply({"t": frame.append_column("_weight", pa.array([1, 1, 1]))})
        assert sorted((row["a"] for row in session.view("v").rows()), key=len) == [[], [{"x": 1}], [{"x": 2}, None, {"x": None}]]


@pytest.mark.parametrize(
    ("type_", "arrow"),
    [
        ("ARRAY<STRUCT<x: INT>>", pa.list_(pa.struct([("X", pa.int64())]))),
        ("ARRAY<STRUCT<x: INT>>", pa.large_list(pa.struct([("X", pa.int64())]))),
        ("ARRAY<STRUCT<x: INT>>", pa.list_(pa.struct([("X", pa.int64())]), 2)),
        ("STRUCT<p: STRUCT<x: INT>>", pa.struct([("P", pa.struct([("X", pa.int64())]))])),
        ("MAP<STRING, STRUCT<x: INT>>", pa.map_(pa.string(), pa.struct([("X", pa.int64())]))),
    ],
)
def test_arrays_get_the_names_of_the_type(type_: str, arrow: pa.DataType) -> None:
    def value(i: int, name: Callable[[str], str]) -> Any:
        part = {name("x"): i}
        return [part, None] if type_[0] == "A" else {name("p"): part} if type_[0] == "S" else [("k", part), ("l", None)]

    parsed = type_in(type_)
    rows = [None if i % 3 == 1 else i for i in range(8)]
    array = pa.array([None if i is None else value(i, str.upper) for i in rows], arrow)
    assert has_fields(parsed, arrow)
    for part, kept in ((array, rows), (array.slice(2, 4), rows[2:6]), (array.slice(3, 0), [])):
        named = with_fields(parsed, part).cast(parsed.arrow)
        named.validate(full=True)
        assert named.to_pylist() == [None if i is None else value(i, str.lower) for i in kept]


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ("f(x INT, y INT DEFAULT zzz) RETURN x", "<sql>:1:40: there is no column 'zzz'"),
        ("f(x INT, y INT DEFAULT x) RETURN x", "<sql>:1:40: there is no column 'x'"),
        ("f(x INT, n INT DEFAULT 'q') RETURN x", "<sql>:1:40: .*'q'"),
        ("f(x INT, n INT DEFAULT array(1)) RETURN x", "<sql>:1:40: "),
        ("f(n INT DEFAULT zzz) RETURNS TABLE (a INT) RETURN SELECT n", "<sql>:1:33: there is no column 'zzz'"),
    ],
)
def test_a_default_is_checked_where_it_is_defined(definition: str, text: str) -> None:
    with deltic.Session() as session:
        with pytest.raises(QueryError, match=text):
            session.sql(f"CREATE FUNCTION {definition}")
        session.sql("CREATE FUNCTION f(x STRING DEFAULT 7, y INT DEFAULT '8', z INT DEFAULT NULL) RETURN concat(x, y)")
        session.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT f() AS y FROM t")
        session.apply({"t": [{"a": 1, "_weight": 1}]})
        assert session.view("v").rows() == [{"y": "78"}]


def test_a_class_that_is_no_function_is_named() -> None:
    with pytest.raises(CircuitError, match=r"n: the class .*Nothing.* has no eval"):
        deltic.UDF("n", type("Nothing", (), {}), "n INT")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("variant_get('1', '$')", "expected: VARIANT, found STRING"),
        ("variant_get(parse_json('1'), 'a')", "invalid path 'a'"),
        ("parse_json('1') = parse_json('1')", "a VARIANT cannot be compared"),
        ("CAST('10:00' AS TIME(7))", "invalid TIME"),
        ("a % 0", "help: the divisor is 0 on every row"),
        ("INTERVAL '1' DAY / 0", "help: the divisor is 0 on every row"),
        ("a % (a - 1)", r"help: use nullif\(\(a - 1\), 0\)"),
    ],
)
def test_what_is_not_supported_or_never_valid_has_a_remedy(call: str, text: str) -> None:
    with deltic.Session() as session:
        session.register("parse_jsons", lambda x: x, str)
        session.sql("CREATE TABLE t (a INT)")
        session.apply({"t": [{"a": 1, "_weight": 1}]})
        with pytest.raises(DelticError, match=text) as caught:
            session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {call} AS y FROM t")
        assert "nullif(0, 0)" not in str(caught.value)


def test_a_ratio_of_counts_over_an_empty_table_needs_nullif() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT)")
        with pytest.raises(DelticError, match=r"help: use nullif\(count\(\*\), 0\)"):
            session.sql("CREATE MATERIALIZED VIEW v AS SELECT 78 DIV count(*) AS y FROM t")
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT 78 DIV nullif(count(*), 0) AS y FROM t")
        assert session.view("v").rows() == [{"y": None}]
        session.apply({"t": [{"a": 1, "_weight": 2}]})
        assert session.view("v").rows() == [{"y": 39}]


def test_a_list_as_the_key_of_an_array_has_a_remedy() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a DOUBLE); CREATE MATERIALIZED VIEW v AS SELECT array(a, a) AS k, count(*) AS n FROM t GROUP BY 1")
        session.apply({"t": [{"a": 1.5, "_weight": 1}]})
        with pytest.raises(DataError, match=r"help: a key of one column is a tuple of its list: \(\[…\],\)"):
            session.view("v").lookup([1.5, 1.5])
        assert session.view("v").lookup(([1.5, 1.5],)) == [{"k": [1.5, 1.5], "n": 1}]


@pytest.mark.parametrize(
    ("type_", "value", "kept"),
    [
        (
            "TIMESTAMP",
            pandas.Timestamp("2024-01-01 00:00:00.000001002", tz="UTC"),
            pandas.Timestamp("2024-01-01 00:00:00.000001", tz="UTC"),
        ),
        ("TIMESTAMP_NTZ", pandas.Timestamp("2024-01-01 00:00:00.000001002"), pandas.Timestamp("2024-01-01 00:00:00.000001")),
        ("INTERVAL DAY TO SECOND", pandas.Timedelta(1_002, "ns"), pandas.Timedelta(1_000, "ns")),
    ],
)
def test_nanoseconds_are_refused_in_rows_and_results(type_: str, value: Any, kept: Any) -> None:
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (k INT, a {type_}, b ARRAY<{type_}>); CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t")
        for row in ({"a": value, "b": []}, {"a": None, "b": [value]}):
            with pytest.raises(ConstraintViolation, match=r"row 1, column [ab]: .* does not fit"):
                session.apply({"t": [{"k": 0, "a": kept, "b": [kept], "_weight": 1}, {"k": 1, **row, "_weight": 1}]})
        session.apply({"t": [{"k": 0, "a": kept, "b": [kept], "_weight": 1}]})
        assert session.view("v").rows() == [{"a": kept, "b": [kept]}]
    moment = kept.isoformat().replace("000001", "000001002") if isinstance(kept, pandas.Timestamp) else 1_002
    with pytest.raises(EvaluationError, match="returned"):
        returned(type_, lambda x: pandas.Timestamp(moment) if isinstance(moment, str) else pandas.Timedelta(moment, "ns"))


def shout(x: int) -> int:
    return x + 1


def doubled(x: int) -> int:
    return x * 2


doubled.__qualname__ = "shout"


@pytest.mark.parametrize(
    ("function", "text"),
    [(doubled, r"the function h \(.*\.shout\) has changed"), (lambda x: x * 2, r"\.shout, which the program lacks: h is .*<lambda>")],
)
def test_a_function_that_changed_between_sessions_is_named_as_sql_calls_it(function: Any, text: str, tmp_path: Path) -> None:
    script = "CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT h(a) AS y FROM t"
    with deltic.Session(state=tmp_path / "state") as session:
        session.register("h", shout, int)
        session.sql(script)
        session.apply({"t": [{"a": 3, "_weight": 1}]})
    with deltic.Session(state=tmp_path / "state") as session:
        session.register("h", function, int)
        with pytest.raises(StateError, match=text) as caught:
            session.sql(script)
        assert "help: register it as it was; or session.program(" in str(caught.value)
        session.program(deltic.Program(deltic.UDF("h", function, int), script))
        assert session.view("v").rows() == [{"y": 6}]


@pytest.mark.parametrize(
    ("returns", "function", "value"),
    [
        ("TIMESTAMP_NTZ", lambda x: numpy.datetime64("2020-01-01", "ns"), datetime.datetime(2020, 1, 1)),
        ("TIMESTAMP_NTZ", lambda x: numpy.datetime64("NaT", "ns"), None),
        ("INTERVAL DAY TO SECOND", lambda x: numpy.timedelta64(5_000, "ns"), datetime.timedelta(microseconds=5)),
        ("INTERVAL YEAR TO MONTH", lambda x: numpy.timedelta64(2, "Y"), 24),
        ("ARRAY<TIMESTAMP_NTZ>", lambda x: numpy.array(["2020-01-01", "NaT"], "datetime64[ns]"), [datetime.datetime(2020, 1, 1), None]),
        ("ARRAY<INT>", lambda x: numpy.array([1, 2]), [1, 2]),
        ("STRING", lambda x: numpy.str_("a\0"), "a\0"),
        ("BINARY", lambda x: numpy.bytes_(b"a\0"), b"a\0"),
        ("ARRAY<STRING>", lambda x: [numpy.str_("a")], ["a"]),
        ("MAP<STRING, BINARY>", lambda x: {numpy.str_("a"): numpy.bytes_(b"b")}, [("a", b"b")]),
    ],
)
def test_scalars_and_arrays_of_numpy_are_values(returns: str, function: Callable[..., Any], value: Any) -> None:
    assert returned(returns, function) == value


@pytest.mark.parametrize(
    ("returns", "function"),
    [
        ("BIGINT", lambda x: numpy.datetime64("2020-01-01T00:00:00.000000001")),
        ("BIGINT", lambda x: numpy.timedelta64(5, "ns")),
        ("DECIMAL(38, 0)", lambda x: numpy.datetime64(5, "ns")),
        ("TIMESTAMP_NTZ", lambda x: numpy.datetime64(5, "ns")),
        ("ARRAY<BIGINT>", lambda x: numpy.array([5], "datetime64[ns]")),
        ("INTERVAL DAY TO SECOND", lambda x: numpy.timedelta64(2**61, "s")),  # NumPy makes 0 microseconds of it
        ("TIMESTAMP_NTZ", lambda x: numpy.datetime64(2**60, "h")),
        ("DATE", lambda x: numpy.datetime64(2**60, "D")),
        ("INTERVAL YEAR TO MONTH", lambda x: numpy.timedelta64(2**62, "Y")),
        ("ARRAY<INTERVAL DAY TO SECOND>", lambda x: [numpy.timedelta64(2**61, "s")]),
    ],
)
def test_times_of_numpy_that_are_not_of_the_type_are_refused(returns: str, function: Callable[..., Any]) -> None:
    given = function(1)
    text = repr(list(given) if isinstance(given, numpy.ndarray) else given)
    with pytest.raises(EvaluationError, match=re.escape(f"the function {__name__}.<lambda> returned {text}\n")):
        returned(returns, function)
