"""SUM: a BIGINT for integers, ten more digits for decimals, the INTERVAL of intervals; for floats the exact sum, rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from deltic.aggregates.definition import AggregateFunction, Linear, Rows, Signature
from deltic.aggregates.exact import as_decimal, fitted, float_sum, interval_total, number
from deltic.aggregates.rules import exact_sum, summable
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.typing import bounded
from deltic.schema import BIGINT, DOUBLE, Type


def sum_type(type: Type) -> Type:
    """The type of the sum of values of a type.

    >>> from deltic.schema import decimal
    >>> sum_type(decimal(10, 2)).sql
    'DECIMAL(20,2)'
    """
    if type.is_interval:
        return type
    if type.is_decimal:
        return bounded(type.precision + 10, type.scale)
    return BIGINT if type.is_integer else DOUBLE


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    argument = summable(name, types[0], span)
    return Signature((argument,), sum_type(argument))


def _reference(rows: Rows, signature: Signature) -> Value:
    if signature.result.is_interval:
        return interval_total(rows, signature.result)
    values = [(value, weight) for (value,), weight in rows]
    if signature.result.is_float:
        return float_sum(values)
    total = sum((Fraction(number(value)) * weight for value, weight in values), Fraction(0))
    return as_decimal(total, signature.result) if signature.result.is_decimal else fitted(int(total), signature.result)


AGGREGATES = (
    AggregateFunction("sum", _rule, Linear(lambda arguments: (exact_sum(arguments[0]),), "total"), _reference, never_negative_zero=True),
)
