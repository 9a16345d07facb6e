"""Vectors on one row: ARRAYs of FLOATs. Sums are those of float32, eight terms at a time, as Spark adds them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from deltic.expr.failures import invalid
from deltic.expr.nodes import Call

Vector = tuple[float | None, ...]
_STEP: Final = 8
DEGREES: Final = (1.0, 2.0, math.inf)


def _floats(vector: Vector) -> np.ndarray | None:
    """None if an element is NULL."""
    return None if None in vector else np.array(vector, np.float32)


def _sum(terms: np.ndarray) -> np.float32:
    """The float32 sum of float32 terms."""
    total, whole = np.float32(0), len(terms) - len(terms) % _STEP
    for start in range(0, whole, _STEP):
        part = terms[start]
        for term in terms[start + 1 : start + _STEP]:
            part = np.float32(part + term)
        total = np.float32(total + part)
    for term in terms[whole:]:
        total = np.float32(total + term)
    return total


def _pair(call: Call, left: Vector, right: Vector) -> tuple[np.ndarray, np.ndarray] | None:
    if len(left) != len(right):
        raise invalid(f"{call.function}: the vectors have {len(left)} and {len(right)} elements", call.span)
    a, b = _floats(left), _floats(right)
    return None if a is None or b is None else (a, b)


def inner_product(call: Call, left: Vector, right: Vector) -> float | None:
    with np.errstate(all="ignore"):
        return None if (both := _pair(call, left, right)) is None else float(_sum(both[0] * both[1]))


def distance(call: Call, left: Vector, right: Vector) -> float | None:
    if (both := _pair(call, left, right)) is None:
        return None
    with np.errstate(all="ignore"):
        difference = both[0] - both[1]
        return _root(_sum(difference * difference))


def cosine(call: Call, left: Vector, right: Vector) -> float | None:
    """NULL for a vector of zeros."""
    if (both := _pair(call, left, right)) is None or not left:
        return None
    a, b = both
    with np.errstate(all="ignore"):
        length = np.float32(_root(_sum(a * a) * _sum(b * b)))
        return None if length == 0 else float(np.float32(_sum(a * b) / length))


def norm(call: Call, vector: Vector, degree: float) -> float | None:
    if degree not in DEGREES:
        raise invalid(f"{call.function}: the degree is {degree}, and not 1, 2 or infinity", call.span)
    values = _floats(vector)
    if values is None:
        return None
    with np.errstate(all="ignore"):
        if degree == 1:
            return float(_sum(np.abs(values)))
        if degree == DEGREES[1]:
            return _root(_sum(values * values))
        return float(np.max(np.abs(values), initial=0.0))


def normalized(call: Call, vector: Vector, degree: float) -> tuple[float, ...] | None:
    """NULL for a vector of length 0."""
    length, values = norm(call, vector, degree), _floats(vector)
    if length is None or values is None:
        return None
    if not vector:
        return ()
    with np.errstate(all="ignore"):
        return None if length == 0 else tuple(map(float, values / np.float32(length)))


def _root(value: np.float32) -> float:
    return float(np.float32(np.sqrt(np.float64(value))))
