"""AVG: a DOUBLE, or for decimals a decimal with four more digits, divided and rounded as in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from deltic.aggregates.definition import AggregateFunction, Linear, Measure, Rows, Signature, Sum
from deltic.aggregates.exact import as_decimal, float_sum, half_up, number
from deltic.aggregates.rules import exact_sum, numeric
from deltic.aggregates.sum import sum_type
from deltic.errors import Span
from deltic.expr.nodes import Expr, Value
from deltic.expr.typing import bounded
from deltic.schema import BIGINT, DOUBLE, Type

QUOTIENT_SCALE = 39
"""Spark divides decimals to this scale, half up, before it rounds to the result's."""


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    argument = numeric(name, types[0], span)
    return Signature((argument,), bounded(argument.precision + 4, argument.scale + 4) if argument.is_decimal else DOUBLE)


def _sums(arguments: tuple[Expr, ...]) -> tuple[Sum, ...]:
    (argument,) = arguments
    return (Measure("rounded", argument) if argument.type == BIGINT else exact_sum(argument),)


def _reference(rows: Rows, signature: Signature) -> Value:
    count = sum(weight for _, weight in rows)
    (argument,) = signature.arguments
    if not argument.is_decimal:
        # Each integer becomes a DOUBLE before it is added, as in Spark.
        whole = float_sum((float(number(value)), weight) for (value,), weight in rows)
        return whole / count if whole else 0.0
    total = as_decimal(sum((Fraction(number(value)) * weight for (value,), weight in rows), Fraction(0)), sum_type(argument))
    quotient = Fraction(half_up(Fraction(total) / count, QUOTIENT_SCALE), 10**QUOTIENT_SCALE)
    return as_decimal(quotient, signature.result)


AGGREGATES = (AggregateFunction("avg", _rule, Linear(_sums, "mean"), _reference, aliases=("mean",)),)
