"""Type rules and sums shared by several aggregates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deltic.aggregates.definition import Digits, Measure, Signature, Sum
from deltic.errors import Span, TypeMismatch
from deltic.expr.nodes import TRUE, Case, Cast, Expr, Literal
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, NULL, STRING, Type

Rule = Callable[[str, Sequence[Type], Span | None], Signature]


def refused(name: str, type: Type, expected: str, span: Span | None) -> TypeMismatch:
    """The error for an argument of the wrong type."""
    return TypeMismatch(f"{name.upper()} does not accept {type.sql}", span=span, expected=expected)


def numeric(name: str, type: Type, span: Span | None) -> Type:
    """The type in which a number is summed: its own; DOUBLE for STRING and for a NULL literal."""
    if type in (STRING, NULL):
        return DOUBLE
    if not type.is_numeric:
        raise refused(name, type, "a number", span)
    return type


def doubles(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    """Numeric arguments, cast to DOUBLE, with a DOUBLE result."""
    for type in types:
        numeric(name, type, span)
    return Signature((DOUBLE,) * len(types), DOUBLE)


def conditions(result: Type, *, nullable: bool) -> Rule:
    """The rule of a function of one BOOLEAN argument."""

    def rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
        if types[0] not in (BOOLEAN, STRING, NULL):
            raise refused(name, types[0], "BOOLEAN", span)
        return Signature((BOOLEAN,), result, nullable)

    return rule


def same(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    """Any types that have an order; the result has the type of the first argument."""
    for type in types:
        if not type.is_ordered:
            raise refused(name, type, "a type without a MAP", span)
    return Signature(tuple(types), types[0])


def exact_sum(argument: Expr) -> Sum:
    """The exact sum of a number in its own type."""
    type = argument.type
    if type.is_float:
        return Digits("real", (as_double(argument),))
    if type.is_decimal:
        return Measure("decimal", argument)
    return Measure("bigint" if type == BIGINT else "int", argument)


def as_double(argument: Expr) -> Expr:
    return argument if argument.type == DOUBLE else Cast(argument, DOUBLE, argument.nullable)


def count_where(condition: Expr) -> Measure:
    """The number of rows on which the condition is TRUE."""
    return Measure("count", Case(((condition, TRUE),), Literal(None, BOOLEAN), BOOLEAN, True))
