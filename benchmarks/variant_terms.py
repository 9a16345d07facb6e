"""Terms of VARIANT over the columns of `function_samples`, by function: `:` is the path, and `variant` a cast from or to it."""

# ruff: noqa: E501  data
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_DOCUMENT: Final = (
    """parse_json('{"a":{"b":[5,"x",null,1.50,{"c":true}],"":0},"k y":1e3,"l":"2020-01-02","m":null,"n":-7,"big":12345678901234567890}')"""
)
_PATHS: Final = (
    "$",
    "$.a",
    "$.a.b",
    "$.a.b[0]",
    "$.a.b[4].c",
    "$.a.b[9]",
    "$.a['b'][1]",
    '$["a"]["b"][3]',
    "$.k y",
    "$['k y']",
    "$.a['']",
    "$.m",
    "$.x.y",
    "$[0]",
    "$.l",
    "$.n",
    "$.big",
    "$.a.b[2]",
)
_TYPES: Final = ("INT", "TINYINT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(5,1)", "DECIMAL(38,10)", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY", "VARIANT", "ARRAY<STRING>", "ARRAY<INT>", "MAP<STRING, STRING>",
    "STRUCT<a: STRING, n: INT>", "STRUCT<a: MAP<STRING, VARIANT>, z: DATE>", "ARRAY<VARIANT>", "MAP<STRING, ARRAY<DOUBLE>>")  # fmt: skip
_TEXTS: Final = ('{"b":1,"a":[1,2.50,"x"]}', "[]", "{}", "null", '"x"', "1", "128", "32768", "2147483648", "-9223372036854775808", "12345678901234567890", "0.10", "-0.0", "-0", "1e5", "1E-400", "1e400", "99999999999999999999999999999999999999",
    "999999999999999999999999999999999999999", "0.00000000000000000000000000000000000001", "0.000000000000000000000000000000000000001", "true", "false", '"\\\\u00e9\\\\n\\\\\\\\"', '{"a":{"b":{"c":[[[1]]]}}}', '{"𝒳":1,"ﬀ":2,"a":3}',
    " [1 , 2 ] ", '{"":null}', '[{"a":1},{"a":2,"b":3}]', '"' + "y" * 63 + '"', '"' + "z" * 64 + '"', f"[{','.join(['1'] * 300)}]", "1 2", '{"a":1} x', '"a"b')  # fmt: skip
_MALFORMED: Final = (
    "",
    "{",
    "[1,]",
    '{"a":1,"a":2}',
    "01",
    "1x",
    "1]",
    "nullx",
    "null1",
    "null,",
    "NaN",
    "Infinity",
    "{a:1}",
    "+1",
    ".5",
    "5.",
    "-",
    "tru",
    '{"a" 1}',
    "[1 2]",
    '"',
    '{"a":1',
    "// x",
    "1e",
    "--1",
    "[}",
    '"\\\\ud83d"',
    '"\\\\x"',
    '"a\tb"',
)
_SCALARS: Final = (
    "b",
    "t",
    "h",
    "i",
    "l",
    "f",
    "x",
    "p",
    "r",
    "w",
    "s",
    "d",
    "ts",
    "CAST(ts AS TIMESTAMP_NTZ)",
    "CAST(s AS BINARY)",
    "NULL",
)
_NESTED: Final = ("ai", "ax", "aw", "ad", "aa", "ar", "mp", "array(p, r)", "array(ts)", "array(f)", "struct(i, s, x)", "named_struct('a', i, 'b', named_struct('c', s, 'd', ai))", "map(s, x)", "array(mp)", "named_struct('B', d, 'a', try_parse_json(js))",
    "array(CAST(s AS BINARY))", "named_struct('z', 1, 'y', array(named_struct('y', 2, 'z', 3)))", "array(try_parse_json(js))")  # fmt: skip
_MERGED: Final = (
    "[1,1.5]",
    '[1,"x"]',
    "[1,null]",
    "[[1],[1.5],[null]]",
    '[{"a":1},{"b":"x"},{"a":2.5}]',
    '[{"a":1},{"a":"x"}]',
    '[{"A":1},{"a":2}]',
    '[{"A":1},{"a":"x"}]',
    '[{"A":1,"b":1},{"a":2.5,"B":null}]',
    "[1,1e1]",
    "[1.5,1e1]",
    "[12345678901234567890, 0.00000000000000000001]",
    "[12345678901234567890.5, 0.00000000000000000000000000001]",
    "[1,[1]]",
    '[{"a":[]},{"a":[{"x":1}]}]',
    '{"a b":1,"`":2,"c":{}}',
    "1.50",
    "100.00",
    "0.00",
    "0.010",
)


def _quoted(text: str) -> str:
    escaped = text.replace("'", "\\'")
    return f"'{escaped}'"


VARIANTS: Final[Mapping[str, list[str]]] = {
    "parse_json": [f"parse_json({_quoted(_TEXTS[0])})", "parse_json(js)", "parse_json(u)", "parse_json(NULL)", *(f"parse_json({_quoted(text)})" for text in _TEXTS[1:]), "parse_json(concat(repeat('[', 999), repeat(']', 999)))", "parse_json(to_json(ar))"],
    "try_parse_json": ["try_parse_json(js)", "try_parse_json(s)", "try_parse_json(u)", "try_parse_json(k)", "try_parse_json(NULL)", *(f"try_parse_json({_quoted(text)})" for text in _MALFORMED), "try_parse_json(concat(repeat('[', 1001), repeat(']', 1001)))",
        "try_parse_json(repeat('9', 1001))", "try_parse_json(repeat('9', 1000))", "try_parse_json(concat('0.', repeat('1', 999)))", "try_parse_json(concat('0.', repeat('1', 1000)))", "try_parse_json(to_json(array(s, a)))", "try_parse_json(to_json(struct(x, f, p, r)))"],
    "variant_get": [f"variant_get({_DOCUMENT}, '$.a.b[0]', 'int')", *(f"variant_get({_DOCUMENT}, {_quoted(path)})" for path in _PATHS), *(f"variant_get({_DOCUMENT}, {_quoted(path)}, 'string')" for path in _PATHS), "variant_get(try_parse_json(js), '$.a')", "variant_get(try_parse_json(js), '$[0].a', 'string')",
        "variant_get(CAST(i AS VARIANT), '$', 'smallint')", "variant_get(CAST(u AS VARIANT), '$', 'int')", "variant_get(CAST(k AS VARIANT), '$', 'date')", "variant_get(parse_json('{\"a\":1}'), CASE WHEN i > 0 THEN '$.a' ELSE 'x' END, 'int')", "variant_get(try_parse_json(js), NULL)", "variant_get(NULL, '$')",
        "variant_get(parse_json('[{\"x\":1,\"y\":\"z\"}]'), '$', 'array<struct<y string, x bigint>>')", "variant_get(parse_json('{\"a\":1}'), '$', 'a int, b string')"],
    "try_variant_get": [f"try_variant_get({_DOCUMENT}, '$.a.b[1]', 'int')", *(f"try_variant_get({_DOCUMENT}, {_quoted(path)}, {_quoted(type)})" for path in _PATHS[:4] for type in _TYPES), "try_variant_get(try_parse_json(js), '$.a', 'int')", "try_variant_get(try_parse_json(js), '$', 'map<string, array<int>>')"],
    ":": [f"{_DOCUMENT}:a.b[0]::int", f"{_DOCUMENT}:a", f"{_DOCUMENT}:['a'].b[4]", f"{_DOCUMENT}:`k y`", f"{_DOCUMENT}:a['b'][1]::string", "try_parse_json(js):a.b", "try_parse_json(js):[0]", "try_parse_json(js):a:b", "parse_json('{\"A\":1,\"a\":2}'):A::int + 1"],
    "to_variant_object": [f"to_variant_object({value})" for value in _NESTED],
    "is_variant_null": ["is_variant_null(try_parse_json(js))", "is_variant_null(NULL)", "is_variant_null(parse_json('null'))", f"is_variant_null({_DOCUMENT}:m)", f"is_variant_null({_DOCUMENT}:o)"],
    "is_valid_variant": ["is_valid_variant(try_parse_json(js))", "is_valid_variant(NULL)", *(f"is_valid_variant(CAST({value} AS VARIANT))" for value in ("x", "ts", "aw"))],
    "schema_of_variant": ["schema_of_variant(try_parse_json(js))", *(f"schema_of_variant(CAST({value} AS VARIANT))" for value in _SCALARS), *(f"schema_of_variant(parse_json({_quoted(text)}))" for text in _MERGED), "schema_of_variant(to_variant_object(array(named_struct('a', f), named_struct('a', p))))" ,
        "schema_of_variant(to_variant_object(struct(d, ts, CAST(s AS BINARY), f, r, w)))", "schema_of_variant(CAST(array(CAST(f AS VARIANT), CAST(l AS VARIANT)) AS VARIANT))", "schema_of_variant(CAST(array(CAST(f AS VARIANT), CAST(p AS VARIANT)) AS VARIANT))", "schema_of_variant(CAST(array(CAST(d AS VARIANT), CAST(ts AS VARIANT)) AS VARIANT))"],
    "variant": [*(f"CAST({value} AS VARIANT)" for value in (*_SCALARS, "ai", "ax", "aw", "ad", "aa", "array(ts)", "array(CAST(js AS VARIANT))")), *(f"TRY_CAST(CAST({value} AS VARIANT) AS {type})" for value in _SCALARS[:-2] for type in _TYPES[:12]), *(f"CAST(CAST({value} AS VARIANT) AS {type})" for value in ("i", "x", "p", "u", "k") for type in ("TINYINT", "INT", "DECIMAL(5,1)", "STRING", "BOOLEAN")),
        "CAST(CAST(s AS BINARY)::VARIANT AS BINARY)", "CAST(try_parse_json(js) AS STRING)", "CAST(array(try_parse_json(js), NULL) AS STRING)", "CAST(struct(try_parse_json(js)) AS STRING)", "CAST(map('k', try_parse_json(js)) AS STRING)", "to_json(CAST(ai AS ARRAY<VARIANT>))", "to_json(CAST(struct(i, s) AS STRUCT<i: VARIANT, s: VARIANT>))", "to_json(CAST(mp AS MAP<STRING, VARIANT>))",
        "coalesce(try_parse_json(js), parse_json('1'))", "coalesce(try_parse_json(js), s)", "if(b, try_parse_json(js), NULL)", "to_json(array(try_parse_json(js), 'x'))", "concat(try_parse_json(js), '!')", "length(try_parse_json(js))", "upper(CAST(s AS VARIANT))", "typeof(parse_json('1'))", "try_parse_json(js) IS NULL", "transform(array(try_parse_json(js)), v -> v:a::string)",
        "element_at(array(try_parse_json(js)), 1)", "map_values(map(1, try_parse_json(js)))[0]", "named_struct('v', try_parse_json(js)).v", "array(parse_json('[1]'), parse_json('2'))", "named_struct('v', parse_json('[7]'), 'm', map('k', parse_json('null')))", "try_parse_json(js) LIKE '%a%'"],
    "from_json": [f"from_json({_quoted(text)}, 'variant')" for text in (*_TEXTS, "", "{", "'x'", "{'a':1}", '{"a":1,"a":2}', '{"a":NaN}', "[1,]", '"\\\\ud83d"')],
    "hex": ["hex(try_parse_json(js))", *(f"hex(CAST({value} AS VARIANT))" for value in ("i", "p", "d", "ts", "s", "CAST(s AS BINARY)"))],
    "format_string": ["format_string('%s', try_parse_json(js))", "format_string('%S|%10s|%.3s|%b', CAST(x AS VARIANT), CAST(ts AS VARIANT), try_parse_json(js), try_parse_json(js))", "format_string('%d', CAST(i AS VARIANT))"],
    "concat_ws": ["concat_ws(',', array(try_parse_json(js), NULL), s)"],
    "to_json": ["to_json(try_parse_json(js))", *(f"to_json(CAST({value} AS VARIANT))" for value in _SCALARS), "to_json(struct(try_parse_json(js) AS v, i))", "to_json(map('k', try_parse_json(js)))", "to_json(array(try_parse_json(js), NULL))", *(f"to_json(parse_json({_quoted(text)}))" for text in _TEXTS), "to_json(to_variant_object(struct(d, ts, x, f, p, s)))"],
}  # fmt: skip
"""Of functions of JSON those that VARIANT adds."""
