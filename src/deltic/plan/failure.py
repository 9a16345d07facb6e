"""What a rewrite must know of an expression before it moves it: whether it can fail, what it costs, whether it sees -0.0.

All three are conservative: a function that is not listed can fail, costs, and sees.
"""

from __future__ import annotations

from typing import Final

from deltic.expr.nodes import Call, Case, Cast, Column, Expr, Literal, children
from deltic.expr.typing import cast_can_fail

# fmt: off
COMPARISONS: Final = frozenset(
    (
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same", "in", "is_null", "is_not_null", "isnan",
        "normalize",
    )
)
SAFE: Final = COMPARISONS | frozenset(
    (
        "and", "or", "not", "coalesce", "greatest", "least", "concat", "concat_ws", "upper", "lower", "initcap", "length", "octet_length",
        "ascii", "substring", "left", "right", "trim", "ltrim", "rtrim", "lpad", "rpad", "replace", "startswith", "endswith", "contains",
        "reverse", "locate", "year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear", "yearofweek", "hour",
        "minute", "second", "second_fraction", "datediff", "last_day", "trunc", "date_trunc", "unix_timestamp", "sqrt", "exp", "ln",
        "log10", "log2", "log", "power", "bit_and", "bit_or", "bit_xor", "bit_not",
    )
)
SAFE_ON_FLOATS: Final = frozenset(("add", "subtract", "multiply", "negate", "abs", "sign", "ceil", "floor", "round", "bround"))
# fmt: on


def can_fail(expr: Expr) -> bool:
    """Whether evaluating the expression may raise on some row (ANSI rules: overflow, division by zero, casts …).

    >>> from deltic.schema import BIGINT, DOUBLE, STRING
    >>> text = Column(0, STRING, True)
    >>> can_fail(Cast(text, BIGINT, True)), can_fail(Cast(text, BIGINT, True, lenient=True))
    (True, False)
    >>> [can_fail(Call("add", (Literal(1, t), Literal(1, t)), t, False)) for t in (BIGINT, DOUBLE)]
    [True, False]
    """
    match expr:
        case Call() if not _call_is_safe(expr):
            return True
        case Cast() if not expr.lenient and cast_can_fail(expr.argument.type, expr.type):
            return True
        case _:
            return any(can_fail(part) for part in children(expr))


def _call_is_safe(call: Call) -> bool:
    """Whether the function itself fails on no arguments. A LIKE pattern that is constant was checked when the call was made."""
    if call.function == "like":
        return isinstance(call.arguments[1], Literal)
    return call.function in SAFE or (call.function in SAFE_ON_FLOATS and call.arguments[0].type.is_float)


def is_cheap(expr: Expr) -> bool:
    """Whether computing the expression twice, or elsewhere, costs next to nothing and cannot fail: a column, a constant, a widening."""
    match expr:
        case Column() | Literal():
            return True
        case Cast():
            return is_cheap(expr.argument) and expr.type.is_numeric and not can_fail(expr)
        case _:
            return False


def ignores_sign_of_zero(expr: Expr) -> bool:
    """Whether the expression has the same value for -0.0 as for 0.0: floats in it are only compared."""
    match expr:
        case Column():
            return not expr.type.is_float
        case Call() if expr.function in COMPARISONS:
            return all(isinstance(part, Column) or ignores_sign_of_zero(part) for part in expr.arguments)
        case Literal() | Call() | Cast() | Case():
            return all(ignores_sign_of_zero(part) for part in children(expr))
