"""The oracle's aggregate functions over the weighted rows of one group, in exact arithmetic.

SUM and AVG of floats are the correctly rounded exact sum, whatever the order; a sum that is zero is 0.0. NaN wins over
everything, and +∞ with -∞ gives NaN. Integer and decimal sums are exact and judged against their type at the end. MIN and MAX hold
-0.0 to be less than 0.0 and NaN to be greatest. Rows in which an argument is NULL do not count, nor do those FILTER leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from deltic.errors import ArithmeticOverflow
from deltic.expr.interpreter import evaluate as value_of
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import total_key
from deltic.plan.nodes import AggregateCall
from deltic.plan.relation import Row, key_of, normal_row
from deltic.schema import INTEGER_BITS, Type, decimal

Weighted = tuple[Row, int]

MAX_PRECISION = 38
QUOTIENT_SCALE = 39  # Spark divides decimals to this scale, half up, before it rounds to the result's


def aggregate_value(call: AggregateCall, members: Iterable[Weighted]) -> Value:
    """The aggregate over the rows of one group; raises ArithmeticOverflow where the result leaves its type."""
    arguments = _arguments(call, members)
    if call.function == "count":
        return _fitted(sum(weight for _, weight in arguments), call.type)
    values = [(row[0], weight) for row, weight in arguments]
    if not values:
        return None
    match call.function:
        case "sum":
            return _sum(values, call.type)
        case "avg":
            return _average(values, call)
        case "min":
            return min((value for value, _ in values), key=total_key)
        case "max":
            return max((value for value, _ in values), key=total_key)
        case _:
            assert_never(call.function)


def _arguments(call: AggregateCall, members: Iterable[Weighted]) -> list[Weighted]:
    """The argument lists that count, with their weights; each once, with weight 1, where DISTINCT."""
    listed = []
    for row, weight in members:
        if call.filter is None or value_of(call.filter, row) is True:
            values = tuple(value_of(argument, row) for argument in call.arguments)
            if None not in values:
                listed.append((values, weight))
    if not call.distinct:
        return listed
    once: dict[Hashable, Row] = {key_of(values): normal_row(values) for values, _ in listed}
    return [(values, 1) for values in once.values()]


def _sum(values: list[tuple[Value, int]], result: Type) -> Value:
    if result.is_float:
        return _float_sum(values)
    total = sum((_fraction(value) * weight for value, weight in values), Fraction(0))
    return _as_decimal(total, result) if result.is_decimal else _fitted(int(total), result)


def _average(values: list[tuple[Value, int]], call: AggregateCall) -> Value:
    count = sum(weight for _, weight in values)
    argument = call.arguments[0].type
    if not argument.is_decimal:
        # Each integer becomes a DOUBLE before it is added, as in Spark.
        return _float_sum([(float(_number(value)), weight) for value, weight in values]) / count
    total = _sum(values, decimal(min(MAX_PRECISION, argument.precision + 10), argument.scale))
    quotient = Fraction(_half_up(_fraction(total) / count, QUOTIENT_SCALE), 10**QUOTIENT_SCALE)
    return _as_decimal(quotient, call.type)


def _float_sum(values: Iterable[tuple[Value, int]]) -> float:
    """Σ value·weight, rounded once."""
    finite, special = Fraction(0), set()
    for value, weight in values:
        assert isinstance(value, float)
        if math.isfinite(value):
            finite += Fraction(value) * weight
        else:
            special.add(value)
    if special:
        return special.pop() if len(special) == 1 else math.nan
    try:
        return float(finite)
    except OverflowError:
        return math.inf if finite > 0 else -math.inf


def _number(value: Value) -> int | float | Decimal:
    assert isinstance(value, int | float | Decimal)
    return value


def _fraction(value: Value) -> Fraction:
    return Fraction(_number(value))


def _fitted(total: int, result: Type) -> int:
    half = 1 << (INTEGER_BITS[result.name] - 1)
    if not -half <= total < half:
        raise ArithmeticOverflow(f"an aggregate leaves {result.sql}: {total}")
    return total


def _half_up(number: Fraction, scale: int) -> int:
    """`number`·10^scale, rounded half away from zero."""
    size: int = math.floor(abs(number) * 10**scale + Fraction(1, 2))
    return -size if number < 0 else size


def _as_decimal(number: Fraction, result: Type) -> Decimal:
    """`number` in DECIMAL(p, s), built digit by digit: arithmetic on Decimal would round to its context's 28 digits."""
    unscaled = _half_up(number, result.scale)
    if abs(unscaled) >= 10**result.precision:
        raise ArithmeticOverflow(f"an aggregate leaves {result.sql}")
    return Decimal((int(unscaled < 0), tuple(int(digit) for digit in str(abs(unscaled))), -result.scale))
