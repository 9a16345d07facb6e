"""What functions between text, numbers and bytes are compared on: terms in SQL over the columns of `function_samples`, by function."""

# ruff: noqa: E501  data
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PATTERNS: Final = (
    "9", "0", "999", "000", "099", "909", "999.9", "999.00", "999.", ".9", ".00", "9,999", "0,000", "0,999,999", "9,0", "9G999D99", "$999.99", "S999", "999S", "MI999", "999MI", "999PR", "$9,999.99PR", "S$999.9",
    "MI$99", "$99S", "99999999999999999999", "9999999999.99999", "0000000000.00000", "MI9PR", "9.S", "S.9", "s9d9", "$.99",
)  # fmt: skip
NUMERALS: Final = (
    "5", "05", "005", "5.", ".5", "0.5", "5.5", "5.25", "-5", "+5", "5-", "5+", "<5>", "<5", "5>", "$5", "-$5", "$-5", "$5-", "1,234", "1234", "12,34", ",5", "5,", "1,2", "", " ", ".", "-", "+", "x", "1 2", " 5 ",
    "- 5", "<$1,234.50>", "1,234.50", "454.00", "99999", "0", "-0", "1e3",
)  # fmt: skip
WITHIN: Final = (
    "x*", "a??", "", "()", "\\\\b", "\\\\B", "\\\\B.", "(?=.)", "(?=𝒳)|.", "(?!a)", "(?<!a).", "(?<=.)", "(?<=..)", "(?<=.{2})", "(?<=[^a])", "(?<=\\\\p{L}).?", "(?<=😀)", "(?<!😀)", "(?<=^.)",
    "[^x]*?", "(?m)^", "(?m)$", "$", "\\\\z", "(?i)[a-c]*", "(?i)a*", "(a)|(?=(.))", "\\\\p{L}*", ".?(?<!a)",
)  # fmt: skip
"""Patterns that match within a character of two UTF-16 units, or look back at one."""
_BINARY_FORMATS: Final = ("hex", "base64", "utf-8", "UTF8", "HEX")

TEXT_VALUES: Final[Mapping[str, list[str]]] = {
    "to_char": [*(f"to_char({v}, '{p}')" for v in ("t", "p") for p in PATTERNS), *(f"to_char({v}, '{p}')" for v in ("i", "l", "r", "u") for p in ("9999999999", "S999,999.99", "0.0PR") if v != "u"),
        "to_char(NULL, '9')", "to_char(p, NULL)", "to_char(d, 'yyyy-MM')", "to_char(ts, 'HH:mm')", *(f"to_char(CAST(s AS BINARY), '{f}')" for f in ("hex", "base64", "utf-8")), "to_char('1.5', '9.9')", "to_char(0.1D, '9.9')",
        "to_char(CAST(0.1 AS FLOAT), '9.99999999')"],
    "to_varchar": ["to_varchar(t, '999S')"],
    "to_number": [*(f"to_number('{n}', '{p}')" for n in NUMERALS for p in ("9", "9.9", "S9", "9S", "MI9", "9PR", "$9", "9,999.99", "000", "$9,999.99PR", ".9")), "to_number(u, '999')", "to_number(u, 'S9999.99')", "to_number(NULL, '9')",
        "to_number(t, 'S999')", "to_number(u, NULL)"],
    "try_to_number": [*(f"try_to_number('{n}', '{p}')" for n in NUMERALS for p in ("9", "S9.9", "9,999.99", "$9,999.99PR")), "try_to_number(u, '999.99')", "try_to_number(s, '9')"],
    "to_binary": [*(f"to_binary(s, '{f}')" for f in _BINARY_FORMATS), "to_binary(u)", "to_binary('F')", "to_binary('YW', 'base64')", "to_binary('YW==', 'base64')", "to_binary('YW=', 'base64')", "to_binary('Y W\\nJj', 'base64')", "to_binary('YWJjZ', 'base64')",
        "to_binary('=', 'base64')", "to_binary('YQ==YQ==', 'base64')", "to_binary(NULL)", "to_binary(s, NULL)"],
    "try_to_binary": [*(f"try_to_binary(s, '{f}')" for f in _BINARY_FORMATS), "try_to_binary(s, 'x')", "try_to_binary('YW=', 'base64')", "try_to_binary('===', 'base64')", "try_to_binary('YWJj====', 'base64')"],
    "assert_true": ["assert_true(i IS NULL OR i = i)", "assert_true(b)", "assert_true(b, s)", "CASE WHEN i > 0 THEN i ELSE assert_true(i IS NULL OR i <= 0) END"],
    "raise_error": ["CASE WHEN i = 1 THEN raise_error('one') ELSE i END", "CASE WHEN b THEN raise_error(s) END", "coalesce(i, raise_error('no i'))"],
    "bitmap_count": ["bitmap_count(CAST(s AS BINARY))", "bitmap_count(X'1010')", "bitmap_count(X'')"],
    "hex": ["hex(CAST(s AS BINARY))", "hex(s)", "hex(X'FF00')", *(f"hex({v})" for v in ("b", "d", "ts", "p", "f", "x", "w", "NULL"))],
    "levenshtein": [*(f"levenshtein(s, a, {n})" for n in ("2", "0", "-1", "5", "i", "2147483647", "'1'", "p")), "levenshtein(u, s, 3)", "levenshtein(s, a, NULL)", "levenshtein(NULL, a, 1)"],
    "format_string": [*(f"format_string('{f}', {v})" for v in ("d", "ts", "CAST(ts AS TIMESTAMP_NTZ)") for f in ("%s", "%d", "%x", "%o", "%,d", "%S|%5b", "%-22d|", "%e")), "format_string('%c', d)", "format_string('%s %s', d, s)"],
    "regexp_count": [f"regexp_count(concat('a😀', s, '𝒳'), '{p}')" for p in WITHIN[::4]],
    "regexp_instr": [f"regexp_instr(concat('a😀', s, '𝒳'), '{p}')" for p in WITHIN[1::4]],
    "regexp_like": [f"concat('a😀', s, '𝒳') RLIKE '{p}'" for p in WITHIN[2::8]],
    "regexp_extract": [f"regexp_extract(concat('a😀', s, '𝒳'), '{p}', 0)" for p in WITHIN[2::4]],
    "regexp_extract_all": [f"regexp_extract_all(concat('a😀', s, '𝒳'), '{p}', 0)" for p in WITHIN],
    "regexp_replace": [*(f"regexp_replace(concat('a😀', s, '𝒳'), '{p}', '-')" for p in WITHIN), *(f"regexp_replace(concat('x', s, '😀'), '{p}', '<$0>', 2)" for p in WITHIN[3::4]), "regexp_replace(s, 'x*', '')"],
    "split": [*(f"split(concat('a😀', s, '𝒳'), '{p}')" for p in WITHIN[::2]), *(f"split(concat(s, '😀'), '{p}', 3)" for p in WITHIN[1::4])],
    "str_to_map": ["str_to_map('a𝒳', 'y*', 'z')", "str_to_map('1😀', 'z', '(?<=1)')", "str_to_map('1𝒳b', '(?<=[^1])', '1')"],
    "struct": ["struct(i a, s AS b, x)", "struct(1 `a b`, 'x' y)", "struct(struct(i n) s).s.n"],
    "binary": ["binary(s)"],
    "ceil": [*(f"ceil({v}, {n})" for v in ("p", "r", "i", "t", "l", "f", "w", "'3.14'") for n in (0, 1, 2, -1, -3, 5) if v != "r" or n < 5), "ceil(x / 1e300, 2)", "ceil(-2.5D, 0)"],
    "floor": [*(f"floor({v}, {n})" for v in ("p", "r", "i", "t", "l", "f", "w", "'3.14'") for n in (0, 1, 2, -1, -3, 5) if v != "r" or n < 5), "floor(12.345, 10)", "floor(-2.5D, 0)"],
}  # fmt: skip
