"""AVG: a DOUBLE, for decimals a decimal with four more digits, for intervals an INTERVAL; divided and rounded as in Spark."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction

from deltic.aggregates.definition import AggregateFunction, Linear, Measure, Rows, Signature, Sum
from deltic.aggregates.exact import as_decimal, as_interval, float_sum, half_up, interval_total, number
from deltic.aggregates.rules import exact_sum, summable
from deltic.aggregates.sum import sum_type
from deltic.errors import Span
from deltic.expr.nodes import Expr, Value
from deltic.expr.typing import bounded
from deltic.intervals import units_of
from deltic.schema import BIGINT, DAY_TO_SECOND, DOUBLE, YEAR_TO_MONTH, Type

QUOTIENT_SCALE = 39
"""Spark divides decimals to this scale, half up, before it rounds to the result's."""


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    argument = summable(name, types[0], span)
    if argument.is_interval:
        return Signature((argument,), DAY_TO_SECOND if argument.is_day_time else YEAR_TO_MONTH)
    return Signature((argument,), bounded(argument.precision + 4, argument.scale + 4) if argument.is_decimal else DOUBLE)


def _sums(arguments: tuple[Expr, ...]) -> tuple[Sum, ...]:
    (argument,) = arguments
    return (Measure("rounded", argument) if argument.type == BIGINT else exact_sum(argument),)


def _reference(rows: Rows, signature: Signature) -> Value:
    count = sum(weight for _, weight in rows)
    (argument,) = signature.arguments
    if argument.is_interval:
        total = interval_total(rows, argument)
        assert isinstance(total, int | datetime.timedelta)
        return as_interval(half_up(Fraction(units_of(total), count), 0), signature.result)
    if not argument.is_decimal:
        # Each integer becomes a DOUBLE before it is added, as in Spark.
        whole = float_sum((float(number(value)), weight) for (value,), weight in rows)
        return whole / count if whole else 0.0
    exact = as_decimal(sum((Fraction(number(value)) * weight for (value,), weight in rows), Fraction(0)), sum_type(argument))
    quotient = Fraction(half_up(Fraction(exact) / count, QUOTIENT_SCALE), 10**QUOTIENT_SCALE)
    return as_decimal(quotient, signature.result)


AGGREGATES = (AggregateFunction("avg", _rule, Linear(_sums, "mean"), _reference, aliases=("mean",)),)
