"""Spark's equality and order of values of one type: NaN equals NaN and is greatest, -0.0 equals 0.0, strings by UTF-8 bytes."""

from __future__ import annotations

import math

from deltic.expr.nodes import Value


def order(left: Value, right: Value) -> int:
    """-1, 0 or 1; neither value is NULL and both are of one type."""
    if isinstance(left, float) and isinstance(right, float):
        a, b = (math.isnan(left), left), (math.isnan(right), right)
        if a[0] or b[0]:
            return a[0] - b[0]
    if isinstance(left, str) and isinstance(right, str):
        x, y = left.encode(errors="surrogatepass"), right.encode(errors="surrogatepass")
        return (x > y) - (x < y)
    return (left > right) - (left < right)  # type: ignore[operator]


def equal(left: Value, right: Value) -> bool:
    return order(left, right) == 0


def normalized(value: Value) -> Value:
    """The value in a key: -0.0 becomes 0.0, and every NaN the same NaN."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def order_key(value: Value) -> tuple[int, ...] | tuple[int, bytes] | tuple[int, object]:
    """Sorts as ORDER BY … ASC NULLS FIRST: strings by UTF-8 bytes, -inf < … < inf < NaN, -0.0 as 0.0.

    >>> sorted([2.0, float("nan"), None, -1.5], key=order_key)
    [None, -1.5, 2.0, nan]
    """
    match value:
        case None:
            return (0,)
        case str():
            return (1, value.encode())
        case float() if math.isnan(value):
            return (2,)
        case _:
            return (1, value)


def total_key(value: Value) -> tuple[object, ...]:
    """`order_key`, refined so that only identical values are equal: -0.0 before 0.0. Used by MIN, MAX and the ties of top-k."""
    sign = math.copysign(1.0, value) if isinstance(value, float) else 0.0
    return (*order_key(value), sign if value == 0.0 else 0.0)
