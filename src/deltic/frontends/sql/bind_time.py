"""Conditions on now(): comparisons of a column with the time, as instants from which on, or until which, a row satisfies them.

now() is there only while a WHERE is bound, and in no plan. Intervals of days and less are moved off both sides, so that no sum leaves the
calendar; with months the place matters, since months differ in length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from deltic.errors import Span, Unsupported
from deltic.expr import Call, Expr, Literal, children
from deltic.frontends.sql.scope import reads_outer
from deltic.plan.columns import conjuncts
from deltic.plan.nodes import Bound
from deltic.schema import TIMESTAMP

NOW: Final = "now"
CLOCK: Final = ("now", "current_timestamp")
"""The functions that return the time of the tick."""

_DAY_US: Final = 86_400_000_000
_MOST_US: Final = 10_000 * 366 * _DAY_US
_FLIPPED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal", "equal": "equal"}
_NEGATED: Final = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less"}
EXPECTED: Final = "a condition of WHERE such as placed >= now() - INTERVAL 7 DAYS, with =, <, <=, > or >=, joined to the others by AND"
REMEDY: Final = "store the time in a table of one row and join it"


@dataclass(frozen=True, slots=True)
class Timely:
    """A condition on the time: each lower bound ≤ now, and now < each upper one."""

    lower: tuple[Bound, ...]
    upper: tuple[Bound, ...]

    def over(self, change: Callable[[Expr], Expr]) -> Timely:
        """The condition with its moments brought onto other rows."""
        lower, upper = (tuple(replace(b, moment=change(b.moment)) for b in bounds) for bounds in (self.lower, self.upper))
        return Timely(lower, upper)


def now(span: Span) -> Call:
    """The time of the tick."""
    return Call(NOW, (), TIMESTAMP, False, span)


def timely(condition: Expr) -> Timely | None:
    """The bounds that the condition sets on the time; None if it does not read the time. Raises Unsupported unless it is a comparison."""
    read = _clock(condition)
    if read is None:
        return None
    found = _compared(condition)
    if found is None:
        raise Unsupported("now() is not supported here", span=read.span, expected=EXPECTED, remedy=REMEDY)
    return found


def _clock(expr: Expr) -> Call | None:
    """Where the expression reads the time."""
    if isinstance(expr, Call) and expr.function == NOW:
        return expr
    return next((found for part in children(expr) if (found := _clock(part)) is not None), None)


def _compared(condition: Expr, negated: bool = False) -> Timely | None:
    if not isinstance(condition, Call):
        return None
    if condition.function == "not":
        return _compared(condition.arguments[0], not negated)
    operator = _NEGATED.get(condition.function) if negated else condition.function
    if operator not in _FLIPPED:
        return None
    one, other = condition.arguments
    if _clock(one) is None:
        one, other, operator = other, one, _FLIPPED[operator]
    time, clock = _parted(one)
    moment, offset = _parted(other)
    if not (isinstance(time, Call) and time.function == NOW):
        _refuse_months(time)
        return None
    if _clock(moment) is not None or reads_outer(moment) or moment.type != TIMESTAMP or abs(offset - clock) > _MOST_US:
        return None
    at, behind = Bound(moment, offset - clock), Bound(moment, offset - clock + 1)
    lower = {"greater_equal": (at,), "greater": (behind,), "equal": (at,)}.get(operator, ())
    upper = {"less": (at,), "less_equal": (behind,), "equal": (behind,)}.get(operator, ())
    return Timely(lower, upper)


def _parted(expr: Expr) -> tuple[Expr, int]:
    """A timestamp and the microseconds added to it."""
    if isinstance(expr, Call) and expr.type == TIMESTAMP and expr.function in ("add_days", "add_microseconds"):
        value, amount = expr.arguments
        if value.type == TIMESTAMP and isinstance(amount, Literal) and isinstance(amount.value, int):
            inner, offset = _parted(value)
            return inner, offset + amount.value * (_DAY_US if expr.function == "add_days" else 1)
    return expr, 0


def _refuse_months(expr: Expr) -> None:
    if isinstance(expr, Call) and expr.function == "add_months":
        message = "an INTERVAL of months or years is not supported beside now()"
        raise Unsupported(message, span=expr.span, expected="days or less", remedy="add it to the column on the other side")


def conditions(condition: Expr) -> list[Expr | Timely]:
    """The conjuncts, those on the time apart."""
    return [timely(part) or part for part in conjuncts(condition)]
