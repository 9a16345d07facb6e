"""Type rules and sums shared by several aggregates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deltic.aggregates.definition import Digits, Measure, Rows, Signature, Sum
from deltic.errors import Span, TypeMismatch
from deltic.expr.nodes import TRUE, Case, Cast, Expr, Literal, Value
from deltic.expr.rows.ordering import order_key, total_key
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, INT, NULL, STRING, Type
from deltic.types import array_type

Rule = Callable[[str, Sequence[Type], Span | None], Signature]


def refused(name: str, type: Type, expected: str, span: Span | None) -> TypeMismatch:
    """The error for an argument of the wrong type."""
    return TypeMismatch(f"{name.upper()} does not accept {type.sql}", span=span, expected=expected)


def refused_argument(name: str, position: int, type: Type, expected: str, span: Span | None) -> TypeMismatch:
    """The error for an argument after the first of the wrong type. position: from 1."""
    return TypeMismatch(f"argument {position} of {name.upper()} does not accept {type.sql}", span=span, expected=expected)


def numeric(name: str, type: Type, span: Span | None) -> Type:
    """The type in which a number is summed: its own; DOUBLE for STRING and for a NULL literal."""
    if type in (STRING, NULL):
        return DOUBLE
    if not type.is_numeric:
        raise refused(name, type, "a number", span)
    return type


def summable(name: str, type: Type, span: Span | None) -> Type:
    """As `numeric`, or an INTERVAL."""
    return type if type.is_interval else numeric(name, type, span)


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
            raise refused(name, type, "a type without a MAP or a VARIANT", span)
    return Signature(tuple(types), types[0])


def kept(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    """A first argument of any type, which is the result's, and others of any types that have an order.

    Where equal values are found, or the order decides, a MAP is its entries and a VARIANT its bytes.
    """
    for type in types[1:]:
        if not type.is_ordered:
            raise refused(name, type, "a type without a MAP or a VARIANT", span)
    return Signature(tuple(types), types[0])


def without_map(name: str, type: Type, span: Span | None) -> None:
    """Raises TypeMismatch for a MAP and for what has one in it."""
    if type.name == "MAP":
        raise refused(name, type, "a type without a MAP", span)
    for part in type.parts:
        without_map(name, part.type, span)


LIMIT: Final = {2: ("the number of rows, from 1 to 100000", lambda value: isinstance(value, int) and 0 < value <= 100_000)}


def several(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    """As `kept`, but with a constant number of rows, and an ARRAY of results."""
    signature = kept(name, types[:2], span)
    if not types[2].is_integer:
        raise refused_argument(name, 3, types[2], "an integer", span)
    return Signature((*signature.arguments, INT), array_type(types[0]))


def first_values(rows: Rows, *, descending: bool) -> Value:
    """x of the first rows (x, y, k), as many as k says, in the order of y, then of x, NULL last; 0.0 and -0.0 are one value in it."""
    ordered = sorted((row for row in rows if row[1]), key=lambda row: (total_key(row[0][0]), total_key(row[0][1])))
    for i in (0, 1):
        ordered.sort(key=lambda row: order_key(row[0][i]), reverse=descending)
        ordered.sort(key=lambda row: row[0][i] is None)
    values = [values[0] for values, weight in ordered for _ in range(weight)]
    limit = rows[0][0][2]
    assert isinstance(limit, int)
    return tuple(values[:limit])


def exact_sum(argument: Expr) -> Sum:
    """The exact sum of a number in its own type, or of an INTERVAL's microseconds or months."""
    type = argument.type
    if type.is_float:
        return Digits("real", (as_double(argument),))
    if type.is_decimal:
        return Measure("decimal", argument)
    return Measure("bigint" if type == BIGINT or type.is_day_time else "int", argument)


def as_double(argument: Expr) -> Expr:
    return argument if argument.type == DOUBLE else Cast(argument, DOUBLE, argument.nullable)


def count_where(condition: Expr) -> Measure:
    """The number of rows on which the condition is TRUE."""
    return Measure("count", Case(((condition, TRUE),), Literal(None, BOOLEAN), BOOLEAN, True))
