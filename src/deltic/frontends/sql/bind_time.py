"""Conditions on now(): comparisons with the time become instants from which, or until which, a row satisfies them.

now() occurs only while a WHERE is bound, never in a plan. Intervals of days or less are moved to one side, which avoids sums outside the
calendar; intervals of months are not moved, since months differ in length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from deltic.errors import Span, Unsupported
from deltic.expr import Call, Expr, Literal
from deltic.expr.nodes import distinct_parts
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
class TimeCondition:
    """A condition on the time: every lower bound ≤ now < every upper bound."""

    lower: tuple[Bound, ...]
    upper: tuple[Bound, ...]

    @property
    def moments(self) -> list[Expr]:
        """The expressions of the bounds."""
        return [bound.moment for bound in (*self.lower, *self.upper)]

    def over(self, change: Callable[[Expr], Expr]) -> TimeCondition:
        """The condition with its moments as expressions over other rows."""
        lower, upper = (tuple(replace(b, moment=change(b.moment)) for b in bounds) for bounds in (self.lower, self.upper))
        return TimeCondition(lower, upper)


def now(span: Span) -> Call:
    """The time of the tick."""
    return Call(NOW, (), TIMESTAMP, False, span)


def time_condition(condition: Expr) -> TimeCondition | None:
    """The condition's bounds on the time; None if it does not read the time. Raises Unsupported unless it is a comparison."""
    read = _clock(condition)
    if read is None:
        return None
    bounds = _compared(condition)
    if bounds is None:
        raise Unsupported("now() is not supported here", span=read.span, expected=EXPECTED, remedy=REMEDY)
    return bounds


def _clock(expr: Expr) -> Call | None:
    """The place of now() in the expression; None if it has none."""
    return next((part for part in distinct_parts([expr]) if isinstance(part, Call) and part.function == NOW), None)


def _compared(condition: Expr, negated: bool = False) -> TimeCondition | None:
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
    inclusive, exclusive = Bound(moment, offset - clock), Bound(moment, offset - clock + 1)
    lower = {"greater_equal": (inclusive,), "greater": (exclusive,), "equal": (inclusive,)}.get(operator, ())
    upper = {"less": (inclusive,), "less_equal": (exclusive,), "equal": (exclusive,)}.get(operator, ())
    return TimeCondition(lower, upper)


def _parted(expr: Expr) -> tuple[Expr, int]:
    """(timestamp, microseconds added to it)."""
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


def conditions(condition: Expr) -> list[Expr | TimeCondition]:
    """(the conjuncts without now(), those with it)."""
    return [time_condition(part) or part for part in conjuncts(condition)]
