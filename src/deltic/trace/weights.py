"""Checked arithmetic on weights: a result beyond 64 bits is an error, never a wrap."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.kernels import vector
from deltic.kernels.memory import Words
from deltic.kernels.table import addresses, block
from deltic.trace.consolidate import overflow
from deltic.trace.rows import Rows


def multiply(left: Words, right: Words) -> Words:
    """int64[n]: left[i] * right[i]. Raises WeightOverflow."""
    return products((left,), (right,))[0]


def products(left: Sequence[Words], right: Sequence[Words]) -> tuple[Words, ...]:
    """int64[n] for each pair of columns: left[c][i] * right[c][i]. Raises WeightOverflow."""
    n = len(left[0])
    words, target = block(len(left), n)
    overflowing = vector.multiply(addresses(left, n), addresses(right, n), n, target)
    if overflowing >= 0:
        c, i = divmod(overflowing, n)
        raise overflow(f"the product {left[c][i]} * {right[c][i]}")
    return tuple(words)


def add_checked(left: Words, right: Words) -> Words:
    """int64[n]: left[i] + right[i]. Raises WeightOverflow."""
    return sums((left,), (right,))[0]


def sums(left: Sequence[Words], right: Sequence[Words]) -> tuple[Words, ...]:
    """int64[n] for each pair of columns: left[c][i] + right[c][i]. Raises WeightOverflow."""
    n = len(left[0])
    words, target = block(len(left), n)
    overflowing = vector.add(addresses(left, n), addresses(right, n), n, target)
    if overflowing >= 0:
        c, i = divmod(overflowing, n)
        raise overflow(f"the sum {left[c][i]} + {right[c][i]}")
    return tuple(words)


def heaviest(rows: Rows) -> int:
    """The greatest magnitude of a weight (one less for negative ones); 0 without rows."""
    columns = len(rows.columns)
    return int(vector.heaviest(rows.table, columns, columns + len(rows.weights), rows.length))
