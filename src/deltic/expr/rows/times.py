"""Functions of times of day on one row. A TIME has whole microseconds; Spark's has nanoseconds, where a function makes them of a number."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Final

from deltic.errors import EvaluationError, Span
from deltic.expr.failures import invalid, outside_the_day
from deltic.expr.nodes import Call
from deltic.expr.rows.datetime_text import parse_clock
from deltic.intervals import MICROSECOND
from deltic.times import NANOSECONDS, SECOND, SIZES, cut, micros_of, parse, time_of, unit_of

_FORM: Final = "HH:mm:ss.SSSSSS"
_NANOSECONDS: Final = SECOND * NANOSECONDS
"""In a second."""


def moved(call: Call, value: datetime.time, by: datetime.timedelta, sign: int) -> datetime.time:
    """The time so much later, cut off to the places of the call's type. Raises ArithmeticOverflow past midnight."""
    result = time_of(micros_of(value) + sign * (by // MICROSECOND))
    if result is None:
        raise outside_the_day("the sum of a TIME and an INTERVAL" if sign > 0 else "a TIME less an INTERVAL", call.span)
    return cut(result, unit_of(call.type.precision))


def between(end: datetime.time, start: datetime.time) -> datetime.timedelta:
    return datetime.timedelta(microseconds=micros_of(end) - micros_of(start))


def seconds_of(value: datetime.time) -> Decimal:
    """Since midnight, with six decimal places."""
    return Decimal(micros_of(value)).scaleb(-6)


def second_fraction(value: datetime.time, places: int) -> Decimal:
    """Seconds of the minute with so many decimal places, and zeros up to the sixth."""
    micros = micros_of(value) % (60 * SECOND)
    return Decimal(micros - micros % unit_of(places)).scaleb(-6)


def make(hour: int, minute: int, second: Decimal, span: Span | None) -> datetime.time:
    micros = int(second * SECOND)
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= micros < 60 * SECOND):
        raise invalid(f"{hour}:{minute}:{second} is not a time of day", span)
    return datetime.time(hour, minute, micros // SECOND, micros % SECOND)


def of_count(count: int, size: int, name: str, span: Span | None) -> datetime.time:
    """The time so many units of `size` microseconds after midnight."""
    result = time_of(count * size)
    if result is None:
        raise outside_the_day(f"{name} of {count}", span)
    return result


def of_seconds(seconds: int | Decimal | float, span: Span | None) -> datetime.time:
    """Of a FLOAT or DOUBLE what is less than a nanosecond is cut off, as in Spark. Raises EvaluationError where Spark has nanoseconds."""
    what = f"time_from_seconds of {seconds}"
    if isinstance(seconds, float):
        count = Fraction(math.trunc(seconds * _NANOSECONDS)) if math.isfinite(seconds * _NANOSECONDS) else Fraction(-1)
    else:
        count = Fraction(seconds) * _NANOSECONDS
    result = time_of(math.floor(count / NANOSECONDS))
    if result is None:
        raise outside_the_day(what, span)
    if count % NANOSECONDS:
        raise _too_fine(f"{seconds} seconds", span)
    return result


def _too_fine(what: str, span: Span | None) -> EvaluationError:
    remedy = "CAST the number to DECIMAL(14,6), or leave out digits of the text"
    return EvaluationError(f"{what} are not whole microseconds, as those of a TIME are", span=span, remedy=remedy)


def parsed(call: Call, text: str, pattern: str | None = None, *, lenient: bool = False) -> datetime.time | None:
    """As a cast, or by Spark's patterns, where a date and a zone count for nothing. lenient: other text is None, and no error."""
    try:
        value, nanos = (parse(text), 0) if pattern is None else parse_clock(text, pattern, call.span)
    except EvaluationError:
        if lenient:
            return None
        raise
    if value is None and not lenient:
        raise invalid(f"the text {text!r} is not a TIME of the form {_FORM}", call.span)
    if nanos % NANOSECONDS:
        raise _too_fine(f"the seconds of {text!r}", call.span)
    return value


def size_of(unit: str, name: str, span: Span | None) -> int:
    """Of a unit of TIME_DIFF and TIME_TRUNC, in microseconds."""
    size = SIZES.get(unit.upper())
    if size is None:
        raise EvaluationError(f"{name}: unknown unit {unit!r}", span=span, expected=f"one of {', '.join(SIZES)}")
    return size


def difference(unit: str, start: datetime.time, end: datetime.time, span: Span | None) -> int:
    """Whole units, towards 0."""
    size, micros = size_of(unit, "time_diff", span), micros_of(end) - micros_of(start)
    return micros // size if micros >= 0 else -(-micros // size)
