"""VAR_POP, VAR_SAMP (VARIANCE), STDDEV_POP, STDDEV_SAMP. Numbers become DOUBLE first, as in Spark.

From the exact sums of x and x², n·Σx² − (Σx)² is exact, without cancellation; the quotient, or its root, is rounded
once. A result beyond the greatest DOUBLE is infinite, and NaN or an infinity among the values gives NaN. VAR_SAMP of one row is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from deltic.aggregates.definition import UNIT, AggregateFunction, Digits, Estimated, Linear, Rows, Signature, Sum, Totals
from deltic.aggregates.exact import decimal_root, nearest_ratio, nearest_root, number
from deltic.aggregates.rules import doubles
from deltic.expr.nodes import Expr
from deltic.expr.rows.numbers import nearest


def _sums(arguments: tuple[Expr, ...]) -> tuple[Sum, ...]:
    (x,) = arguments
    return Digits("real", (x,)), Digits("product", (x, x))


def _finish(rounded: Callable[[int, int], float], missing: int) -> Callable[[Totals, Signature], float | None]:
    """The finish function of the ratio of the sum of squared deviations to n − missing, or of its root."""

    def finish(totals: Totals, signature: Signature) -> float | None:
        n = totals.count
        if n <= missing:
            return None
        if not totals.is_finite(0):
            return math.nan
        return rounded(n * totals.product(1) - totals.real(0) ** 2, n * (n - missing) << 2 * UNIT)

    return finish


def _reference(rounded: Callable[[Fraction], float], missing: int) -> Callable[[Rows, Signature], float | None]:
    """By the definition: deviations from the mean, squared."""

    def reference(rows: Rows, signature: Signature) -> float | None:
        n = sum(weight for _, weight in rows)
        if n <= missing:
            return None
        if not all(math.isfinite(number(value)) for (value,), _ in rows):
            return math.nan
        values = [(Fraction(number(value)), weight) for (value,), weight in rows]
        mean = sum((value * weight for value, weight in values), Fraction(0)) / n
        return rounded(sum(((value - mean) ** 2 * weight for value, weight in values), Fraction(0)) / (n - missing))

    return reference


def _estimate(missing: int) -> Callable[[Estimated, Estimated, Estimated], Estimated]:
    """The ratio of the sum of squared deviations to n − missing."""
    return lambda n, x, squares: (n * squares - x * x) / (n * (n - missing))


def _variance(name: str, missing: int, *aliases: str) -> AggregateFunction:
    state = Linear(_sums, _finish(nearest_ratio, missing), _estimate(missing))
    return AggregateFunction(name, doubles, state, _reference(nearest, missing), aliases, never_negative_zero=True)


def _deviation(name: str, missing: int, *aliases: str) -> AggregateFunction:
    variance = _estimate(missing)
    state = Linear(_sums, _finish(nearest_root, missing), lambda n, x, squares: variance(n, x, squares).sqrt())
    return AggregateFunction(name, doubles, state, _reference(decimal_root, missing), aliases, never_negative_zero=True)


AGGREGATES = (
    _variance("var_pop", 0),
    _variance("var_samp", 1, "variance"),
    _deviation("stddev_pop", 0),
    _deviation("stddev_samp", 1, "stddev", "std"),
)
