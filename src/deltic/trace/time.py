"""Nested time: tuples (epoch, iteration, …) under the product order, a lattice.

(0, 1) and (1, 0) are incomparable; their join is (1, 1), their meet (0, 0). A time of a root circuit has one coordinate.
"""

from __future__ import annotations

Time = tuple[int, ...]


def less_equal(a: Time, b: Time) -> bool:
    """a ≤ b in every coordinate.

    >>> less_equal((0, 0), (1, 1)), less_equal((0, 2), (1, 1)), less_equal((1, 1), (0, 2))
    (True, False, False)
    """
    assert len(a) == len(b)
    return all(x <= y for x, y in zip(a, b, strict=True))


def join(a: Time, b: Time) -> Time:
    """a ∨ b, the least time that is at or after both.

    >>> join((0, 2), (1, 1))
    (1, 2)
    """
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))


def meet(a: Time, b: Time) -> Time:
    """a ∧ b, the greatest time that is at or before both.

    >>> meet((0, 2), (1, 1))
    (0, 1)
    """
    return tuple(min(x, y) for x, y in zip(a, b, strict=True))
