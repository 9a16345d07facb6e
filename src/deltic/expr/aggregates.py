"""Result types of the aggregate functions, as Spark 4 has them. What they compute stands in plan/ and circuit/."""

from __future__ import annotations

from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.typing import MAX_PRECISION
from deltic.schema import BIGINT, DOUBLE, NULL, STRING, Type, decimal

AGGREGATES: Final = ("count", "sum", "avg", "min", "max")


def argument_type(function: str, argument: Type, span: Span | None = None) -> Type:
    """What the argument is cast to before it is aggregated: a STRING or bare NULL is summed as DOUBLE."""
    if function in ("sum", "avg"):
        if argument in (STRING, NULL):
            return DOUBLE
        if not argument.is_numeric:
            raise TypeMismatch(f"{function} cannot take {argument.sql}", span=span, expected="a number")
    return argument


def result_type(function: str, argument: Type | None, span: Span | None = None) -> tuple[Type, bool]:
    """(type, whether a group can yield NULL); `argument` None is COUNT(*). MIN and MAX of a group without NULLs are never NULL,
    but a global aggregate has a row over nothing, so all but COUNT say True.

    >>> result_type("avg", decimal(10, 2))[0].sql
    'DECIMAL(14,6)'
    """
    assert function in AGGREGATES
    if function == "count":
        return BIGINT, False
    assert argument is not None
    type = argument_type(function, argument, span)
    if function in ("min", "max"):
        return type, True
    if type.is_decimal:
        return (_sum_type(type) if function == "sum" else _average_type(type)), True
    return (BIGINT if function == "sum" and type.is_integer else DOUBLE), True


def _sum_type(type: Type) -> Type:
    return decimal(min(MAX_PRECISION, type.precision + 10), type.scale)


def _average_type(type: Type) -> Type:
    return decimal(min(MAX_PRECISION, type.precision + 4), min(MAX_PRECISION, type.scale + 4))
