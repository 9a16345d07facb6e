"""Support for the tests of expressions: a table of edge values, and terms, each an expression with its text in Spark's SQL.

Columns: b BOOLEAN, t TINYINT, h SMALLINT, i j INT, l m BIGINT, f g FLOAT, x y DOUBLE, p q DECIMAL(10,2), r DECIMAL(38,10),
w DECIMAL(38,0), v DECIMAL(5,5), s a STRING, u STRING of numbers, k STRING of dates, dt du DATE, ts tt TIMESTAMP,
iv INTERVAL DAY TO SECOND, iw INTERVAL HOUR, im INTERVAL YEAR TO MONTH, which frames have as INT, bn BINARY, nt TIMESTAMP_NTZ, tm TIME,
ar ARRAY<INT>, st STRUCT<n: DOUBLE, t: STRING>.
"""

from __future__ import annotations

import datetime
import math
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from deltic.errors import EvaluationError
from deltic.expr.functions import resolve
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Column, Expr, Literal, Value
from deltic.expr.typing import case, cast
from deltic.intervals import FIRST, render
from deltic.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DAYS,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    YEAR_TO_MONTH,
    Field,
    Schema,
    Type,
    decimal,
    interval,
)
from deltic.types import array_type
from deltic.types import struct as struct_type

UTC = datetime.UTC
NAN, INF = math.nan, math.inf


def single(value: float) -> float:
    """The nearest float32."""
    result: float = struct.unpack("f", struct.pack("f", value))[0]
    return result


def instant(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)


_INTS = {bits: (0, 1, -1, 2, 3, -7, 10, 100, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), -(2 ** (bits - 1)) + 1) for bits in (8, 16, 32, 64)}
_DOUBLES = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1.005, 2.675, -0.4, 1e-7, 123456.789, 1e7, 1e10, 9.007199254740993e15, 2.0**31,
    -(2.0**31), 2.0**63, -(2.0**63), 1e22, 1.7976931348623157e308, 2.2250738585072014e-308, INF, -INF, NAN, 0.1, 0.3, 3.0,
    -7.5)  # fmt: skip
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, single(1.1), single(2.675), 16777216.0, single(1e10), single(3.4028234e38),
    single(1e-45), INF, -INF, NAN, 3.0, -7.5)  # fmt: skip
_MONEY = tuple(
    map(Decimal, ("0.00", "1.00", "-1.00", "0.01", "-0.01", "2.50", "-2.50", "0.05", "99999999.99", "-99999999.99", "3.00", "7.35"))
)
_WIDE = tuple(map(Decimal, ("0.0000000000", "1.0000000000", "-1.0000000000", "0.0000000001", "9999999999999999999999999999.9999999999",
    "-9999999999999999999999999999.9999999999", "123456789012345678.9012345678", "2.5000000000", "-3.0000000000")))  # fmt: skip
_WHOLE = tuple(map(Decimal, ("0", "1", "-1", "7", "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999",
    "9223372036854775807", "9223372036854775808", "10000000000000000000", "-3")))  # fmt: skip
_SMALL = tuple(map(Decimal, ("0.00000", "0.00001", "-0.00001", "0.99999", "-0.99999", "0.50000", "0.12345")))
_TEXTS = ("", " ", "a", "abc", "ABC", "aBc dEf", "  pad  ", "straße", "ΣΑΣ", "ΑΣ", "é", "日本語", "𝒳y", "a%b_c", "a\\b", "abcabc", "\t x\n",
    "aa", "b", "İ",
    "a\nb")  # fmt: skip
_NUMERALS = ("0", "12", "-7", " 12 ", "+5", "1.5", "-0", "1e3", "12x", "", "128", "32768", "2147483648", "9223372036854775808", "inf",
    "-Infinity", "NaN", "1.25", "99.995", ".5", "5.", "true", "no", "1e400", "0x1p3", "3f", "abc", "\x7f8", "1e-50", "00012",
    "1e39", "-3.4028235677973366e38", "3.4028235677973365e38")  # fmt: skip
_CALENDAR = ("2020-02-29", "2020-2-3", "1969-12-31", "2020-02-30", "2020", "2020-07", " 2020-01-01 ", "2020-01-01T10:20:30.123456789",
    "2020-01-01 1:2:3", "2020-01-01 23:59:60", "2020-01-01 10:20:30Z", "2020-01-01 10:20:30.5+05:30",
    "2020-01-01 10:20:30 Europe/Paris", "2020-01-01x", "2020-01-01 x", "0001-01-01", "9999-12-31 23:59:59.999999", "20200101", "",
    "1960-01-01 00:00:00.000001", "2020-01-01 10", "2020-01-01 10:20", "2020-01-01 10:20:", "2020-01-01 10:20:30+5",
    "2020-01-01 10:20:30 -0800", "2020-07-01 10:20:30 PST")  # fmt: skip
_DATES = tuple(map(datetime.date.fromisoformat, ("1970-01-01", "1969-12-31", "2020-02-29", "2020-01-31", "2019-12-30", "2021-01-03",
    "1900-02-28", "0001-01-01", "9999-12-31", "2000-12-31", "1582-10-15", "1582-10-04", "2024-06-15")))  # fmt: skip
_INSTANTS = tuple(map(instant, ("1970-01-01T00:00:00", "1969-12-31T23:59:59.999999", "2020-02-29T12:34:56.789123",
    "1960-01-01T12:00:00.9", "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999", "2020-01-31T00:00:00", "2021-01-03T01:02:03.1",
    "1582-10-10T06:00:00", "2024-06-15T23:00:00.000001", "2262-04-11T23:47:16.854775")))  # fmt: skip

_SPANS = tuple(datetime.timedelta(microseconds=n) for n in (0, 1, -1, 500_000, 86_400_000_000, -93_784_500_000, 2**63 - 1, FIRST))

COLUMNS: tuple[tuple[str, Type, Sequence[Value]], ...] = (
    ("b", BOOLEAN, (True, False)),
    ("t", TINYINT, _INTS[8]),
    ("h", SMALLINT, _INTS[16]),
    ("i", INT, _INTS[32]),
    ("j", INT, (*_INTS[32], 5, 12, -30)),
    ("l", BIGINT, _INTS[64]),
    ("m", BIGINT, _INTS[64]),
    ("f", FLOAT, _FLOATS),
    ("g", FLOAT, _FLOATS),
    ("x", DOUBLE, _DOUBLES),
    ("y", DOUBLE, _DOUBLES),
    ("p", decimal(10, 2), _MONEY),
    ("q", decimal(10, 2), _MONEY),
    ("r", decimal(38, 10), _WIDE),
    ("w", decimal(38, 0), _WHOLE),
    ("v", decimal(5, 5), _SMALL),
    ("s", STRING, _TEXTS),
    ("a", STRING, _TEXTS),
    ("u", STRING, _NUMERALS),
    ("k", STRING, _CALENDAR),
    ("dt", DATE, _DATES),
    ("du", DATE, _DATES),
    ("ts", TIMESTAMP, _INSTANTS),
    ("tt", TIMESTAMP, _INSTANTS),
    ("iv", DAY_TO_SECOND, _SPANS),
    ("iw", interval("HOUR", "HOUR"), tuple(datetime.timedelta(hours=n) for n in (0, 1, -1, 25, 2_562_047_788, -100))),
    ("bn", BINARY, (b"", b"\x00", b"\xff\xfe", b"text", "é".encode())),
    ("nt", TIMESTAMP_NTZ, tuple(moment.replace(tzinfo=None) for moment in _INSTANTS)),
    ("tm", TIME, tuple(map(datetime.time.fromisoformat, ("00:00:00", "23:59:59.999999", "12:34:56.789", "00:00:00.000001", "09:00:00")))),
    ("ar", array_type(INT), ((), (1,), (None,), (1, None, -7), (2**31 - 1, 0), (3, 3, 1))),
    ("st", struct_type((Field("n", DOUBLE), Field("t", STRING))), ((0.0, "a"), (-0.0, "a"), (NAN, None), (None, ""), (1.5, "é"))),
    ("im", YEAR_TO_MONTH, (0, 1, -1, 12, -14, 2**31 - 1, -(2**31), 25)),
)

SCHEMA = Schema(tuple(Field(name, type) for name, type, _ in COLUMNS))


@dataclass(frozen=True)
class Term:
    """An expression over SCHEMA and its SQL."""

    sql: str
    expr: Expr


COLUMN = {name: Term(name, Column(i, type, True, name)) for i, (name, type, _) in enumerate(COLUMNS)}


def edge_rows(count: int, seed: int) -> list[tuple[Value, ...]]:
    """Rows of edge values in random company; every value of every column occurs where count ≥ 40, one in eight is NULL."""
    draw = random.Random(seed)
    columns = []
    for _, _, values in COLUMNS:
        cells = [*values, *draw.choices(values, k=count)][:count]
        draw.shuffle(cells)
        columns.append([None if draw.random() < 0.125 else cell for cell in cells])
    return list(zip(*columns, strict=True))


def table_of(rows: Sequence[tuple[Value, ...]]) -> pa.Table:
    """The rows as an Arrow table."""
    cells = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(cell, field.type.arrow) for cell, field in zip(cells, SCHEMA, strict=True)], schema=SCHEMA.arrow)


def call(name: str, *terms: Term) -> Term:
    return Term(f"{name}({', '.join(t.sql for t in terms)})", resolve(name, [t.expr for t in terms]))


def infix(symbol: str, left: Term, right: Term) -> Term:
    return Term(f"({left.sql} {symbol} {right.sql})", resolve(symbol, [left.expr, right.expr]))


def prefix(symbol: str, name: str, term: Term) -> Term:
    return Term(f"({symbol} {term.sql})", resolve(name, [term.expr]))


def suffix(words: str, name: str, term: Term) -> Term:
    return Term(f"({term.sql} {words})", resolve(name, [term.expr]))


def casting(term: Term, type: Type, lenient: bool = False) -> Term:
    return Term(f"{'try_cast' if lenient else 'cast'}({term.sql} AS {type.sql})", cast(term.expr, type, lenient=lenient))


def literal(value: Value, type: Type) -> Term:
    """A literal of a type that SQL can write."""
    match value:
        case int() | datetime.timedelta() if type.is_interval:
            text = render(value, type)
        case None:
            text = "NULL" if type == NULL else f"CAST(NULL AS {type.sql})"
        case str():
            text = "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case bool():
            text = str(value).lower()
        case int():
            text = {"TINYINT": f"{value}Y", "SMALLINT": f"{value}S", "BIGINT": f"{value}L"}.get(type.name, str(value))
        case float():
            text = f"CAST('{value!r}' AS {type.sql})"
        case Decimal():
            text = f"CAST('{value}' AS {type.sql})"
        case datetime.time():
            text = f"TIME '{value.isoformat()}'"
        case datetime.datetime():
            text = f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}'"
        case _:
            text = f"DATE '{value.isoformat()}'"
    return Term(text, Literal(value, type))


def number(value: int) -> Term:
    return literal(value, INT)


def string(value: str) -> Term:
    return literal(value, STRING)


def choose(condition: Term, then: Term, otherwise: Term) -> Term:
    sql = f"CASE WHEN {condition.sql} THEN {then.sql} ELSE {otherwise.sql} END"
    return Term(sql, case([(condition.expr, then.expr)], otherwise.expr))


def _arithmetic() -> list[Term]:
    numbers = [COLUMN[c] for c in "thilfxprwv"]
    pairs = [(c, d) for c in numbers for d in numbers] + [(COLUMN[c], COLUMN[d]) for c, d in ("ij", "lm", "fg", "xy", "pq")]
    terms = [infix(symbol, c, d) for symbol in "+-*/%" for c, d in pairs]
    terms += [infix("div", c, d) for c, d in pairs if not (c.expr.type.is_float or d.expr.type.is_float)]
    terms += [call("pmod", COLUMN[c], COLUMN[d]) for c, d in ("tt", "hi", "ij", "lm", "fg", "xy", "pq", "rp", "ip")]
    terms += [infix(symbol, COLUMN[c], number(n)) for symbol in "+-*/%" for c in "tilfxprwv" for n in (0, 1, 7)]
    terms += [infix(symbol, COLUMN[c], COLUMN[d]) for symbol in "+*/%" for c, d in ("ui", "up", "xu")]
    terms += [infix(symbol, COLUMN[c], COLUMN[d]) for symbol in "&|^" for c, d in ("th", "ij", "lm", "il")]
    terms += [prefix("~", "~", COLUMN[c]) for c in "thil"]
    terms += [prefix("-", "negate", c) for c in numbers] + [call("abs", c) for c in numbers]
    return terms


def _numeric() -> list[Term]:
    numbers = [COLUMN[c] for c in "thilfxprwvu"]
    names = ("ceil", "floor", "sign", "sqrt", "exp", "ln", "log10", "log2", "log", "isnan", "round", "bround")
    terms = [call(name, c) for name in names for c in numbers]
    terms += [call(name, c, number(n)) for name in ("round", "bround") for c in numbers for n in (-12, -2, -1, 0, 1, 2, 3, 9, 20)]
    terms += [call("round", c, literal(None, INT)) for c in (COLUMN["x"], COLUMN["i"])]
    terms += [call(name, COLUMN[c], COLUMN[d]) for name in ("log", "power") for c, d in ("xy", "ij", "fg", "px")]
    return terms


def _comparisons() -> list[Term]:
    pairs = ("th", "ij", "lm", "il", "lx", "ip", "lr", "fg", "xy", "fx", "pq", "pr", "rw", "wv", "px", "sa", "sb")
    typed = [(COLUMN[c], COLUMN[d]) for c, d in pairs if (c, d) != ("s", "b")]
    typed += [
        (COLUMN["dt"], COLUMN["du"]),
        (COLUMN["ts"], COLUMN["tt"]),
        (COLUMN["dt"], COLUMN["ts"]),
        (COLUMN["b"], literal(True, BOOLEAN)),
    ]
    typed += [(COLUMN["ts"], COLUMN["k"]), (COLUMN["dt"], COLUMN["k"]), (COLUMN["u"], COLUMN["i"]), (COLUMN["u"], COLUMN["p"])]
    typed += [
        (COLUMN["i"], string("12")),
        (COLUMN["dt"], string("2020-01-01")),
        (COLUMN["x"], literal(NAN, DOUBLE)),
        (COLUMN["p"], number(1)),
    ]
    typed += [
        (literal(2.5, DOUBLE), COLUMN["x"]),
        (COLUMN["x"], literal(0.0, DOUBLE)),
        (COLUMN["f"], literal(2.5, FLOAT)),
        (COLUMN["i"], literal(None, NULL)),
    ]
    terms = [infix(symbol, c, d) for symbol in ("=", "<>", "<", "<=", ">", ">=", "<=>") for c, d in typed]
    terms += [
        call(name, *(COLUMN[c] for c in group))
        for name in ("greatest", "least", "coalesce")
        for group in ("ij", "xy", "fg", "pr", "sa", "lxp")
    ]
    terms += [call(name, c, d) for name in ("nullif", "nvl", "ifnull") for c, d in typed if c.expr.type != d.expr.type or c.sql in "ixps"]
    terms += [call("nvl2", COLUMN["i"], COLUMN["l"], COLUMN["p"]), call("if", COLUMN["b"], COLUMN["i"], COLUMN["u"])]
    return terms


def _logic() -> list[Term]:
    truths = [COLUMN["b"], infix("=", COLUMN["i"], COLUMN["j"]), suffix("IS NULL", "is_null", COLUMN["s"]), literal(None, BOOLEAN)]
    danger = [infix(">", infix("/", number(1), COLUMN["i"]), literal(0.0, DOUBLE)), infix("=", casting(COLUMN["u"], INT), number(12))]
    terms = [infix(symbol, c, d) for symbol in ("and", "or") for c in truths for d in truths + danger]
    terms += [prefix("not", "not", c) for c in truths + danger]
    words = {"IS NULL": "is_null", "IS NOT NULL": "is_not_null", "IS TRUE": "is_true", "IS NOT TRUE": "is_not_true",
        "IS FALSE": "is_false",
             "IS NOT FALSE": "is_not_false"}  # fmt: skip
    terms += [suffix(word, name, c) for word, name in words.items() for c in truths + danger]
    terms += [choose(c, infix("/", number(1), COLUMN["i"]), COLUMN["x"]) for c in truths]
    terms += [call("coalesce", COLUMN["x"], infix("/", number(1), COLUMN["i"]))]
    terms += [infix("+", COLUMN["x"], infix("/", number(1), COLUMN["i"])), infix("+", infix("/", number(1), COLUMN["i"]), COLUMN["x"])]
    terms += [
        Term(f"({c.sql} IN ({', '.join(d.sql for d in items)}))", resolve("in", [c.expr, *(d.expr for d in items)])) for c, items in _LISTS
    ]
    terms += [Term(f"({c.sql} BETWEEN {d.sql} AND {e.sql})", resolve("between", [c.expr, d.expr, e.expr])) for c, d, e in _RANGES]
    return terms


_LISTS = (
    (COLUMN["i"], (number(1), number(3))), (COLUMN["i"], (number(1), literal(None, INT))), (COLUMN["i"], (COLUMN["j"], number(2))),
    (COLUMN["x"], (literal(0.0, DOUBLE), literal(NAN, DOUBLE), literal(2.5, DOUBLE))), (COLUMN["x"], (COLUMN["y"], literal(1.0, DOUBLE))),
    (COLUMN["s"], (string("abc"), string(""), COLUMN["a"])), (COLUMN["p"], (number(1), COLUMN["q"])), (COLUMN["u"], (number(12),
    number(0))),
    (COLUMN["x"], (number(1), infix("/", number(1), COLUMN["i"]))), (COLUMN["s"], (string("abc"), string("b"))),
    (COLUMN["dt"], (literal(_DATES[0], DATE), COLUMN["du"])), (COLUMN["p"], (literal(Decimal("2.50"), decimal(10, 2)), literal(None,
    NULL))),
)  # fmt: skip
_RANGES = (
    (COLUMN["i"], number(-1), COLUMN["j"]), (COLUMN["x"], literal(0.0, DOUBLE), COLUMN["y"]), (COLUMN["s"], string("a"), COLUMN["a"]),
    (COLUMN["dt"], literal(_DATES[0], DATE), COLUMN["du"]), (COLUMN["p"], COLUMN["q"], number(3)),
)  # fmt: skip


def _by_unit() -> list[Term]:
    """TIMESTAMPADD and TIMESTAMPDIFF, whose unit is a word."""
    terms = []
    for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"):
        word = string(unit).expr
        for a, b in ((COLUMN["ts"], COLUMN["tt"]), (COLUMN["dt"], COLUMN["ts"]), (COLUMN["dt"], COLUMN["du"])):
            terms.append(Term(f"timestampdiff({unit}, {a.sql}, {b.sql})", resolve("timestampdiff", [word, a.expr, b.expr])))
        for n, a in ((COLUMN["j"], COLUMN["ts"]), (COLUMN["t"], COLUMN["dt"])):
            terms.append(Term(f"timestampadd({unit}, {n.sql}, {a.sql})", resolve("timestampadd", [word, n.expr, a.expr])))
    return terms


def _trimmed() -> list[Term]:
    """TRIM of characters, which stand before the text in the call."""
    terms = []
    for word, name in (("BOTH", "trim"), ("LEADING", "ltrim"), ("TRAILING", "rtrim")):
        for characters in (COLUMN["a"], string("a"), string("b a"), string("")):
            sql = f"trim({word} {characters.sql} FROM {COLUMN['s'].sql})"
            terms.append(Term(sql, resolve(name, [characters.expr, COLUMN["s"].expr])))
    return terms


def _text() -> list[Term]:
    s, a, i = COLUMN["s"], COLUMN["a"], COLUMN["t"]
    names = ("upper", "lower", "length", "char_length", "octet_length", "trim", "ltrim", "rtrim", "reverse", "ascii", "initcap")
    terms = [call(name, c) for name in names for c in (s, COLUMN["u"], COLUMN["i"], COLUMN["p"])] + _trimmed()
    terms += [call("substring", s, number(n), number(c)) for n in (-10, -3, -1, 0, 1, 2, 5) for c in (-1, 0, 1, 2, 7, 2**31 - 1)]
    terms += [
        call("substring", s, number(2)),
        call("substr", s, i),
        call("substring", s, i, COLUMN["t"]),
        call("substring", s, COLUMN["j"], COLUMN["i"]),
    ]
    terms += [call(name, s, number(n)) for name in ("left", "right") for n in (-1, 0, 2, 100)] + [call("left", s, i), call("right", s, i)]
    terms += [
        infix("||", s, a),
        call("concat", s, a, COLUMN["i"]),
        call("concat", s, COLUMN["dt"], COLUMN["b"]),
        call("concat_ws", string("-"), s, a),
    ]
    terms += [call("concat_ws", s, a, COLUMN["u"]), call("concat_ws", s)]
    terms += [
        call("replace", s, string("a"), string("xy")),
        call("replace", s, string("")),
        call("replace", s, a, string("_")),
        call("replace", s, a),
    ]
    terms += [call(name, s, number(n), string(pad)) for name in ("lpad", "rpad") for n in (-1, 0, 2, 9) for pad in ("", "x", "xyz")]
    terms += [call("lpad", s, number(8)), call("rpad", s, number(8), a)]
    terms += [
        call("instr", s, a),
        call("locate", a, s),
        call("locate", string("b"), s, i),
        call("position", string(""), s),
        call("repeat", s, number(2)),
    ]
    terms += [call(name, s, part) for name in ("startswith", "endswith", "contains") for part in (a, string("a"), string(""), string("c"))]
    terms += [call("split_part", s, string(d), number(n)) for d in ("b", "", " ") for n in (1, 2, -1, 9)] + [call("split_part", s, a, i)]
    patterns = ("abc", "a%", "%c", "%b%", "a_c", "_", "%", "", "a\\%b%", "%\\_c", "a%b%", "%ß%", "a.c", "(%", "__", "%a_b%", " % ")
    terms += [Term(f"({s.sql} LIKE {string(t).sql})", resolve("like", [s.expr, string(t).expr])) for t in patterns]
    terms += [
        Term(f"({s.sql} LIKE {string(t).sql} ESCAPE '#')", resolve("like", [s.expr, string(t).expr, string("#").expr]))
        for t in ("a#%%", "##", "a\\b")
    ]
    terms += [
        Term("(s LIKE a)", resolve("like", [s.expr, a.expr])),
        Term("(i LIKE '1%')", resolve("like", [COLUMN["i"].expr, string("1%").expr])),
    ]
    return terms


def _calendar() -> list[Term]:
    days, instants = (COLUMN["dt"], COLUMN["ts"], COLUMN["k"]), (COLUMN["ts"], COLUMN["dt"], COLUMN["k"])
    parts = ("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "weekday", "dayofyear", "weekofyear", "last_day", "to_date")
    terms = [call(name, c) for name in parts for c in days]
    terms += [call(name, c) for name in ("hour", "minute", "second", "to_timestamp") for c in instants] + [
        call("unix_timestamp", COLUMN["ts"])
    ]
    fields = ("YEAR", "YEAROFWEEK", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "DAYOFWEEK_ISO", "DOY", "HOUR", "MINUTE", "SECOND")
    terms += [
        Term(f"extract({field} FROM {c.sql})", resolve("extract", [string(field).expr, c.expr]))
        for field in fields
        for c in (COLUMN["dt"], COLUMN["ts"])
    ]
    terms += [
        call(name, c, n)
        for name in ("date_add", "date_sub")
        for c in days
        for n in (number(1), number(-400), COLUMN["t"], COLUMN["h"], COLUMN["i"])
    ]
    terms += [call("add_months", c, n) for c in days for n in (number(1), number(-13), COLUMN["t"], COLUMN["i"])]
    terms += [infix("+", COLUMN["dt"], COLUMN["t"]), infix("-", COLUMN["dt"], number(3)), call("datediff", COLUMN["dt"], COLUMN["ts"])]
    terms += [
        call("datediff", COLUMN["dt"], COLUMN["du"]),
        call("make_date", COLUMN["h"], COLUMN["t"], COLUMN["t"]),
        call("make_date", number(2020), COLUMN["t"], number(29)),
    ]
    units = (
        "year",
        "YY",
        "quarter",
        "Month",
        "mm",
        "week",
        "day",
        "dd",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
        "nonsense",
    )
    terms += [call("trunc", COLUMN["dt"], string(unit)) for unit in units] + [
        call("date_trunc", string(unit), c) for unit in units for c in (COLUMN["ts"], COLUMN["dt"])
    ]
    terms += [call("trunc", COLUMN["dt"], COLUMN["s"])]
    terms += _by_unit()
    months, hours = interval("MONTH", "MONTH"), interval("HOUR", "HOUR")
    for value, type in ((1, months), (-14, months), (datetime.timedelta(days=3), DAYS), (datetime.timedelta(hours=25), hours)):
        terms += [infix(symbol, COLUMN[c], literal(value, type)) for symbol in "+-" for c in ("dt", "ts")]
    return terms


def _casts() -> list[Term]:
    targets = (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, decimal(5, 2), decimal(10, 0), decimal(18, 6), decimal(38,
        10), decimal(38, 0),
               decimal(4, 4), STRING, DATE, TIMESTAMP)  # fmt: skip
    terms = []
    for name in ("b", "t", "h", "i", "l", "f", "x", "p", "r", "w", "v", "s", "u", "k", "dt", "ts"):
        for target in targets:
            if COLUMN[name].expr.type != target and _castable(COLUMN[name].expr.type, target):
                terms += [casting(COLUMN[name], target), casting(COLUMN[name], target, lenient=True)]
    return terms


def _castable(source: Type, target: Type) -> bool:
    """Spark's table, written down once more."""
    if STRING in (source, target):
        return True
    if DATE in (source, target):
        return {source, target} == {DATE, TIMESTAMP}
    return BOOLEAN not in (source, target) or TIMESTAMP not in (source, target)


def _added() -> list[Term]:
    """Functions whose array form is their row form: Spark is the check."""
    s, a, u, i, j, x = (COLUMN[name] for name in ("s", "a", "u", "i", "j", "x"))
    names = ("hex", "crc32", "soundex")
    words = ("Robert", "Rupert", "Ashcraft", "Tymczak", "Pfister", "Honeyman", "h", "Wh-whw", "é1", "BCD", "Bß b", "Lloyd")
    terms = [call(name, c) for name in names for c in (s, u, COLUMN["k"], *map(string, words))]
    terms += [*(call("hex", COLUMN[c]) for c in "thil"), *(call("bit_count", COLUMN[c]) for c in "thilb")]
    terms += [call("translate", s, string(b), string(c)) for b, c in (("abc", "xyz"), ("abca", "1"), ("", "x"), ("ßΣ𝒳", "sS1"), ("ab", ""))]
    terms += [
        call("translate", s, a, u),
        call("levenshtein", s, a),
        call("levenshtein", u, COLUMN["k"]),
        call("levenshtein", s, string("")),
    ]
    terms += [call("overlay", s, string("__"), number(n)) for n in (-10, -2, -1, 0, 1, 2, 5, 100, 2**31 - 1, -(2**31))]
    terms += [call("overlay", s, a, COLUMN["t"], number(n)) for n in (-1, 0, 1, 3, 2**31 - 1)] + [call("overlay", s, a, i, j)]
    terms += [call("factorial", c) for c in (COLUMN["t"], i, *map(number, (-1, 0, 5, 20, 21)))]
    bounds = ((0.0, 10.0), (10.0, 0.0), (-1.0, 1e308), (-1e308, 1e308), (0.0, INF), (NAN, 1.0), (2.5, 2.5))
    doubles = [(literal(low, DOUBLE), literal(high, DOUBLE)) for low, high in bounds]
    terms += [call("width_bucket", x, low, high, literal(n, BIGINT)) for low, high in doubles for n in (0, 1, 5, 2**62, 2**63 - 1)]
    terms += [call("width_bucket", COLUMN["p"], number(-2), number(8), number(4)), call("width_bucket", x, COLUMN["y"], i, COLUMN["t"])]
    days = ("MO", "tue", "Wednesday", "TH", "fri", "SATURDAY", "su", " MO", "nonsense", "")
    terms += [call("next_day", COLUMN[c], string(day)) for c in ("dt", "k", "ts") for day in days] + [call("next_day", COLUMN["dt"], a)]
    moments = [(COLUMN[b], COLUMN[c]) for b, c in (("ts", "tt"), ("dt", "du"), ("dt", "ts"), ("tt", "dt"))]
    terms += [call("months_between", b, c, *rest) for b, c in moments for rest in ((), (literal(False, BOOLEAN),), (COLUMN["b"],))]
    ends = [literal(datetime.date(2020, m, d), DATE) for m, d in ((2, 29), (3, 31), (4, 30), (1, 30), (3, 28))]
    return terms + [call("months_between", b, c) for b in ends for c in (*ends, COLUMN["dt"])]


def chain(symbol: str, *terms: Term) -> Term:
    """Three operands or more, from the left."""
    left = terms[0]
    for right in terms[1:]:
        left = infix(symbol, left, right)
    return left


def switch(subject: Term, constants: Sequence[Term], values: Sequence[Term], otherwise: Term) -> Term:
    """CASE WHEN subject = constant THEN value … ELSE otherwise END."""
    branches = [(infix("=", subject, constant), value) for constant, value in zip(constants, values, strict=True)]
    arms = " ".join(f"WHEN {condition.sql} THEN {value.sql}" for condition, value in branches)
    expr = case([(condition.expr, value.expr) for condition, value in branches], otherwise.expr)
    return Term(f"(CASE {arms} ELSE {otherwise.sql} END)", expr)


def _chains() -> list[Term]:
    c = COLUMN
    quotient = infix("/", number(1), c["i"])
    danger = [infix(">", quotient, literal(0.0, DOUBLE)), infix("=", casting(c["u"], INT), number(12))]
    groups = ("tti", "ijt", "iji", "lml", "ilm", "fgf", "xyf", "xyx", "pqp", "pqr", "rwp", "wvr", "pij", "rrrrrrrr", "ijtij")
    terms = [chain(symbol, *(c[name] for name in group)) for symbol in "+-" for group in groups]
    terms += [chain("+", c["x"], quotient, c["y"]), chain("+", quotient, c["x"], casting(c["u"], INT))]
    terms += [chain("+", c["dt"], c["t"], number(2)), infix("+", c["i"], infix("+", c["j"], c["t"]))]
    truths = [c["b"], infix("<", c["i"], c["j"]), literal(None, BOOLEAN), suffix("IS NULL", "is_null", c["s"])]
    for word, other in (("and", "or"), ("or", "and")):
        terms += [chain(word, *truths[k:], *danger, *truths[:k]) for k in range(4)]
        terms += [infix(word, truths[0], infix(word, truths[1], danger[0])), chain(word, truths[1], infix(other, *danger), truths[0])]
    terms += [chain("||", c["s"], c["a"], c["i"], c["s"]), infix("||", c["s"], infix("||", c["a"], string("x")))]
    for name, constants in _MANY.items():
        subject, (one, two, *_) = c[name], constants
        null = literal(None, one.expr.type)
        terms += [_in(subject, constants), _in(subject, [*constants, null]), _in(subject, [null]), _in(subject, [one, one, two, one])]
        numbers = [number(i) for i in range(len(constants))]
        terms += [switch(subject, constants, numbers, number(-1)), switch(subject, constants, [null, *constants[1:]], subject)]
        risky = [infix("div", number(i), c["j"]) for i in range(len(constants))]
        terms += [switch(subject, [one, *constants], [number(7), *risky], infix("div", number(1), c["i"]))]
        terms += [switch(subject, [null, *constants], [number(5), *numbers], c["t"])]
    integers = [number(i) for i in range(-4, 5)]
    mixed = [*integers, c["j"]]
    terms += [switch(c["i"], mixed, [c["s"] for _ in mixed], c["a"]), switch(quotient, integers, integers, number(9))]
    return terms


def _in(subject: Term, items: Sequence[Term]) -> Term:
    return Term(f"({subject.sql} IN ({', '.join(item.sql for item in items)}))", resolve("in", [subject.expr, *(i.expr for i in items)]))


_MANY = {
    "b": [literal(True, BOOLEAN), literal(False, BOOLEAN)] * 4,
    "i": [number(i) for i in (0, 1, -1, 2, 3, -7, 10, 99, 98, 97)],
    "l": [number(i) for i in (0, 1, -1, 2, 3, -7, 10, 99, 98, 97)],
    "x": [literal(value, DOUBLE) for value in (0.0, 1.0, NAN, 0.5, INF, -2.5, 1e22, 0.1, -0.0)],
    "f": [literal(value, FLOAT) for value in (-0.0, 1.0, NAN, 0.5, -INF, -2.5, 16777216.0, 3.0)],
    "p": [literal(Decimal(value), decimal(10, 2)) for value in ("0.00", "1.00", "-1.00", "0.01", "2.50", "3.00", "7.35", "9.99")],
    "s": [string(value) for value in ("", " ", "a", "abc", "ß", "straße", "日本語", "NaN", "a\\b")],
    "dt": [literal(value, DATE) for value in _DATES[:9]],
    "ts": [literal(value, TIMESTAMP) for value in _INSTANTS[:8]],
}


def all_terms() -> list[Term]:
    """More than two thousand terms: every function and operator on every kind of argument."""
    return [*_arithmetic(), *_numeric(), *_comparisons(), *_logic(), *_text(), *_calendar(), *_casts(), *_chains(), *_added()]


def outcome(expr: Expr, row: tuple[Value, ...]) -> Value | EvaluationError:
    """The interpreter's value, or the error that it raises."""
    try:
        return evaluate(expr, row)
    except EvaluationError as error:
        return error


def alike(left: Value, right: Value) -> bool:
    """The same value: NaN is NaN, the sign of zero counts, and so does the class."""
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack("d", left) == struct.pack("d", right) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(alike, left, right))
    return type(left) is type(right) and left == right
