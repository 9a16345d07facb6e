"""COVAR_POP and COVAR_SAMP of two numbers, as DOUBLE. Rows in which either is NULL do not count.

n·Σxy − Σx·Σy is exact, and its quotient is rounded once. A result beyond the greatest DOUBLE is infinite; NaN or an infinity among values
gives NaN. COVAR_SAMP of one row is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from deltic.aggregates.definition import UNIT, AggregateFunction, Digits, Estimated, Linear, Rows, Signature, Sum, Totals
from deltic.aggregates.exact import nearest_ratio, number
from deltic.aggregates.rules import doubles
from deltic.expr.nodes import Expr
from deltic.expr.rows.numbers import nearest


def _sums(arguments: tuple[Expr, ...]) -> tuple[Sum, ...]:
    x, y = arguments
    return Digits("real", (x,)), Digits("real", (y,)), Digits("product", (x, y))


def _finish(missing: int) -> Callable[[Totals, Signature], float | None]:
    def finish(totals: Totals, signature: Signature) -> float | None:
        n = totals.count
        if n <= missing:
            return None
        if not (totals.is_finite(0) and totals.is_finite(1)):
            return math.nan
        return nearest_ratio(n * totals.product(2) - totals.real(0) * totals.real(1), n * (n - missing) << 2 * UNIT)

    return finish


def _estimate(missing: int) -> Callable[..., Estimated]:
    return lambda n, x, y, products: (n * products - x * y) / (n * (n - missing))


def _reference(missing: int) -> Callable[[Rows, Signature], float | None]:
    """By the definition: products of the deviations from both means."""

    def reference(rows: Rows, signature: Signature) -> float | None:
        n = sum(weight for _, weight in rows)
        if n <= missing:
            return None
        if not all(math.isfinite(number(value)) for values, _ in rows for value in values):
            return math.nan
        pairs = [(Fraction(number(x)), Fraction(number(y)), weight) for (x, y), weight in rows]
        x_mean = sum((x * weight for x, _, weight in pairs), Fraction(0)) / n
        y_mean = sum((y * weight for _, y, weight in pairs), Fraction(0)) / n
        return nearest(sum(((x - x_mean) * (y - y_mean) * weight for x, y, weight in pairs), Fraction(0)) / (n - missing))

    return reference


def _covariance(name: str, missing: int) -> AggregateFunction:
    state = Linear(_sums, _finish(missing), _estimate(missing))
    return AggregateFunction(name, doubles, state, _reference(missing), parameters=(2, 2), never_negative_zero=True)


AGGREGATES = (_covariance("covar_pop", 0), _covariance("covar_samp", 1))
