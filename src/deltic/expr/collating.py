"""Which collation the texts of a call have, and how functions treat collations.

Spark's rules (CollationTypeCoercion): COLLATE is explicit and wins over the collation of a column, which wins over that of a constant. Two
that differ and are equally strong are an error. What always holds: below a call that compares, searches or orders texts, all of them are of
UTF8_BINARY, so that neither evaluators nor operators compare texts by anything but their bytes. Only what compares values and returns some
of them (GREATEST, ARRAY_DISTINCT, the keys of a MAP) has their types, and compares their keys. A function without a treatment refuses
collated texts, unless it casts them to other types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltic.collations import BINARY_NAME
from deltic.errors import Span, TypeMismatch
from deltic.expr.nodes import Call, Case, Cast, Column, Expr, LambdaVariable, Literal, OuterColumn, children
from deltic.schema import NULL, Field, Type
from deltic.types import text

if TYPE_CHECKING:
    from deltic.expr.registry import Builder, Function

COLLATE: Final = "collate"
"""The function of an explicit COLLATE."""
RETYPED: Final = "retyped"
"""The function whose value is its argument, of a type with other collations."""
KEY: Final = "collation_key"
"""The function from a value to the value by which it is compared: each text in it is the key of its collation."""
_EXPLICIT, _IMPLICIT, _DEFAULT = range(3)
_REMEDY: Final = "COLLATE after one of them says which is meant"


def retyped(expr: Expr, type: Type) -> Expr:
    """The same value, of a type that differs only in collations."""
    if expr.type == type:
        return expr
    if isinstance(expr, Literal):
        return replace(expr, type=type)
    return Call(RETYPED, (expr,), type, expr.nullable, expr.span)


def stripped(expr: Expr) -> Expr:
    """The same value, its texts of UTF8_BINARY."""
    return retyped(expr, expr.type.plain)


def key_of(expr: Expr) -> Expr:
    """The value by which an expression is compared, of UTF8_BINARY: itself without collations."""
    return Call(KEY, (expr,), expr.type.plain, expr.nullable, expr.span) if expr.type.is_collated else expr


def has_text(type: Type) -> bool:
    return type.is_text or any(has_text(part.type) for part in type.parts)


def with_collation(type: Type, collation: str) -> Type:
    """The type with this collation for each of its texts."""
    if type.name == "STRING":
        return text(collation)
    return (
        replace(type, parts=tuple(Field(p.name, with_collation(p.type, collation), p.nullable) for p in type.parts)) if type.parts else type
    )


def _strength(expr: Expr) -> int:
    """How strong the collation of an expression with texts is."""
    match expr:
        case Column() | OuterColumn() | LambdaVariable():
            return _IMPLICIT
        case Literal():
            return _DEFAULT
        case Call(function="collate"):
            return _EXPLICIT
        case Cast():
            return _IMPLICIT if has_text(expr.argument.type) else _DEFAULT
        case Case():
            parts: Sequence[Expr] = [*(value for _, value in expr.branches), expr.otherwise]
        case _:
            parts = children(expr)
    return min((_strength(part) for part in parts if has_text(part.type)), default=_DEFAULT)


def _collations(type: Type) -> frozenset[str]:
    if type.is_text:
        return frozenset({type.collation or BINARY_NAME})
    return frozenset[str]().union(*(_collations(part.type) for part in type.parts))


def agreed(name: str, arguments: Sequence[Expr], span: Span | None) -> tuple[tuple[Expr, ...], str]:
    """The arguments with their texts in one collation, and this collation. Raises TypeMismatch where they have none in common."""
    texts = [argument for argument in arguments if has_text(argument.type)]
    strongest = min(map(_strength, texts))
    winners = frozenset[str]().union(*(_collations(argument.type) for argument in texts if _strength(argument) == strongest))
    if len(winners) > 1:
        names = " and ".join(sorted(winners))
        raise TypeMismatch(f"the texts of {name} have different collations", span=span, expected=f"one, found {names}", remedy=_REMEDY)
    (winner,) = winners
    return tuple(retyped(a, with_collation(a.type, winner)) if has_text(a.type) else a for a in arguments), winner


def as_is(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """Of a function that does not look at texts, and whose result's type has their collations."""
    return record.built(name, arguments, span)


def agreeing(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """Of a function that returns one of its arguments, or all."""
    return record.built(name, agreed(name, arguments, span)[0], span)


def passing(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """Of a function from texts to text whose value does not depend on the collation, which its result has."""
    parts, collation = agreed(name, arguments, span)
    result = record.built(name, [stripped(part) for part in parts], span)
    return retyped(result, with_collation(result.type, collation))


def ignoring(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """Of a function whose value does not depend on the collation, and whose result has none."""
    texts = [argument for argument in arguments if argument.type.is_text]
    if len(texts) > 1:
        agreed(name, texts, span)
    return record.built(name, [stripped(part) for part in arguments], span)


def unless_text(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """Of a function without a treatment: what is cast to another type has no collation. Raises TypeMismatch for a text that stays one."""
    parts = [stripped(argument) for argument in arguments]
    built = record.built(name, parts, span)
    collated = next((a for a, part in zip(arguments, parts, strict=True) if a.type.is_collated and _reads(built, part)), None)
    if collated is None:
        return built
    message, expected = f"{name} does not support collations", f"STRING, found {collated.type.sql}"
    raise TypeMismatch(message, span=span, expected=expected, remedy="x COLLATE UTF8_BINARY")


def _reads(built: Expr, text: Expr) -> bool:
    """Whether the expression reads the text as it is. A cast to a type without texts ends the search."""
    if built is text or built == text:
        return True
    if isinstance(built, Cast) and not has_text(built.type):
        return False
    return any(_reads(part, text) for part in children(built))


def of_plain_texts(build: Builder) -> Builder:
    """A rewrite whose value does not depend on collations, and has none."""
    return lambda name, arguments, span: build(name, [stripped(argument) for argument in arguments], span)


def choosing(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """Of a function that compares values and returns some of them: its forms compare their keys."""
    types = {argument.type for argument in arguments if has_text(argument.type)}
    return record.built(name, arguments if len(types) == 1 else agreed(name, arguments, span)[0], span)


def comparing(record: Function, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """Of a function that compares: it compares the keys. A text beside a number or a date becomes one."""
    if any(a.type != NULL and not has_text(a.type) for a in arguments) and not any(a.type.is_nested for a in arguments):
        return record.built(name, [stripped(part) for part in arguments], span)
    types = {argument.type for argument in arguments} - {NULL}
    parts = tuple(arguments) if len(types) == 1 else agreed(name, arguments, span)[0]
    return record.built(name, [key_of(part) for part in parts], span)


def agreed_values(name: str, values: Sequence[Expr], span: Span | None) -> Sequence[Expr]:
    """The values of a call, one of which it returns, in one collation."""
    texts = [value for value in values if value.type != NULL]
    if not any(value.type.is_collated for value in texts) or not all(has_text(value.type) for value in texts):
        return values
    return agreed(name, values, span)[0] if len({value.type for value in texts}) > 1 else values
