"""String functions. Arguments of other types are cast to STRING, as in Spark."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Final

import pyarrow.compute as pc

from deltic.errors import Span
from deltic.expr.arrays import text as arrays
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring, passing
from deltic.expr.failing import is_at_most
from deltic.expr.functions.collated import trimming, without_folding
from deltic.expr.functions.signature import (
    BYTES,
    INTEGER,
    PLAIN_TEXT,
    TEXT,
    TEXT_OR_BYTES,
    Parameter,
    accept,
    accept_each,
    any_nullable,
    check_count,
    first,
    flattened,
    takes,
)
from deltic.expr.nodes import Call, Expr, Literal, Value
from deltic.expr.registry import Function, Nulls, Typed, resolve
from deltic.expr.rows import text as rows
from deltic.expr.typing import case, cast
from deltic.schema import BIGINT, BINARY, INT, STRING, VARIANT, Type
from deltic.types import array_type

MOST: Final = Literal(2**31 - 1, INT)
SPACE: Final = Literal(" ", STRING)


def _concat(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """The signature of CONCAT: any number of strings, of BINARYs, or of ARRAYs; nested calls are flattened."""
    if any(a.type.name == "ARRAY" for a in arguments):
        return resolve("concat_arrays", arguments, span, written=name)
    if not arguments:
        return Literal("", STRING, span)
    type, converted = text_or_bytes(name, arguments, span)
    return Typed(flattened("concat", converted), type, any_nullable(converted))


def text_or_bytes(name: str, arguments: Sequence[Expr], span: Span | None) -> tuple[Type, tuple[Expr, ...]]:
    """The arguments as they are if all are BINARY, else as strings, of their collations; and that type."""
    if all(argument.type == BINARY for argument in arguments):
        return BINARY, tuple(arguments)
    return STRING, tuple(a if a.type.collation else accept(name, i, a, TEXT, span) for i, a in enumerate(arguments, 1))


def _concat_ws(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """An ARRAY stands for its elements."""
    check_count(name, arguments, 1, None, span)
    parts = [_elements_as_text(name, a, arguments[0], span) if a.type.name == "ARRAY" else a for a in arguments]
    converted = tuple(accept(name, i, a, TEXT, span) for i, a in enumerate(parts, 1))
    return Typed(converted, STRING, converted[0].nullable)


def _elements_as_text(name: str, array: Expr, separator: Expr, span: Span | None) -> Expr:
    """Its elements, joined; NULL if there are none, so that no separator stands beside it."""
    if array.type.parts[0].type == VARIANT:
        array = cast(array, array_type(STRING), span)
    joined = resolve("array_join", [array, accept(name, 1, separator, TEXT, span)], span, written=name)
    some = resolve(">", [resolve("array_size", [resolve("array_compact", [array])]), Literal(0, INT)])
    return case([(some, joined)], None, span)


def _reversed(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    if len(arguments) == 1 and arguments[0].type.name == "ARRAY":
        return resolve("reverse_array", arguments, span, written=name)
    return takes([TEXT_OR_BYTES], first)(name, arguments, span)


def _padded(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(text, length[, padding]): BINARY if both are, padded with zeros by default; else a STRING, padded with blanks."""
    check_count(name, arguments, 2, 3, span)
    value, length, *padding = arguments
    if not padding:
        padding = [Literal(b"\0", BINARY) if value.type == BINARY else SPACE]
    type, (value, by) = text_or_bytes(name, [value, *padding], span)
    taken = value, accept(name, 2, length, INTEGER, span), by
    return Typed(taken, type, any_nullable(taken))


def _trimmed(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(text) or (characters, text); in the call the text comes first."""
    check_count(name, arguments, 1, 2, span)
    converted = accept_each(name, arguments, TEXT, span)
    return Typed(converted[::-1], STRING, any_nullable(converted))


def _joined(call: Call, *parts: Value) -> Value:
    if None in parts:
        return None
    return "".join(map(str, parts)) if call.type == STRING else b"".join(part for part in parts if isinstance(part, bytes))


def _joined_by(call: Call, separator: Any, *parts: Any) -> Value:
    return None if separator is None else rows.concat_ws(separator, parts)


def _padding_can_fail(call: Call) -> bool:
    return not is_at_most(call.arguments[1], rows.MAX_LENGTH)


_SOUNDS: Final = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623017202", strict=True))
_HEXED: Final = Parameter("STRING, BINARY or BIGINT", lambda t: BIGINT if t.is_numeric else TEXT_OR_BYTES.accept(t))


def _sound(call: Call, text: str) -> str:
    """The Soundex code; the text itself if it does not begin with an English letter."""
    letters = "".join(c if c.isascii() else " " for c in text).upper()
    if letters[:1] not in _SOUNDS:
        return text
    code, last = letters[0], _SOUNDS[letters[0]]
    for letter in letters[1:]:
        sound = _SOUNDS.get(letter, "0")
        if sound == "7" and letter in _SOUNDS:
            continue
        if sound not in ("0", last):
            code += sound
        last = sound
    return code[:4].ljust(4, "0")


def _hex(call: Call, value: str | bytes | int) -> str:
    """The hexadecimal digits of bytes, of a string's in UTF-8, or of a BIGINT in two's complement."""
    if isinstance(value, bytes):
        return value.hex().upper()
    return value.encode().hex().upper() if isinstance(value, str) else f"{value % 2**64:X}"


FUNCTIONS: Final = (
    Function(name="hex", collated=passing, signature=takes([_HEXED], STRING), can_fail=False, rows=_hex, arrays=per_distinct),
    Function(
        name="crc32",
        collated=ignoring,
        signature=takes([BYTES], BIGINT),
        can_fail=False,
        rows=lambda call, data: zlib.crc32(data),
        arrays=per_distinct,
    ),
    Function(name="soundex", collated=ignoring, signature=takes([PLAIN_TEXT], STRING), can_fail=False, rows=_sound, arrays=per_distinct),
    Function(
        name="upper",
        collated=passing,
        aliases=("ucase",),
        signature=takes([TEXT], STRING),
        can_fail=False,
        rows=lambda call, s: s.upper(),
        arrays=arrays.case(pc.ascii_upper),
    ),
    Function(
        name="lower",
        collated=passing,
        aliases=("lcase",),
        signature=takes([TEXT], STRING),
        can_fail=False,
        rows=lambda call, s: s.lower(),
        arrays=arrays.case(pc.ascii_lower),
    ),
    Function(
        name="initcap",
        collated=without_folding,
        signature=takes([TEXT], STRING),
        can_fail=False,
        rows=lambda call, s: rows.initcap(s),
        arrays=per_distinct,
    ),
    Function(
        name="length",
        collated=ignoring,
        aliases=("char_length", "character_length", "len"),
        signature=takes([TEXT_OR_BYTES], INT),
        can_fail=False,
        rows=lambda call, s: len(s),
        arrays=arrays.of_text(arrays.plain(pc.utf8_length), arrays.plain(pc.binary_length)),
    ),
    Function(
        name="octet_length",
        collated=ignoring,
        signature=takes([TEXT_OR_BYTES], INT),
        can_fail=False,
        rows=lambda call, s: rows.size_bytes(s),
        arrays=arrays.plain(pc.binary_length),
    ),
    Function(
        name="ascii",
        collated=ignoring,
        signature=takes([TEXT], INT),
        can_fail=False,
        rows=lambda call, s: rows.ascii_code(s),
        arrays=per_distinct,
    ),
    Function(
        name="substring",
        collated=passing,
        aliases=("substr",),
        signature=takes([TEXT_OR_BYTES, INTEGER, INTEGER], first, defaults=[MOST]),
        can_fail=False,
        rows=lambda call, s, position, length: rows.substring(s, position, length),
        arrays=arrays.of_text(arrays.with_constants(arrays.substring)),
    ),
    Function(
        name="left",
        collated=passing,
        signature=takes([TEXT_OR_BYTES, INTEGER], first),
        can_fail=False,
        rows=lambda call, s, n: rows.left(s, n),
        arrays=arrays.of_text(arrays.with_constants(arrays.left)),
    ),
    Function(
        name="right",
        collated=passing,
        signature=takes([TEXT, INTEGER], STRING),
        can_fail=False,
        rows=lambda call, s, n: rows.right(s, n),
        arrays=arrays.with_constants(arrays.right),
    ),
    Function(
        name="concat",
        collated=passing,
        symbols=("||",),
        signature=_concat,
        nulls=Nulls.SEEN,
        can_fail=False,
        rows=_joined,
        arrays=arrays.concat,
    ),
    Function(
        name="concat_ws",
        collated=passing,
        signature=_concat_ws,
        nulls=Nulls.SEEN,
        can_fail=False,
        rows=_joined_by,
        arrays=arrays.concat_ws,
    ),
    Function(
        name="trim",
        collated=trimming,
        signature=_trimmed,
        can_fail=False,
        rows=lambda call, s, characters=" ": s.strip(characters),
        arrays=arrays.with_constants(arrays.trim(pc.utf8_trim)),
    ),
    Function(
        name="ltrim",
        collated=trimming,
        signature=_trimmed,
        can_fail=False,
        rows=lambda call, s, characters=" ": s.lstrip(characters),
        arrays=arrays.with_constants(arrays.trim(pc.utf8_ltrim)),
    ),
    Function(
        name="rtrim",
        collated=trimming,
        signature=_trimmed,
        can_fail=False,
        rows=lambda call, s, characters=" ": s.rstrip(characters),
        arrays=arrays.with_constants(arrays.trim(pc.utf8_rtrim)),
    ),
    Function(
        name="lpad",
        collated=passing,
        signature=_padded,
        can_fail=_padding_can_fail,
        rows=lambda call, s, n, pad: rows.pad_left(s, n, pad, call.span),
        arrays=per_distinct,
    ),
    Function(
        name="rpad",
        collated=passing,
        signature=_padded,
        can_fail=_padding_can_fail,
        rows=lambda call, s, n, pad: rows.pad_right(s, n, pad, call.span),
        arrays=per_distinct,
    ),
    Function(
        name="reverse",
        collated=passing,
        signature=_reversed,
        can_fail=False,
        rows=lambda call, s: s[::-1],
        arrays=arrays.of_text(arrays.plain(pc.utf8_reverse)),
    ),
    Function(
        name="repeat",
        collated=passing,
        signature=takes([TEXT, INTEGER], STRING),
        can_fail=True,
        rows=lambda call, s, n: rows.repeat(s, n, call.span),
        arrays=per_distinct,
    ),
)
