"""Which expressions can fail on some row. Such a one must not be evaluated where SQL would not have reached it."""

from __future__ import annotations

import decimal
from typing import Final

from deltic.expr.nodes import Call, Cast, Expr, Literal, PythonFunction, children
from deltic.expr.rows.text import MAX_LENGTH
from deltic.expr.typing import cast_can_fail
from deltic.schema import TIMESTAMP

_RANGED: Final = frozenset(("add", "subtract", "multiply", "negate", "abs"))
_DIVISIONS: Final = frozenset(("divide", "integral_divide", "remainder", "pmod"))
_ROUNDINGS: Final = frozenset(("round", "bround", "ceil", "floor"))
_ALWAYS: Final = frozenset(("add_days", "subtract_days", "add_months", "add_microseconds", "make_date", "repeat"))
_MAX_PRECISION: Final = 38


def can_fail(expr: Expr) -> bool:
    """Whether evaluating the expression can raise on some row. False is certain, True is not.

    >>> from deltic.schema import DOUBLE, INT
    >>> from deltic.expr.nodes import Column
    >>> can_fail(Call("add", (Column(0, INT, True), Literal(1, INT)), INT, True))
    True
    >>> can_fail(Call("divide", (Column(0, DOUBLE, True), Literal(2.0, DOUBLE)), DOUBLE, True))
    False
    """
    match expr:
        case Cast() if cast_can_fail(expr.argument.type, expr.type) and not (expr.lenient and _try_cast_is_null(expr)):
            return True
        case PythonFunction():
            return True
        case Call() if _call_can_fail(expr):
            return True
    return any(can_fail(part) for part in children(expr))


def _try_cast_is_null(expr: Cast) -> bool:
    """A number that is a timestamp outside the years 1 to 9999 is an error even in TRY_CAST: Spark has a value there."""
    return expr.type != TIMESTAMP or not expr.argument.type.is_numeric


def _call_can_fail(call: Call) -> bool:
    name = call.function
    if name in _ALWAYS:
        return True
    if name in _RANGED:
        return not call.type.is_float and not _sum_fits(call)
    if name in _DIVISIONS:
        return _division_can_fail(call)
    if name in _ROUNDINGS:
        return call.type.precision == _MAX_PRECISION or (call.type.is_integer and _negative(call.arguments[-1]))
    if name in ("lpad", "rpad"):
        return not _is_at_most(call.arguments[1], MAX_LENGTH)
    if name == "replace":
        return not _shortens(call)
    if name == "split_part":
        return not _is_number(call.arguments[2])
    return name == "like" and not isinstance(call.arguments[1], Literal)


def _is_at_most(expr: Expr, most: int) -> bool:
    return isinstance(expr, Literal) and isinstance(expr.value, int) and expr.value <= most


def _shortens(call: Call) -> bool:
    """A REPLACE by constants that makes no string longer."""
    _, search, by = (part.value if isinstance(part, Literal) else None for part in call.arguments)
    return isinstance(search, str) and isinstance(by, str) and len(by) <= len(search)


def _sum_fits(call: Call) -> bool:
    """A decimal whose type was not cut off at 38 digits holds every sum and product."""
    return call.type.is_decimal and call.type.precision < _MAX_PRECISION


def _division_can_fail(call: Call) -> bool:
    divisor = call.arguments[1]
    if not _is_number(divisor):
        return True
    if call.type.is_decimal:
        return call.type.precision == _MAX_PRECISION
    return call.function == "integral_divide" and (divisor.type.is_decimal or (isinstance(divisor, Literal) and divisor.value == -1))


def _is_number(expr: Expr) -> bool:
    """A literal number other than zero."""
    return isinstance(expr, Literal) and isinstance(expr.value, int | float | decimal.Decimal) and expr.value != 0


def _negative(expr: Expr) -> bool:
    return isinstance(expr, Literal) and isinstance(expr.value, int) and expr.value < 0
