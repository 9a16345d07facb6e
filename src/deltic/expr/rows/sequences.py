"""SEQUENCE on one row: integers, dates and timestamps from a start to a stop, which is included."""

from __future__ import annotations

import datetime
from itertools import count
from typing import Any, Final

from deltic.errors import ArithmeticOverflow
from deltic.expr.failures import illegal_sequence, invalid, too_many_elements
from deltic.expr.nodes import Call, Value
from deltic.expr.rows.dates import add_months
from deltic.expr.rows.elements import MOST_ELEMENTS, elements

_DAY: Final = 86_400_000_000
_LEAST_MONTH: Final = 28 * _DAY
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def sequence(call: Call, start: Any, stop: Any, step: int | None = None) -> tuple[Value, ...]:
    """Towards the stop by 1 or a step; of dates and timestamps by a day."""
    if isinstance(start, datetime.date):
        return sequence_by(call, start, stop, 0, _DAY if start <= stop else -_DAY)
    return tuple(elements("sequence", (start, stop) if step is None else (start, stop, step), call.span))


def sequence_by(call: Call, start: Any, stop: Any, months: int, microseconds: int) -> tuple[Value, ...]:
    """Dates or timestamps: each is so many steps from the start. Raises EvaluationError for steps that lead away from the stop."""
    is_date = not isinstance(start, datetime.datetime)
    if is_date and (microseconds % _DAY or not (months or microseconds)):
        raise invalid("the step of a sequence of dates is not of whole days", call.span)
    estimate = months * _LEAST_MONTH + microseconds
    distance = (stop - start) // _MICROSECOND
    if estimate == 0 == distance:
        return (start,)
    if estimate == 0 or distance * estimate < 0:
        raise illegal_sequence(start, stop, estimate, call.span)
    if distance // estimate >= MOST_ELEMENTS:
        raise too_many_elements(start, stop, estimate, MOST_ELEMENTS, call.span)
    values: list[Value] = []
    for i in count():
        one = _moved(start, i * months, i * microseconds)
        if one is None or (one > stop if estimate > 0 else one < stop):
            return tuple(values)
        values.append(one)
    raise AssertionError("a sequence that ends only at its stop")


def _moved(start: Any, months: int, microseconds: int) -> Any:
    """None past the years 1 to 9999, where no stop is."""
    try:
        return add_months(start, months) + datetime.timedelta(microseconds=microseconds)
    except (OverflowError, ArithmeticOverflow):
        return None
