"""REGR_COUNT, REGR_AVGX, REGR_AVGY, REGR_SXX, REGR_SYY, REGR_SXY, REGR_SLOPE, REGR_INTERCEPT and REGR_R2 of (y, x).

They are those of the line through the pairs of numbers without NULL that is nearest by least squares. All are DOUBLE, from exact sums,
rounded once, but the count, a BIGINT, and the averages, of the type of AVG. NaN or an infinity among the values gives NaN; what is not
determined is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from deltic.aggregates.avg import AGGREGATES as AVERAGES
from deltic.aggregates.definition import UNIT, AggregateFunction, Digits, Linear, Rows, Signature, Sum, Totals
from deltic.aggregates.exact import nearest, nearest_ratio, number
from deltic.aggregates.rules import doubles, numeric
from deltic.errors import Span
from deltic.expr.nodes import Expr, Value
from deltic.schema import BIGINT, DOUBLE, Type

Ratio = tuple[int, int]
(MEAN,) = AVERAGES


@dataclass(frozen=True, slots=True)
class Moments:
    """n, and in units of 2^-UNIT: Σy, Σx, and n·Σ of products less the product of the sums, in units of 2^-(2·UNIT)."""

    n: int
    y: int
    x: int
    yx: int
    xx: int
    yy: int


def _squares(part: Callable[[Moments], int]) -> Callable[[Moments], Ratio]:
    return lambda m: (part(m), m.n << 2 * UNIT)


def _slope(m: Moments) -> Ratio:
    return m.yx, m.xx


def _intercept(m: Moments) -> Ratio:
    return m.y * m.xx - m.yx * m.x, (m.n * m.xx) << UNIT


def _determination(m: Moments) -> Ratio:
    return (m.yx * m.yx, m.xx * m.yy) if m.yy or not m.xx else (1, 1)


def _sums(arguments: tuple[Expr, ...]) -> tuple[Sum, ...]:
    y, x = arguments
    return Digits("real", (y,)), Digits("real", (x,)), Digits("product", (y, x)), Digits("product", (x, x)), Digits("product", (y, y))


def _of_totals(totals: Totals) -> Moments:
    n, y, x = totals.count, totals.real(0), totals.real(1)
    yx, xx, yy = (n * totals.product(i) - product for i, product in ((2, y * x), (3, x * x), (4, y * y)))
    return Moments(n, y, x, yx, xx, yy)


def _finish(ratio: Callable[[Moments], Ratio], least: int) -> Callable[[Totals, Signature], float | None]:
    def finish(totals: Totals, signature: Signature) -> float | None:
        if totals.count < least:
            return None
        if not (totals.is_finite(0) and totals.is_finite(1)):
            return math.nan
        above, below = ratio(_of_totals(totals))
        return nearest_ratio(above, below) if below else None

    return finish


def _reference(name: str, least: int) -> Callable[[Rows, Signature], float | None]:
    """By the definition, from deviations from the means."""

    def reference(rows: Rows, signature: Signature) -> float | None:
        n = sum(weight for _, weight in rows)
        if n < least:
            return None
        if not all(math.isfinite(number(value)) for values, _ in rows for value in values):
            return math.nan
        pairs = [(Fraction(number(y)), Fraction(number(x)), weight) for (y, x), weight in rows]
        y_mean = sum((y * weight for y, _, weight in pairs), Fraction(0)) / n
        x_mean = sum((x * weight for _, x, weight in pairs), Fraction(0)) / n
        deviations = [(y - y_mean, x - x_mean, weight) for y, x, weight in pairs]
        yx = sum((y * x * weight for y, x, weight in deviations), Fraction(0))
        xx = sum((x * x * weight for _, x, weight in deviations), Fraction(0))
        yy = sum((y * y * weight for y, _, weight in deviations), Fraction(0))
        if name in ("regr_slope", "regr_intercept", "regr_r2") and not xx:
            return None
        match name:
            case "regr_slope":
                return nearest(yx / xx)
            case "regr_intercept":
                return nearest(y_mean - yx / xx * x_mean)
            case "regr_r2":
                return nearest(yx * yx / (xx * yy)) if yy else 1.0
            case _:
                return nearest({"regr_sxx": xx, "regr_syy": yy, "regr_sxy": yx}[name])

    return reference


def _count_rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    return Signature(doubles(name, types, span).arguments, BIGINT, nullable=False)


def _count(rows: Rows, signature: Signature) -> int:
    return sum(weight for _, weight in rows)


def _average(name: str, i: int) -> AggregateFunction:
    """AVG of argument i, over the pairs."""

    def rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
        mean = MEAN.rule(name, [types[i]], span)
        numeric(name, types[1 - i], span)
        arguments = (mean.arguments[0], DOUBLE) if i == 0 else (DOUBLE, mean.arguments[0])
        return Signature(arguments, mean.result)

    def reference(rows: Rows, signature: Signature) -> Value:
        own = [((values[i],), weight) for values, weight in rows]
        return MEAN.reference(own, Signature((signature.arguments[i],), signature.result))

    assert isinstance(MEAN.state, Linear)
    sums = MEAN.state.sums
    # DISTINCT would be that of one argument in Spark.
    return AggregateFunction(
        name, rule, Linear(lambda arguments: sums((arguments[i],)), "mean"), reference, parameters=(2, 2), distinct=False
    )


_RATIOS: dict[str, tuple[Callable[[Moments], Ratio], int]] = {
    "regr_sxx": (_squares(lambda m: m.xx), 1),
    "regr_syy": (_squares(lambda m: m.yy), 1),
    "regr_sxy": (_squares(lambda m: m.yx), 1),
    "regr_slope": (_slope, 2),
    "regr_intercept": (_intercept, 2),
    "regr_r2": (_determination, 2),
}

AGGREGATES = (
    AggregateFunction("regr_count", _count_rule, Linear(lambda arguments: (), "count"), _count, parameters=(2, 2)),
    _average("regr_avgy", 0),
    _average("regr_avgx", 1),
    *(
        AggregateFunction(
            name,
            doubles,
            Linear(_sums, _finish(ratio, least)),
            _reference(name, least),
            parameters=(2, 2),
            never_negative_zero=True,
        )
        for name, (ratio, least) in _RATIOS.items()
    ),
)
