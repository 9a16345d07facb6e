"""Intervals: operators on them and with dates, times and numbers, their fields, and functions that make them.

What always holds: a year-month interval is added as months, a day-time interval as days to a DATE where its last field is DAY, and as
microseconds elsewhere; so +, -, BETWEEN and conditions on now() all see additions of days, months or microseconds.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import intervals as arrays
from deltic.expr.arrays.datum import Kernel
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.functions.signature import DAY, INSTANT, INTEGER, NUMBER, TEXT, Parameter, constant, first, takes
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, resolve
from deltic.expr.rows import intervals as rows
from deltic.expr.typing import cast, common_type
from deltic.intervals import fields_of, units_of
from deltic.schema import (
    BIGINT,
    DATE,
    DAY_TO_SECOND,
    DAYS,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    YEAR_TO_MONTH,
    decimal,
    interval,
)

_MOMENTS: Final = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_SECONDS: Final = decimal(18, 6)
_PART_TYPES: Final = {"YEAR": INT, "MONTH": TINYINT, "DAY": INT, "HOUR": TINYINT, "MINUTE": TINYINT, "SECOND": decimal(8, 6)}
FIELDS: Final = {"year": "YEAR", "month": "MONTH", "day": "DAY", "hour": "HOUR", "minute": "MINUTE", "second_fraction": "SECOND"}
"""The functions of EXTRACT whose field an interval may have."""


def plus(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr | None:
    """left + right where one is an interval; None where none is."""
    left, right = arguments
    if left.type.is_interval and (right.type in _MOMENTS or right.type == NULL):
        left, right = right, left
    if right.type.is_interval and left.type in _MOMENTS:
        return moved(left, right, 1, span)
    return _combined("add_intervals", left, right, span)


def minus(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr | None:
    """left - right where one is an interval, or both are dates or times; None elsewhere."""
    left, right = arguments
    if right.type.is_interval and left.type in _MOMENTS:
        return moved(left, right, -1, span)
    if left.type in _MOMENTS or right.type in _MOMENTS:
        return _between(left, right, span)
    return _combined("subtract_intervals", left, right, span)


def with_text(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr | None:
    """STRING ± INTERVAL of days to seconds, INTERVAL + STRING: the text of a TIMESTAMP. A date or time + NULL: a TIMESTAMP. Else None."""
    left, right = arguments
    if name == "+" and (left.type.is_interval or left.type == NULL):
        left, right = right, left
    if left.type == STRING and right.type.is_day_time:
        return cast(resolve(name, [cast(left, TIMESTAMP), right], span), STRING)
    if left.type not in _MOMENTS or right.type != NULL:
        return None
    return Literal(None, TIMESTAMP_NTZ if left.type == TIMESTAMP_NTZ else TIMESTAMP, span)


def _combined(function: str, left: Expr, right: Expr, span: Span | None) -> Expr | None:
    if not (left.type.is_interval or right.type.is_interval):
        return None
    type = common_type([left.type, right.type])
    return None if type is None else Call(function, (cast(left, type), cast(right, type)), type, left.nullable or right.nullable, span)


def _between(left: Expr, right: Expr, span: Span | None) -> Expr | None:
    """The interval between two dates, or two times; a STRING beside one is of its type."""
    types = [side.type for side in (left, right) if side.type in _MOMENTS]
    type = common_type(types)
    if type is None or not all(side.type in _MOMENTS or side.type in (STRING, NULL) for side in (left, right)):
        return None
    function, result = ("days_between", DAYS) if type == DATE else ("time_between", DAY_TO_SECOND)
    return Call(function, (cast(left, type), cast(right, type)), result, left.nullable or right.nullable, span)


def moved(moment: Expr, by: Expr, sign: int, span: Span | None) -> Expr:
    """A DATE, TIMESTAMP or TIMESTAMP_NTZ and an interval added up; `sign` -1 subtracts it."""
    if by.type.is_year_month:
        months = _signed(cast(cast(by, interval("MONTH", "MONTH")), INT), sign, span)
        return _moved("add_months", moment, months, span)
    if moment.type == DATE and by.type == DAYS:
        return _moved("add_days", moment, _signed(cast(by, INT), sign, span), span)
    moment = cast(moment, TIMESTAMP) if moment.type == DATE else moment
    return _moved("add_microseconds", moment, _signed(microseconds(by), sign, span), span)


def _moved(function: str, moment: Expr, count: Expr, span: Span | None) -> Expr:
    return Call(function, (moment, count), moment.type, moment.nullable or count.nullable, span)


def _signed(count: Expr, sign: int, span: Span | None) -> Expr:
    literal = constant(count)
    if literal is not None and isinstance(literal.value, int):
        return Literal(sign * literal.value, count.type, count.span)
    return count if sign > 0 else resolve("negate", [count], span)


def microseconds(value: Expr) -> Expr:
    """A day-time interval as BIGINT."""
    literal = constant(value)
    if literal is not None and isinstance(literal.value, datetime.timedelta):
        return Literal(units_of(literal.value), BIGINT, value.span)
    return Call("interval_microseconds", (value,), BIGINT, value.nullable, value.span)


def number(value: Expr) -> Expr | None:
    """An interval as a BIGINT or an INT: its microseconds or months; None for another type."""
    if value.type.is_day_time:
        return microseconds(value)
    return cast(cast(value, interval("MONTH", "MONTH")), INT) if value.type.is_year_month else None


def times(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr | None:
    """interval * number, number * interval; None where none is an interval."""
    left, right = arguments
    return _scaled("multiply_interval", (right, left) if right.type.is_interval else (left, right), span)


def over(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr | None:
    """interval / number; None where the first is no interval."""
    left, right = arguments
    return _scaled("divide_interval", (left, right), span)


def _scaled(function: str, arguments: tuple[Expr, Expr], span: Span | None) -> Expr | None:
    value, by = arguments
    if not value.type.is_interval or not (by.type.is_numeric or by.type in (STRING, NULL)):
        return None
    exact = BIGINT if by.type.is_integer else by.type if by.type.is_decimal else DOUBLE
    type = DAY_TO_SECOND if value.type.is_day_time else YEAR_TO_MONTH
    return Call(function, (cast(value, type), cast(by, exact)), type, value.nullable or by.nullable, span)


def same_type(function: str, arguments: Sequence[Expr], span: Span | None) -> Expr | None:
    """A function of one interval that gives one of its type; None for another argument."""
    if len(arguments) != 1 or not arguments[0].type.is_interval:
        return None
    (value,) = arguments
    return Call(function, (value,), value.type, value.nullable, span)


def extract(function: str, word: str, value: Expr, span: Span | None) -> Expr:
    """EXTRACT(field FROM interval). Raises TypeMismatch for a field that the interval's type does not have."""
    field = FIELDS.get(function)
    fields = fields_of(value.type)
    if field not in fields:
        raise TypeMismatch(f"{value.type.sql} has no field {word.upper()}", span=span, expected=f"one of {', '.join(fields)}")
    return Call("interval_part", (value, Literal(field, STRING)), _PART_TYPES[field], value.nullable, span)


def _make_day_time(call: Call, days: int, hours: int, minutes: int, seconds: Decimal) -> datetime.timedelta:
    micros = ((days * 24 + hours) * 60 + minutes) * 60_000_000 + int(seconds.scaleb(6))
    value = rows.checked(call, micros, "of these parts")
    assert isinstance(value, datetime.timedelta)
    return value


_INTERVAL: Final = Parameter("an INTERVAL", lambda type: type if type.is_interval else None)
_DAY_TIME: Final = Parameter("an INTERVAL of days or seconds", lambda type: type if type.is_day_time else None)
_SECOND_PARTS: Final = Parameter("a number", lambda type: _SECONDS if type.is_numeric or type in (STRING, NULL) else None)
_ZERO: Final = Literal(0, INT)


def _operator(name: str, parameters: Sequence[Parameter], rows: Callable[..., object], arrays: Kernel, **more: Any) -> Function:
    """The record of what an operator on intervals calls; `first` is the type of its result."""
    return Function(name=name, named=False, signature=takes(parameters, first), **{"can_fail": True, **more}, rows=rows, arrays=arrays)


FUNCTIONS: Final = (
    _operator("add_intervals", [_INTERVAL, _INTERVAL], rows.add, arrays.add),
    _operator("subtract_intervals", [_INTERVAL, _INTERVAL], rows.subtract, arrays.subtract),
    _operator("negate_interval", [_INTERVAL], rows.negate, arrays.unary(np.negative)),
    _operator("abs_interval", [_INTERVAL], rows.absolute, arrays.unary(np.abs)),
    _operator("multiply_interval", [_INTERVAL, NUMBER], rows.multiply, arrays.multiply),
    _operator("divide_interval", [_INTERVAL, NUMBER], rows.divide, arrays.divide),
    Function(
        name="interval_microseconds",
        named=False,
        signature=takes([_DAY_TIME], BIGINT),
        can_fail=False,
        rows=lambda call, value: units_of(value),
        arrays=arrays.microseconds,
    ),
    Function(
        name="days_between",
        named=False,
        signature=takes([DAY, DAY], DAYS),
        can_fail=False,
        rows=lambda call, end, start: end - start,
        arrays=arrays.days_between,
    ),
    Function(
        name="time_between",
        named=False,
        signature=takes([INSTANT, INSTANT], DAY_TO_SECOND),
        can_fail=False,
        rows=lambda call, end, start: end - start,
        arrays=arrays.between,
    ),
    Function(
        name="interval_part",
        named=False,
        signature=takes([_INTERVAL, TEXT], INT),
        can_fail=False,
        rows=rows.part,
        arrays=arrays.part,
    ),
    Function(
        name="make_dt_interval",
        signature=takes(
            [INTEGER, INTEGER, INTEGER, _SECOND_PARTS], DAY_TO_SECOND, defaults=[_ZERO, _ZERO, _ZERO, Literal(Decimal(0), _SECONDS)]
        ),
        can_fail=True,
        rows=_make_day_time,
        arrays=per_distinct,
    ),
    Function(
        name="make_ym_interval",
        signature=takes([INTEGER, INTEGER], YEAR_TO_MONTH, defaults=[_ZERO, _ZERO]),
        can_fail=True,
        rows=lambda call, years, months: rows.checked(call, 12 * years + months, "of these parts"),
        arrays=arrays.make_year_month,
    ),
)
