"""Properties of expressions that rewrites check before moving them, besides failure (expr/failing.py): cost, and the sign of zero.

Both are conservative: an expression is expensive unless known to be cheap, and depends on the sign of zero unless known not to.
"""

from __future__ import annotations

from deltic.expr.failing import can_fail
from deltic.expr.nodes import (
    WIDENED,
    Call,
    Case,
    Cast,
    Column,
    Constants,
    Expr,
    Lambda,
    LambdaVariable,
    Literal,
    OuterColumn,
    PythonFunction,
    children,
)
from deltic.expr.registry import FUNCTIONS


def is_cheap(expr: Expr) -> bool:
    """Whether the expression costs almost nothing and cannot fail: a column, a constant, a widening of a number or a type, or one of
    these with a default, which counts of subqueries have.

    >>> from deltic.schema import BIGINT, INT, STRING
    >>> number, text = Column(0, INT, True), Column(1, STRING, True)
    >>> is_cheap(Cast(number, BIGINT, True)), is_cheap(Cast(text, BIGINT, True)), is_cheap(Call("upper", (text,), STRING, True))
    (True, False, False)
    >>> is_cheap(Call("coalesce", (number, Literal(0, INT)), INT, False)), is_cheap(Call("coalesce", (number, number), INT, True))
    (True, False)
    """
    match expr:
        case Column() | OuterColumn() | Literal() | Constants() | LambdaVariable():
            return True
        case Cast():
            return is_cheap(expr.argument) and expr.type.is_numeric and not can_fail(expr)
        case Call(function="coalesce", arguments=(argument, *defaults)):
            return is_cheap(argument) and all(isinstance(default, Literal) for default in defaults)
        case Call():
            return expr.function == WIDENED and is_cheap(expr.arguments[0])
        case _:
            return False


def ignores_sign_of_zero(expr: Expr) -> bool:
    """Whether the expression has the same value for -0.0 and 0.0, because it only compares floats.

    >>> from deltic.schema import BOOLEAN, DOUBLE, STRING
    >>> x = Column(0, DOUBLE, True)
    >>> ignores_sign_of_zero(Call("less", (x, Literal(0.0, DOUBLE)), BOOLEAN, True)), ignores_sign_of_zero(Cast(x, STRING, True))
    (True, False)
    """
    match expr:
        case Column() | OuterColumn() | LambdaVariable():
            return not expr.type.has_zeros
        case Call() if (function := FUNCTIONS.get(expr.function)) is not None and function.ignores_sign_of_zero:
            return all(isinstance(part, Column) or ignores_sign_of_zero(part) for part in expr.arguments)
        case PythonFunction():
            return False
        case Literal() | Constants() | Lambda() | Call() | Cast() | Case():
            return all(ignores_sign_of_zero(part) for part in children(expr))
