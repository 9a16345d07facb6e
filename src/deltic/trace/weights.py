"""Checked arithmetic on weights: a result beyond 64 bits is an error, never a wrap."""

from __future__ import annotations

import numpy as np

from deltic.kernels import vector
from deltic.kernels.memory import Words
from deltic.kernels.table import addresses
from deltic.trace.consolidate import overflow


def multiply(left: Words, right: Words) -> Words:
    """int64[n]: left[i] * right[i]. Raises WeightOverflow."""
    n = len(left)
    x, y = addresses((left, right), n)
    product = np.empty(n, np.int64)
    i = vector.multiply(int(x), int(y), n, vector.address(product))
    if i < n:
        raise overflow(f"the product {left[i]} * {right[i]}")
    return product


def add_checked(left: Words, right: Words) -> Words:
    """int64[n]: left[i] + right[i]. Raises WeightOverflow."""
    n = len(left)
    x, y = addresses((left, right), n)
    total = np.empty(n, np.int64)
    i = vector.add(int(x), int(y), n, vector.address(total))
    if i < n:
        raise overflow(f"the sum {left[i]} + {right[i]}")
    return total
