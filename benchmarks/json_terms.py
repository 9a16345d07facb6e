"""What functions of JSON and CSV as values are compared on: terms in SQL over the columns of `function_samples`, by function."""

# ruff: noqa: E501  data
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

VALUES: Final = (
    "1", "-0", "1.0", "1.5", "1e2", "1E400", "99999999999", "9223372036854775808", "200", "256", "-129", "true", "null", '""', '"x"', '"1"', '"1.5"', '" 7 "', '"NaN"', "NaN", "-Infinity", '"+INF"', "+INF",
    "[]", "[1,2]", '[1,"x"]', "[null]", "[1,null]", "{}", '{"x":1}', '{"x":"q","y":2}', '[{"x":1},{"x":"q"},5]', '[{"x":1},null]', '"2020-01-02"', '"2020-1-2"', '"2020-01-02T03:04:05.123456Z"', '"2020-01-02 03:04:05"',
    '"2020-01-02T03:04:05+02:00"', '"26/08/2015"', "18000", '"AQI="', '"A"', '"é𝒳"', '"\\\\u00e9\\\\n"', "'single'", "01", "1.", ".5", "+1", "tru", "123456789012345678901234567890", "1.2345678901234567890123", "-0.0",
    '"a\tb"', '{"x":{"y":[1.10,{"z":null}]}}', '"true"', "0.1e1",
)  # fmt: skip
TYPES: Final = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(38,18)", "STRING", "BINARY", "DATE", "TIMESTAMP", "ARRAY<INT>", "ARRAY<STRING>", "STRUCT<x: INT, y: STRING>",
    "ARRAY<STRUCT<x: INT>>", "MAP<STRING, INT>", "MAP<STRING, STRING>", "MAP<STRING, STRUCT<x: INT>>", "ARRAY<ARRAY<DOUBLE>>",
)  # fmt: skip
WHOLE: Final = (
    '{"a":1}', '{"a":1,"b":2}', '{"a":1,"a":2}', '{"a":1,"a":"x"}', '{"A":1}', '{"a":1', '{"a":1,', '{"a":1}x', '{"a":1} {"a":2}', "", " ", "null", "1", '"x"', "x", "[]", "[1]", '[{"a":1}]', '[{"a":1},{"a":2}]', '[{"a":1},5]', "{}",
    "[null]", '{"a":x}', "{'a':1}", "{a:1}", '{"a":1,}', '{"a":{"b":1}}', '[1,"x"]', '{"b":{"a":[1,2]},"a":3}', '{"a":null}', '\ufeff{"a":1}', '/*c*/{"a":1}', '{"a" :\n1}',
)  # fmt: skip


def _quoted(text: str) -> str:
    return "'" + text.replace("\\\\", "\\").replace("\\", "\\\\").replace("'", "\\'") + "'"


def _of_every_type(value: str) -> str:
    """The value read as each type, in one object."""
    text = ",".join(f'"c{i}":{value}' for i in range(len(TYPES)))
    schema = ", ".join(f"c{i} {type}" for i, type in enumerate(TYPES))
    return f"from_json({_quoted('{' + text + '}')}, '{schema}')"


_FROM_JSON: Final = [
    *map(_of_every_type, VALUES),
    *(f"from_json({_quoted(text)}, '{type}')" for text in WHOLE for type in ("a INT", "a STRING", "ARRAY<INT>", "ARRAY<STRUCT<a: INT>>", "MAP<STRING, STRING>", "ARRAY<STRING>")),
    *(f"from_json(js, '{type}')" for type in ("a INT, b STRING", "STRUCT<a: STRING>", "MAP<STRING, STRING>", "ARRAY<STRING>", "a STRUCT<b: STRUCT<c: DOUBLE>>", "ARRAY<STRUCT<a: INT, b: INT>>")),
    "from_json(js, 'a INT', map('mode', 'FAILFAST'))", "from_json(concat('{\"a\":\"', k, '\"}'), 'a TIMESTAMP_NTZ')", "from_json('{\"a\":\"01/02/2020 3\"}', 'a TIMESTAMP_NTZ', map('timestampNTZFormat', 'dd/MM/yyyy H'))", "from_json('{\"a\":\"01:02:03.9 PM\"}', 'a TIME(0)', map('timeFormat', 'hh:mm:ss.S a'))", "from_json('{\"a\":\"26/08/2015\"}', 'a DATE', map('dateFormat', 'dd/MM/yyyy'))", "from_json('{\"a\":\"26/08/2015\"}', 'a TIMESTAMP', map('timestampFormat', 'dd/MM/yyyy'))",
    "from_json(js, schema_of_json('{\"a\":1}'))", "from_json(to_json(ar), 'ARRAY<STRUCT<n: INT, v: STRING>>')", "from_json(to_json(mp), 'MAP<STRING, INT>')", "from_json(s, 'a INT')", "from_json(NULL, 'a INT')",
    "from_json('{\"a b\":1}', '`a b` INT')", "from_json('{\"a\":1}', 'a INT NOT NULL')", "from_json(concat('{\"k\":', u, '}'), 'k DECIMAL(10,2)')", "from_json(concat('{\"k\":\"', k, '\"}'), 'k TIMESTAMP')", "from_json(concat('{\"k\":\"', d, '\"}'), 'k DATE')",
]  # fmt: skip

LINES: Final = (
    "1,2", "1", "1,2,3", ",", "", " 1 , x ", '"a,b",c', '"a\\"b",c', '"a""b",c', 'a"b,c', '"",x', '"x"y,z', '"x', "a\nb,c", "#a,b", "x\\,y", '"a\\\\b",c', "a,", '"a" ,b', "1.5,300", "-7,+8", "é,𝒳", "a\tb,c", "'a','b'", '"a\nb",c',
)  # fmt: skip
CLOCKS: Final = ("14:30", "1:2:3", "T14", "T14:30:45", "14:30:45.1234567", "14:30:45 UTC", " 14:30:45", "25:00:00", "14:60:00", "14:30:", "001:02:03")  # fmt: skip
CELLS: Final = (
    "1", "-1", "+1", " 1", "1.0", "1e3", "300", "99999999999", "99999999999999999999", "true", "TRUE", "t", "NaN", "Inf", "-Inf", "Infinity", "inf", "nan", "1.5f", "0x1p3", "2020-01-02", "2020-1-2", "2020-01-02 03:04:05", "2020-01-02T03:04:05Z", "x",
    ".5", "5.", "1.239", "-0", "-0.0",
)  # fmt: skip
_CSV_TYPES: Final = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)", "STRING", "DATE", "TIMESTAMP")


def _cell_of_every_type(cell: str) -> str:
    schema = ", ".join(f"c{i} {type}" for i, type in enumerate(_CSV_TYPES))
    return f"from_csv('{','.join([cell] * len(_CSV_TYPES))}', '{schema}')"


JSON_VALUES: Final[Mapping[str, list[str]]] = {
    "from_json": _FROM_JSON,
    "to_json": [*(f"to_json({v})" for v in ("ai", "ax", "aw", "ad", "aa", "ar", "mp", "mi", "array(s, a)", "array(p, p)", "array(r)", "array(w)", "array(f)", "array(ts)", "array(l)", "array(b)", "map(d, 1)", "map(ts, x)", "map(x, 1)", "map(p, 1)",
        "map(b, 1)", "struct(i, s, x)", "named_struct('a', i, 'b', named_struct('c', s, 'd', ai))", "named_struct('e\"f', d, 'g', CAST(s AS BINARY))", "array(CAST(ts AS TIMESTAMP_NTZ))", "map(i, mp)", "array()", "CAST(NULL AS ARRAY<INT>)",
        "named_struct('v', CAST(x / 1e10 AS DECIMAL(38, 20)))")), "to_json(struct(i, s), map('ignoreNullFields', 'false'))", "to_json(struct(CAST(ts AS TIMESTAMP_NTZ)), map('timestampFormat', 'HH'))", "to_json(named_struct('t', TIME '10:00:00.5'), map('timeFormat', 'h:mm:ss.SS a'))", "to_json(array(ts, tt), map('timestampFormat', 'dd.MM.yyyy HH:mm'))", "to_json(ad, map('dateFormat', 'dd/MM/yyyy'))"],
    "schema_of_json": [f"schema_of_json({_quoted(text)})" for text in ('{"b":1,"a":"x"}', '{"a":1.5,"b":null,"c":[],"d":{},"e":[1,2.5],"f":[{"x":1},{"y":2}],"g":true,"h":99999999999999999999,"i":[1,"x"],"j":[null],"k":[[1],[null]]}', "[]", "1", '"x"',
        '{"a b":1,"c-d":2,"E":1}', '{"a":NaN}', "", '[{"a":1},{"a":"x"}]', '{"a":1e400, "b":12345678901234567890123456789012345678901234567890}', "null", '{"a":{"b":[{"c":null}]}}', "{}", "[{}]", "[[]]", '{"y":1,"é":1,"Z":1,"_":1,"1a":2}',
        '[9223372036854775807, 9223372036854775808]', "[1, 99999999999999999999, 1.5]", '[{"a":[1]},{"a":["x"]}]', '[{"a":{"b":1}},{"a":{"c":true}}]', "[true, 1]", "-5", '{"a":-0}')],
    "from_csv": [*(f"from_csv('{line}', 'a {type}, b STRING')".replace("''a'", "'\\'a\\'").replace("'b''", "\\'b\\''") for line in LINES if "'" not in line for type in ("STRING", "INT")), *map(_cell_of_every_type, CELLS), "from_csv(s, 'a STRING, b STRING')",
        "from_csv(u, 'a DOUBLE')", "from_csv(a, 'a STRING, b STRING, c STRING')", "from_csv('a;b', 'a STRING, b STRING', map('sep', ';'))", "from_csv('26/08/2015', 'a DATE', map('dateFormat', 'dd/MM/yyyy'))", "from_csv(NULL, 'a INT')",
        "from_csv('26/08/2015', 'a TIMESTAMP', map('timestampFormat', 'dd/MM/yyyy'))", "from_csv('1:2', 'a TIME', map('timeFormat', 'H:m'))", "from_csv(k, 'a TIMESTAMP_NTZ')", "from_csv('01/02/2020 3', 'a TIMESTAMP_NTZ', map('timestampNTZFormat', 'dd/MM/yyyy H'))", "from_csv(to_csv(struct(s, i)), 's STRING, i INT')"],
    "to_csv": ["to_csv(struct(s, i))", "to_csv(named_struct('a', CAST(ts AS TIMESTAMP_NTZ), 'b', i), map('timestampFormat', 'HH', 'timestampNTZFormat', 'dd HH'))", "to_csv(named_struct('a', TIME '10:00:00', 'b', i), map('timeFormat', 'HH,mm'))", "CASE WHEN s IS NOT NULL THEN to_csv(struct(s)) END", "to_csv(named_struct('a', i, 'b', s))", "to_csv(struct(a, s, u))", "to_csv(struct(i, x, p, d, ts, b, f))", "to_csv(struct(k, js))", "to_csv(struct(ts, d), map('timestampFormat', 'dd/MM/yyyy', 'dateFormat', 'MM.yyyy'))", "to_csv(struct(s, a), map('sep', ';'))", "to_csv(struct(url, js))", "to_csv(struct(js, url))", "to_csv(struct(r, w))"],
    "schema_of_csv": [*(f"schema_of_csv('{cell}')" for cell in (*CELLS, *CLOCKS)), "schema_of_csv('1,abc')", "schema_of_csv('1;abc', map('sep', ';'))", "schema_of_csv('1,,\"x\",')"],
    "json_object_keys": ["json_object_keys(js)", *(f"json_object_keys({_quoted(text)})" for text in WHOLE)],
}  # fmt: skip
