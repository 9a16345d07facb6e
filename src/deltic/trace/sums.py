"""Exact sums: integers and decimals as limbs of 32 bits in the weight, doubles as rows of limbs; rounding happens once, on output.

Limbs stand from high to low, x = Σ limb_i · 2^(32 · i); all but the highest may leave [0, 2^32) while they are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deltic.kernels import floats
from deltic.kernels.floats import NAN, NEGATIVE_INFINITY, POSITIVE_INFINITY
from deltic.kernels.vector import address
from deltic.schema import Type

Words = npt.NDArray[np.int64]
LOW = np.int64(0xFFFFFFFF)
SHIFT = np.int64(32)
HALF = np.int64(1) << np.int64(31)
HEAVY = 1 << 29
DIGIT = np.int64((1 << 28) - 1)
GROWN = np.int64(1) << np.int64(61)
QUOTIENT_SCALE = 39
"""Digits to which Spark divides decimals, half up, before it rounds to the result's scale."""


def split64(numbers: Words) -> tuple[Words, Words]:
    """(high, low) limbs of each number, low in [0, 2^32)."""
    return numbers >> SHIFT, numbers & LOW


def carry(limbs: Sequence[Words]) -> tuple[Words, ...]:
    """The same numbers with every limb but the highest in [0, 2^32)."""
    result = list(limbs)
    for i in range(len(result) - 1, 0, -1):
        result[i - 1] = result[i - 1] + (result[i] >> SHIFT)
        result[i] = result[i] & LOW
    return tuple(result)


def join64(high: Words, low: Words) -> tuple[Words, npt.NDArray[np.bool_]]:
    """(high · 2^32 + low, whether it leaves 64 bits)."""
    high, low = carry((high, low))
    return (high << SHIFT) + low, (high >= HALF) | (high < -HALF)


def decimal_limbs(values: pa.Array) -> tuple[Words, ...]:
    """The unscaled numbers of a decimal128 column without NULLs: two limbs up to precision 18, else four."""
    pairs = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + len(values)]
    if values.type.precision <= 18:
        return split64(pairs[:, 0])
    high, low = pairs[:, 1], pairs[:, 0]
    return high >> SHIFT, high & LOW, (low >> SHIFT) & LOW, low & LOW


def join_decimal(limbs: Sequence[Words], type_: Type) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """(the sums as a column of the DECIMAL type, whether each has more digits than it); an overflowing one is 0."""
    if len(limbs) == 2:
        high, low = carry(limbs)
        limbs = (high >> np.int64(63), (high >> SHIFT) & LOW, high & LOW, low)
    top, second, third, fourth = carry(limbs)
    pairs = np.empty((len(top), 2), np.int64)
    pairs[:, 0] = (third << SHIFT) | fourth
    pairs[:, 1] = (top << SHIFT) | second
    overflow = (top >= HALF) | (top < -HALF) | _beyond(pairs, type_.precision)
    pairs[overflow] = 0
    return pa.Array.from_buffers(type_.arrow, len(pairs), [None, pa.py_buffer(pairs)]), overflow


def _beyond(pairs: Words, precision: int) -> npt.NDArray[np.bool_]:
    """Whether |number| ≥ 10^precision."""
    negative = pairs[:, 1] < 0
    low = np.where(negative, ~pairs[:, 0] + 1, pairs[:, 0]).view(np.uint64)
    high = np.where(negative, ~pairs[:, 1] + (pairs[:, 0] == 0), pairs[:, 1])
    bound = 10**precision
    bound_high, bound_low = np.int64(bound >> 64), np.uint64(bound & (2**64 - 1))
    return (high < 0) | (high > bound_high) | ((high == bound_high) & (low >= bound_low))


def divide_decimal(limbs: Sequence[Words], counts: Words, scale: int, type_: Type) -> pa.Array:
    """AVG: sum / count of decimals of `scale`, as Spark rounds it; 0 where the count is 0. O(groups), in Python's integers."""
    values = []
    for *parts, count in zip(*(limb.tolist() for limb in limbs), counts.tolist(), strict=True):
        total = 0
        for part in parts:
            total = (total << 32) + part
        values.append(_quotient(total, count, scale, type_.scale) if count > 0 else Decimal(0))
    return pa.array(values, type_.arrow)


def _quotient(total: int, count: int, scale: int, result: int) -> Decimal:
    fine = _half_up(Fraction(total * 10 ** (QUOTIENT_SCALE - scale), count))
    return Decimal(_half_up(Fraction(fine, 10 ** (QUOTIENT_SCALE - result)))).scaleb(-result)


def _half_up(number: Fraction) -> int:
    magnitude = (2 * abs(number.numerator) + number.denominator) // (2 * number.denominator)
    return magnitude if number >= 0 else -magnitude


def float_limbs(values: npt.NDArray[np.float64], weights: Words) -> tuple[Words, Words, Words]:
    """(row, position, limb): Σ limb · 2^(32 · position) over a row is exactly value · weight."""
    if len(weights) and (weights.max() >= HEAVY or weights.min() <= -HEAVY):
        return _heavy_limbs(values, weights)
    n = len(values)
    rows, positions, limbs = (np.empty(3 * n, np.int64) for _ in range(3))
    count = floats.take_apart(np.array(values, np.float64), address(weights), address(rows), address(positions), address(limbs))
    return rows[:count], positions[:count], limbs[:count]


def _heavy_limbs(values: npt.NDArray[np.float64], weights: Words) -> tuple[Words, Words, Words]:
    """The same for large weights, digit by digit of 28 bits; each limb is split in two before it is shifted."""
    finite = np.isfinite(values)
    special = np.flatnonzero(~finite)
    parts = [(special, float_limbs(values[special], np.ones(len(special), np.int64))[1], weights[special])]
    sign, rest = np.sign(weights), np.abs(weights)
    for places in range(0, 64, 28):
        digit = np.where(finite, sign * ((rest >> np.int64(places)) & DIGIT), 0)
        rows, positions, limbs = float_limbs(values, digit)
        whole, shift = divmod(places, 32)
        low, high = limbs & LOW, limbs >> SHIFT
        parts.append((rows, positions + whole, low << np.int64(shift)))
        parts.append((rows, positions + whole + 1, high << np.int64(shift)))
    rows, positions, limbs = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    kept = limbs != 0
    return rows[kept], positions[kept], limbs[kept]


def normalise_limbs(positions: Words, limbs: Words) -> tuple[Words, Words, Words]:
    """(row, position, limb) to add so that no limb is beyond 2^61: what it has above 2^32 moves one position up."""
    grown = np.flatnonzero(((limbs >= GROWN) | (limbs <= -GROWN)) & (positions < NAN))
    carried = limbs[grown] >> SHIFT
    rows = np.concatenate([grown, grown])
    return rows, np.concatenate([positions[grown], positions[grown] + 1]), np.concatenate([-(carried << SHIFT), carried])


def round_limbs(group_starts: Words, positions: Words, limbs: Words) -> npt.NDArray[np.float64]:
    """float64[groups]: the sum of limbs group_starts[g] … group_starts[g + 1], correctly rounded (half to even), 0.0 if it is zero."""
    out = np.empty(len(group_starts) - 1, np.float64)
    positions, limbs = np.ascontiguousarray(positions), np.ascontiguousarray(limbs)
    floats.round_sums(np.ascontiguousarray(group_starts), address(positions), address(limbs), out)
    return out


__all__ = [
    "NAN",
    "NEGATIVE_INFINITY",
    "POSITIVE_INFINITY",
    "carry",
    "decimal_limbs",
    "divide_decimal",
    "float_limbs",
    "join64",
    "join_decimal",
    "normalise_limbs",
    "round_limbs",
    "split64",
]
