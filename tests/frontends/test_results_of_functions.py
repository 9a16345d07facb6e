"""What functions in Python may return: types as SQL spells them, errors with place and arguments, nested values as tables take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import deltic
from deltic.domains import has_fields, with_fields
from deltic.errors import CircuitError, EvaluationError
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
