"""Spark's equality and order of values of one type: NaN equals NaN and is greatest, -0.0 equals 0.0, strings by UTF-8 bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from deltic.expr.nodes import Value
from deltic.variants import Variant


def order(left: Value, right: Value) -> int:
    """-1, 0 or 1; neither value is NULL and both are of one type."""
    if isinstance(left, float) and isinstance(right, float):
        a, b = (math.isnan(left), left), (math.isnan(right), right)
        if a[0] or b[0]:
            return a[0] - b[0]
    if isinstance(left, str) and isinstance(right, str):
        x, y = left.encode(errors="surrogatepass"), right.encode(errors="surrogatepass")
        return (x > y) - (x < y)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return _order_of_parts(left, right)
    return (left > right) - (left < right)  # type: ignore[operator]


def _order_of_parts(left: tuple[Value, ...], right: tuple[Value, ...]) -> int:
    """The first parts that differ decide, NULL before all others; then the shorter value is less."""
    for a, b in zip(left, right, strict=False):
        sign = (a is not None) - (b is not None) if a is None or b is None else order(a, b)
        if sign:
            return sign
    return (len(left) > len(right)) - (len(left) < len(right))


def equal(left: Value, right: Value) -> bool:
    return order(left, right) == 0


def normalized(value: Value) -> Value:
    """The value in a key: -0.0 becomes 0.0, and every NaN the same NaN."""
    if isinstance(value, Variant):
        return value
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return tuple(map(normalized, value)) if isinstance(value, tuple) else value


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
        case tuple():
            return (1, tuple(map(order_key, value)))
        case _:
            return (1, value)


def total_key(value: Value) -> tuple[object, ...]:
    """`order_key`, refined so that only identical values are equal: -0.0 before 0.0. Used by MIN, MAX and the ties of top-k."""
    if isinstance(value, tuple):
        return (*order_key(value), _signs(value) if -1.0 in _signs(value) else ())
    sign = math.copysign(1.0, value) if isinstance(value, float) else 0.0
    return (*order_key(value), sign if value == 0.0 else 0.0)


def zero_signs(value: Value) -> str:
    """A text for each zero, in order, in which -0.0 is less; empty if there is no -0.0: equal nested values sort by it in `total_key`.

    >>> zero_signs((0.0, (2.0, -0.0))), zero_signs((0.0, 0.0))
    ('10', '')
    """
    signs = _signs(value)
    return "".join("0" if sign < 0 else "1" for sign in signs) if -1.0 in signs else ""


def _signs(value: Value) -> tuple[float, ...]:
    """The signs of the zeros in a nested value, in order: of equal values the one without -0.0 is first, as their bytes have it."""
    if isinstance(value, tuple):
        return tuple(sign for part in value for sign in _signs(part))
    return (math.copysign(1.0, value),) if isinstance(value, float) and value == 0.0 else ()


def in_row_order(pairs: Iterable[tuple[tuple[Value, ...], int]]) -> list[tuple[tuple[Value, ...], int]]:
    """(row, weight) pairs in the order of their rows: column by column, ascending, NULLs first."""
    return sorted(pairs, key=lambda pair: tuple(map(total_key, pair[0])))
