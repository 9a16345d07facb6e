"""Conditions on now(): comparisons with the time become instants from which, or until which, a row satisfies them.

now() occurs only while a WHERE is bound, never in a plan. Intervals of days or less are moved to one side, which avoids sums outside the
calendar; intervals of months are not moved, since months differ in length. current_date is now() as a DATE: a day is before it, or is
it, from a midnight on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from deltic.errors import Span, Unsupported
from deltic.expr import Call, Cast, Expr, Literal
from deltic.expr.nodes import distinct_parts
from deltic.frontends.sql.scope import reads_outer
from deltic.plan.nodes import Bound
from deltic.schema import DATE, TIMESTAMP, TIMESTAMP_NTZ

NOW: Final = "now"
CLOCK: Final = ("now", "current_timestamp")
"""The functions that return the time of the tick."""
TODAY: Final = ("current_date", "curdate")
"""The functions that return its day."""

_DAY_US: Final = 86_400_000_000
_MOST_US: Final = 10_000 * 366 * _DAY_US
_FLIPPED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal", "equal": "equal"}
_NEGATED: Final = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less"}
_TIMES: Final = (TIMESTAMP, TIMESTAMP_NTZ)
_DAYS: Final = {"add_days": _DAY_US, "subtract_days": -_DAY_US}
_SPANS: Final = {"datediff": _DAY_US, "days_between": _DAY_US, "time_between": 1}
"""Functions of the time from their second argument to the first, with the microseconds of their unit."""
EXPECTED: Final = "a condition of WHERE that compares a column with the time, such as placed >= now() - INTERVAL 7 DAYS"
REMEDY: Final = "store the time in a table of one row and join it"
_REMEDIES: Final = {
    "ON": "select the rows first: JOIN (SELECT * FROM t WHERE placed >= now() - INTERVAL 7 DAYS) AS t ON …",
    "HAVING": "test the groups in a query around this one: SELECT * FROM (SELECT … GROUP BY …) WHERE latest >= now() - INTERVAL 7 DAYS",
}
"""By the clause in which the time is read."""


@dataclass(frozen=True, slots=True)
class TimeCondition:
    """A condition on the time: every lower bound ≤ now < every upper bound."""

    lower: tuple[Bound, ...]
    upper: tuple[Bound, ...]

    @property
    def moments(self) -> list[Expr]:
        """The expressions of the bounds."""
        return [bound.moment for bound in (*self.lower, *self.upper)]

    def optional(self) -> TimeCondition:
        """The condition that is also satisfied if the moments are NULL."""
        lower, upper = (tuple(replace(bound, optional=True) for bound in bounds) for bounds in (self.lower, self.upper))
        return TimeCondition(lower, upper)

    def over(self, change: Callable[[Expr], Expr]) -> TimeCondition:
        """The condition with its moments as expressions over other rows."""
        lower, upper = (tuple(replace(b, moment=change(b.moment)) for b in bounds) for bounds in (self.lower, self.upper))
        return TimeCondition(lower, upper)


def now(span: Span) -> Call:
    """The time of the tick."""
    return Call(NOW, (), TIMESTAMP, False, span)


def current_date(span: Span) -> Cast:
    """The day of the tick. Its time has no place of its own."""
    return Cast(Call(NOW, (), TIMESTAMP, False), DATE, False, span=span)


def reads_time(expr: Expr) -> bool:
    """Whether now() is in the expression."""
    return _clock(expr) is not None


def not_compared(condition: Expr) -> Unsupported:
    """The error for a condition that reads the time, and not in comparisons."""
    read = _clock(condition)
    assert read is not None
    day = next((part for part in distinct_parts([condition]) if isinstance(part, Cast) and part.argument is read), None)
    return not_here("now()", read.span) if read.span or day is None else not_here("current_date()", day.span)


def not_here(name: str, span: Span | None, clause: str = "") -> Unsupported:
    """The error for a function of the time outside of comparisons in WHERE."""
    return Unsupported(f"{name} is not supported here", span=span, expected=EXPECTED, remedy=_REMEDIES.get(clause, REMEDY))


def _clock(expr: Expr) -> Call | None:
    """The place of now() in the expression; None if it has none."""
    return next((part for part in distinct_parts([expr]) if isinstance(part, Call) and part.function == NOW), None)


def compared(condition: Expr, negated: bool = False) -> TimeCondition | None:
    """The bounds on the time of a comparison with now(), at most one of each kind; None if it is none. negated: whether NOT is before."""
    if not isinstance(condition, Call):
        return None
    if condition.function == "not":
        return compared(condition.arguments[0], not negated)
    operator = _NEGATED.get(condition.function) if negated else condition.function
    if operator not in _FLIPPED:
        return None
    one, other = condition.arguments
    if _clock(one) is None:
        one, other, operator = other, one, _FLIPPED[operator]
    if isinstance(one, Call) and one.function in _SPANS:
        return _spanned(one, other, operator)
    return _bounds(_parted(one), _parted(other), operator) or _day_bounds(_parted_day(one), _parted_day(other), operator)


def _spanned(span: Call, other: Expr, operator: str) -> TimeCondition | None:
    """The time between two moments, one of them the clock's, compared with a constant: `now() - at < INTERVAL 1 DAY`."""
    if not isinstance(other, Literal) or not isinstance(other.value, int | timedelta):
        return None
    amount = other.value // timedelta(microseconds=1) if isinstance(other.value, timedelta) else other.value * _SPANS[span.function]
    one, to = span.arguments
    if _clock(one) is None:
        one, to, operator, amount = to, one, _FLIPPED[operator], -amount
    parted = _parted if one.type == TIMESTAMP else _parted_day
    moment, offset = parted(to)
    return (_bounds if one.type == TIMESTAMP else _day_bounds)(parted(one), (moment, offset + amount), operator)


def _bounds(clock: tuple[Expr, int], moment: tuple[Expr, int], operator: str) -> TimeCondition | None:
    """The bounds of a comparison of now(), with what is added to it, and a moment; None if it is none."""
    (time, added), (at, offset) = clock, moment
    if not (isinstance(time, Call) and time.function == NOW):
        _refuse_months(time)
        return None
    if not _is_moment(at) or at.type != TIMESTAMP or abs(offset - added) > _MOST_US:
        return None
    inclusive, exclusive = Bound(at, offset - added), Bound(at, offset - added + 1)
    lower = {"greater_equal": (inclusive,), "greater": (exclusive,), "equal": (inclusive,)}.get(operator, ())
    upper = {"less": (inclusive,), "less_equal": (exclusive,), "equal": (exclusive,)}.get(operator, ())
    return TimeCondition(lower, upper)


def _day_bounds(clock: tuple[Expr, int], moment: tuple[Expr, int], operator: str) -> TimeCondition | None:
    """The bounds of a comparison of current_date, with what is added to it, and a moment; None if it is none.

    The last midnight is at or before a moment until the midnight after it, and at or after it from the first midnight that is not before
    it. Of a timestamp this may be outside the calendar. Raises Unsupported then.
    """
    (day, added), (at, offset) = clock, moment
    if not _is_today(day) or not _is_moment(at) or at.type not in (DATE, *_TIMES) or abs(offset - added) > _MOST_US:
        return None
    days, rest = divmod(offset - added, _DAY_US)
    if at.type != DATE:
        if rest or operator not in ("less_equal", "greater"):
            expected = "at >= current_date() or at < current_date(), plus or minus days"
            remedy = "compare its day: CAST(at AS DATE) = current_date()"
            message = "this comparison of a time and current_date() is not supported"
            raise Unsupported(message, span=day.span, expected=expected, remedy=remedy)
        at = Cast(at, DATE, at.nullable, span=at.span)
    midnight = Cast(at, TIMESTAMP, at.nullable, span=at.span)
    after, first = Bound(midnight, (days + 1) * _DAY_US), Bound(midnight, (days + bool(rest)) * _DAY_US)
    lower = {"greater_equal": (first,), "greater": (after,), "equal": (first,)}.get(operator, ())
    upper = {"less": (first,), "less_equal": (after,), "equal": (after,)}.get(operator, ())
    return TimeCondition(lower, upper)


def _is_moment(expr: Expr) -> bool:
    return _clock(expr) is None and not reads_outer(expr)


def _is_today(expr: Expr) -> bool:
    return isinstance(expr, Cast) and expr.type == DATE and isinstance(expr.argument, Call) and expr.argument.function == NOW


def _parted(expr: Expr) -> tuple[Expr, int]:
    """(timestamp, microseconds added to it), also of a TIMESTAMP_NTZ that is compared as a TIMESTAMP."""
    if isinstance(expr, Cast) and expr.type == TIMESTAMP and expr.argument.type == TIMESTAMP_NTZ:
        local, offset = _parted(expr.argument)
        return replace(expr, argument=local), offset
    if isinstance(expr, Call) and expr.type in _TIMES and expr.function in ("add_days", "add_microseconds"):
        value, amount = expr.arguments
        if value.type == expr.type and isinstance(amount, Literal) and isinstance(amount.value, int):
            inner, offset = _parted(value)
            return inner, offset + amount.value * (_DAY_US if expr.function == "add_days" else 1)
    return expr, 0


def _parted_day(expr: Expr) -> tuple[Expr, int]:
    """(date or timestamp, microseconds added to it), also of a date that is compared as a timestamp."""
    inner, offset = _parted(expr)
    if isinstance(inner, Cast) and inner.type in _TIMES and inner.argument.type == DATE:
        inner = inner.argument
    while isinstance(inner, Call) and inner.type == DATE and inner.function in _DAYS:
        value, amount = inner.arguments
        if value.type != DATE or not isinstance(amount, Literal) or not isinstance(amount.value, int):
            break
        offset += amount.value * _DAYS[inner.function]
        inner = value
    return inner, offset


def _refuse_months(expr: Expr) -> None:
    if isinstance(expr, Call) and expr.function == "add_months":
        message = "an INTERVAL of months or years is not supported beside now()"
        raise Unsupported(message, span=expr.span, expected="days or less", remedy="add it to the column on the other side")
