"""Strings by their parts and characters: cut at delimiters, masked, quoted, looked up in lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.arrays.text import of_text
from deltic.expr.collating import ignoring, passing
from deltic.expr.failures import invalid
from deltic.expr.functions.collated import found_in_set, searching
from deltic.expr.functions.signature import INTEGER, LONG, PLAIN_TEXT, TEXT, TEXT_OR_BYTES, Parameter, accept, check_count, constant, takes
from deltic.expr.functions.text import text_or_bytes
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Builder, Function, Rewrite, Typed, resolve
from deltic.expr.rows import pieces as rows
from deltic.expr.rows.bases import convert
from deltic.expr.rows.text import size_bytes
from deltic.expr.typing import case
from deltic.schema import BINARY, BOOLEAN, INT, STRING

_BYTES: Final = Parameter("BINARY", lambda t: t if t == BINARY else None)


def _btrim(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(text), or (text, characters)."""
    check_count(name, arguments, 1, 2, span)
    return resolve("trim", arguments[::-1], span, written=name)


def _space(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    return resolve("repeat", [Literal(" ", STRING), *arguments], span, written=name)


def _elt(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(position, text, …): a CASE, so that only the text that is chosen is evaluated; of BINARYs if all are."""
    check_count(name, arguments, 2, None, span)
    position = accept(name, 1, arguments[0], INTEGER, span)
    type, texts = text_or_bytes(name, arguments[1:], span)
    count = Literal(len(texts), INT)
    outside = Call("no_element", (position, count), type, position.nullable, span)
    return case([(resolve("=", [position, Literal(i, INT)]), text) for i, text in enumerate(texts, 1)], outside, span)


def _outside(call: Call, position: int, count: int) -> str:
    raise invalid(f"elt: there is no text {position}, they are counted from 1 to {count}", call.span)


def _valid(function: str) -> Builder:
    """The argument itself, since a STRING is valid UTF-8 always; of BINARY a call of `function`."""

    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 1, 1, span)
        if arguments[0].type == BINARY:
            return Call(function, tuple(arguments), STRING, function == "text_or_null" or arguments[0].nullable, span)
        if arguments[0].type.collation:
            return arguments[0]
        return accept(name, 1, arguments[0], TEXT, span)

    return build


def _validated(call: Call, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise invalid(f"validate_utf8: X'{data.hex().upper()}' is not UTF-8", call.span) from None


def _text_or_null(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _of_bytes(name: str, run: Callable[..., str | None], *, can_fail: bool = False) -> Function:
    return Function(name=name, named=False, signature=takes([_BYTES], STRING), can_fail=can_fail, rows=run, arrays=per_distinct)


def _mask(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(text, for upper case, for lower case, for digits, for others): constants of one character, NULL to keep the character."""
    check_count(name, arguments, 1, 5, span)
    text = accept(name, 1, arguments[0], PLAIN_TEXT, span)
    masks = "".join(_mask_character(name, i, a, span) for i, a in enumerate(arguments[1:], 2))
    return Typed((text, Literal(masks + rows.MASKS[len(masks) :], STRING)), STRING, text.nullable)


def _mask_character(name: str, position: int, argument: Expr, span: Span | None) -> str:
    literal = constant(accept(name, position, argument, PLAIN_TEXT, span))
    if literal is not None and literal.value is None:
        return rows.KEPT
    if literal is None or not isinstance(literal.value, str) or len(literal.value) != 1 or not rows.KEPT < literal.value <= "\uffff":
        expected = "a constant, one character of the Basic Multilingual Plane, or NULL"
        raise TypeMismatch(f"argument {position} of {name} is not one character", span=argument.span or span, expected=expected)
    return literal.value


def _typeof(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 1, 1, span)
    return Literal(arguments[0].type.catalog, STRING, span)


FUNCTIONS: Final[tuple[Function | Rewrite, ...]] = (
    Rewrite(name="btrim", build=_btrim),
    Rewrite(name="space", build=_space),
    Rewrite(name="elt", build=_elt),
    Rewrite(name="typeof", build=_typeof),
    Function(
        name="no_element", named=False, signature=takes([INTEGER, INTEGER], STRING), can_fail=True, rows=_outside, arrays=per_distinct
    ),
    Function(
        name="bit_length",
        collated=ignoring,
        signature=takes([TEXT_OR_BYTES], INT),
        can_fail=False,
        rows=lambda call, text: size_bytes(text) * 8,
        arrays=lambda call, length, text: pc.multiply(pc.binary_length(text), pa.scalar(8, pa.int32())),
    ),
    Function(
        name="char",
        aliases=("chr",),
        signature=takes([LONG], STRING),
        can_fail=False,
        rows=lambda call, n: rows.char(n),
        arrays=per_distinct,
    ),
    Function(
        name="find_in_set",
        collated=found_in_set,
        signature=takes([TEXT, TEXT], INT),
        can_fail=False,
        rows=lambda call, text, texts: rows.find_in_set(text, texts),
        arrays=per_distinct,
    ),
    Function(
        name="luhn_check",
        collated=ignoring,
        signature=takes([TEXT], BOOLEAN),
        can_fail=False,
        rows=lambda call, text: rows.luhn_check(text),
        arrays=per_distinct,
    ),
    Function(
        name="mask",
        collated=passing,
        signature=_mask,
        can_fail=False,
        rows=lambda call, text, masks: rows.mask(text, masks),
        arrays=per_distinct,
    ),
    Function(
        name="quote",
        collated=ignoring,
        signature=takes([TEXT], STRING),
        can_fail=False,
        rows=lambda call, text: "'" + text.replace("'", "\\'") + "'",
        arrays=per_distinct,
    ),
    Function(
        name="substring_index",
        collated=searching(1),
        signature=takes([TEXT, TEXT, INTEGER], STRING),
        can_fail=False,
        rows=lambda call, text, delimiter, count: rows.substring_index(text, delimiter, count),
        arrays=per_distinct,
    ),
    Function(
        name="bin",
        signature=takes([LONG], STRING),
        can_fail=False,
        rows=lambda call, n: f"{n % 2**64:b}",
        arrays=per_distinct,
    ),
    Function(
        name="conv",
        collated=passing,
        signature=takes([TEXT, INTEGER, INTEGER], STRING, nullable="always"),
        can_fail=True,
        rows=lambda call, text, source, target: convert(text, source, target, call.span),
        arrays=per_distinct,
    ),
    Function(
        name="is_valid_utf8",
        collated=ignoring,
        signature=takes([TEXT_OR_BYTES], BOOLEAN),
        can_fail=False,
        rows=lambda call, text: isinstance(text, str) or _text_or_null(text) is not None,
        arrays=of_text(lambda call, length, text: pc.equal(text, text)),
    ),
    Rewrite(name="make_valid_utf8", build=_valid("readable_text")),
    Rewrite(name="validate_utf8", build=_valid("validated_text")),
    Rewrite(name="try_validate_utf8", build=_valid("text_or_null")),
    _of_bytes("readable_text", lambda call, data: data.decode(errors="replace")),
    _of_bytes("validated_text", _validated, can_fail=True),
    _of_bytes("text_or_null", lambda call, data: _text_or_null(data)),
)
