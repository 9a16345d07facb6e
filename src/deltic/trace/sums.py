"""Exact sums: integers and decimals as limbs of 32 bits in the weight, doubles as rows of limbs; results are rounded once, on output.

Limbs are ordered from high to low, x = Σ limb_i · 2^(32 · i); all but the highest may leave [0, 2^32) while they are summed. All steps but
the last are linear in the weights, so sums can be split over batches, shards and ticks, and deletions cancel exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deltic.errors import CorruptState
from deltic.kernels import decimals, floats, level_digits
from deltic.kernels.floats import GROWN, LOWEST, NAN, NEGATIVE_INFINITY, POSITIVE_INFINITY, ROOM
from deltic.kernels.table import address, addresses
from deltic.schema import Type

Words = npt.NDArray[np.int64]
MOST_ROWS: Final = level_digits.MOST_ROWS
LOW = np.int64(0xFFFFFFFF)
SHIFT = np.int64(32)
HALF = np.int64(1) << np.int64(31)
SPLITTER = float((1 << 27) + 1)
NARROW = 18
MAX_PRECISION = 38
QUOTIENT_SCALE = 39
"""Digits to which Spark divides decimals, half up, before it rounds to the result's scale, half up again."""


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
    """(high · 2^32 + low, whether it leaves 64 bits, and the number is meaningless)."""
    high = high + (low >> SHIFT)  # if this wraps, the result is far from what fits, so the overflow is detected
    return (high << SHIFT) + (low & LOW), ((high + HALF).view(np.uint64) >> np.uint64(32)) != 0


def decimal_limbs(values: pa.Array) -> tuple[Words, ...]:
    """The unscaled numbers of a decimal128 column without NULLs: two limbs up to precision 18, else four."""
    data = values.buffers()[1] or b""  # an array of no rows may have no buffer
    pairs = np.frombuffer(data, np.int64, 2 * len(values), 16 * values.offset).reshape(-1, 2)
    if values.type.precision <= NARROW:
        return split64(pairs[:, 0])
    high, low = pairs[:, 1], pairs[:, 0]
    return high >> SHIFT, high & LOW, (low >> SHIFT) & LOW, low & LOW


def bound(precision: int) -> tuple[int, int]:
    """The signed words (high, low) of 10^precision, the least magnitude with more digits."""
    low = 10**precision & (2**64 - 1)
    return 10**precision >> 64, low - 2**64 if low >= 2**63 else low


def join_decimal(limbs: Sequence[Words], type_: Type) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """(the sums as a column of the DECIMAL type, whether each has more digits than the type, and is 0). O(groups)."""
    n = len(limbs[0])
    pairs, overflow = np.empty((n, 2), np.int64), np.empty(n, np.bool_)
    bounds = np.array(2 * bound(type_.precision), np.int64)
    decimals.divide(addresses(limbs, n), 0, 0, 0, bounds, address(pairs.reshape(-1)), overflow.view(np.uint8))
    return pa.Array.from_buffers(type_.arrow, n, [None, pa.py_buffer(pairs)]), overflow


def divide_decimal(limbs: Sequence[Words], counts: Words, scale: int, type_: Type) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """(AVG: sum / count of decimals of `scale` as `type_`, rounded as Spark does, 0 for a count of 0; whether each overflows). O(groups).

    It overflows if the sum has more digits than Spark's buffer for it, or the quotient more than the type.
    """
    n = len(counts)
    zeros, slack, bounds = mean_shape(scale, type_)
    pairs, overflow = np.empty((n, 2), np.int64), np.empty(n, np.bool_)
    table = addresses((*limbs, counts), n)
    decimals.divide(
        table[:-1], int(table[-1]), zeros, slack, np.array(bounds, np.int64), address(pairs.reshape(-1)), overflow.view(np.uint8)
    )
    return pa.Array.from_buffers(type_.arrow, n, [None, pa.py_buffer(pairs)]), overflow


def mean_shape(scale: int, type_: Type) -> tuple[int, int, tuple[int, int, int, int]]:
    """(zeros, slack, bounds) of `decimals.divide` for the mean of decimals of `scale` as `type_`."""
    zeros, between = type_.scale - scale, QUOTIENT_SCALE - type_.scale
    assert zeros >= 0
    return zeros, 10**between if between <= NARROW else 0, (*bound(sum_digits(type_)), *bound(type_.precision))


def sum_digits(type_: Type) -> int:
    """The digits of Spark's buffer for the sum, where AVG is of this type."""
    return min(MAX_PRECISION, type_.precision + 6)


def float_limbs(values: npt.NDArray[np.float64], weights: Words) -> tuple[Words, Words, Words]:
    """(row, position, limb), at most five a row: Σ limb · 2^(32 · position) over a row is exactly value · weight.

    NaN and the infinities are counted, by weight, at their own positions. Elsewhere |limb| < 2^32, and no limb is 0. O(n).
    """
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    source = addresses((bits, weights), len(bits))
    none = np.empty(0, np.int64)
    m = floats.split_products(int(source[0]), int(source[1]), len(bits), none, none, none)
    rows, positions, limbs = (np.empty(m, np.int64) for _ in range(3))
    if m:
        floats.split_products(int(source[0]), int(source[1]), len(bits), rows, positions, limbs)
    return rows, positions, limbs


def product_limbs(factors: Sequence[npt.NDArray[np.float64]], weights: Words) -> tuple[Words, Words, Words]:
    """(row, position, limb) as `float_limbs`, of the product of two to four factors and the weight; exact, without overflow or underflow.

    Rows where a factor is NaN or infinite have no limbs. The product of the factors' mantissas is computed as a sum of doubles, two for
    each factor but the first (Dekker 1971); their exponents shift the positions. At most ten limbs for two factors, 40 for four. O(n).
    """
    rows = np.flatnonzero(np.logical_and.reduce([np.isfinite(factor) for factor in factors]))
    mantissas = [np.frexp(factor[rows]) for factor in factors]
    exponent = np.zeros(len(rows), np.int64)
    for _, each in mantissas:
        exponent += each
    scale = np.ldexp(1.0, exponent & 31)
    products = [mantissas[0][0]]
    for mantissa, _ in mantissas[1:]:
        products = [part for product in products for part in _two_product(product, mantissa)]
    parts = [float_limbs(part * scale, weights[rows]) for part in products]
    row, position, limb = (np.concatenate(each) for each in zip(*parts, strict=True))
    return rows[row], position + (exponent >> 5)[row], limb


def _two_product(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(rounded product, rounding error), for factors whose magnitude is 0 or from 2^-200 to 1."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def halves(x: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Two doubles of at most 26 bits each whose sum is x (Veltkamp)."""
    wide = SPLITTER * x
    high = wide - (wide - x)
    return high, x - high


def bit_counts(values: npt.NDArray[np.signedinteger[Any]], weights: Words) -> tuple[Words, Words, Words]:
    """(row, position, weight) for each bit that is set in the two's complement of each value, as wide as its dtype. O(bits)."""
    width = values.dtype.itemsize
    octets = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).view(np.uint8).reshape(-1, width)
    places = np.flatnonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    rows, positions = np.divmod(places, 8 * width)
    return rows, positions, weights[rows]


def normalise_limbs(positions: Words, limbs: Words) -> tuple[Words, Words, Words]:
    """(row, position, limb) to add so that all limbs are less than 2^36 in magnitude: what exceeds 2^32 is carried one position up."""
    grown = np.flatnonzero(((limbs >= GROWN) | (limbs <= -GROWN)) & (positions < NAN))
    carried = (limbs[grown] >> SHIFT) + (limbs[grown] < 0)  # towards zero: the least word shifted back would leave 64 bits
    rows = np.concatenate([grown, grown])
    return rows, np.concatenate([positions[grown], positions[grown] + 1]), np.concatenate([-(carried << SHIFT), carried])


def round_limbs(group_starts: Words, positions: Words, limbs: Words) -> npt.NDArray[np.float64]:
    """float64[groups]: the sum of limbs group_starts[g] … group_starts[g + 1], correctly rounded (half to even), 0.0 if it is zero.

    Beyond the greatest double it is an infinity. A nonzero count of NaN gives NaN, and so do infinities of both signs; an infinity with a
    negative count is the opposite one. Limbs are in any order. Raises CorruptState for a position that no double has.
    """
    out = np.empty(len(group_starts) - 1, np.float64)
    starts, places, words = (np.ascontiguousarray(array, np.int64) for array in (group_starts, positions, limbs))
    if ((places < NAN) & ((places < LOWEST) | (places >= LOWEST + ROOM - 1)) | (places > NEGATIVE_INFINITY)).any():
        raise CorruptState("a sum of the state has a digit at a position that no DOUBLE has", expected="words that Deltic wrote")
    floats.round_sums(address(starts), address(places), address(words), out)
    return out


__all__ = [
    "NAN",
    "NEGATIVE_INFINITY",
    "POSITIVE_INFINITY",
    "bit_counts",
    "carry",
    "decimal_limbs",
    "divide_decimal",
    "float_limbs",
    "join64",
    "join_decimal",
    "normalise_limbs",
    "product_limbs",
    "round_limbs",
    "split64",
    "sum_digits",
]
