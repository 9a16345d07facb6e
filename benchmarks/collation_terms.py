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
        "mask(s COLLATE UTF8_LCASE) = 'XXX'", "quote(s COLLATE UTF8_LCASE)", "to_json(named_struct('v', s COLLATE UTF8_LCASE))", "to_csv(named_struct('v', s COLLATE UTF8_LCASE))", "get_json_object('{\"a\": 1, \"A\": 2}' COLLATE UTF8_LCASE, '$.A')",
        "array_join(array(s COLLATE UTF8_LCASE, a), '-') = upper(concat(s, '-', a))", "date_format(d, 'yyyy' COLLATE UTF8_LCASE)"],
    "collated arrays": ["array(s COLLATE UTF8_LCASE, a)[0] = 'ABC'", "try_element_at(array(s COLLATE UTF8_LCASE, a), 1) = 'ABC'", "get(array(s COLLATE UTF8_LCASE), 0) = 'ABC'", "transform(array(s COLLATE UTF8_LCASE, a), x -> x = 'ABC')",
        "filter(array(s COLLATE UTF8_LCASE, a), x -> x > 'ABC')", "exists(array(s COLLATE UTF8_LCASE, a), x -> x IN ('B', 'ABC'))", "forall(array(s COLLATE UTF8_LCASE, a), x -> x >= upper(x))", "slice(array(s COLLATE UTF8_LCASE, a), 1, 1) = array('ABC')",
        "flatten(array(array(s COLLATE UTF8_LCASE))) = array('ABC')", "array_compact(array(s COLLATE UTF8_LCASE, a))", "reverse(array(s COLLATE UTF8_LCASE, a))"],
}  # fmt: skip
