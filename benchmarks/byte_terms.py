"""What functions are compared on over BINARY: terms in SQL over the columns of `function_samples`, by function."""

# ruff: noqa: E501  data
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_S: Final = "CAST(s AS BINARY)"
_A: Final = "CAST(a AS BINARY)"
_BROKEN: Final = (
    "X'41C3'",
    "X'E282'",
    "X'F0908041'",
    "X'C0AF'",
    "X'EDA080'",
    "X'F5808080'",
    "X'80'",
    "X'E28241FF'",
    "X'F48FBFBF'",
    "X''",
    "unhex(u)",
)
_KEY: Final = "'1234567890abcdef'"
_LONG: Final = "'abcdefghijklmnop12345678ABCDEFGH'"
_VECTOR: Final = "unhex('000102030405060708090a0b0c0d0e0f')"
_SHORT: Final = "unhex('000102030405060708090a0b')"
_SAME: Final = (
    "upper(B)", "lower(B)", "initcap(B)", "ascii(B)", "trim(B)", "btrim(B)", "repeat(B, 2)", "translate(B, 'a', 'b')", "levenshtein(B, a)", "locate('a', B)",
    "instr(B, a)", "B LIKE 'a%'", "B ILIKE 'A%'", "replace(B, 'a', 'x')", "split_part(B, 'a', 1)", "find_in_set(B, 'a,abc')", "luhn_check(B)", "quote(B)",
    "substring_index(B, 'a', 1)", "regexp_replace(B, 'a', '-')", "regexp_extract(B, '(a)b', 1)", "B RLIKE 'a'", "split(B, 'a')", "concat_ws(B, 'x', s)",
    "right(B, 2)", "url_encode(B)", "encode(B, 'utf-8')", "B || 1", "B || s",
)  # fmt: skip

BYTES: Final[Mapping[str, list[str]]] = {
    "substring": [*(f"substring({_S}, {p}, {n})" for p in ("1", "0", "-2", "t") for n in ("2", "0", "-1", "t")), f"substr({_S}, 2)", "substring(X'E28241FF', 2, 2)"],
    "left": [f"left({_S}, t)", f"left({_S}, 2)", "left(X'FF00', 1)"],
    "length": [f"length({_S})", "char_length(X'FF00')", f"len({_S})"],
    "octet_length": [f"octet_length({_S})"],
    "bit_length": [f"bit_length({_S})"],
    **{
        name: [f"{name}({_S}, 5)", f"{name}({_S}, 5, {_A})", f"{name}({_S}, t, X'FF00')", f"{name}({_S}, 5, a)", f"{name}(s, 5, {_A})", f"{name}({_S}, -1)", f"{name}({_S}, 4, NULL)"]
        for name in ("lpad", "rpad")
    },
    "overlay": [f"overlay({_S}, {_A}, 2)", f"overlay({_S}, X'FF', t, 1)", f"overlay({_S}, {_A}, -1, 0)", "overlay(s PLACING a FROM 2)", "overlay(s PLACING 'x' FROM t FOR 2)", "overlay(s, 'x', -2147483648, 0)"],
    "concat": [f"concat({_S}, {_A})", f"{_S} || {_A} || X'FF'", f"concat({_S}, a)", f"concat({_S}, NULL)", f"concat({_S})"],
    "reverse": [f"reverse({_S})", "reverse(X'FF00')"],
    **{name: [f"{name}({_S}, {_A})", f"{name}({_S}, X'61')", f"{name}({_S}, 'a')", f"{name}(s, {_A})"] for name in ("contains", "startswith", "endswith")},
    "elt": [f"elt(1, {_S}, {_A})", f"elt(t, {_S}, {_A})", f"elt(2, {_S}, a)"],
    "crc32": [f"crc32({_S})", "crc32(s)", "crc32(X'FF00')"],
    "is_valid_utf8": [f"is_valid_utf8({data})" for data in _BROKEN],
    "make_valid_utf8": [f"make_valid_utf8({data})" for data in _BROKEN],
    "validate_utf8": [f"validate_utf8({_S})", "validate_utf8(X'F48FBFBF')", "CASE WHEN b THEN validate_utf8(X'C0AF') END"],
    "try_validate_utf8": [f"try_validate_utf8({data})" for data in _BROKEN],
    "binary as text": [term.replace("B", _S) for term in _SAME],
    "aes_encrypt": [
        *(f"aes_encrypt({data}, {key}, 'ECB')" for data in ("s", _S, "u") for key in (_KEY, _LONG)),
        f"aes_encrypt(s, {_KEY}, 'CBC', 'PKCS', {_VECTOR})", f"aes_encrypt(s, {_LONG}, 'cbc', 'default', {_VECTOR})",
        f"aes_encrypt(s, {_KEY}, 'GCM', 'NONE', {_SHORT})", f"aes_encrypt(s, {_LONG}, 'GCM', 'DEFAULT', {_SHORT}, a)",
        "aes_encrypt(s, a, 'ECB')", f"aes_encrypt(s, {_KEY}, 'ECB', 'NONE')", f"aes_encrypt(s, {_KEY}, 'ECB', 'PKCS', {_VECTOR})",
        f"aes_encrypt(s, {_KEY}, 'GCM', 'DEFAULT', {_VECTOR})", f"aes_encrypt(s, {_KEY}, 'CBC', 'PKCS', {_VECTOR}, a)", f"aes_encrypt(s, {_KEY}, 'XYZ', 'PKCS', {_VECTOR})",
        "aes_encrypt(s, NULL, 'ECB')", f"aes_encrypt(s, {_KEY}, 'GCM', 'DEFAULT', a)",
    ],
    "aes_decrypt": [
        f"aes_decrypt(aes_encrypt(s, {_KEY}, 'ECB'), {_KEY}, 'ECB')", f"aes_decrypt(aes_encrypt(s, {_LONG}, 'CBC', 'PKCS', {_VECTOR}), {_LONG}, 'CBC')",
        f"aes_decrypt(aes_encrypt(s, {_KEY}, 'GCM', 'NONE', {_SHORT}, a), {_KEY}, 'GCM', 'DEFAULT', a)", f"aes_decrypt({_S}, {_KEY})",
        f"aes_decrypt({_S}, {_KEY}, 'CBC')", f"aes_decrypt({_S}, {_KEY}, 'ECB')", f"aes_decrypt(unhex(repeat('00', 16)), {_KEY}, 'CBC')",
    ],
    "try_aes_decrypt": [
        f"try_aes_decrypt(aes_encrypt(s, {_KEY}, 'ECB'), {_KEY}, 'ECB')", f"try_aes_decrypt({_S}, {_KEY})", f"try_aes_decrypt({_S}, {_KEY}, 'CBC')",
        f"try_aes_decrypt({_S}, {_KEY}, 'ECB')", f"try_aes_decrypt(aes_encrypt(s, {_KEY}, 'GCM', 'NONE', {_SHORT}, a), {_KEY}, 'GCM', 'DEFAULT', s)",
        f"try_aes_decrypt(aes_encrypt(s, {_KEY}, 'ECB'), {_LONG}, 'ECB')", f"try_aes_decrypt({_S}, 'short')", f"try_aes_decrypt(s, {_KEY}, 'XYZ')",
    ],
}  # fmt: skip
