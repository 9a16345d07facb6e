"""CORR: Pearson's correlation of two numbers, as DOUBLE. Rows in which either is NULL do not count.

It is NULL where it is undefined: for one row, and if all x or all y are equal, for which Spark's ANSI mode raises DIVIDE_BY_ZERO. The
quotient of exact sums is rounded once, so it is between -1 and 1. NaN or an infinity among the values gives NaN.
"""

from __future__ import annotations

import math
from fractions import Fraction

from deltic.aggregates.definition import AggregateFunction, Digits, Estimated, Linear, Rows, Signature, Sum, Totals
from deltic.aggregates.exact import decimal_root, nearest_root, number
from deltic.aggregates.rules import doubles
from deltic.expr.nodes import Expr


def _sums(arguments: tuple[Expr, ...]) -> tuple[Sum, ...]:
    x, y = arguments
    return Digits("real", (x,)), Digits("real", (y,)), Digits("product", (x, y)), Digits("product", (x, x)), Digits("product", (y, y))


def _finish(totals: Totals, signature: Signature) -> float | None:
    n = totals.count
    if n < 2:
        return None
    if not (totals.is_finite(0) and totals.is_finite(1)):
        return math.nan
    x, y = totals.real(0), totals.real(1)
    together, x_alone, y_alone = n * totals.product(2) - x * y, n * totals.product(3) - x * x, n * totals.product(4) - y * y
    if not (x_alone and y_alone):
        return None
    size = nearest_root(together * together, x_alone * y_alone)
    return -size if together < 0 else size


def _estimate(n: Estimated, x: Estimated, y: Estimated, xy: Estimated, xx: Estimated, yy: Estimated) -> Estimated:
    return (n * xy - x * y) / ((n * xx - x * x) * (n * yy - y * y)).sqrt()


def _reference(rows: Rows, signature: Signature) -> float | None:
    """By the definition: the scalar product of the deviations over the product of their lengths."""
    n = sum(weight for _, weight in rows)
    if n < 2:
        return None
    if not all(math.isfinite(number(value)) for values, _ in rows for value in values):
        return math.nan
    pairs = [(Fraction(number(x)), Fraction(number(y)), weight) for (x, y), weight in rows]
    x_mean = sum((x * weight for x, _, weight in pairs), Fraction(0)) / n
    y_mean = sum((y * weight for _, y, weight in pairs), Fraction(0)) / n
    together = sum(((x - x_mean) * (y - y_mean) * weight for x, y, weight in pairs), Fraction(0))
    x_alone = sum(((x - x_mean) * (x - x_mean) * weight for x, _, weight in pairs), Fraction(0))
    y_alone = sum(((y - y_mean) * (y - y_mean) * weight for _, y, weight in pairs), Fraction(0))
    if not (x_alone and y_alone):
        return None
    return (-1 if together < 0 else 1) * decimal_root(together * together / (x_alone * y_alone))


STATE = Linear(_sums, _finish, _estimate)
AGGREGATES = (AggregateFunction("corr", doubles, STATE, _reference, parameters=(2, 2), never_negative_zero=True),)
