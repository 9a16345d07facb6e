"""Which expressions can fail on some row. Such an expression must not be evaluated on rows where SQL does not evaluate it."""

from __future__ import annotations

import decimal
from typing import Final

from deltic.expr.nodes import Call, Case, Cast, Expr, Literal, PythonFunction, children
from deltic.expr.registry import FUNCTIONS
from deltic.expr.typing import cast_can_fail
from deltic.schema import DOUBLE, FLOAT, TIMESTAMP, VARIANT

ATTEMPT: Final = "attempt"
"""The function that is NULL where its argument fails (functions/attempts.py)."""


def can_fail(expr: Expr) -> bool:
    """Whether evaluating the expression can raise on some row. False is exact, True is conservative.

    A call that is not of a scalar function (now(), or the output of a table function) stands for a value computed elsewhere.

    >>> from deltic.schema import DOUBLE, INT
    >>> from deltic.expr.nodes import Column
    >>> can_fail(Call("add", (Column(0, INT, True), Literal(1, INT)), INT, True))
    True
    >>> can_fail(Call("divide", (Column(0, DOUBLE, True), Literal(2.0, DOUBLE)), DOUBLE, True))
    False
    """
    match expr:
        case Call() if expr.function == ATTEMPT:
            return False
        case Cast() if cast_can_fail(expr.argument.type, expr.type) and not (expr.lenient and _try_cast_is_null(expr)):
            return True
        case PythonFunction():
            return True
        case Call() if (function := FUNCTIONS.get(expr.function)) is not None and (function.catches or function.call_can_fail(expr)):
            return not function.catches
    return any(can_fail(part) for part in children(expr))


def _try_cast_is_null(expr: Cast) -> bool:
    """A number that is a timestamp outside the years 1 to 9999 is an error even in TRY_CAST: Spark has a value there."""
    return not (expr.type.has(lambda type: type == TIMESTAMP) and expr.argument.type.has(lambda type: type.is_numeric or type == VARIANT))


def is_nonzero_number(expr: Expr) -> bool:
    """A literal number other than zero."""
    return isinstance(expr, Literal) and isinstance(expr.value, int | float | decimal.Decimal) and expr.value != 0


def is_never_zero(expr: Expr) -> bool:
    """A number that is NULL where it would be zero, as NULLIF writes it, or a literal other than zero; also as a DOUBLE."""
    match expr:
        case Cast(argument=argument) if expr.type == DOUBLE and (argument.type.is_integer or argument.type == FLOAT):
            return is_never_zero(argument)
        case Case(branches=((Call(function="equal", arguments=(value, Literal() as zero)), Literal(value=None)),), otherwise=otherwise):
            return value == otherwise and zero.value == 0 and zero.type.is_numeric
        case _:
            return is_nonzero_number(expr)


def is_negative(expr: Expr) -> bool:
    """A literal integer below zero."""
    return isinstance(expr, Literal) and isinstance(expr.value, int) and expr.value < 0


def is_at_most(expr: Expr, most: int) -> bool:
    """A literal integer of no more than `most`."""
    return isinstance(expr, Literal) and isinstance(expr.value, int) and expr.value <= most
