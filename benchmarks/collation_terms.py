"""What collations are compared on: terms in SQL over the columns of `function_samples`, by function."""

# ruff: noqa: E501  data
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NAMES: Final = ("UTF8_LCASE", "UTF8_BINARY_RTRIM", "UTF8_LCASE_RTRIM")
_TEXTS: Final = ("s", "replace(upper(s), 'A', 'İ') || ' '")
_PARTS: Final = ("'B'", "'i'", "'\\u0307'", "'İ'", "'i\\u0307'", "'Σ'", "''", "' '", "upper(a)")


def _searched(call: str, names: tuple[str, ...] = _NAMES) -> list[str]:
    """The call with $s for a text, $c for its collation, and $p for what is searched in it."""
    return [call.replace("$s", s).replace("$c", c).replace("$p", p) for s in _TEXTS for c in names for p in _PARTS]


COLLATED: Final[Mapping[str, list[str]]] = {
    "collate": ["s COLLATE UTF8_LCASE", *(f"collate(s, '{name.lower()}') = upper(s)" for name in _NAMES), "s COLLATE SYSTEM.BUILTIN.UTF8_LCASE"],
    "collation": ["collation(s)", "collation(s COLLATE UTF8_LCASE_RTRIM)", "collation(concat('x', s COLLATE UTF8_LCASE))"],
    "collated comparison": [
        *(f"{s} COLLATE {c} {sign} {other}" for s in _TEXTS for c in _NAMES for sign in ("=", "<>", "<", "<=>", ">=") for other in ("a", "'ΑΣ'", "upper(a)", "NULL")),
        "s COLLATE UTF8_LCASE IN ('ABC', a, '')", "s COLLATE UTF8_LCASE BETWEEN 'A' AND 'B'", "nullif(s COLLATE UTF8_LCASE, upper(s))",
        "CASE s COLLATE UTF8_LCASE WHEN 'ABC' THEN 1 WHEN a THEN 2 END", "array(s COLLATE UTF8_LCASE) = array(upper(s))", "u COLLATE UTF8_LCASE = NULL",
        "array_contains(array(s COLLATE UTF8_LCASE, a), 'ABC')", "array_position(array(s COLLATE UTF8_LCASE, a), 'abc')",
    ],
    "collated contains": _searched("contains($s COLLATE $c, $p)"),
    "collated startswith": _searched("startswith($s COLLATE $c, $p)"),
    "collated endswith": _searched("endswith($s COLLATE $c, $p)"),
    "collated locate": [*_searched("locate($p, $s COLLATE $c, 2)"), *_searched("instr($s COLLATE $c, $p)")],
    "collated replace": _searched("replace($s COLLATE $c, $p, 'xyz')"),
    "collated split_part": [*_searched("split_part($s COLLATE $c, $p, 2)"), "split_part(s COLLATE UTF8_LCASE, 'B', -1)"],
    "collated substring_index": [*_searched("substring_index($s COLLATE $c, $p, 1)"), *_searched("substring_index($s COLLATE $c, $p, -2)")],
    "collated find_in_set": _searched("find_in_set($p COLLATE $c, concat($s, ',b ,', $p, ',x'))"),
    "collated trim": [*_searched("trim(BOTH $p FROM $s COLLATE $c)", ("UTF8_LCASE",)), *_searched("ltrim($p || 'a', $s COLLATE $c)", ("UTF8_LCASE",)),
        *_searched("rtrim($p || 'a', $s COLLATE $c)", ("UTF8_LCASE",)), *(f"{f}(s COLLATE {c})" for f in ("trim", "ltrim", "rtrim") for c in _NAMES)],
    "collated like": [*_searched("$s COLLATE $c LIKE $p", ("UTF8_LCASE",)), "s COLLATE UTF8_LCASE LIKE 'A%'", "replace(s, 'a', 'İ') COLLATE UTF8_LCASE LIKE 'i%'", "s COLLATE UTF8_LCASE LIKE 'ſ%'", "'ı' COLLATE UTF8_LCASE LIKE 'I'",
        *(f"replace(s, 'a', 'İ') COLLATE UTF8_LCASE LIKE '{p}'" for p in ("%i%", "%", "%%", "İ%C", "i\\u0307%c", "%_C", "i_c", "%i\\u0307", "i\\u0307bc", "_BC", "\\u0131%", "%\\\\%%"))],
    "collated text": [*(f"{f}(s COLLATE UTF8_LCASE)" for f in ("upper", "lower", "length", "ascii", "reverse", "hash", "xxhash64", "crc32", "soundex", "octet_length")), "typeof(concat(s COLLATE UTF8_LCASE, 'x'))",
        "substring(s COLLATE UTF8_LCASE, 2) = 'BC'", "concat_ws('A', s COLLATE UTF8_LCASE, 'x') = 'abcax'", "lpad(s COLLATE UTF8_LCASE, 5, 'X')", "coalesce(s COLLATE UTF8_LCASE, a) = 'ABC'", "if(b, s COLLATE UTF8_LCASE, a) = 'ABC'",
        "typeof(CAST(i AS STRING COLLATE UTF8_LCASE))", "CAST(u COLLATE UTF8_LCASE AS INT)", "elt(1, s COLLATE UTF8_LCASE, a) = 'ABC'", "levenshtein(s COLLATE UTF8_LCASE, a)", "named_struct('v', s COLLATE UTF8_LCASE).v = 'ABC'",
        "mask(s COLLATE UTF8_LCASE) = 'XXX'", "quote(s COLLATE UTF8_LCASE)", "to_json(named_struct('v', s COLLATE UTF8_LCASE))", "to_csv(named_struct('v', s COLLATE UTF8_LCASE, 'n', 1))", "get_json_object('{\"a\": 1, \"A\": 2}' COLLATE UTF8_LCASE, '$.A')",
        "array_join(array(s COLLATE UTF8_LCASE, a), '-') = upper(concat(s, '-', a))", "date_format(d, 'yyyy' COLLATE UTF8_LCASE)"],
    "collated arrays": ["array(s COLLATE UTF8_LCASE, a)[0] = 'ABC'", "try_element_at(array(s COLLATE UTF8_LCASE, a), 1) = 'ABC'", "get(array(s COLLATE UTF8_LCASE), 0) = 'ABC'", "transform(array(s COLLATE UTF8_LCASE, a), x -> x = 'ABC')",
        "filter(array(s COLLATE UTF8_LCASE, a), x -> x > 'ABC')", "exists(array(s COLLATE UTF8_LCASE, a), x -> x IN ('B', 'ABC'))", "forall(array(s COLLATE UTF8_LCASE, a), x -> x >= upper(x))", "slice(array(s COLLATE UTF8_LCASE, a), 1, 1) = array('ABC')",
        "flatten(array(array(s COLLATE UTF8_LCASE))) = array('ABC')", "array_compact(array(s COLLATE UTF8_LCASE, a))", "reverse(array(s COLLATE UTF8_LCASE, a))"],
    "collated regular expressions": [*(f"s COLLATE UTF8_LCASE RLIKE '{p}'" for p in ("A", "[B-C]", "ß", "İ", "^$", "x*", "(?-i)b", "[^b]", "s")),
        "regexp_replace(s COLLATE UTF8_LCASE, 'B', '<$0>')", "regexp_replace(s COLLATE UTF8_LCASE, '', '-')", "regexp_extract(s COLLATE UTF8_LCASE, '(B)', 1) = 'B'", "regexp_extract_all(s COLLATE UTF8_LCASE, '([A-Z])', 1)",
        "regexp_count(s COLLATE UTF8_LCASE, 'B')", "regexp_instr(s COLLATE UTF8_LCASE, 'B')", "regexp_substr(s COLLATE UTF8_LCASE, 'B.')", "split(s COLLATE UTF8_LCASE, 'B')", "split(s COLLATE UTF8_LCASE, a)", "split(s, 'B' COLLATE UTF8_LCASE)",
        "s RLIKE 'B' COLLATE UTF8_LCASE", "split(s COLLATE UTF8_LCASE, 'B', 2)[0] = 'A'", "str_to_map(s COLLATE UTF8_LCASE, 'B', 'A')", "str_to_map('xA1,yB2a|', ',', 'a|' COLLATE UTF8_LCASE)", "str_to_map(s COLLATE UTF8_LCASE, '', a)"],
    "collated translate": [f"translate({s} COLLATE {c}, {p}, {r})" for s in _TEXTS for c in _NAMES for p in ("'aB'", "'Aa'", "'İbi'", "'Σς'", "upper(a)") for r in ("'12'", "''")] + ["translate('ai' COLLATE UTF8_LCASE, 'İI', '12')"],
    "collated choices": [*(f"{f}({x})" for f in ("greatest", "least") for x in ("s COLLATE UTF8_LCASE, upper(s), 'ABC'", "'abc', s COLLATE UTF8_LCASE_RTRIM, 'ABC  ', NULL", "named_struct('v', s COLLATE UTF8_LCASE), named_struct('v', 'ABC')")),
        *(f"{f}(array(s COLLATE {c}, upper(s), a, 'Abc ', NULL))" for c in _NAMES for f in ("array_min", "array_max", "array_distinct", "sort_array", "array_sort")), "sort_array(array(s COLLATE UTF8_LCASE, upper(s), a), false)",
        *(f"{f}(array(s COLLATE {c}, upper(s), 'x', NULL), array('ABC ', upper(a), NULL))" for c in _NAMES for f in ("array_union", "array_except", "array_intersect", "arrays_overlap")),
        "array_remove(array(s COLLATE UTF8_LCASE, a, 'ABC'), 'abc')", "array_append(array(s COLLATE UTF8_LCASE), 'B')", "array_repeat(s COLLATE UTF8_LCASE, 2)[1] = 'ABC'", "arrays_zip(array(s COLLATE UTF8_LCASE), array(a))",
        "array_sort(array(s COLLATE UTF8_LCASE, 'B'), (x, y) -> CASE WHEN x < y THEN -1 WHEN x > y THEN 1 ELSE 0 END)", "aggregate(array(s COLLATE UTF8_LCASE, 'B'), 0, (n, x) -> n + if(x = 'ABC', 1, 0))"],
    "collated maps": ["map(coalesce(s, '') COLLATE UTF8_LCASE, i)['ABC']", "element_at(map('abc' COLLATE UTF8_LCASE, 1), s COLLATE UTF8_LCASE)", "map_contains_key(map('abc' COLLATE UTF8_LCASE, 1), upper(s) COLLATE UTF8_LCASE)",
        "map_keys(map(s COLLATE UTF8_LCASE, 1))", "map_concat(map('abc' COLLATE UTF8_LCASE, 1), map(upper(s) COLLATE UTF8_LCASE, 2))", "map_from_arrays(array('ABC' COLLATE UTF8_LCASE, s), array(1, 2))", "map_from_entries(array(named_struct('k', 'ABC' COLLATE UTF8_LCASE, 'v', 1), named_struct('k', s, 'v', 2)))",
        "map_filter(map(s COLLATE UTF8_LCASE, 1), (k, v) -> k = 'ABC')", "transform_keys(map('abc', 1, s, 2), (k, v) -> k COLLATE UTF8_LCASE)", "map_zip_with(map('abc' COLLATE UTF8_LCASE, 1), map(upper(s) COLLATE UTF8_LCASE, 2), (k, v, w) -> coalesce(v, w))",
        "CAST(map('a', 1, 'A', 2) AS MAP<STRING COLLATE UTF8_LCASE, INT>)['A']", "typeof(map(s COLLATE UTF8_LCASE, a))"],
    "collated values": [*(f"{f}(u COLLATE UTF8_LCASE)" for f in ("abs", "sqrt", "round", "bin", "unhex", "url_encode", "try_url_decode", "try_parse_json", "year")), "u COLLATE UTF8_LCASE + 1", "date_add('2020-01-01' COLLATE UTF8_LCASE, i % 9)", "NOT ('true' COLLATE UTF8_LCASE)",
        "conv(u COLLATE UTF8_LCASE, 10, 16) = 'ff'", "hex(s COLLATE UTF8_LCASE) = '616263'", "typeof(quote(s COLLATE UTF8_LCASE))", "typeof(hex(s COLLATE UTF8_LCASE))", "try_to_number(u COLLATE UTF8_LCASE, '999')", "to_date('01/02/2020' COLLATE UTF8_LCASE, 'dd/MM/yyyy')", "trunc(d, 'MONTH' COLLATE UTF8_LCASE)",
        "parse_url('http://u/a?Q=1&q=2' COLLATE UTF8_LCASE, 'QUERY', 'q')", "from_json('{\"a\": 1}' COLLATE UTF8_LCASE, 'a INT')", "to_csv(struct(s COLLATE UTF8_LCASE, a))", "initcap(s COLLATE UTF8_BINARY_RTRIM)", "sequence('1' COLLATE UTF8_LCASE, 3)"],
}  # fmt: skip
