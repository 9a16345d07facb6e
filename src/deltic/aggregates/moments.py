"""SKEWNESS and KURTOSIS (the excess over 3) of numbers as DOUBLE, of the population.

From the exact sums of x to x⁴, rounded once; NULL where all values are equal. NaN or an infinity among the values gives NaN.
"""

from __future__ import annotations

import math
from fractions import Fraction

from deltic.aggregates.definition import AggregateFunction, Digits, Estimated, Linear, Rows, Signature, Sum, Totals
from deltic.aggregates.exact import decimal_root, nearest_ratio, nearest_root, number
from deltic.aggregates.rules import doubles
from deltic.expr.nodes import Expr
from deltic.expr.rows.numbers import nearest


def _sums(powers: int) -> Linear:
    def sums(arguments: tuple[Expr, ...]) -> tuple[Sum, ...]:
        return (Digits("real", arguments), *(Digits("product", arguments * power) for power in range(2, powers + 1)))

    return Linear(sums, _skewness, _estimated_skewness) if powers == 3 else Linear(sums, _kurtosis, _estimated_kurtosis)


def _skewness(totals: Totals, signature: Signature) -> float | None:
    """m₃ / m₂^(3/2), from n³·m₃ and n²·m₂, the moments about the mean."""
    if not totals.is_finite(0):
        return math.nan
    n, x, xx, xxx = totals.count, totals.real(0), totals.product(1), totals.product(2, 3)
    second, third = n * xx - x * x, n * n * xxx - 3 * n * x * xx + 2 * x**3
    if not second:
        return None
    size = nearest_root(third * third, second**3)
    return -size if third < 0 else size


def _kurtosis(totals: Totals, signature: Signature) -> float | None:
    """m₄ / m₂² - 3, from n⁴·m₄ and n²·m₂."""
    if not totals.is_finite(0):
        return math.nan
    n, x, xx, xxx, xxxx = totals.count, totals.real(0), totals.product(1), totals.product(2, 3), totals.product(3, 4)
    second = n * xx - x * x
    if not second:
        return None
    fourth = n**3 * xxxx - 4 * n * n * xxx * x + 6 * n * xx * x * x - 3 * x**4
    return nearest_ratio(fourth - 3 * second * second, second * second)


def _estimated_skewness(n: Estimated, x: Estimated, xx: Estimated, xxx: Estimated) -> Estimated:
    second, third = n * xx - x * x, n * n * xxx - 3 * n * x * xx + 2 * x * x * x
    return third / (second * second.sqrt())


def _estimated_kurtosis(n: Estimated, x: Estimated, xx: Estimated, xxx: Estimated, xxxx: Estimated) -> Estimated:
    second = n * xx - x * x
    fourth = n * n * n * xxxx - 4 * n * n * xxx * x + 6 * n * xx * x * x - 3 * x * x * x * x
    return fourth / (second * second) - 3


def _moments(rows: Rows) -> tuple[int, list[Fraction]] | None:
    """(n, the moments about the mean by their order), by the definition; None if a value is not finite."""
    if not all(math.isfinite(number(value)) for (value,), _ in rows):
        return None
    n = sum(weight for _, weight in rows)
    values = [(Fraction(number(value)), weight) for (value,), weight in rows]
    mean = sum((value * weight for value, weight in values), Fraction(0)) / n
    return n, [sum(((value - mean) ** order * weight for value, weight in values), Fraction(0)) / n for order in range(5)]


def _skewness_reference(rows: Rows, signature: Signature) -> float | None:
    counted = _moments(rows)
    if counted is None:
        return math.nan
    _, moments = counted
    if not moments[2]:
        return None
    size = decimal_root(moments[3] ** 2 / moments[2] ** 3)
    return -size if moments[3] < 0 else size


def _kurtosis_reference(rows: Rows, signature: Signature) -> float | None:
    counted = _moments(rows)
    if counted is None:
        return math.nan
    _, moments = counted
    return nearest(moments[4] / moments[2] ** 2 - 3) if moments[2] else None


AGGREGATES = (
    AggregateFunction("skewness", doubles, _sums(3), _skewness_reference),
    AggregateFunction("kurtosis", doubles, _sums(4), _kurtosis_reference, never_negative_zero=True),
)
