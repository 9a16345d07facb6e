"""The rows that functions are compared on: edge values of every type, and texts of the kinds that some functions read.

Columns: b BOOLEAN, t TINYINT, h SMALLINT, i j INT, l m BIGINT, f FLOAT, x y DOUBLE, p DECIMAL(10,2), r DECIMAL(38,10), w DECIMAL(38,0),
s a STRING of any text, u of numbers, k of dates, js of JSON, url of URLs, d e DATE, ts tt TIMESTAMP, ai aj ARRAY<INT>, ax ARRAY<DOUBLE>,
aw ARRAY<STRING>, ad ARRAY<DATE>, aa ARRAY<ARRAY<INT>>, ar ARRAY<STRUCT<n: INT, v: STRING>>, mp MAP<STRING, INT>, mi MAP<INT, DOUBLE>.
"""

# ruff: noqa: E501  data
from __future__ import annotations

import datetime
import math
import random
import struct
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

import pyarrow as pa

from deltic.expr.nodes import Value
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, SMALLINT, STRING, TIMESTAMP, TINYINT, Field, Schema, Type, decimal
from deltic.types import array_type, map_type
from deltic.types import struct as struct_type

NAN, INF = math.nan, math.inf
Row = tuple[Value, ...]


def _single(value: float) -> float:
    result: float = struct.unpack("f", struct.pack("f", value))[0]
    return result


def _integers(bits: int) -> tuple[int, ...]:
    top = 2 ** (bits - 1)
    return (0, 1, -1, 2, 3, 5, -7, 10, 31, 33, 63, 65, 100, 127, top - 1, -top, 1 - top)


def _days(*texts: str) -> tuple[datetime.date, ...]:
    return tuple(map(datetime.date.fromisoformat, texts))


def _instants(*texts: str) -> tuple[datetime.datetime, ...]:
    return tuple(datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC) for text in texts)


def _decimals(*texts: str) -> tuple[Decimal, ...]:
    return tuple(map(Decimal, texts))


_DOUBLES: Final = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1.005, 2.675, 0.1, 1e-7, 1e-300, 123456.789, -1234567.891, 1e7, 1e10, 1e15, 1e16,
    9.007199254740993e15, 2.0**31, 2.0**63, -(2.0**63), 1e22, 1.7976931348623157e308, 5e-324, 3.141592653589793, 1.5707963267948966, 12.0,
    700.0, -700.0, 0.999999999, INF, -INF, NAN)  # fmt: skip
_TEXTS: Final = ("", " ", "a", "abc", "ABC", "aBc dEf", "  pad  ", "straße", "ΑΣ", "é", "日本語", "𝒳y", "a%b_c", "a\\b", "abcabc", "\t x\n", "aa",
    "İ", "a\nb", "a\r\nb\u2028c", "a.b.c", "a,b,,c", "1-2-3", "foo123bar45", "e\u0301", "👨‍👩‍👧x", "K", "ſ", "x=1&y=2", "it's", "aaa", "4539 1488",
    "79927398713", "AbCD123-@$#")  # fmt: skip
_NUMERALS: Final = ("0", "12", "-7", " 12 ", "+5", "1.5", "-0", "1e3", "12x", "", "128", "2147483648", "9223372036854775808", "18446744073709551615",
    "NaN", "1.25", ".5", "5.", "abc", "zz", "00012", "-10", "100", "1,234.56", "$12.30", "<7>", "12-", "3333.4")  # fmt: skip
_CALENDAR: Final = ("2020-02-29", "2020-2-3", "2020-02-30", "2020", " 2020-01-01 ", "2020-01-01T10:20:30.123456789", "2020-01-01 1:2:3",
    "2020-01-01 10:20:30Z", "2020-01-01 10:20:30.5+05:30", "2020-01-01x", "0001-01-01", "9999-12-31 23:59:59.999999", "20200101", "",
    "2020-01-01 10:20:30", "01/02/2020", "1/2/20", "31/12/1999 23:59", "Jan 5, 2021", "2021-13-01", "12:34 PM", "2020-060", "1582-10-10")  # fmt: skip
_JSON: Final = ('{"a":1,"b":[1,2,{"c":"x"}],"d":null}', "{}", "[]", "[1,2,3]", "null", "", "{", '"text"', "1.50", '{"a":{"b":{"c":1.0}}}', "[[1],[2,3]]",
    '{"a":"\\u00e9\\n\\"q\\""}', '{"a":1,"a":2}', '[{"a":1},{"a":2},{"b":3}]', '{"a b":1,"c.d":2,"":3}', "tru", " [ 1 , 2 ] ", '{"a":1} x',
    '{"a":12345678901234567890,"e":1e400}', "{'a':'single'}", '{"a":[{"b":[1,2]},{"b":3}]}', '{"a":"𝒳"}', "[1,]", '{"a":true}')  # fmt: skip
_URLS: Final = ("http://user:pw@host.example:8080/p/a/t/h;x=1?query=1&k2=v%20w#frag", "https://example.com", "ftp://h/a%20b?x", "mailto:a@b.c", "",
    "/only/path?q=1", "http://[::1]:80/", "http://ho st/", "http://h/?a=1&a=2&b", "HTTP://EXAMPLE.COM/A?Q=1", "http://h:x/", "a b+c%2Bd",
    "http://é.example/ü?q=ß", "//host/path", "?q=1", "#f", "%", "%zz", "%e2%82%ac", "http://h/p?x=1+2&y=%26#a?b=c", "x:y")  # fmt: skip
_DATES: Final = _days("1970-01-01", "1969-12-31", "2020-02-29", "2020-01-31", "2019-12-30", "2021-01-03", "1900-02-28", "0001-01-01", "9999-12-31",
    "2000-12-31", "1582-10-15", "1582-10-04", "2024-06-15", "2024-11-05", "2023-01-01", "1582-10-10")  # fmt: skip
_INSTANTS: Final = _instants("1970-01-01T00:00:00", "1969-12-31T23:59:59.999999", "2020-02-29T12:34:56.789123", "1960-01-01T12:00:00.9",
    "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999", "2020-01-31T00:00:00", "2021-01-03T01:02:03.1", "1582-10-10T06:00:00",
    "2024-06-15T23:00:00.000001", "2021-03-28T01:30:00", "2021-03-28T02:30:00", "2021-10-31T00:30:00", "2021-10-31T01:30:00",
    "2021-03-14T10:30:00", "1800-01-01T00:00:00", "2024-11-05T09:05:07.05", "2100-07-04T04:05:06")  # fmt: skip
_INT_ARRAYS: Final = (
    (),
    (1,),
    (None,),
    (1, 2, 3),
    (3, None, 1, 3, None),
    (-1, 0, 1),
    (2147483647, -2147483648),
    (5, 5, 5),
    (2, 3),
    tuple(range(12)),
)
_DOUBLE_ARRAYS: Final = (
    (),
    (0.0,),
    (-0.0,),
    (-0.0, 0.0, NAN),
    (NAN, 1.0, None, NAN),
    (INF, -INF, 2.5),
    (1.0, 2.0, 3.0),
    (None, None),
    (0.0, -0.0, 1.0),
)
_TEXT_ARRAYS: Final = ((), ("",), ("b", "a", "B"), (None, "x"), ("a", "a", None, "𝒳", "é"), ("ß", "z", "日本"), (" a ", "1", "-2"))
_DATE_ARRAYS: Final = ((), _days("2020-02-29"), (None, *_days("1582-10-10", "0001-01-01")), _days("2020-02-29", "9999-12-31", "2020-02-29"))
_NESTED_ARRAYS: Final = ((), ((),), ((1, 2), (3,)), ((1,), None), ((None,), (), (4, 5)), ((1,), (1,), (2,)))
_RECORDS: Final = ((), ((1, "a"),), ((2, "b"), (None, "c"), (2, None)), ((1, "x"), None), ((3, ""), (1, "z"), (3, "y")))
_MAPS: Final = ((), (("a", 1),), (("a", 1), ("b", None), ("abc", 3)), (("", 0), ("é", -5)), (("k", 2147483647), ("a", 7)))
_NUMBER_MAPS: Final = ((), ((1, 1.0),), ((0, -0.0), (-1, NAN)), ((2, None), (1, 2.5)), ((5, INF), (3, 0.1), (1, 4.0)))

COLUMNS: Final[tuple[tuple[str, Type, Sequence[Value]], ...]] = (
    ("b", BOOLEAN, (True, False)),
    ("t", TINYINT, _integers(8)),
    ("h", SMALLINT, _integers(16)),
    ("i", INT, _integers(32)),
    ("j", INT, _integers(32)),
    ("l", BIGINT, (*_integers(64), 253402300799, -62135596800, 1577836800, 1577836800123456)),
    ("m", BIGINT, _integers(64)),
    (
        "f",
        FLOAT,
        tuple(map(_single, (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1.1, 2.675, 16777216.0, 1e10, 3.4028234e38, 1e-45, INF, -INF, NAN))),
    ),
    ("x", DOUBLE, _DOUBLES),
    ("y", DOUBLE, _DOUBLES),
    (
        "p",
        decimal(10, 2),
        _decimals("0.00", "1.00", "-1.00", "0.01", "-0.01", "2.50", "-2.50", "0.05", "99999999.99", "-99999999.99", "1234.56"),
    ),
    (
        "r",
        decimal(38, 10),
        _decimals("0.0000000000", "1.0000000000", "-0.0000000001", "9999999999999999999999999999.9999999999", "2.5000000000"),
    ),
    ("w", decimal(38, 0), _decimals("0", "-1", "99999999999999999999999999999999999999", "9223372036854775808", "-128", "128", "255")),
    ("s", STRING, _TEXTS),
    ("a", STRING, _TEXTS),
    ("u", STRING, _NUMERALS),
    ("k", STRING, _CALENDAR),
    ("js", STRING, _JSON),
    ("url", STRING, _URLS),
    ("d", DATE, _DATES),
    ("e", DATE, _DATES),
    ("ts", TIMESTAMP, _INSTANTS),
    ("tt", TIMESTAMP, _INSTANTS),
    ("ai", array_type(INT), _INT_ARRAYS),
    ("aj", array_type(INT), _INT_ARRAYS),
    ("ax", array_type(DOUBLE), _DOUBLE_ARRAYS),
    ("aw", array_type(STRING), _TEXT_ARRAYS),
    ("ad", array_type(DATE), _DATE_ARRAYS),
    ("aa", array_type(array_type(INT)), _NESTED_ARRAYS),
    ("ar", array_type(struct_type((Field("n", INT), Field("v", STRING)))), _RECORDS),
    ("mp", map_type(STRING, INT), _MAPS),
    ("mi", map_type(INT, DOUBLE), _NUMBER_MAPS),
)

SCHEMA: Final = Schema(tuple(Field(name, type) for name, type, _ in COLUMNS))


def sample_rows(count: int = 80, seed: int = 5) -> list[Row]:
    """Rows of edge values in random company; every value occurs if count ≥ 40, and one in ten is NULL."""
    draw = random.Random(seed)
    columns = []
    for _, _, values in COLUMNS:
        cells: list[Value] = [*values, *draw.choices(values, k=count)][:count]
        draw.shuffle(cells)
        columns.append([None if k >= len(values) and draw.random() < 0.2 else cell for k, cell in enumerate(cells)])
    return list(zip(*columns, strict=True))


def table_of(rows: Iterable[Row]) -> pa.Table:
    """The rows as an Arrow table of SCHEMA."""
    cells = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(cell, field.type.arrow) for cell, field in zip(cells, SCHEMA, strict=True)], schema=SCHEMA.arrow)
