"""REGR_COUNT, REGR_AVGX, REGR_AVGY, REGR_SXX, REGR_SYY, REGR_SXY, REGR_SLOPE, REGR_INTERCEPT and REGR_R2 of (y, x).

They are those of the line through the pairs of numbers without NULL that is nearest by least squares. All are DOUBLE, from exact sums,
rounded once, but the count, a BIGINT, and the averages, of the type of AVG. NaN or an infinity gives NaN, unless the function does not read
its argument, or what it does read decides: the slope, the intercept and R2 over equal x are NULL, and R2 over equal y is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from deltic.aggregates.avg import AGGREGATES as AVERAGES
from deltic.aggregates.definition import UNIT, AggregateFunction, Digits, Estimated, Linear, Rows, Signature, Sum, Totals
from deltic.aggregates.exact import nearest_ratio, number
from deltic.aggregates.rules import doubles, numeric
from deltic.errors import Span
from deltic.expr.nodes import Expr, Value
from deltic.expr.rows.numbers import nearest
from deltic.schema import BIGINT, DOUBLE, Type

(MEAN,) = AVERAGES


@dataclass(frozen=True, slots=True)
class Moments:
    """n, and in units of 2^-UNIT: Σy, Σx, and n·Σ of products less the product of the sums, in units of 2^-(2·UNIT).

    yx, xx, yy: None if a factor is NaN or an infinity in some row.
    """

    n: int
    y: int
    x: int
    yx: int | None
    xx: int | None
    yy: int | None


def _squares(part: Callable[[Moments], int | None]) -> Callable[[Moments], float]:
    def finish(m: Moments) -> float:
        sum = part(m)
        return math.nan if sum is None else nearest_ratio(sum, m.n << 2 * UNIT)

    return finish


def _slope(m: Moments) -> float | None:
    if m.xx == 0:
        return None
    return math.nan if m.xx is None or m.yx is None else nearest_ratio(m.yx, m.xx)


def _intercept(m: Moments) -> float | None:
    if m.xx == 0:
        return None
    return math.nan if m.xx is None or m.yx is None else nearest_ratio(m.y * m.xx - m.yx * m.x, (m.n * m.xx) << UNIT)


def _determination(m: Moments) -> float | None:
    if m.xx == 0:
        return None
    if m.yy == 0:
        return 1.0
    return math.nan if m.xx is None or m.yy is None or m.yx is None else nearest_ratio(m.yx * m.yx, m.xx * m.yy)


def _sums(arguments: tuple[Expr, ...]) -> tuple[Sum, ...]:
    y, x = arguments
    return Digits("real", (y,)), Digits("real", (x,)), Digits("product", (y, x)), Digits("product", (x, x)), Digits("product", (y, y))


def _of_totals(totals: Totals) -> Moments:
    n, y, x = totals.count, totals.real(0), totals.real(1)
    has_y, has_x = totals.is_finite(0), totals.is_finite(1)
    yx = n * totals.product(2) - y * x if has_y and has_x else None
    xx = n * totals.product(3) - x * x if has_x else None
    yy = n * totals.product(4) - y * y if has_y else None
    return Moments(n, y, x, yx, xx, yy)


def _finish(value: Callable[[Moments], float | None]) -> Callable[[Totals, Signature], float | None]:
    return lambda totals, signature: value(_of_totals(totals))


def _estimate(name: str) -> Callable[..., Estimated]:
    def estimate(n: Estimated, y: Estimated, x: Estimated, products: Estimated, x_squares: Estimated, y_squares: Estimated) -> Estimated:
        yx, xx, yy = n * products - y * x, n * x_squares - x * x, n * y_squares - y * y
        match name:
            case "regr_sxx":
                return xx / n
            case "regr_syy":
                return yy / n
            case "regr_sxy":
                return yx / n
            case "regr_slope":
                return yx / xx
            case "regr_intercept":
                return (y * xx - yx * x) / (n * xx)
            case _:
                return yx * yx / (xx * yy)

    return estimate


def _reference(name: str) -> Callable[[Rows, Signature], float | None]:
    """By the definition, from deviations from the means."""

    def reference(rows: Rows, signature: Signature) -> float | None:
        y_mean, x_mean = _mean(rows, 0), _mean(rows, 1)
        yx, xx, yy = (_moment(rows, means) for means in ({0: y_mean, 1: x_mean}, {1: x_mean}, {0: y_mean}))
        if name in ("regr_slope", "regr_intercept", "regr_r2") and xx == 0:
            return None
        if name == "regr_r2" and yy == 0:
            return 1.0
        if name in ("regr_sxx", "regr_syy"):
            own = xx if name == "regr_sxx" else yy
            return math.nan if own is None else nearest(own)
        if xx is None or yy is None or yx is None or x_mean is None or y_mean is None:
            return math.nan
        match name:
            case "regr_slope":
                return nearest(yx / xx)
            case "regr_intercept":
                return nearest(y_mean - yx / xx * x_mean)
            case "regr_r2":
                return nearest(yx * yx / (xx * yy))
            case _:
                return nearest(yx)

    return reference


def _mean(rows: Rows, i: int) -> Fraction | None:
    """Of argument i; None if some value is not finite."""
    if not all(math.isfinite(number(values[i])) for values, _ in rows):
        return None
    return sum((Fraction(number(values[i])) * weight for values, weight in rows), Fraction(0)) / sum(weight for _, weight in rows)


def _moment(rows: Rows, means: Mapping[int, Fraction | None]) -> Fraction | None:
    """The sum of products of the deviations from these means, of the square for one; None if a mean is."""
    total = Fraction(0)
    for values, weight in rows:
        deviations = [Fraction(number(values[i])) - mean for i, mean in means.items() if mean is not None]
        if len(deviations) < len(means):
            return None
        total += deviations[0] * deviations[-1] * weight
    return total


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
    state = Linear(lambda arguments: sums((arguments[i],)), "mean")
    return AggregateFunction(name, rule, state, reference, parameters=(2, 2), distinct_argument=i)


_VALUES: dict[str, tuple[Callable[[Moments], float | None], int | None]] = {
    "regr_sxx": (_squares(lambda m: m.xx), 1),
    "regr_syy": (_squares(lambda m: m.yy), 0),
    "regr_sxy": (_squares(lambda m: m.yx), None),
    "regr_slope": (_slope, None),
    "regr_intercept": (_intercept, None),
    "regr_r2": (_determination, None),
}
"""The value, and the argument that a function of one of them reads."""

AGGREGATES = (
    AggregateFunction("regr_count", _count_rule, Linear(lambda arguments: (), "count"), _count, parameters=(2, 2)),
    _average("regr_avgy", 0),
    _average("regr_avgx", 1),
    *(
        AggregateFunction(
            name,
            doubles,
            Linear(_sums, _finish(value), _estimate(name)),
            _reference(name),
            parameters=(2, 2),
            never_negative_zero=True,
            distinct_argument=argument,
        )
        for name, (value, argument) in _VALUES.items()
    ),
)
