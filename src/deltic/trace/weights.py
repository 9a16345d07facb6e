"""Checked arithmetic on weights: a result beyond 64 bits is an error, never a wrap."""

from __future__ import annotations

import numpy as np

from deltic.kernels import vector
from deltic.kernels.memory import Words
from deltic.kernels.table import addresses
from deltic.trace.consolidate import overflow
from deltic.trace.rows import Rows


def multiply(left: Words, right: Words) -> Words:
    """int64[n]: left[i] * right[i]. Raises WeightOverflow."""
    n = len(left)
    x, y = addresses((left, right), n)
    product = np.empty(n, np.int64)
    i = vector.multiply(int(x), int(y), n, vector.address(product))
    if i < n:
        raise overflow(f"the product {left[i]} * {right[i]}")
    return product


def heaviest(rows: Rows) -> int:
    """The greatest magnitude of a weight (one less for negative ones); 0 without rows."""
    columns = len(rows.columns)
    return int(vector.heaviest(rows.table, columns, columns + len(rows.weights), rows.length))


def add_checked(left: Words, right: Words) -> Words:
    """int64[n]: left[i] + right[i]. Raises WeightOverflow."""
    n = len(left)
    x, y = addresses((left, right), n)
    total = np.empty(n, np.int64)
    i = vector.add(int(x), int(y), n, vector.address(total))
    if i < n:
        raise overflow(f"the sum {left[i]} + {right[i]}")
    return total
