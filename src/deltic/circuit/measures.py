"""Linear aggregates as weights: the sums of SUM, COUNT, AVG and others.

A measure maps a row to a few int64 words. w · measure is linear in the weight w, so sums travel as weights through joins, merges and
shards (the ring of factorised IVM; F-IVM, Nikolic and Olteanu 2018). Wide numbers are split into limbs of 32 bits, which gives sums
128 bits: x = Σ limb_i · 2^(32·i), all limbs but the highest in [0, 2^32).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.aggregates.definition import Measure
from deltic.trace.sums import carry, decimal_limbs, split64
from deltic.trace.weights import multiply

LIGHT = 1 << 30
"""A weight below this times a limb (at most 2^32) stays within 64 bits."""


def measure_weights(measure: Measure, values: pa.Array | np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """weight · measure for each row: int64[n] for each word of the measure. values: of the argument; an int64[n] has no NULL."""
    if isinstance(values, pa.Array):
        if measure.kind == "count":
            return (weight if not values.null_count else weight * pc.is_valid(values).to_numpy(zero_copy_only=False),)
        values = values.fill_null(pa.scalar(0, values.type)) if values.null_count else values
    elif measure.kind == "count":
        return (weight,)
    if measure.kind == "decimal":
        limbs: Sequence[np.ndarray] = decimal_limbs(values)
    else:
        numbers = values if isinstance(values, np.ndarray) else _integers(values)
        limbs = (numbers,) if measure.kind == "int" else split64(numbers) if measure.kind == "bigint" else _split_rounded(numbers)
    if len(weight) and weight.max() < LIGHT and weight.min() > -LIGHT:
        return tuple(limb * weight for limb in limbs)
    return tuple(multiply(limb, weight) for limb in limbs)


def _integers(values: pa.Array) -> np.ndarray:
    """int64[n]: integers, or microseconds."""
    plain = values.view(pa.int64()) if pa.types.is_duration(values.type) else values
    numbers: np.ndarray = plain.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers


def carry_pairs(
    limbs: Sequence[tuple[int, int]], pairs: Sequence[tuple[int, int]], left: tuple[np.ndarray, ...], right: tuple[np.ndarray, ...]
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Both factors, with limbs carried in the factor that holds each (high, low) pair of output weights, so that products stay small."""
    sides = [list(left), list(right)]
    for high, low in limbs:
        side = 0 if pairs[high][0] != pairs[low][0] else 1
        a, b = pairs[high][side], pairs[low][side]
        sides[side][a], sides[side][b] = carry((sides[side][a], sides[side][b]))
    return tuple(sides[0]), tuple(sides[1])


def _split_rounded(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The limbs of each number rounded to the nearest double (which may be 2^63, outside int64)."""
    rounded = numbers.astype(np.float64)
    high = np.floor(rounded / 2.0**32)
    return high.astype(np.int64), (rounded - high * 2.0**32).astype(np.int64)
