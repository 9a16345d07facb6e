"""Vectors on one row: ARRAYs of FLOATs. Sums are those of float32, eight terms at a time, as Spark adds them.

An operation on doubles that is rounded to float32 is that of float32: a double has more than twice its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

from deltic.expr.failures import invalid
from deltic.expr.nodes import Call
from deltic.expr.rows.numbers import single

Vector = tuple[float | None, ...]
_STEP: Final = 8
DEGREES: Final = (1.0, 2.0, math.inf)


def _plus(left: float, right: float) -> float:
    return single(left + right)


def _times(left: float, right: float) -> float:
    return single(left * right)


def _over(left: float, right: float) -> float:
    return math.nan if math.isinf(left) and math.isinf(right) else single(left / right)


def _root(value: float) -> float:
    return single(math.sqrt(value)) if value >= 0 else math.nan


def _sum(terms: Sequence[float]) -> float:
    total, whole = 0.0, len(terms) - len(terms) % _STEP
    for start in range(0, whole, _STEP):
        total = _plus(total, reduce(_plus, terms[start : start + _STEP]))
    return reduce(_plus, terms[whole:], total)


def _product(left: Sequence[float], right: Sequence[float]) -> float:
    return _sum(list(map(_times, left, right)))


def _of_two(run: Callable[[Any, Any], float | None]) -> Callable[[Call, Vector, Vector], float | None]:
    """NULL if an element is. Raises EvaluationError for vectors of different lengths."""

    def rows(call: Call, left: Vector, right: Vector) -> float | None:
        if len(left) != len(right):
            raise invalid(f"{call.function}: the vectors have {len(left)} and {len(right)} elements", call.span)
        return None if None in left or None in right else run(left, right)

    return rows


def _distance(left: Sequence[float], right: Sequence[float]) -> float:
    difference = [_plus(a, -b) for a, b in zip(left, right, strict=True)]
    return _root(_product(difference, difference))


def _cosine(left: Sequence[float], right: Sequence[float]) -> float | None:
    """NULL for a vector of zeros."""
    length = _root(_times(_product(left, left), _product(right, right)))
    return None if length == 0 else _over(_product(left, right), length)


inner_product: Final = _of_two(_product)
distance: Final = _of_two(_distance)
cosine: Final = _of_two(_cosine)


def norm(call: Call, vector: Any, degree: float) -> float | None:
    if degree not in DEGREES:
        raise invalid(f"{call.function}: the degree is {degree}, and not 1, 2 or infinity", call.span)
    if None in vector:
        return None
    if degree == 1:
        return _sum(list(map(abs, vector)))
    if math.isinf(degree):
        return math.nan if any(map(math.isnan, vector)) else max(map(abs, vector), default=0.0)
    return _root(_product(vector, vector))


def normalized(call: Call, vector: Any, degree: float) -> tuple[float, ...] | None:
    """NULL for a vector of length 0."""
    length = norm(call, vector, degree)
    if length is None:
        return None
    if not vector:
        return ()
    return None if length == 0 else tuple(_over(one, length) for one in vector)
