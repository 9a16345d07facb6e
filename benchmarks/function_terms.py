"""What each function is compared on: terms in SQL over the columns of `function_samples`, by the function's name in SQL."""

# ruff: noqa: E501  data
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.byte_terms import BYTES
from benchmarks.collation_terms import COLLATED
from benchmarks.collection_terms import COLLECTIONS
from benchmarks.interval_terms import INTERVALS
from benchmarks.json_terms import JSON_VALUES
from benchmarks.rarer_terms import RARER
from benchmarks.text_terms import TEXT_VALUES
from benchmarks.time_terms import TIMES
from benchmarks.variant_terms import VARIANTS


def each(template: str, arguments: str) -> list[str]:
    """The template with `{}` replaced by each of the arguments, which are separated by blanks."""
    return [template.replace("{}", argument) for argument in arguments.split()]


def of_numbers(names: str) -> dict[str, list[str]]:
    """Functions of one number."""
    return {name: each(f"{name}({{}})", "x f i l p u t w NULL") for name in names.split()}


_MATH: Final = {
    **of_numbers("sin cos tan asin acos atan cot csc sec sinh cosh tanh asinh acosh atanh cbrt rint expm1 log1p degrees radians"),
    "atan2": ["atan2(x, y)", "atan2(i, x)", "atan2(y, 0)", "atan2(0D, x)", "atan2(-0.0D, y)"],
    **of_numbers("exp ln log10 log2"),
    "log": ["log(x, y)", "log(2, x)", "log(x)", "log(i, j)", "log(1, x)", "log(u, p)"],
    **{name: [f"{name}({v})" for v in ("x, y", "x, 2", "i, j", "x, t", "x, 0.5", "x, -1", "2, x", "x, 1.0 / 3", "p, f")] for name in ("power", "pow")},
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
    **{name: each(f"{name}({{}})", "s a u k js NULL encode(s,'utf-16')") for name in ("md5", "sha", "sha1", "base64")},
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
    "soundex": each("soundex({})", "s u k NULL"),
    "split_part": ["split_part(s, 'a', t)", "split_part(s, a, 1)", "split_part(s, ',', -1)", "split_part(u, '', 1)"],
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

FORMATS: Final = (
    "G GG GGG GGGG y yy yyy yyyy yyyyy yyyyyy M MM MMM MMMM L LL LLL LLLL d dd D DD DDD", "Q QQ QQQ QQQQ q qq qqq qqqq E EE EEE EEEE F a",
    "h hh K KK k kk H HH m mm s ss S SS SSS SSSSSS SSSSSSSSS", "VV z zz zzz zzzz O OOOO X XX XXX XXXX XXXXX x xx xxx xxxx xxxxx Z ZZ ZZZ ZZZZ ZZZZZ",
    "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "'a''b' [[yyyy]", "", "''", "yyyyMMddHHmmss",
)  # fmt: skip
TEXTS: Final = {
    "yyyy-MM-dd": ("2020-02-29", "2020-02-30", "2020-2-9", "20200-01-01", "+2020-01-01", "-2020-01-01", "2020-01-01x", " 2020-01-01", "", "10000-01-01",
        "+10000-01-01", "0000-01-01", "2020-13-01", "2020-00-10", "２０２０-01-01"),
    "y-M-d": ("2020-2-9", "20-2-9", "-5-1-1", "+5-1-1", "2020-02-029", "99999999999-1-1"), "yy-MM-dd": ("20-01-02", "2020-01-02", "99-1-2", "00-12-31"),
    "yyyyMMdd": ("20200229", "2020229", "120200229", "20200230"), "yyyyMMddHHmmss": ("20200229123456", "20200229126056", "2020022912345"),
    "yyyyMMddHHmmssSSS": ("20200229123456789", "202002291234567"), "dd/MM/yyyy": ("29/02/2020", "1/2/2020", "29/02/20201"), "ddMMyyyy": ("29022020", "2902202"),
    "dMMyyyy": ("29022020", "1022020"), "MMM d, yyyy": ("Feb 29, 2020", "FEB 29, 2020", "February 29, 2020", "May 1, 2020", "Sept 1, 2020"),
    "d MMMM yyyy": ("29 february 2020", "1 May 2020", "1 Feb 2020"), "yyyy-DDD": ("2020-060", "2020-366", "2021-366", "2020-60", "2020-000"),
    "yyyy D": ("2020 60", "2020 400"), "DDD": ("060", "366", "000"), "DDD MM": ("060 03", "060 02"), "yyyy-MM-dd DDD": ("2020-02-29 060", "2020-02-29 061"), "yyyy": ("2020", "20200", "202"),
    "MM": ("13", "02"), "dd": ("31", "32", "00"), "MM-dd": ("02-29", "02-28"), "HH:mm": ("12:34", "24:00", "12:60", "1:02"), "h a": ("1 PM", "12 am", "13 PM"),
    "hh:mm a": ("12:00 AM", "12:30 pm", "0:00 AM"), "K:mm a": ("0:30 PM", "12:00 AM"), "kk:mm": ("24:00", "00:00", "12:00"), "h": ("5", "12"), "a": ("PM",),
    "H h": ("13 1", "13 2", "1 1"), "H a": ("13 PM", "13 AM"), "HH s": ("12 3",), "H k": ("0 24", "1 24"), "h:mm": ("5:30",), "m:s": ("1:2", "61:2"),
    "yyyy-MM-dd HH:mm:ss.SSSSSS": ("2020-02-29 12:34:56.1", "2020-02-29 12:34:56.1234567", "2020-02-29 12:34:56.", "2020-02-29 12:34:56.123456"),
    "HH:mm:ss[.SSS]": ("12:34:56", "12:34:56.7", "12:34:56."), "yyyy-MM-dd'T'HH:mm:ssXXX": ("2020-02-29T12:34:56+02:00", "2020-02-29t12:34:56Z",
        "2020-02-29T12:34:56+0200", "2020-02-29T12:34:56-18:30"), "yyyy X": ("2020 +02", "2020 +0230", "2020 Z", "2020 z", "2020 +2"),
    "yyyy x": ("2020 +00", "2020 +0230", "2020 Z"), "yyyy XX": ("2020 +0230", "2020 +02"), "yyyy xxxx": ("2020 +023015", "2020 +0000"), "yyyy Z": ("2020 +0230",
        "2020 Z"), "yyyy ZZZZZ": ("2020 +02:30", "2020 Z"), "yyyy-MM-dd HH:mm VV": ("2021-03-28 02:30 Europe/Paris", "2021-10-31 02:30 Europe/Paris",
        "2020-01-01 00:00 UTC", "2020-01-01 00:00 +01:00", "2020-01-01 00:00 nowhere", "2020-01-01 00:00 Z"), "yyyy-MM-dd[ HH:mm[:ss]]": ("2020-01-01",
        "2020-01-01 10:20", "2020-01-01 10:20:30", "2020-01-01 10"), "'on' yyyy": ("ON 2020", "in 2020"), "yyyy''MM": ("2020'05",), "yyyy yyyy": ("2020 2020",
        "2020 2021"), "MM/dd/yyyy hh:mm:ss a": ("02/29/2020 01:02:03 PM",), "yyyyy": ("02020", "2020"), "yyy": ("2020", "020"), "": ("", "x"),
}  # fmt: skip

_READ: Final = [(text, pattern) for pattern, texts in TEXTS.items() for text in texts]
_MOMENTS: Final = {
    "date_format": [*(f"date_format(ts, {quoted(p)})" for p in FORMATS), "date_format(d, 'EEEE, MMMM d')", "date_format(k, 'yy')", "date_format(ts, NULL)",
        "date_format(ts, s)", "date_format(ts, concat('yyyy', substr(a, 1, 0)))"],
    "from_unixtime": ["from_unixtime(l)", "from_unixtime(i)", "from_unixtime(i, 'yyyy-MM-dd')", "from_unixtime(h, 'HH:mm:ss')", "from_unixtime(x, 'D')"],
    "to_date": [*(f"to_date({quoted(t)}, {quoted(p)})" for t, p in _READ), "to_date(k, 'yyyy-MM-dd')", "to_date(k, 'M/d/yy')", "to_date(d, 'yyyy')",
        "to_date(ts, 'yyyy')", "to_date(k)", "to_date(k, NULL)", "to_date(NULL, 'yyyy')", "to_date(date_format(ts, 'dd.MM.yyyy'), 'dd.MM.yyyy')"],
    "to_timestamp": [*(f"to_timestamp({quoted(t)}, {quoted(p)})" for t, p in _READ), "to_timestamp(k, 'yyyy-MM-dd HH:mm:ss')", "to_timestamp(d, 'x')",
        "to_timestamp(date_format(ts, 'yyyyMMddHHmmss'), 'yyyyMMddHHmmss')"],
    "to_timestamp_ltz": ["to_timestamp_ltz(k)", "to_timestamp_ltz(k, 'yyyy-MM-dd')"],
    "try_to_date": ["try_to_date(k)", "try_to_date(k, 'yyyy-MM-dd')", "try_to_date(d)", "try_to_date(ts)", "try_to_date(k, 'dd/MM/yyyy HH:mm')"],
    "try_to_timestamp": ["try_to_timestamp(k)", "try_to_timestamp(d)", "try_to_timestamp(k, 'yyyy-MM-dd HH:mm:ss')", "try_to_timestamp(k, 'M/d/yy')",
        *(f"try_to_timestamp({quoted(t)}, {quoted(p)})" for t, p in _READ)],
    "unix_timestamp": ["unix_timestamp(ts)", "unix_timestamp(d)", "unix_timestamp(k)", "unix_timestamp(k, 'yyyy-MM-dd')", "unix_timestamp(d, 'x')",
        "unix_timestamp('1969-12-31 23:59:59.5', 'yyyy-MM-dd HH:mm:ss.S')"],
    "to_unix_timestamp": ["to_unix_timestamp(ts)", "to_unix_timestamp(k, 'yyyyMMdd')"],
    **{name: each(f"{name}({{}})", "ts tt NULL") for name in ("unix_seconds", "unix_millis", "unix_micros")},
    "unix_date": each("unix_date({})", "d NULL"),
    "date_from_unix_date": each("date_from_unix_date({})", "i h t"),
    "timestamp_seconds": each("timestamp_seconds({})", "i l x f p t r 1.1234567BD"),
    "timestamp_millis": each("timestamp_millis({})", "i l t"),
    "timestamp_micros": each("timestamp_micros({})", "i l h"),
    "dayname": each("dayname({})", "d ts"),
    "monthname": each("monthname({})", "d ts k"),
    **{name: [f"{name}(ts, {quoted(zone)})" for zone in ("Europe/Paris", "America/New_York", "Asia/Kolkata", "UTC", "+05:30", "-08:00", "GMT+1", "Z",
        "Asia/Seoul", "Pacific/Apia", "+18:00")] + [f"{name}(ts, IF(i > 0, 'nowhere', 'UTC'))", f"{name}(d, 'Europe/Paris')", f"{name}(k, 'Asia/Tokyo')", f"{name}(ts, NULL)"]
        for name in ("from_utc_timestamp", "to_utc_timestamp")},
    **{name: [f"{name}(2020, t, t, 1, 2, 3.5)", f"{name}(h, 2, 29, 0, 0, 0)", f"{name}(2020, 2, 29, t, t, p)", f"{name}(2020, 12, 31, 23, 59, 60)",
        f"{name}(2021, 3, 28, 2, 30, 0, 'Europe/Paris')", f"{name}(2021, 10, 31, 2, 30, 0.000001, 'Europe/Paris')", f"{name}(2020, 1, 1, 0, 0, 60.5)",
        f"{name}(2020, 1, 1, NULL, 0, 0)", f"{name}(2020, 1, 1, 0, 0, '12.3456789')", f"{name}(1, 1, 1, 0, 0, 0, 'Asia/Tokyo')"]
        for name in ("make_timestamp", "make_timestamp_ltz", "try_make_timestamp", "try_make_timestamp_ltz")},
    "current_timezone": ["current_timezone()"],
}  # fmt: skip

PARTS: Final = ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO", "host", "")
URLS: Final = (
    "http://h",
    "http://h?q",
    "http://a_b/x",
    "http://h:/p",
    "http://h:80",
    "http://h:99999999999/",
    "http://1.2.3.4/",
    "http://1.2.3/",
    "http://h/p?a={}",
    "http://h/ü?é#ß",
    "http://u:p@h/",
    "http://u@v@h/",
    "http://h/a|b",
    "http://h/a b",
    "http://h/a\\b",
    "x",
    "x:",
    ":x",
    "1x:y",
    "x:/y",
    "x:///y",
    "x://",
    "//",
    "///",
    "/",
    "http://h#",
    "http://h?",
    "http://h#a#b",
    "http://[::1]/",
    "http://[x]/",
    "http://h-/",
    "http://-h/",
    "http://h.1/",
    "http://1h/",
    "http://h./",
    "http://a..b/",
    "http://%41/",
    "http://h%20/",
    "http://h/%4",
    "file:/a/b",
    "file:///a/b",
    "urn:isbn:123",
    "a/b:c",
    "./a:b",
    "http://h/;p=1?x",
    "http://h/p?a=%26&b=c+d",
    "http://H.Example/",
    "jdbc:mysql://h/d",
    "http://h/[a]",
    "http://h?[a]",
    "http://h/^",
    "http://h/`",
    'http://h/"',
    "http://h/<a>",
    "http://\u3000/",
    "http://h/\u2028",
    "http://h/\x7f",
    "http://é",
    "http://h\u0301/",
    "mailto:a@b?c=d",
    "http:a",
    "http:/a",
    "http:?q",
    "?",
    "#",
)
_URL: Final = {
    "url_encode": [*each("url_encode({})", "s js url i"), "url_encode(' ~!*()-_.+&')"],
    "url_decode": [*each("url_decode({})", "url s"), *(f"url_decode({quoted(t)})" for t in ("%41", "%C3%A9", "%C3", "%ff%41", "%+1", "%-1", "%2", "a%", "é%20", "%e2%82"))],
    "try_url_decode": [*each("try_url_decode({})", "url s"), "try_url_decode('%zz')"],
    **{name: [*(f"{name}(url, '{part}')" for part in PARTS), *(f"{name}(url, 'QUERY', {key})" for key in ("'a'", "'q'", "'x'", "''", "s", "NULL")), f"{name}(url, 'HOST', 'a')",
        *(f"{name}({quoted(url)}, '{part}')" for url in URLS for part in ("HOST", "PATH", "AUTHORITY", "QUERY"))] for name in ("parse_url", "try_parse_url")},
    "encode": [*(f"encode(s, '{c}')" for c in ("utf-8", "UTF-16", "UTF-16BE", "utf-16le", "utf-32", "iso-8859-1", "US-ASCII", "latin1")), "encode(s, a)"],
    "decode": [*(f"decode(encode(s, '{c}'), '{c}')" for c in ("utf-8", "UTF-16", "UTF-16BE", "utf-16le", "utf-32")), "decode(s, 'utf-8')", "decode(s, 'us-ascii')",
        "decode(X'E9', 'ISO-8859-1')", "decode(X'FFFE4100', 'UTF-16')", "decode(X'FF', 'utf-8')", "decode(i, 1, 'a', 2, 'b', 'c')", "decode(s, 'a', 1, NULL, 2)",
        "decode(i, j, x, 0)", "decode(x, 'NaN', 1, 2)"],
    "unhex": [*each("unhex({})", "u s i"), "unhex('F')", "unhex('4D 4D')", "unhex('')", "unhex('aAbB')"],
    "unbase64": [*(f"unbase64({quoted(t)})" for t in ("YWJj", "YWJ", "Y W J j", "YW*j", "YWJjZ", "", "YWI=", "YQ==", "YQ=", "=", "YQ==YQ==", "é")), "unbase64(base64(s))"],
}  # fmt: skip

PATHS: Final = (
    "$",
    "$.a",
    "$.b",
    "$['a']",
    "$['a b']",
    "$['c.d']",
    "$.a.b.c",
    "$[0]",
    "$[1]",
    "$[9]",
    "$[*]",
    "$[*].a",
    "$[*][0]",
    "$[0][*]",
    "$[*][*]",
    "$.b[2].c",
    "$.b[*]",
    "$.b[*].c",
    "$.a[*].b",
    "$.a[*].b[*]",
    "$.a[0].b[*]",
    "$.*",
    "$.a.*",
    "$['*']",
    "$a",
    "a",
    "",
    "$.",
    "$..a",
    "$[",
    "$[x]",
    "$[-1]",
    "$ .a",
    "$. a",
    "$[ 0 ]",
    "$.a ",
    "$.é",
    "$[*].a[*][*]",
    "$[*][*][*]",
    "$.a[0]",
    "$.d",
    "$.e",
    "$['']",
)
DOCUMENTS: Final = (
    '{"a":1.10}',
    '{"a":[1,2,{"b":"x"}]}',
    '{"a":[{"b":1},{"b":2}]}',
    '{"a":[{"b":1}]}',
    '{"a":null}',
    '{"a":1.0E2}',
    '{"a":-0}',
    '{"a":-0.0}',
    '{"a":1e-7}',
    '"x"',
    "1",
    "1.",
    "01",
    "1x",
    "1 x",
    "truex",
    "true x",
    "'x'",
    '{"a":01}',
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":"\t"}',
    '{"a":[1,[2,3]]}',
    "[[1,2],[3]]",
    '[{"a":[1]},{"a":[2,3]}]',
    '{"a":[]}',
    '{"a":[null,1]}',
    '{"a":[null]}',
    '{"a":"\\u0001\\b\\f\\n\\r\\t\\/\\\\"}',
    '[{"a":"\\u0001\\b\\f\\u007f\\/\\\\"}]',
    '{"a":"\\x"}',
    '{"a":"\\ud835"}',
    "{'a':'it\"s'}",
    '{"a":.5}',
    '{"a":+1}',
    '{"a":1e5}',
    '{"a":123456789.125}',
    '[ "a" , {} , [ ] ]',
    "[[[1,2]],[[3],4]]",
    '{"a":{"a":{"a":1}}}',
    '{"a":1,}',
    '{"a" 1}',
    '{"a":1 "b":2}',
    "{a:1}",
    "[1 2]",
    "/*c*/1",
    '{"a":1}}',
    '{"a":[[],[]]}',
    "[[],[]]",
    "[[[]]]",
    '{"a":1e400,"b":-1e400}',
    '{"a":12345678901234567890123}',
    '{"\\u0061":5}',
    "[null]",
    "[null,null]",
    '{"a":0.1e1}',
    '{"a":100000000.0}',
    "{\"a\":'x'}",
    "\ufeff1",
)
_JSON: Final = {
    "get_json_object": [*(f"get_json_object(js, {quoted(path)})" for path in PATHS), *(f"get_json_object({quoted(text)}, {quoted(path)})" for text in DOCUMENTS for path in
        ("$", "$.a", "$[*]", "$[*][*]", "$.a[*]", "$[*].a", "$[0]", "$.a[*].b")), "get_json_object(js, s)", "get_json_object(js, NULL)"],
    "json_array_length": [*each("json_array_length({})", "js s u"), *(f"json_array_length({quoted(text)})" for text in DOCUMENTS)],
}  # fmt: skip

# An index of -2^31 crashes Spark 4.2: element_at() takes the absolute value of it, which is negative.
_NESTED: Final = {
    "array": ["array(i, j)", "array(i, l, x)", "array(s, 'x')", "array(array(i), array(j, NULL))", "array(b)", "array(x, f)[1]"],
    "struct": ["struct(i, s)", "struct(i + 1, x)", "struct(struct(i), array(s))", "struct(i, s).s", "struct(i + 1).col1"],
    "named_struct": ["named_struct('a', i, 'b', s)", "named_struct('a', i).a", "named_struct('a', named_struct('b', d)).a.b",
        "array(named_struct('a', i), named_struct('a', j)).a"],
    "map": ["map('k', i)", "map(i, s, NULL, s)", "map(i, x, j, y)", "map('a', array(i), 'b', NULL)", "map('a', i)['a']", "map('a', i)['b']", "map('a', i).a",
        "map(x, i)", "map(struct(i, j), s)[struct(i, j)]"],
    "element_at": ["element_at(array(i, j, l), 1)", "element_at(array(i, j), -1)", "element_at(array(i, j), t)", "element_at(map('a', i, 'b', j), s)",
        "element_at(map(i, s), j)", "array(i, j)[t]", "array(i, l)[0]", "array(s)[int(t & 0) + 1]"],
    "try_element_at": ["try_element_at(array(i, j), 1)", "try_element_at(array(i, j), -3)", "try_element_at(array(i, j), t)", "try_element_at(map(s, i), 'a')"],
    "size": ["size(array(i, j))", "size(map('a', i))", "cardinality(array(s))", "size(CASE WHEN b THEN array(i) END)"],
    "map_keys": ["map_keys(map('a', i, 'b', j))"],
    "map_values": ["map_values(map('a', i, 'b', j))"],
    "cast": ["CAST(array(i, j) AS ARRAY<BIGINT>)", "CAST(array(i, j) AS STRING)", "CAST(struct(i, s, x) AS STRING)", "CAST(map('a', x) AS STRING)",
        "CAST(array(s) AS ARRAY<INT>)", "CAST(struct(i, s) AS STRUCT<a: STRING, b: STRING>)", "CAST(array(array(b), NULL) AS STRING)", "TRY_CAST(array(s) AS ARRAY<INT>)",
        "CAST(map(i, 'x') AS MAP<STRING, STRING>)", "CAST(CAST(s AS BINARY) AS STRING)", "CAST(u AS TIMESTAMP_NTZ)", "CAST(d AS TIMESTAMP_NTZ)", "CAST(CAST(d AS TIMESTAMP_NTZ) AS DATE)"],
    "comparison": ["array(i, j) = array(j, i)", "array(x) < array(y)", "array(x, 1) <= array(y, 1)", "named_struct('v', s, 'n', i) > named_struct('v', a, 'n', j)", "named_struct('v', x) = named_struct('v', y)",
        "array(i, NULL) <=> array(i, NULL)", "array(i) IN (array(j), array(1))", "greatest(array(i), array(j))", "named_struct('v', i) BETWEEN named_struct('v', 1) AND named_struct('v', j)",
        "array(f) = array(x)", "coalesce(array(i), array(j))", "array(i, l) <> array(j, m)"],
    "types of parts": ["typeof(CAST(named_struct('v', s) AS STRUCT<v: CHAR(3)>))", "CAST(array(s) AS ARRAY<VARCHAR(2)>)", "CAST(map(1, s) AS MAP<INT, CHAR(2)>)[1]", "typeof(array(i))", "typeof(named_struct('aB', i, 'c', array(p)))", "typeof(map(s, struct(d)))", "typeof(CAST(s AS BINARY))"],
    "hashes of parts": ["hash(array(i, j))", "hash(struct(s, x))", "xxhash64(array(s, NULL), i)", "hash(array(struct(i, d)))", "hash(CAST(s AS BINARY))"],
}  # fmt: skip

_FORMATTED: Final = {
    "format_number": [*(f"format_number({v}, {n})" for v in ("x", "f", "p", "r", "w", "i", "l", "t") for n in ("0", "2", "5")), "format_number(x, IF(i < 10, i, 1))", "format_number(x, -1)", "format_number(x, 20)",
        *(f"format_number({v}, '{p}')" for v in ("x", "p", "i") for p in ("#,###.#", "0", "#", "000.00", "#.00", "0.##", "#,##0.00", "####", "#,#0.0#", ".00", ".##", "#.##", "0,0")), "format_number(i, NULL)",
        "format_number(NULL, 2)", "format_number(x, 40)"],
    "format_string": [*(f"format_string('{f}', i)" for f in ("%d", "%5d|", "%-5d|", "%05d", "%+d", "%,d", "%(d", "% d", "%x", "%X", "%o", "%#x", "%#o", "%010x", "%+,015d", "%(,d", "%s", "%10s", "%.2s",
        "%b", "%S", "%%%d%n", "%5%", "%1$d %1$d %d", "%d %<d", "%-+8d|", "%(08d")), *(f"format_string('{f}', x)" for f in ("%f", "%.2f", "%10.3f", "%e", "%.3E", "%g", "%.0f", "%,.2f", "%+.1f", "%010.2f", "%s", "%b",
        "%.0e", "%#.0f", "%(.1f", "% .3f", "%G", "%.3g", "%,.3g", "%-12.2f|", "%.15f", "%.20f", "%08.1e")), *(f"format_string('{f}', s)" for f in ("%s", "%10s|", "%-10s|", "%.2s", "%S", "%b", "%-8.3s|")),
        "format_string('%s %s %s', b, t, l)", "format_string('%x %o', l, t)", "format_string('%x', h)", "format_string('%s', f)", "format_string('%.3f', f)", "format_string('%e', f)", "format_string('%s', p)",
        "format_string('%c', t)", "format_string('%c', i)", "format_string('%2$s %1$s', s, a)", "format_string('plain')", "format_string(NULL, 1)", "format_string('%s', NULL)", "format_string('%d', NULL)",
        "format_string('%d', s)", "format_string('%f', i)", "format_string('%d', x)", "format_string('%s %s', s)", "format_string(s, i)", "format_string('%.1f', NULL)", "format_string('%c', NULL)", "format_string('%.1s|%x', NULL, NULL)"],
    "printf": ["printf('%d%%', i)"],
}  # fmt: skip

TOPICS: Final = (
    _MATH,
    _BITS,
    _HASHES,
    _PIECES,
    _MATCHES,
    _REGEX,
    _MOMENTS,
    _URL,
    _JSON,
    _NESTED,
    _FORMATTED,
    COLLATED,
    COLLECTIONS,
    INTERVALS,
    JSON_VALUES,
    RARER,
    TEXT_VALUES,
    TIMES,
    BYTES,
    VARIANTS,
)
TERMS: Final[Mapping[str, list[str]]] = {
    name: [term for topic in TOPICS for term in topic.get(name, ())] for name in dict.fromkeys(name for topic in TOPICS for name in topic)
}
