"""What expressions mean, case by case: values, types, the errors and their texts, and what is never evaluated."""

from __future__ import annotations

import datetime
import math
from decimal import Context, Decimal

import pyarrow as pa
import pytest

from deltic.errors import ArithmeticOverflow, CastFailure, DivisionByZero, EvaluationError, Span, TypeMismatch, UnknownName
from deltic.expr import (
    Call,
    Column,
    Expr,
    Literal,
    Value,
    can_fail,
    case,
    cast,
    common_type,
    known_functions,
    resolve,
)
from deltic.expr.columns import evaluate_columns
from deltic.expr.failures import row_of
from deltic.expr.interpreter import evaluate
from deltic.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
    decimal,
    interval,
)
from deltic.types import array_type

MONTHS = interval("MONTH", "MONTH")
DAY = datetime.date(2020, 1, 31)
WIDE = "12345678901234567890123456789"
NINES = "9" * 38
NOON = datetime.datetime(2020, 1, 31, 12, tzinfo=datetime.UTC)


def of(value: Value, type: Type) -> Literal:
    return Literal(value, type)


def text(value: str) -> Literal:
    return Literal(value, STRING)


def integer(value: int) -> Literal:
    return Literal(value, INT)


def both(expr: Expr, row: tuple[Value, ...] = ()) -> Value:
    """The value, by both evaluators, which agree."""
    columns = [pa.array([value]) for value in row]
    value = evaluate(expr, row)
    actual = evaluate_columns(expr, columns, 1)
    assert actual.type == expr.type.arrow
    assert repr(actual.to_pylist()[0]) == repr(value) or isinstance(value, datetime.datetime)
    return value


def test_times_within_a_unit_are_formatted_alike() -> None:
    """Once per unit, as each by itself: before 1970, at the ends of the calendar, and NULL."""
    ends = ["0001-01-01", "1969-12-31T23:59:59.999999", "1970-01-01", "2024-02-29T12:30:01.000005", "9999-12-31T23:59:59"]
    times = [None if i % 7 == 6 else datetime.datetime.fromisoformat(ends[i % 5]).replace(tzinfo=datetime.UTC) for i in range(70)]
    times += [NOON + datetime.timedelta(seconds=31 * i, microseconds=i) for i in range(200)]
    moment = Column(0, TIMESTAMP, True)
    for pattern in ("yyyy-MM-dd", "E 'at' h a", "HH:mm", "D H:mm:ss X", "ss.SSS", "''s''", "'S'", "[yyyy]"):
        expr = resolve("date_format", [moment, Literal(pattern, STRING)])
        column = evaluate_columns(expr, [pa.array(times, TIMESTAMP.arrow)], len(times))
        assert column.to_pylist() == [evaluate(expr, (time,)) for time in times], pattern


TYPES = [
    ("+", (TINYINT, TINYINT), TINYINT), ("+", (INT, BIGINT), BIGINT), ("+", (INT, FLOAT), DOUBLE), ("+", (FLOAT, FLOAT), FLOAT),
    ("/", (INT, INT), DOUBLE), ("/", (FLOAT, FLOAT), DOUBLE), ("div", (INT, INT), BIGINT), ("+", (STRING, INT), BIGINT),
    ("+", (STRING, decimal(2, 1)), DOUBLE), ("+", (NULL, INT), INT), ("+", (NULL, NULL), DOUBLE), ("+", (DATE, INT), DATE),
    ("+", (INT, DATE), DATE), ("-", (DATE, SMALLINT), DATE), ("+", (decimal(10, 2), INT), decimal(13, 2)),
    ("*", (decimal(38, 10), decimal(38, 10)), decimal(38, 6)), ("/", (decimal(2, 1), decimal(3, 2)), decimal(9, 6)),
    ("/", (decimal(38, 18), decimal(38, 18)), decimal(38, 6)), ("%", (decimal(2, 1), decimal(3, 2)), decimal(3, 2)),
    ("+", (decimal(38, 18), decimal(38, 0)), decimal(38, 6)), ("+", (decimal(5, 2), DOUBLE), DOUBLE), ("=", (STRING, INT), BOOLEAN),
    ("ceil", (DOUBLE,), BIGINT), ("ceil", (decimal(7, 2),), decimal(6, 0)), ("round", (decimal(4, 2),), decimal(3, 0)),
    ("coalesce", (INT, STRING), BIGINT), ("coalesce", (INT, decimal(2, 1)), decimal(11, 1)), ("greatest", (INT, BIGINT, FLOAT), DOUBLE),
    ("coalesce", (decimal(38, 0), decimal(38, 37)), decimal(38, 0)), ("nvl2", (DATE, INT, STRING), BIGINT), ("length", (INT,), INT),
    ("date_trunc", (STRING, DATE), TIMESTAMP), ("add_months", (TIMESTAMP, INT), DATE), ("abs", (STRING,), DOUBLE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "type"), TYPES)
def test_result_types(name: str, arguments: tuple[Type, ...], type: Type) -> None:
    assert resolve(name, [Column(i, t, True) for i, t in enumerate(arguments)]).type == type


def test_integer_literals_take_no_more_digits_than_they_have() -> None:
    assert resolve("+", [Column(0, decimal(10, 2), True), integer(5)]).type == decimal(11, 2)
    assert resolve("*", [Column(0, decimal(2, 1), True), of(2147483647, BIGINT)]).type == decimal(13, 1)


REFUSED = [
    ("+", (STRING, STRING), "+ does not accept STRING and STRING"), ("+", (BOOLEAN, BOOLEAN), "+ does not accept BOOLEAN and BOOLEAN"),
    ("*", (DATE, DATE), "* does not accept DATE and DATE"), ("+", (DATE, BIGINT), "+ does not accept DATE and BIGINT"),
    ("=", (INT, BOOLEAN), "= cannot compare INT and BOOLEAN"), ("=", (DATE, INT), "= cannot compare DATE and INT"),
    ("and", (INT, BOOLEAN), "argument 1 of and has the wrong type"), ("not", (INT,), "argument 1 of not has the wrong type"),
    ("if", (STRING, INT, INT), "a condition is not BOOLEAN"),
    ("coalesce", (BOOLEAN, INT), "the arguments of coalesce have no common type"),
    ("greatest", (STRING, INT), "the arguments of greatest have no common type"),
    ("greatest", (INT,), "greatest takes 2 or more arguments, found 1"),
    ("substring", (STRING, BOOLEAN), "argument 2 of substring has the wrong type"),
    ("year", (INT,), "argument 1 of year has the wrong type"),
    ("date_add", (DATE, BIGINT), "argument 2 of date_add has the wrong type"), ("div", (DOUBLE, INT), "div does not accept DOUBLE and INT"),
    ("isnan", (BOOLEAN,), "argument 1 of isnan has the wrong type"), ("round", (DOUBLE, INT), "the scale of round is not a constant"),
    ("upper", (), "upper takes 1 argument, found 0"), ("substring", (STRING,), "substring takes 2 to 3 arguments, found 1"),
    (">>", (BOOLEAN, INT), "argument 1 of >> has the wrong type"), ("<<", (DATE, INT), "argument 1 of << has the wrong type"),
    ("&", (decimal(2, 1), INT), "& does not accept DECIMAL(2,1) and INT"), ("in", (INT, BOOLEAN), "in cannot compare INT, BOOLEAN"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "message"), REFUSED)
def test_what_spark_refuses_is_refused(name: str, arguments: tuple[Type, ...], message: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        resolve(name, [Column(i, t, True) for i, t in enumerate(arguments)])
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("source", "target"),
    [(DATE, INT), (INT, DATE), (BOOLEAN, TIMESTAMP), (TIMESTAMP, BOOLEAN), (DATE, BOOLEAN), (BOOLEAN, DATE), (DATE, DOUBLE)],
)
def test_casts_that_do_not_exist(source: Type, target: Type) -> None:
    for lenient in (False, True):
        with pytest.raises(TypeMismatch, match=f"cannot cast {source.sql} to {target.sql}"):
            cast(Column(0, source, True), target, lenient=lenient)


def test_an_unknown_function_names_its_neighbours_and_its_place() -> None:
    query = "SELECT\n  uper(name) FROM t"
    with pytest.raises(UnknownName) as caught:
        resolve("uper", [Column(0, STRING, True)], Span(query, 9, 13, "v.sql"))
    assert str(caught.value) == (
        "[DELTIC-1002] v.sql:2:3: there is no function uper\n    uper(name) FROM t\n    ^^^^\nhelp: did you mean upper or power?"
    )
    assert "upper" in known_functions() and "add" not in known_functions()


def test_names_are_case_insensitive() -> None:
    assert resolve("SubStr", [text("abc"), integer(2)]) == resolve("substring", [text("abc"), integer(2)])


def test_an_invalid_pattern_is_refused_at_definition() -> None:
    for name, pattern in (("to_date", "YYYY"), ("to_timestamp", "E d M y"), ("date_format", "yyyy]"), ("try_to_date", "'open")):
        with pytest.raises(TypeMismatch, match="is invalid"):
            resolve(name, [text("1/2/2020"), text(pattern)])


def test_casts_that_do_nothing_are_left_out() -> None:
    column = Column(0, INT, True)
    assert cast(column, INT) is column
    assert cast(of(None, NULL), INT) == of(None, INT)
    assert cast(integer(5), decimal(3, 1)) == of(Decimal("5.0"), decimal(3, 1))


def test_a_literal_that_cannot_be_cast_fails_on_rows_not_at_definition() -> None:
    whole = cast(text("12x"), INT)
    assert evaluate_columns(whole, [], 0).to_pylist() == []
    with pytest.raises(CastFailure):
        evaluate_columns(whole, [], 1)


FAILURES = [
    (resolve("+", [of(2**31 - 1, INT), integer(1)]), ArithmeticOverflow, "arithmetic overflow: INT addition"),
    (resolve("*", [of(100, TINYINT), of(2, TINYINT)]), ArithmeticOverflow, "arithmetic overflow: TINYINT multiplication"),
    (resolve("negate", [of(-(2**63), BIGINT)]), ArithmeticOverflow, "arithmetic overflow: BIGINT negation"),
    (
        resolve("+", [of(Decimal(10**38 - 1), decimal(38, 0)), integer(1)]),
        ArithmeticOverflow,
        "arithmetic overflow: DECIMAL(38,0) addition",
    ),
    (resolve("div", [of(-(2**63), BIGINT), integer(-1)]), ArithmeticOverflow, "arithmetic overflow: BIGINT division"),
    (resolve("/", [integer(1), integer(0)]), DivisionByZero, "division by zero"),
    (resolve("%", [of(1.0, DOUBLE), of(0.0, DOUBLE)]), DivisionByZero, "division by zero"),
    (cast(text("12x"), INT), CastFailure, "the value '12x' of type STRING cannot be cast to INT because it is malformed"),
    (cast(integer(300), TINYINT), CastFailure, "the value 300 of type INT cannot be cast to TINYINT due to an overflow"),
    (cast(of(1e10, DOUBLE), INT), CastFailure, "the value 1.0E10 of type DOUBLE cannot be cast to INT due to an overflow"),
    (cast(text("99.96"), decimal(3, 1)), CastFailure, "the value '99.96' of type STRING cannot be cast to DECIMAL(3,1) due to an overflow"),
    (resolve("date_add", [of(datetime.date(9999, 12, 31), DATE), integer(1)]), ArithmeticOverflow, "a date is outside the years 1 to 9999"),
    (
        resolve("timestamp_seconds", [of(Decimal(10**30 + 1).scaleb(-30, Context(prec=38)), decimal(38, 30))]),
        EvaluationError,
        "timestamp_seconds: more than six places",
    ),
    (resolve("make_date", [integer(2020), integer(2), integer(30)]), EvaluationError, "make_date(2020, 2, 30) is not a date"),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "kind", "message"), FAILURES)
def test_failures(expr: Expr, kind: type[EvaluationError], message: str) -> None:
    assert can_fail(expr)
    with pytest.raises(kind) as by_row:
        evaluate(expr, ())
    with pytest.raises(kind) as by_column:
        evaluate_columns(expr, [], 3)
    assert by_row.value.message == by_column.value.message == message
    assert row_of(by_column.value) == 0


def test_an_error_shows_its_place_and_its_row() -> None:
    query = "SELECT a / b FROM t"
    quotient = resolve("/", [Column(0, INT, False), Column(1, INT, False)], Span(query, 7, 12, "v.sql"))
    with pytest.raises(DivisionByZero) as caught:
        evaluate_columns(quotient, [pa.array([1, 2, 3], pa.int32()), pa.array([1, 0, 0], pa.int32())], 3)
    assert row_of(caught.value) == 1
    assert str(caught.value) == (
        "[DELTIC-3002] v.sql:1:8: division by zero\n  SELECT a / b FROM t\n         ^^^^^\nhelp: use nullif(divisor, 0) to get NULL instead"
    )


def test_the_least_row_fails_whichever_part_is_evaluated_first() -> None:
    """The left side fails on row 2, the right one on row 1: row 1 is reported."""
    left = resolve("/", [integer(1), Column(0, INT, False)])
    right = cast(Column(1, STRING, False), DOUBLE)
    with pytest.raises(CastFailure) as caught:
        evaluate_columns(resolve("+", [left, right]), [pa.array([1, 1, 0], pa.int32()), pa.array(["1", "x", "2"])], 3)
    assert row_of(caught.value) == 1


DIVIDE = resolve("/", [integer(1), Column(0, INT, True)])
IS_ZERO = resolve("=", [Column(0, INT, True), integer(0)])
BIG = resolve(">", [DIVIDE, of(0.5, DOUBLE)])
GUARDED = [
    (resolve("or", [IS_ZERO, BIG]), [True, True, None]), (resolve("and", [resolve("not", [IS_ZERO]), BIG]), [False, True, None]),
    (case([(IS_ZERO, of(-1.0, DOUBLE))], DIVIDE), [-1.0, 1.0, None]),
    (resolve("if", [IS_ZERO, of(-1.0, DOUBLE), DIVIDE]), [-1.0, 1.0, None]),
    (resolve("coalesce", [resolve("nullif", [IS_ZERO, of(False, BOOLEAN)]), BIG]), [True, True, None]),
    (resolve("in", [Column(0, INT, True), integer(0), cast(DIVIDE, INT)]), [True, True, None]),
    (resolve("+", [resolve("nullif", [Column(0, INT, True), integer(0)]), DIVIDE]), [None, 2.0, None]),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "expected"), GUARDED)
def test_parts_that_are_not_reached_are_not_evaluated(expr: Expr, expected: list[Value]) -> None:
    column = pa.array([0, 1, None], pa.int32())
    assert evaluate_columns(expr, [column], 3).to_pylist() == expected
    assert [evaluate(expr, (value,)) for value in (0, 1, None)] == expected


VALUES = [
    (resolve("/", [integer(7), integer(2)]), 3.5),
    (resolve("div", [integer(-7), integer(2)]), -3), (resolve("%", [integer(-7), integer(3)]), -1),
    (resolve("pmod", [integer(-7), integer(3)]), 2), (resolve("round", [of(2.675, DOUBLE), integer(2)]), 2.68),
    (resolve("round", [integer(25), integer(-1)]), 30), (resolve("round", [of(Decimal("-2.5"), decimal(2, 1))]), Decimal(-3)),
    (resolve("=", [of(math.nan, DOUBLE), of(math.nan, DOUBLE)]), True),
    (resolve("<", [of(math.inf, DOUBLE), of(math.nan, DOUBLE)]), True),
    (resolve("=", [of(0.0, DOUBLE), of(-0.0, DOUBLE)]), True), (resolve("<=>", [of(None, INT), of(None, INT)]), True),
    (resolve("<", [text("Z"), text("a")]), True),
    (resolve("=", [text("1"), integer(1)]), True), (resolve("<", [text("z"), text("é")]), True),
    (cast(of(1e10, DOUBLE), STRING), "1.0E10"), (cast(of(1e-4, DOUBLE), STRING), "1.0E-4"), (cast(of(-0.0, DOUBLE), STRING), "-0.0"),
    (cast(of(5e-324, DOUBLE), STRING), "4.9E-324"), (cast(of(Decimal("0.10"), decimal(3, 2)), STRING), "0.10"),
    (cast(text(" 12 "), INT), 12), (cast(text("1.25"), decimal(3, 1)), Decimal("1.3")), (cast(text("yes"), BOOLEAN), True),
    (cast(text("2020-2-3"), DATE), datetime.date(2020, 2, 3)), (cast(text("x"), INT, lenient=True), None),
    (cast(of(math.nan, DOUBLE), decimal(3, 1)), None), (cast(of(2.0**63, DOUBLE), BIGINT), 2**63 - 1),
    (resolve("upper", [text("straße")]), "STRASSE"), (resolve("substring", [text("hello"), integer(-10), integer(7)]), "he"),
    (resolve("like", [text("a%c"), text("a#%_"), text("#")]), True), (resolve("like", [text("a%cd"), text("a#%_"), text("#")]), False),
    (resolve("instr", [text("hello"), text("l")]), 3), (resolve("concat_ws", [text(","), text("a"), of(None, STRING), text("b")]), "a,b"),
    (resolve("trunc", [of(DAY, DATE), text("week")]), datetime.date(2020, 1, 27)),
    (resolve("add_months", [of(DAY, DATE), integer(1)]), datetime.date(2020, 2, 29)),
    (resolve("extract", [text("dow"), of(DAY, DATE)]), 6),
    (resolve("extract", [text("SECOND"), of(NOON, TIMESTAMP)]), Decimal("0.000000")),
    (resolve("datediff", [of(DAY, DATE), text("2019-12-31")]), 31),
    (resolve("+", [of(DAY, DATE), of(1, MONTHS)]), datetime.date(2020, 2, 29)),
    (resolve("+", [of(DAY, DATE), of(datetime.timedelta(hours=1), DAY_TO_SECOND)]), datetime.datetime(2020, 1, 31, 1, tzinfo=datetime.UTC)),
    (resolve("-", [of(NOON, TIMESTAMP), of(2, MONTHS)]), datetime.datetime(2019, 11, 30, 12, tzinfo=datetime.UTC)),
    (resolve("locate", [text("a"), of(None, STRING), of(None, INT)]), 0), (resolve("unix_timestamp", [of(NOON, TIMESTAMP)]), 1580472000),
    (resolve("greatest", [integer(1), of(None, INT), of(2, BIGINT)]), 2), (resolve("normalize", [of(-0.0, DOUBLE)]), 0.0),
    (resolve("zero_signs", [of((0.0, 2.0, -0.0, None), array_type(DOUBLE))]), "10"),
    (resolve("zero_signs", [of((0.0, 2.0), array_type(DOUBLE))]), ""),
    (resolve("is_json", [text(' {"a": [1e5, null], "a": "\\u00e9"}'), text("object")]), True),
    (resolve("is_json", [text("[1,]"), text("value")]), False), (resolve("is_json", [text("{'a': 1}"), text("value")]), False),
    (resolve("is_json", [text("-0.5"), text("scalar")]), True), (resolve("is_json", [text("NaN"), text("value")]), False),
    (resolve("is_json", [text("[]"), text("array")]), True), (resolve("is_json", [text("[]"), text("scalar")]), False),
    (resolve("is_json", [text("01"), text("value")]), False), (resolve("is_json", [text(""), text("value")]), False),
    (resolve("is_json", [of(None, STRING), text("value")]), None), (resolve("is_json", [text('"a\tb"'), text("value")]), False),
    (resolve("to_char", [of(Decimal(f"{WIDE}.5"), decimal(38, 1)), text("9" * 29 + ".9")]), f"{WIDE}.5"),
    (resolve("to_char", [of(Decimal(f"-{WIDE}.5"), decimal(38, 1)), text("S" + "9" * 29 + ".9")]), f"-{WIDE}.5"),
    (resolve("to_number", [text(f"-{WIDE}"), text("S" + "9" * 29)]), Decimal(f"-{WIDE}")),
    (resolve("try_to_number", [text(f"<{WIDE}.5>"), text("9" * 29 + ".9PR")]), Decimal(f"-{WIDE}.5")),
    (resolve("to_number", [text("1.5"), text("9.00")]), Decimal("1.50")),
    (resolve("try_to_number", [text("1"), text("9.0")]), Decimal("1.0")),
    (resolve("try_to_number", [text("1.5"), text("9.0900")]), Decimal("1.5000")),
    (resolve("try_to_number", [text("1.555"), text("9.00")]), None), (resolve("try_to_number", [text(".5"), text("0.00")]), None),
    (resolve("try_to_number", [text(".5"), text("9.00")]), Decimal("0.50")), (resolve("try_to_number", [text("."), text("9.00")]), None),
    (resolve("abs", [of(Decimal(NINES), decimal(38, 0))]), Decimal(NINES)),
    (resolve("abs", [of(Decimal(f"-{WIDE}123456789"), decimal(38, 0))]), Decimal(f"{WIDE}123460000")),
    (resolve(">>", [of(Decimal("2.5"), decimal(2, 1)), integer(1)]), 1), (resolve("<<", [of(1.0, DOUBLE), integer(2)]), 4),
    (resolve("shiftrightunsigned", [of(-1.5, FLOAT), of(Decimal("28.9"), decimal(3, 1))]), 15),
    (resolve("try_multiply", [of(1, MONTHS), cast(text("x"), INT)]), None),
    (resolve("try_add", [resolve("*", [of(2**31 - 1, MONTHS), integer(2)]), of(1, MONTHS)]), None),
    (resolve("widened", [text("a")]), "a"), (resolve("widened", [of(None, INT)]), None),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "expected"), VALUES)
def test_values(expr: Expr, expected: Value) -> None:
    actual = both(expr)
    assert actual == expected and type(actual) is type(expected)
    assert repr(actual) == repr(expected) or not isinstance(expected, float)


def test_normalize_applies_only_to_floats() -> None:
    column = Column(0, INT, True)
    assert resolve("normalize", [column]) is column
    assert isinstance(resolve("normalize", [Column(0, FLOAT, True)]), Call)


def test_like_with_a_bad_escape_is_refused_at_once() -> None:
    for pattern in ("a#", "a#b"):
        with pytest.raises(TypeMismatch, match="escape character"):
            resolve("like", [text("x"), text(pattern), text("#")])
    with pytest.raises(EvaluationError, match="escape character"):
        evaluate_columns(resolve("like", [Column(0, STRING, False), Column(1, STRING, False)]), [pa.array(["x"]), pa.array(["a\\b"])], 1)


def test_common_types() -> None:
    assert common_type([NULL, NULL]) == NULL
    assert common_type([INT, NULL, BIGINT]) == BIGINT
    assert common_type([DATE, TIMESTAMP]) == TIMESTAMP
    assert common_type([DATE, INT]) is None


def test_expressions_that_cannot_fail() -> None:
    number, price = Column(0, INT, True), Column(1, decimal(10, 2), True)
    assert not can_fail(resolve("/", [number, integer(2)]))
    assert not can_fail(resolve("+", [price, price]))
    assert not can_fail(resolve("+", [cast(number, DOUBLE), of(1.0, DOUBLE)]))
    assert not can_fail(cast(Column(2, STRING, True), INT, lenient=True))
    assert can_fail(resolve("/", [number, number])) and can_fail(resolve("+", [number, integer(1)]))
    assert can_fail(resolve("upper", [cast(cast(Column(2, STRING, True), INT), STRING)]))
