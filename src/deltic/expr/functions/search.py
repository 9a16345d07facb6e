"""Searching strings: positions, prefixes, LIKE, replacing and splitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import AnyStr, Final

import pyarrow.compute as pc

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import text as arrays
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring, passing
from deltic.expr.failing import is_nonzero_number
from deltic.expr.functions.collated import matching, searching
from deltic.expr.functions.signature import INTEGER, TEXT, accept, any_nullable, check_count, constant, takes, wrong_type
from deltic.expr.functions.text import text_or_bytes
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Rewrite, Typed, resolve
from deltic.expr.rows import text as rows
from deltic.expr.typing import case
from deltic.schema import BINARY, BOOLEAN, INT, STRING

ONE: Final = Literal(1, INT)
EMPTY: Final = Literal("", STRING)
BACKSLASH: Final = Literal("\\", STRING)
_FIND: Final = takes([TEXT, TEXT, INTEGER], INT, defaults=[ONE])


def _locate(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
    """A NULL position gives 0, as in Spark, even in a NULL string."""
    typed = _FIND(name, arguments, span)
    position = typed.arguments[2]
    if not position.nullable:
        return typed
    missing = Call("is_null", (position,), BOOLEAN, False, span)
    nothing = Literal(0, INT)
    return nothing if isinstance(position, Literal) else case([(missing, nothing)], typed.call("locate", span), span)


def _instr(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    check_count(name, arguments, 2, 2, span)
    return resolve("locate", (arguments[1], arguments[0]), span, written=name)


def _like(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    check_count(name, arguments, 2, 3, span)
    value, pattern = (accept(name, i, a, TEXT, span) for i, a in enumerate(arguments[:2], 1))
    escape = constant(arguments[2]) if len(arguments) == 3 else BACKSLASH
    if escape is None or not isinstance(escape.value, str) or len(escape.value) != 1:
        raise TypeMismatch("the escape of LIKE is not one character", span=arguments[2].span or span, expected="a STRING of one character")
    literal = constant(pattern)
    if literal is not None and isinstance(literal.value, str) and (fault := rows.like_fault(literal.value, escape.value)):
        raise TypeMismatch(fault, span=pattern.span or span, expected=f"{escape.value!r} before _, % or itself only")
    return Typed((value, literal or pattern, escape), BOOLEAN, value.nullable or pattern.nullable)


def _ilike(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """LIKE of the lower case of both; the escape stays."""
    check_count(name, arguments, 2, 3, span)
    lowered = [resolve("lower", [argument], argument.span) for argument in arguments[:2]]
    return resolve("like", [*lowered, *arguments[2:]], span, written=name)


def _lengthens(call: Call) -> bool:
    """Whether a REPLACE can make a string longer."""
    _, search, by = (part.value if isinstance(part, Literal) else None for part in call.arguments)
    return not (isinstance(search, str) and isinstance(by, str) and len(by) <= len(search))


def _translated(call: Call, text: str, search: str, by: str) -> str:
    """Replaces each character of `search` by the one at its position in `by`, or deletes it; the first of equal characters counts."""
    table = {ord(c): (by[i] if i < len(by) and by[i] != "\0" else None) for i, c in reversed(list(enumerate(search)))}
    return text.translate(table)


def _overlay(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(text, by, position[, length]), where text and by are both BINARY, or neither is."""
    check_count(name, arguments, 3, 4, span)
    text, by, *rest = arguments
    if (text.type == BINARY) != (by.type == BINARY):
        raise wrong_type(name, 2, by, text.type.sql, span)
    type, taken = text_or_bytes(name, [text, by], span)
    places = [accept(name, i, a, INTEGER, span) for i, a in enumerate(rest, 3)]
    whole = (*taken, *places, *(Literal(-1, INT),) * (2 - len(places)))
    return Typed(whole, type, any_nullable(whole))


def _of_two(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """Two strings, or two BINARYs."""
    check_count(name, arguments, 2, 2, span)
    _, taken = text_or_bytes(name, arguments, span)
    return Typed(taken, BOOLEAN, any_nullable(taken))


def _overlaid(call: Call, text: AnyStr, by: AnyStr, position: int, length: int) -> AnyStr:
    """Replaces `length` characters from `position` by `by`; a negative length means len(by)."""
    rest = max(
        position + (length if length >= 0 else len(by)), 1 - 2**31
    )  # Spark's overlay takes -2**31 for the next number, its substring does not
    return rows.substring(text, 1, position - 1) + by + rows.substring(text, rest, 2**31 - 1)


def _compared(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(text, text[, limit])."""
    check_count(name, arguments, 2, 3, span)
    return takes((TEXT, TEXT, INTEGER)[: len(arguments)], INT)(name, arguments, span)


def _distance(call: Call, left: str, right: str, limit: int = 2**31 - 1) -> int:
    """The Levenshtein distance: the fewest insertions, deletions and replacements; -1 if it is above the limit.

    Cost: the product of the lengths, or less where the limit is passed before the end.
    """
    if abs(len(left) - len(right)) > limit:
        return -1
    above = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        current = [i]
        for j, b in enumerate(right, 1):
            current.append(min(above[j] + 1, current[-1] + 1, above[j - 1] + (a != b)))
        if min(current) > limit:
            return -1
        above = current
    return above[-1] if above[-1] <= limit else -1


FUNCTIONS: Final = (
    Function(
        name="translate",
        collated=searching(),
        signature=takes([TEXT, TEXT, TEXT], STRING),
        can_fail=False,
        rows=_translated,
        arrays=per_distinct,
    ),
    Function(
        name="overlay",
        collated=passing,
        signature=_overlay,
        can_fail=False,
        rows=_overlaid,
        arrays=per_distinct,
    ),
    Function(
        name="levenshtein",
        collated=ignoring,
        signature=_compared,
        can_fail=False,
        rows=_distance,
        arrays=per_distinct,
    ),
    Function(
        name="locate",
        collated=searching(0),
        aliases=("position",),
        signature=_locate,
        can_fail=False,
        rows=lambda call, search, s, position: rows.locate(search, s, position),
        arrays=per_distinct,
    ),
    Rewrite(name="instr", build=_instr),
    Function(
        name="startswith",
        collated=searching(0, 1),
        signature=_of_two,
        can_fail=False,
        rows=lambda call, s, prefix: s.startswith(prefix),
        arrays=arrays.of_text(arrays.with_constants(pc.starts_with)),
    ),
    Function(
        name="endswith",
        collated=searching(0, 1),
        signature=_of_two,
        can_fail=False,
        rows=lambda call, s, suffix: s.endswith(suffix),
        arrays=arrays.of_text(arrays.with_constants(pc.ends_with)),
    ),
    Function(
        name="contains",
        collated=searching(0, 1),
        signature=_of_two,
        can_fail=False,
        rows=lambda call, s, part: part in s,
        arrays=arrays.of_text(arrays.with_constants(pc.match_substring)),
    ),
    Function(
        name="like",
        collated=matching,
        signature=_like,
        can_fail=lambda call: not isinstance(call.arguments[1], Literal),
        rows=lambda call, s, pattern, escape: rows.like(s, pattern, escape, call.span),
        arrays=arrays.with_constants(arrays.like),
    ),
    Rewrite(name="ilike", build=_ilike),
    Function(
        name="replace",
        collated=searching(),
        signature=takes([TEXT, TEXT, TEXT], STRING, defaults=[EMPTY]),
        can_fail=_lengthens,
        rows=lambda call, s, search, by: rows.replace(s, search, by, call.span),
        arrays=arrays.with_constants(arrays.replace),
    ),
    Function(
        name="split_part",
        collated=searching(1),
        signature=takes([TEXT, TEXT, INTEGER], STRING),
        can_fail=lambda call: not is_nonzero_number(call.arguments[2]),
        rows=lambda call, s, by, n: rows.split_part(s, by, n, call.span),
        arrays=per_distinct,
    ),
)
