"""Arithmetic of intervals on one row: microseconds and months as integers, rounded half away from zero, within the type's range."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from deltic.expr.failures import division_by_zero, overflow
from deltic.expr.nodes import Call
from deltic.expr.rows.numbers import half_up, product, quotient
from deltic.intervals import SIZES, Interval, cut, interval_of, units_of

Number = int | float | Decimal


def checked(call: Call, units: int, what: str) -> Interval:
    """The interval of the call's type. Raises ArithmeticOverflow."""
    result = interval_of(units, call.type)
    if result is None:
        raise overflow(f"{call.type.sql} {what}", call.span)
    return result


def add(call: Call, left: Interval, right: Interval) -> Interval:
    return checked(call, units_of(left) + units_of(right), "addition")


def subtract(call: Call, left: Interval, right: Interval) -> Interval:
    return checked(call, units_of(left) - units_of(right), "subtraction")


def negate(call: Call, value: Interval) -> Interval:
    return checked(call, -units_of(value), "negation")


def absolute(call: Call, value: Interval) -> Interval:
    return checked(call, abs(units_of(value)), "absolute value")


def multiply(call: Call, value: Interval, number: Number) -> Interval:
    units = units_of(value)
    if isinstance(number, float):
        return _of_double(call, float(units) * number, "multiplication")
    if isinstance(number, Decimal):
        return checked(call, half_up(product(Decimal(units), number), 0), "multiplication")
    return checked(call, units * number, "multiplication")


def divide(call: Call, value: Interval, number: Number) -> Interval:
    if number == 0:
        raise division_by_zero(call)
    units = units_of(value)
    if isinstance(number, float):
        return _of_double(call, float(units) / number, "division")
    exact = quotient(Decimal(units), number) if isinstance(number, Decimal) else Fraction(units, number)
    return checked(call, half_up(exact, 0), "division")


def _of_double(call: Call, units: float, what: str) -> Interval:
    if not math.isfinite(units):
        raise overflow(f"{call.type.sql} {what}", call.span)
    return checked(call, half_up(Fraction(units), 0), what)


def part(call: Call, value: Interval, field: str) -> int | Decimal:
    """A field of an interval: what the longer ones leave, with the interval's sign."""
    units, size = units_of(value), SIZES[field]
    longer = {"HOUR": "DAY", "MINUTE": "HOUR", "SECOND": "MINUTE", "MONTH": "YEAR"}.get(field)
    rest = units if longer is None else units - cut(units, SIZES[longer])
    if field == "SECOND":
        return Decimal(rest).scaleb(-6)
    return -(-rest // size) if rest < 0 else rest // size
