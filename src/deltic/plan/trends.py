"""How the values of expressions change from one iteration of a recursion to the next, over rows that only become better.

A value only rises, only falls, or may do both; NULL is the worst value in either direction. The rules are conservative. Arithmetic of
DOUBLEs is taken for that of numbers: infinities and NaN, which is greatest and stays so under negation, may break its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import Final

from deltic.expr.nodes import Call, Case, Cast, Column, Expr, Literal, Value, children
from deltic.schema import BOOLEAN, DOUBLE, INT


class Trend(Enum):
    """How a column's values change from one iteration to the next; MIXED is in any direction."""

    FIXED = "fixed"
    FALLING = "falling"
    RISING = "rising"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Motion:
    """A column's or an expression's trend, and whether it may be NULL.

    nonnegative: it is NULL or a number of at least 0, as a COUNT is. filled: it is a STRUCT without a NULL in it.
    late: the trend of a fixed value if it replaces NULL in an outer join, which is a rise as well as a fall.
    """

    trend: Trend
    null: bool
    nonnegative: bool = False
    filled: bool = False
    late: Trend = Trend.RISING


Motions = tuple[Motion, ...]

OPPOSITE: Final = {Trend.FALLING: Trend.RISING, Trend.RISING: Trend.FALLING}
LOWER: Final = ("less", "less_equal")
HIGHER: Final = ("greater", "greater_equal")
STEPWISE: Final = ("positive", "floor", "ceil")
SIGNED: Final = ("add", "multiply", "divide", "integral_divide", "least", *STEPWISE)
"""Functions of which no result is negative if no argument is."""
SHIFTS: Final = ("add_days", "add_months", "add_microseconds")


def motion_of(expr: Expr, below: Motions) -> Motion:
    """The motion of an expression over rows with the motions `below`."""
    if isinstance(expr, Column):
        return below[expr.index]
    if isinstance(expr, Literal):
        return Motion(Trend.FIXED, expr.value is None, nonnegative=expr.value is None or _sign(expr) in (0, 1))
    parts = [motion_of(part, below) for part in children(expr)]
    if isinstance(expr, Call) and expr.function == "coalesce" and _is_least(expr.arguments[1:], parts[0]):
        return replace(parts[0], null=False)  # of no rows
    if isinstance(expr, Call) and expr.function == "make_struct":
        return _struct(parts)
    if isinstance(expr, Call) and expr.function == "field" and expr.arguments[0].type.name == "STRUCT":
        return _field(expr, parts[0])
    null = _may_be_null(expr, parts)
    nonnegative = _is_nonnegative(expr, parts)
    if all(part.trend == Trend.FIXED for part in parts):
        return Motion(Trend.FIXED, null, nonnegative)
    return Motion(_switched(expr, below) or _moving(expr, parts), null, nonnegative)


def _is_least(values: Sequence[Expr], rising: Motion) -> bool:
    """Whether the values are 0 alone, which in a number that only rises and is not negative is the least one, as NULL is."""
    return all(isinstance(one, Literal) and one.value == 0 for one in values) and rising.nonnegative and rising.trend == Trend.RISING


def _is_nonnegative(expr: Expr, parts: Sequence[Motion]) -> bool:
    """Whether the expression is NULL or a number of at least 0. Conservative."""
    match expr:
        case Call(function="abs"):
            return True
        case Call(function="greatest"):
            return any(part.nonnegative and not part.null for part in parts)
        case Call(function="in_range"):
            return parts[0].nonnegative or parts[1].nonnegative
        case Call(function=function) if function in SIGNED or function == "coalesce":
            return all(part.nonnegative for part in parts)
        case Cast():
            return parts[0].nonnegative and expr.type.is_numeric and expr.argument.type.is_numeric
        case Case():
            return all(part.nonnegative for part in (*parts[1::2], parts[-1]))
        case _:
            return False


def nonnegative_by(condition: Expr, below: Motions) -> Motions:
    """The motions of the rows that satisfy the condition: of x >= 0, x is not negative."""
    if isinstance(condition, Call) and condition.function == "and":
        for part in condition.arguments:
            below = nonnegative_by(part, below)
    elif isinstance(condition, Call) and condition.function in LOWER + HIGHER:
        greater, less = condition.arguments if condition.function in HIGHER else condition.arguments[::-1]
        column = greater.argument if isinstance(greater, Cast) and _keeps_sign(greater) else greater
        if isinstance(column, Column) and motion_of(less, below).nonnegative:
            at = column.index
            return (*below[:at], replace(below[at], nonnegative=True), *below[at + 1 :])
    return below


def _keeps_sign(cast: Cast) -> bool:
    """Whether no negative number becomes 0 by the cast."""
    return cast.argument.type.is_integer or (cast.argument.type.is_numeric and cast.type == DOUBLE)


def _struct(parts: Sequence[Motion]) -> Motion:
    """STRUCTs are compared part by part, and NULL in them is the least value."""
    trend = joint(part.trend for part in parts)
    hazard = trend == Trend.FALLING and any(part.null for part in parts if part.trend != Trend.FIXED)
    return Motion(Trend.MIXED if hazard else trend, False, filled=not any(part.null for part in parts))


def _field(expr: Call, struct: Motion) -> Motion:
    """Of a STRUCT that rises or falls, the first part does too; the others may do both where that changes."""
    is_first = expr.arguments[1] == Literal(0, INT)
    same = struct.trend == Trend.FIXED or (is_first and (struct.filled or struct.trend == Trend.RISING))
    return Motion(struct.trend if same else Trend.MIXED, struct.null or not struct.filled)


def _may_be_null(expr: Expr, parts: Sequence[Motion]) -> bool:
    if isinstance(expr, Call) and expr.function in ("least", "greatest"):
        return all(part.null for part in parts)
    return any(part.null for part in parts) if _is_strict(expr) else expr.nullable


def _is_strict(expr: Expr) -> bool:
    """Whether the expression is NULL only if one of its parts is."""
    if isinstance(expr, Cast):
        return not expr.lenient
    strict = ("add", "subtract", "multiply", "negate", "not", "in_range", "equal", "not_equal", *LOWER, *HIGHER, *STEPWISE, *SHIFTS)
    return isinstance(expr, Call) and expr.function in strict


def _moving(expr: Expr, parts: Sequence[Motion]) -> Trend:
    """The trend of an expression with parts that are not fixed."""
    trends = [part.trend for part in parts]
    match expr:
        case Call(function="add"):
            return joint(trends)
        case Call(function=("is_not_null" | "is_null") as function) if trends[0] != Trend.MIXED:
            return Trend.RISING if function == "is_not_null" else Trend.FALLING  # false before true
        case Call(function="not"):
            return _flipped(trends[0])
        case Call(function=("and" | "or")):
            return _connected(expr, parts)
        case Call(function=function) if function in LOWER + HIGHER:
            return joint((trends[0], _flipped(trends[1])) if function in HIGHER else (_flipped(trends[0]), trends[1]))
        case Call(function=("least" | "greatest") as function):
            skipping = Trend.RISING if function == "least" else Trend.FALLING  # they ignore NULL, which is the worst value
            hazard = any(part.trend == skipping and part.null for part in parts)
            return Trend.MIXED if hazard else joint(trends)
        case Call(function=function) if function in SHIFTS and (expr.type.name != "TIMESTAMP" or function != "add_months"):
            return joint(trends)  # months of local time can go back where clocks do
        case Call(function="subtract"):
            return joint((trends[0], _flipped(trends[1])))
        case Call(function="negate"):
            return _flipped(trends[0])
        case Call(function="multiply"):
            return _scaled(expr, parts)
        case Call(function=("divide" | "integral_divide"), arguments=(_, divisor)) if sign := _sign(divisor):
            return trends[0] if sign > 0 else _flipped(trends[0])
        case Call(function=("divide" | "integral_divide")) if parts[1].trend == Trend.FIXED and parts[1].nonnegative:
            return trends[0]
        case Call(function="in_range") if trends[1:] == [Trend.FIXED] * 2:
            return trends[0]
        case Call(function=("equal" | "not_equal") as function):
            return _compared(expr, parts, function == "equal")
        case Call(function=function) if function in STEPWISE and len(trends) == 1:
            return trends[0]
        case Cast() if not expr.lenient and expr.type.is_numeric and expr.argument.type.is_numeric:
            return trends[0]
        case Case() if all(trend == Trend.FIXED for trend in trends[:-1:2]):
            return joint((*trends[1::2], trends[-1]))
        case _:
            return Trend.MIXED


def _connected(expr: Call, parts: Sequence[Motion]) -> Trend:
    """The trend of an AND or OR. NULL is the worst value, but TRUE AND NULL is NULL where FALSE AND NULL is FALSE."""
    trend = joint(part.trend for part in parts)
    hazard = any(part.null and any(other.trend != Trend.FIXED for other in parts if other is not part) for part in parts)
    return Trend.MIXED if hazard and trend == (Trend.RISING if expr.function == "and" else Trend.FALLING) else trend


def _switched(expr: Expr, below: Motions) -> Trend | None:
    """The trend of IS TRUE, IS FALSE, CASE WHEN condition THEN value END, or with constants THEN and ELSE; None for other expressions."""
    first: Value
    last: Value
    match expr:
        case Call(function="same", arguments=(condition, Literal(value=bool() as value))):
            first, last = True, False
        case Call(function="coalesce", arguments=(condition, Literal(value=bool() as last))):
            first = value = not last
        case Case(branches=((condition, shown),), otherwise=Literal(value=None)) if is_steady(condition, below):
            trend = motion_of(shown, below).trend
            return Trend.RISING if trend == Trend.FIXED else trend
        case Case(branches=((condition, Literal(value=first)),), otherwise=Literal(value=last)):
            value = True
        case _:
            return None
    if not is_steady(condition, below, value):
        if motion_of(condition, below).null or not is_steady(condition, below, not value):
            return Trend.MIXED
        first, last = last, first
    if last is None:
        return Trend.RISING
    if not (isinstance(first, int | Decimal) and isinstance(last, int | Decimal)):
        return Trend.MIXED
    return Trend.RISING if first >= last else Trend.FALLING


def _scaled(expr: Call, parts: Sequence[Motion]) -> Trend:
    """The trend of a product: with a constant, or with a number that is not negative; of two that move, neither may be."""
    for factor, part in zip(expr.arguments, reversed(parts), strict=True):
        if (sign := _sign(factor)) is not None:
            return _flipped(part.trend) if sign < 0 else part.trend
    kept = all(other.nonnegative for part, other in zip(parts, reversed(parts), strict=True) if part.trend != Trend.FIXED)
    return joint(part.trend for part in parts) if kept else Trend.MIXED


def _sign(expr: Expr) -> int | None:
    """-1, 0 or 1 for a constant number; None for other expressions."""
    constant = expr.argument if isinstance(expr, Cast) else expr
    if not (isinstance(constant, Literal) and isinstance(constant.value, int | float | Decimal)):
        return None
    return (constant.value > 0) - (constant.value < 0)


def _compared(expr: Call, parts: Sequence[Motion], equal: bool) -> Trend:
    """The trend of a comparison of a condition with TRUE or FALSE, or of a number that is not negative with 0."""
    for one, part in zip(reversed(expr.arguments), parts, strict=True):
        if not isinstance(one, Literal):
            continue
        if isinstance(one.value, bool):
            return part.trend if one.value == equal else _flipped(part.trend)
        if part.nonnegative and part.trend == Trend.RISING and one.value == 0:
            return Trend.FALLING if equal else Trend.RISING
    return Trend.MIXED


def is_steady(condition: Expr, below: Motions, value: bool = True) -> bool:
    """Whether the condition has the value for every better row if it has it for a row."""
    if motion_of(condition, below).trend in (Trend.FIXED, Trend.RISING if value else Trend.FALLING):
        return True
    match condition:
        case Call(function="and" | "or"):
            return all(is_steady(part, below, value) for part in condition.arguments)
        case Call(function="not"):
            return is_steady(condition.arguments[0], below, not value)
        case Case():
            return _is_steady_case(condition, below, value)
        case Call(function=("equal" | "not_equal") as name, arguments=(part, Literal(value=bool() as constant))):
            return is_steady(part, below, constant == ((name == "equal") == value))
        case Call(function=function) if function in LOWER + HIGHER:
            one, other = (motion_of(part, below).trend for part in condition.arguments)
            return joint((one, _flipped(other))) == (Trend.FALLING if (function in LOWER) == value else Trend.RISING)
        case _:
            return False


def _is_steady_case(case: Case, below: Motions, value: bool) -> bool:
    """Whether its first branch has the value under a condition that stays satisfied, and the rest keeps the value or never has it."""
    (condition, first), *others = case.branches
    if first != Literal(value, BOOLEAN) or not is_steady(condition, below):
        return False
    results = (*(result for _, result in others), case.otherwise)
    rest = replace(case, branches=tuple(others)) if others else case.otherwise
    return all(isinstance(one, Literal) and one.value is not value for one in results) or is_steady(rest, below, value)


def joint(trends: Iterable[Trend]) -> Trend:
    moving = set(trends) - {Trend.FIXED}
    return moving.pop() if len(moving) == 1 else Trend.MIXED if moving else Trend.FIXED


def _flipped(trend: Trend) -> Trend:
    return OPPOSITE.get(trend, trend)
