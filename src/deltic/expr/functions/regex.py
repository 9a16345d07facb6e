"""Regular expressions in Java's syntax: RLIKE, REGEXP_REPLACE and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.failing import is_negative
from deltic.expr.functions.collated import matching_pattern
from deltic.expr.functions.signature import INTEGER, TEXT, accept, any_nullable, check_count, constant, takes
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Rewrite, Signature, Typed, resolve
from deltic.expr.rows import regex as rows
from deltic.expr.rows import splits
from deltic.expr.rows.java_matching import compiled, fault
from deltic.schema import BOOLEAN, INT, STRING, Type
from deltic.types import array_type

_ONE: Final = Literal(1, INT)
_ZERO: Final = Literal(0, INT)
_EVERY: Final = Literal(-1, INT)


def _matching(type: Type, *others: Literal, nullable: bool = False) -> Signature:
    """(text, pattern, …): a constant pattern is checked here; the further arguments are INTs, with these defaults."""
    plain = takes([TEXT, TEXT, *(INTEGER for _ in others)], type, defaults=others, nullable="always" if nullable else "as arguments")

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        typed = plain(name, arguments, span)
        text, pattern, *rest = typed.arguments
        return typed._replace(arguments=(text, checked_pattern(pattern, span), *rest))

    return rule


def checked_pattern(pattern: Expr, span: Span | None) -> Expr:
    """The pattern, as a literal if it is constant. Raises TypeMismatch if that one is refused."""
    literal = constant(pattern)
    if literal is not None and isinstance(literal.value, str) and (words := fault(literal.value)):
        raise TypeMismatch(words, span=pattern.span or span, expected="a regular expression of Java's")
    return literal or pattern


def _pattern_can_fail(call: Call) -> bool:
    return not isinstance(call.arguments[1], Literal)


def _group_can_fail(call: Call) -> bool:
    _, pattern, group = call.arguments
    if not (isinstance(pattern, Literal) and isinstance(group, Literal)) or is_negative(group):
        return True
    return isinstance(pattern.value, str) and isinstance(group.value, int) and group.value > compiled(pattern.value).groups


def _replace(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(text, pattern, replacement[, position]): a constant position from 1."""
    check_count(name, arguments, 3, 4, span)
    text, pattern, by = (accept(name, i, a, TEXT, span) for i, a in enumerate(arguments[:3], 1))
    start = constant(accept(name, 4, arguments[3], INTEGER, span)) if len(arguments) == 4 else _ONE
    if start is None or not isinstance(start.value, int) or start.value < 1:
        raise TypeMismatch(f"the position of {name} is invalid", span=arguments[3].span or span, expected="an INT constant from 1")
    taken = (text, checked_pattern(pattern, span), by, start)
    return Typed(taken, STRING, any_nullable(taken))


def _substring(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """The first match; NULL where there is none, or an empty one."""
    check_count(name, arguments, 2, 2, span)
    return resolve("nullif", [resolve("regexp_extract", [*arguments, _ZERO], span, written=name), Literal("", STRING)], span)


FUNCTIONS: Final[tuple[Function | Rewrite, ...]] = (
    Function(
        name="rlike",
        collated=matching_pattern,
        aliases=("regexp", "regexp_like"),
        signature=_matching(BOOLEAN),
        can_fail=_pattern_can_fail,
        rows=rows.matching,
        arrays=per_distinct,
    ),
    Function(
        name="regexp_count",
        collated=matching_pattern,
        signature=_matching(INT),
        can_fail=_pattern_can_fail,
        rows=rows.count,
        arrays=per_distinct,
    ),
    Function(
        name="regexp_instr",
        collated=matching_pattern,
        signature=_matching(INT, _ZERO),
        can_fail=_pattern_can_fail,
        rows=rows.position,
        arrays=per_distinct,
    ),
    Function(
        name="regexp_extract",
        collated=matching_pattern,
        signature=_matching(STRING, _ONE),
        can_fail=_group_can_fail,
        rows=rows.extract,
        arrays=per_distinct,
    ),
    Function(
        name="regexp_extract_all",
        collated=matching_pattern,
        signature=_matching(array_type(STRING), _ONE),
        can_fail=_group_can_fail,
        rows=splits.extract_all,
        arrays=per_distinct,
    ),
    Function(
        name="split",
        collated=matching_pattern,
        signature=_matching(array_type(STRING), _EVERY),
        can_fail=_pattern_can_fail,
        rows=splits.split,
        arrays=per_distinct,
    ),
    Rewrite(name="regexp_substr", build=_substring),
    Function(
        name="regexp_replace",
        collated=matching_pattern,
        signature=_replace,
        can_fail=True,
        rows=rows.replace,
        arrays=per_distinct,
    ),
)
