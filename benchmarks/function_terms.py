"""What each function is compared on: terms in SQL over the columns of `function_samples`, by the function's name in SQL."""

# ruff: noqa: E501  data
from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def each(template: str, arguments: str) -> list[str]:
    """The template with `{}` replaced by each of the arguments, which are separated by blanks."""
    return [template.replace("{}", argument) for argument in arguments.split()]


def of_numbers(names: str) -> dict[str, list[str]]:
    """Functions of one number."""
    return {name: each(f"{name}({{}})", "x f i l p u t w NULL") for name in names.split()}


_MATH: Final = {
    **of_numbers("sin cos tan asin acos atan cot csc sec sinh cosh tanh asinh acosh atanh cbrt rint expm1 log1p degrees radians"),
    "atan2": ["atan2(x, y)", "atan2(i, x)", "atan2(y, 0)", "atan2(0D, x)", "atan2(-0.0D, y)"],
    "hypot": ["hypot(x, y)", "hypot(i, u)", "hypot(f, 0)"],
    "pi": ["pi()", "x + pi()"],
    "e": ["e()"],
    "try_add": ["try_add(i, j)", "try_add(l, m)", "try_add(t, t)", "try_add(x, y)", "try_add(p, r)", "try_add(r, r)", "try_add(i + j, 1L)"],
    "try_subtract": ["try_subtract(i, j)", "try_subtract(l, m)", "try_subtract(w, r)", "try_subtract(h, h)", "try_subtract(x, f)"],
    "try_multiply": ["try_multiply(i, j)", "try_multiply(l, m)", "try_multiply(r, r)", "try_multiply(w, 3)", "try_multiply(x, i)"],
    "try_divide": ["try_divide(i, j)", "try_divide(x, y)", "try_divide(p, r)", "try_divide(w, p)", "try_divide(l, 0)", "try_divide(NULL, 1)"],
    "try_mod": ["try_mod(i, j)", "try_mod(x, y)", "try_mod(p, r)", "try_mod(l, 0)", "try_mod(t, h)"],
    "bin": each("bin({})", "i l t u x p"),
    "conv": ["conv(u, 10, 16)", "conv(u, 16, 10)", "conv(u, 10, -16)", "conv(u, 36, 2)", "conv(l, 10, 36)", "conv(l, 10, -2)", "conv(s, i, 10)",
        "conv(u, 10, j)", "conv(u, 37, 10)", "conv(u, 10, 1)"],
    "nanvl": ["nanvl(x, y)", "nanvl(f, f)", "nanvl(f, x)", "nanvl(x, i)", "nanvl(x, NULL)", "nanvl(NULL, f)", "nanvl(i, l)"],
    "nullifzero": each("nullifzero({})", "i l x p t f"),
    "zeroifnull": each("zeroifnull({})", "i l x p t f r"),
}  # fmt: skip

_BITS: Final = {
    **{name: [f"{name}({v}, {n})" for v in ("i", "l", "t", "h") for n in ("j", "1", "33", "-1")] for name in
        ("shiftleft", "shiftright", "shiftrightunsigned")},
    "<<": ["i << j", "l << 3", "1 + i << 2", "i << 1 + 1"],
    ">>": ["i >> j", "l >> t", "i >> 1 << 2"],
    ">>>": ["i >>> j", "l >>> 70", "t >>> 1"],
    "bit_get": ["bit_get(i, 0)", "bit_get(i, j)", "bit_get(l, t)", "bit_get(t, 7)", "bit_get(h, 15)"],
    "getbit": ["getbit(l, 63)"],
    "bitmap_bit_position": each("bitmap_bit_position({})", "i l h x"),
    "bitmap_bucket_number": each("bitmap_bucket_number({})", "i l h"),
}  # fmt: skip

_HASHES: Final = {
    **{name: each(f"{name}({{}})", "s a u k js NULL") for name in ("md5", "sha", "sha1", "base64")},
    "sha2": [f"sha2(s, {bits})" for bits in ("0", "224", "256", "384", "512", "1", "NULL", "i")],
    **{
        name: [*each(f"{name}({{}})", "b t h i l f x p r w s js d ts NULL"), f"{name}(i, s, NULL, x)", f"{name}(s, a, url)", f"{name}(NULL, d, ts, r)",
            f"{name}(js, js)", f"{name}('a')", f"{name}(repeat(s, 20))"]
        for name in ("hash", "xxhash64")
    },
}  # fmt: skip

_PIECES: Final = {
    "btrim": ["btrim(s)", "btrim(s, 'a ')", "btrim(s, a)", "btrim(i, 1)"],
    "bit_length": each("bit_length({})", "s a i x"),
    "char": each("char({})", "i l t"),
    "chr": each("chr({})", "i l 955 256"),
    "elt": ["elt(i, s, a)", "elt(1, s, i)", "elt(2, s, d, x)", "elt(t, s, a, u, k, js)", "elt(j, s, CAST(1 / i AS STRING))"],
    "find_in_set": ["find_in_set(s, a)", "find_in_set('b', s)", "find_in_set(s, 'a,abc,,é,aa')", "find_in_set('', s)", "find_in_set('a,b', s)"],
    "luhn_check": each("luhn_check({})", "s u i l"),
    "mask": ["mask(s)", "mask(s, 'Q')", "mask(s, 'Q', 'q', 'd', 'o')", "mask(s, NULL, NULL, NULL, '*')", "mask(a, 'é', NULL)", "mask(k)"],
    "quote": each("quote({})", "s a"),
    "space": each("space({})", "t 0 -3"),
    "substring_index": [f"substring_index(s, {d}, {n})" for d in ("'a'", "'.'", "''", "'aa'", "a", "'b'") for n in ("1", "2", "-1", "-2", "0", "t")],
    "is_valid_utf8": each("is_valid_utf8({})", "s NULL"),
    "make_valid_utf8": each("make_valid_utf8({})", "s a"),
    "validate_utf8": each("validate_utf8({})", "s a"),
    "try_validate_utf8": each("try_validate_utf8({})", "s a"),
    "typeof": each("typeof({})", "b t h i l f x p r s d ts NULL 1+1L"),
}  # fmt: skip

_MATCHES: Final = {
    "like": ["like(s, a)", "like(s, 'a%')", "s NOT LIKE '%b%'", "like(s, '%/_%', '/')", "s LIKE NULL"],
    "ilike": ["ilike(s, 'A%')", "s ILIKE '%B%'", "s NOT ILIKE '%ß%'", "s ILIKE 'abc'", "s ILIKE '%/_C' ESCAPE '/'", "s ILIKE 'k'", "s ILIKE 'σ%'",
        "s ILIKE '%ς'", "s ILIKE 'i̇'"],
}  # fmt: skip

PATTERNS: Final = (
    "a", "b+", "[a-c]", "[^a-c]", "^a", "c$", "^$", "", "a*", "(a)(b)?", "(a|b)+", "\\d+", "\\D", "\\w+", "\\W", "\\s", "\\S+", "\\bb", "\\B.", ".", "(?s).",
    "(?m)^.", "(?m).$", "(?d).+", "(?md)^b", "(?i)ABC", "(?i)[A-B]+", "(?i:A)b", "(?-i:A)", "(?i)(a)\\1", "(.)\\1", "(?<n>a)\\k<n>", "[a-z&&[^b-y]]",
    "[a-c[x-z]]", "[a-z&&b-d]", "[&&a]", "[a&&]", "[a&b]", "[]a]", "[a-]", "[-a]", "[^]]", "[\\w&&[^\\d]]+", "[^a&&b]", "[a\\-z]", "[\\x41-\\u0043]",
    "\\Qa.b\\E", "\\Q%\\E.", "\\x{1d4b3}", "\\uD835\\uDCB3", "\\0141", "\\t", "\\cI", "\\e", "\\p{L}+", "\\p{Lu}", "\\P{L}", "\\pL", "\\p{IsL}", "\\p{Alpha}",
    "\\p{Punct}", "\\p{javaLowerCase}", "\\p{IsUppercase}", "\\p{gc=Ll}", "\\p{Space}", "\\h", "\\v", "\\R", "\\H\\V", "(?=b)", "(?!a).", "(?<=a).", "(?<!a)b",
    "(?>a+)b", "a++", "a*+a", "a??b", "a{2}", "a{1,}", "a{1,2}?", "a{1,2}+", "(?:a|ab)c", "\\Aa", "c\\z", "c\\Z", "\\.", "[.]", "\\/", "a|", "|a", "(a*)*",
    "(a*)+", "(a?)*b", "()", "(?:)+", "x=(\\d)&", "([^,]*),", "(?<y>\\d)-(?<z>\\d)", "é", "[é-ü]", "(?i)É", "𝒳", "[𝒳]", "[^𝒳]", ".y", "e.", "K", "(?i)k",
    "(?i)[k]", "(?i)[^k]", "İ", "\\N{LATIN SMALL LETTER B}", "]", "}", "a#b", " ", "\\ ", "[ab&&[bc]&&b]", "[a[^b]]", "[[a-c]&&[b-d]]x?", "(a)|b", "(b)\\10",
    "^(?:(\\d+)|(\\w+))", "(?i)ß", "\\$", "[$^]", "$", "(?m)$", "(?m)^", "\\n$", "a\\s*$", "[\\p{L}&&[^a]]",
)  # fmt: skip


def quoted(text: str) -> str:
    """A string of SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_REGEX: Final = {
    "rlike": [*(f"s RLIKE {quoted(p)}" for p in PATTERNS), "s NOT RLIKE 'a'", "s REGEXP '^a'", "rlike(a, s)", "s RLIKE NULL"],
    "regexp": ["regexp(s, 'b')"],
    "regexp_like": ["regexp_like(s, 'b')", "regexp_like(i, '^-?1')"],
    "regexp_count": [*(f"regexp_count(s, {quoted(p)})" for p in PATTERNS), "regexp_count(a, s)"],
    "regexp_instr": [*(f"regexp_instr(s, {quoted(p)})" for p in PATTERNS), "regexp_instr(s, 'b', 2)", "regexp_instr(s, 'b', NULL)", "regexp_instr(s, 'y')"],
    "regexp_extract": [*(f"regexp_extract(s, {quoted(p)}, 0)" for p in PATTERNS), *(f"regexp_extract(s, {quoted(p)})" for p in PATTERNS if "(" in p),
        "regexp_extract(s, '(a)(b)', 2)", "regexp_extract(s, '(a)(b)', 3)", "regexp_extract(s, 'a', -1)", "regexp_extract(s, '(a)(b)', t)",
        "regexp_extract(s, a, 0)"],
    "regexp_substr": ["regexp_substr(s, 'b+')", "regexp_substr(s, 'x*')", "regexp_substr(s, '[0-9]+')"],
    "regexp_replace": [*(f"regexp_replace(s, {quoted(p)}, '<$0>')" for p in PATTERNS), *(f"regexp_replace(s, 'b', '-', {n})" for n in (1, 2, 3, 5)),
        "regexp_replace(s, '^.', '', 2)", "regexp_replace(s, '(.)(.)', '$2$1')", "regexp_replace(s, '(a)', '$11')", "regexp_replace(s, 'a', '$1')",
        "regexp_replace(s, '(?<n>a)', concat('$', '{n}$', '{n}'))", "regexp_replace(s, 'a', concat('$', '{n}'))", r"regexp_replace(s, 'a', '\\\\$0')", r"regexp_replace(s, 'a', 'x\\\\')",
        "regexp_replace(s, 'a', '$')", "regexp_replace(s, 'a', a)", "regexp_replace(s, a, '')", "regexp_replace(u, '[^0-9]', '')",
        "regexp_replace(s, '(?<=a)b', '-', 2)", "regexp_replace(s, '(a)?b', '[$1]')"],
}  # fmt: skip

TERMS: Final[Mapping[str, list[str]]] = {**_MATH, **_BITS, **_HASHES, **_PIECES, **_MATCHES, **_REGEX}
