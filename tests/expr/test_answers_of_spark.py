"""Types and values of single calls as Spark 4.2 gives them, where random terms and edge values do not reach."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import deltic
from deltic.errors import CastFailure, EvaluationError, QueryError
from deltic.expr import can_fail
from deltic.expr.columns import evaluate_columns
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Column
from deltic.expr.registry import resolve
from deltic.expr.typing import cast, cast_can_fail, tightest_type
from deltic.frontends.sql import bind_query
from deltic.plan.evaluate import evaluate as answer
from deltic.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Type,
    decimal,
)
from deltic.types import interval, map_type

GREATEST = 2.0**128 - 2.0**104
HOUR = interval("HOUR", "HOUR")


class NoTables:
    def relation(self, name: str) -> None: ...

    def names(self) -> tuple[str, ...]:
        return ()

    def functions(self) -> dict[str, Any]:
        return {}


def typed(sql: str) -> tuple[str, Any]:
    """The type and the value of a constant."""
    plan = bind_query(f"SELECT {sql} AS c", "test", NoTables())
    ((value,),) = answer(plan, {})
    return plan.schema.fields[0].type.sql, value


def both(value: Any, source: Type, target: Type) -> Any:
    """The value of a cast, which is the same of a row and of a column."""
    expr = cast(Column(0, source, True), target)
    (of_column,) = evaluate_columns(expr, [pa.array([value], source.arrow)], 1).to_pylist()
    of_row = evaluate(expr, (value,))
    assert of_row == of_column or of_row != of_row, (of_row, of_column)
    return of_row


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e39", math.inf),
        ("-1e39", -math.inf),
        ("3.4028236e38", math.inf),
        ("3.4028235677973366e38", GREATEST),  # the double nearest to it is midway, and the text is below
        ("340282356779733661637539395458142568447", GREATEST),
        ("340282356779733661637539395458142568448", math.inf),
        ("-340282356779733661637539395458142568448", -math.inf),
    ],
)
def test_text_beyond_the_greatest_float_is_infinite(text: str, value: float) -> None:
    assert both(text, STRING, FLOAT) == value


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["12:34:56", "00:00:00.000001"], [datetime.time(12, 34, 56), datetime.time(0, 0, 0, 1)]),
        ([None, "23:59:59.5"], [None, datetime.time(23, 59, 59, 500000)]),
        ([None], [None]),
        ([], []),
        (["12:34:56", "1:2:3 PM"], [datetime.time(12, 34, 56), datetime.time(13, 2, 3)]),
    ],
)
def test_columns_of_text_are_cast_to_times(texts: list[str | None], values: list[datetime.time | None]) -> None:
    expr = cast(Column(0, STRING, True), TIME)
    assert evaluate_columns(expr, [pa.array(texts, pa.string())], len(texts)).to_pylist() == values


def test_a_text_that_is_no_time_fails_on_its_row() -> None:
    with pytest.raises(CastFailure, match="'24:00:00'"):
        evaluate_columns(cast(Column(0, STRING, True), TIME), [pa.array(["12:34:56", "24:00:00"])], 2)


def test_times_are_read_from_text_in_a_view() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (s STRING); CREATE MATERIALIZED VIEW v AS SELECT CAST(s AS TIME) AS x FROM t")
        session.sql("INSERT INTO t VALUES ('12:34:56')")
        assert session.view("v").rows() == [{"x": datetime.time(12, 34, 56)}]


def test_a_timestamp_of_many_digits_is_rounded_twice_on_the_way_to_a_double() -> None:
    moment = datetime.datetime(2262, 4, 11, 23, 47, 16, 854775, tzinfo=datetime.UTC)
    assert both(moment, TIMESTAMP, DOUBLE) == 9223372036.854776
    assert typed("CAST(TIMESTAMP '2262-04-11 23:47:16.854775' AS DOUBLE)") == ("DOUBLE", 9223372036.854776)


@pytest.mark.parametrize(
    ("zone", "hour"), [("PST", 17), ("JST", 1), ("CST", 15), ("IST", 4), ("EST", 15), ("HST", 20), ("America/New_York", 14)]
)
def test_short_names_of_zones_are_those_of_java(zone: str, hour: int) -> None:
    moment = both(f"2020-07-01 10:00:00 {zone}", STRING, TIMESTAMP)
    assert moment.hour == hour
    assert typed(f"make_timestamp(2020, 7, 1, 10, 0, 0, '{zone}')") == ("TIMESTAMP", moment)


@pytest.mark.parametrize("zone", ["PST", "EST", "JST"])
def test_patterns_read_no_short_names_of_zones(zone: str) -> None:
    with pytest.raises((EvaluationError, QueryError), match="does not fit the pattern"):
        typed(f"to_timestamp('2020-01-01 {zone}', 'yyyy-MM-dd VV')")
    with pytest.raises(CastFailure):
        both("2020-01-01 10:00:00 pst", STRING, TIMESTAMP)


@pytest.mark.parametrize(("text", "read"), [(" 5\t", True), ("\x015\x7f", True), ("\u00a05", False), ("\u20285", False)])
def test_blanks_around_an_interval_are_those_of_ascii(text: str, read: bool) -> None:
    if read:
        assert both(text, STRING, HOUR) == datetime.timedelta(hours=5)
    else:
        with pytest.raises(CastFailure):
            both(text, STRING, HOUR)


def test_words_of_an_interval_are_those_of_ascii() -> None:
    with pytest.raises(CastFailure):
        both("INTERVAL '1' M\u0131NUTE", STRING, interval("MINUTE", "MINUTE"))


@pytest.mark.parametrize(
    ("sql", "type"),
    [
        ("NULL / 1.5BD", "DOUBLE"),
        ("try_divide(NULL, 1.5BD)", "DOUBLE"),
        ("1.5BD / NULL", "DECIMAL(8,6)"),
        ("CAST(NULL AS INT) / 1.5BD", "DECIMAL(17,6)"),
        ("1Y * 1.5BD", "DECIMAL(6,1)"),
        ("1Y + 1.5BD", "DECIMAL(5,1)"),
        ("1S * 1.5BD", "DECIMAL(4,1)"),
        ("1 * 1.5BD", "DECIMAL(4,1)"),
        ("array_union(array(1F), array(2L))", "ARRAY<FLOAT>"),
        ("array_append(array(1F), 2)", "ARRAY<FLOAT>"),
        ("array_append(array(1L), 2F)", "ARRAY<FLOAT>"),
        ("array_except(array(array(1F)), array(array(1L)))", "ARRAY<ARRAY<FLOAT>>"),
        ("array_union(array(1D), array(1L))", "ARRAY<DOUBLE>"),
        ("array(1F, 2L)", "ARRAY<DOUBLE>"),
        ("map_zip_with(map(1F, 1), map(1L, 2), (k, a, b) -> a)", "MAP<DOUBLE, INT>"),
        ("map_concat(map(1, 1F), map(2, 2L))", "MAP<INT, DOUBLE>"),
        ("map_concat(map(1, 1.5BD), map(2, '3'))", "MAP<INT, DOUBLE>"),
        ("map_concat(map(1, X'00'), map(2, '3'))", "MAP<INT, BINARY>"),
    ],
)
def test_types_of_results(sql: str, type: str) -> None:
    assert typed(sql)[0] == type


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("element_at(map(16777216F, 1), 16777217L)", 1),
        ("element_at(map(16777216, 'a', 16777217, 'b'), 16777217F)", "a"),
        ("element_at(map(16777217, 'b', 16777216, 'a'), 16777217F)", "b"),
        ("try_element_at(map(9007199254740992L, 'a', 9007199254740993L, 'b'), 9007199254740993D)", "a"),
        ("element_at(map(array(16777216), 'a', array(16777217), 'b'), array(16777217F))", "a"),
        ("element_at(map(1, 'a'), 1.5F)", None),
        ("element_at(map(0, 'a'), -0.0F)", "a"),
        ("element_at(map(X'FF', 'a'), X'FF')", "a"),
        ("map_contains_key(map(16777216, 'a', 16777217, 'b'), 16777217F)", True),
        ("array_position(array(16777217L), 16777216F)", 1),
        ("array_contains(array(16777217L), 16777216F)", True),
        ("array_contains(array(16777217L), 16777216D)", False),
        ("arrays_overlap(array(16777217L), array(16777216F))", True),
        ("array_remove(array(16777217L), 16777216F)", ()),
        ("map_concat(map(1, 1.5BD), map(2, '3'))", ((1, 1.5), (2, 3.0))),
        ("1Y * 1.5BD", Decimal("1.5")),
    ],
)
def test_an_integer_beside_a_float_is_a_float_in_functions_of_arrays_and_maps(sql: str, value: Any) -> None:
    assert typed(sql)[1] == value


@pytest.mark.parametrize("sql", ["map_concat(map('1', 1), map(2, 1))", "coalesce(map('1', 1), map(2, 1))"])
def test_keys_of_maps_are_not_cast_from_text(sql: str) -> None:
    with pytest.raises(QueryError, match="no common type"):
        typed(sql)


@pytest.mark.parametrize(
    ("line", "fields"), [('"', ('"', None)), ('x,"', ("x", '"')), ('""', (None, None)), ('"ab', ("ab", None)), ('",', (",", None))]
)
def test_a_quote_at_the_end_of_a_line_of_csv_is_itself(line: str, fields: tuple[str | None, ...]) -> None:
    assert typed(f"from_csv('{line}', 'a STRING, b STRING')")[1] == fields


def test_the_first_of_keys_that_become_equal_is_found_in_a_column() -> None:
    with deltic.Session() as session:
        session.sql(
            "CREATE TABLE t (m MAP<BIGINT, STRING>, k DOUBLE); CREATE MATERIALIZED VIEW v AS SELECT k, element_at(m, k) AS y FROM t",
        )
        whole = {2**53: "a", 2**53 + 1: "b", 5: "c"}
        session.insert("t", [{"m": whole, "k": 2.0**53}, {"m": whole, "k": 5.0}, {"m": whole, "k": 6.0}, {"m": None, "k": 5.0}])
        found = sorted((row["k"], str(row["y"])) for row in session.view("v").rows())
    assert found == [(5.0, "None"), (5.0, "c"), (6.0, "None"), (2.0**53, "a")]


def test_no_key_of_a_map_fails_to_be_cast_to_the_type_that_a_lookup_compares() -> None:
    decimals = [decimal(precision, scale) for precision in (1, 10, 19, 38) for scale in (0, 5, 38) if scale <= precision]
    types = [BIGINT, INT, TINYINT, FLOAT, DOUBLE, STRING, BINARY, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, TIME, HOUR, *decimals]
    pairs = [(key, common) for key in types for sought in types if (common := tightest_type(key, sought)) is not None]
    assert (BIGINT, DOUBLE) in pairs and (DATE, TIMESTAMP) in pairs
    assert not [(key.sql, common.sql) for key, common in pairs if cast_can_fail(key, common)]
    assert not can_fail(resolve("element_at", [Column(0, map_type(BIGINT, STRING), True), Column(1, DOUBLE, True)], None))
