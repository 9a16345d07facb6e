"""Text as bytes and back: BASE64, HEX and character sets."""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence
from typing import Final

from deltic.errors import Span
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring
from deltic.expr.failures import invalid
from deltic.expr.functions.signature import BYTES, TEXT, accept, any_nullable, check_count, takes
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Rewrite, resolve
from deltic.expr.typing import case
from deltic.schema import BINARY, STRING

_CHARSETS: Final = {
    "iso-8859-1": "latin-1",
    "us-ascii": "ascii",
    "utf-8": "utf-8",
    "utf-16be": "utf-16-be",
    "utf-16le": "utf-16-le",
    "utf-32": "utf-32-be",
    "utf-16": "utf-16-be",
}
_FORMATS: Final = ("hex", "utf-8", "utf8", "base64")
_ALPHABET: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_PADDED: Final = re.compile(r"(?:[^=]{4})*(?:[^=]{2}(?:==)?|[^=]{3}=?)?")


def _charset(call: Call, name: str) -> str:
    codec = _CHARSETS.get(name.lower())
    if codec is None:
        raise invalid(f"the character set {name!r} is not one of {', '.join(sorted(_CHARSETS))}", call.span)
    return codec


def _encoded(call: Call, text: str, charset: str) -> bytes:
    """UTF-16 has its byte order mark, unless there is no text."""
    codec = _charset(call, charset)
    try:
        return (b"\xfe\xff" if charset.lower() == "utf-16" and text else b"") + text.encode(codec)
    except UnicodeEncodeError:
        raise invalid(f"encode: {charset} has no character {text!r}", call.span) from None


def _decoded(call: Call, data: bytes, charset: str) -> str:
    codec = _charset(call, charset)
    if charset.lower() in ("utf-16", "utf-32"):
        codec, data = _ordered(codec, data)
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        raise invalid(f"decode: the bytes X'{data.hex().upper()}' are not {charset}", call.span) from None


def _ordered(codec: str, data: bytes) -> tuple[str, bytes]:
    """The codec that a byte order mark names, and the bytes after it."""
    marks = {2: (b"\xfe\xff", b"\xff\xfe"), 4: (b"\0\0\xfe\xff", b"\xff\xfe\0\0")}
    size = 2 if "16" in codec else 4
    big, little = marks[size]
    if data[:size] == little:
        return codec.replace("-be", "-le"), data[size:]
    return codec, data[size:] if data[:size] == big else data


def _unhex(text: str) -> bytes | None:
    """NULL for a character that is no hexadecimal digit; an odd first digit is a byte of its own."""
    try:
        return bytes.fromhex("0" * (len(text) % 2) + text) if text.isascii() and not any(c.isspace() for c in text) else None
    except ValueError:
        return None


def _unbase64(call: Call, text: str) -> bytes:
    """As Java's MIME decoder: characters outside the alphabet are skipped, and padding may be left out."""
    letters = "".join(character for character in text if character in _ALPHABET)
    if not _PADDED.fullmatch(letters):
        raise invalid(f"unbase64: {text!r} is not BASE64", call.span)
    body = letters.rstrip("=")
    return binascii.a2b_base64(body + "=" * (-len(body) % 4))


def _decode(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(bytes, character set), or (value, search, result, …[, default]), where NULL is found by NULL. Without a default it is a STRING."""
    check_count(name, arguments, 2, None, span)
    if len(arguments) == 2:
        taken = accept(name, 1, arguments[0], BYTES, span), accept(name, 2, arguments[1], TEXT, span)
        return Call("decode_text", taken, STRING, any_nullable(taken), span)
    value, *rest = arguments
    pairs = [(resolve("<=>", [value, rest[i]], span), rest[i + 1]) for i in range(0, len(rest) - 1, 2)]
    return case(pairs, rest[-1] if len(rest) % 2 else Literal(None, STRING), span)


FUNCTIONS: Final[tuple[Function | Rewrite, ...]] = (
    Function(name="encode", collated=ignoring, signature=takes([TEXT, TEXT], BINARY), can_fail=True, rows=_encoded, arrays=per_distinct),
    Function(name="decode_text", named=False, signature=takes([BYTES, TEXT], STRING), can_fail=True, rows=_decoded, arrays=per_distinct),
    Rewrite(name="decode", build=_decode),
    Function(
        name="unhex",
        collated=ignoring,
        signature=takes([TEXT], BINARY, nullable="always"),
        can_fail=False,
        rows=lambda call, text: _unhex(text),
        arrays=per_distinct,
    ),
    Function(name="unbase64", collated=ignoring, signature=takes([TEXT], BINARY), can_fail=True, rows=_unbase64, arrays=per_distinct),
)
