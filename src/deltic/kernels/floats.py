"""Kernels over doubles: words that sort like them, and exact sums as 32-bit limbs, rounded once.

x = Σ limb · 2^(32 · position). A finite double times a 64-bit weight has positions −34 … 34; three more count NaN, +∞ and −∞.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import WORD_MIN, Words, load

LOWEST = -34
LIMBS = 5
ROOM = 80
NAN = 1000
POSITIVE_INFINITY = 1001
NEGATIVE_INFINITY = 1002
LOW = 0xFFFFFFFF
INFINITY_BITS = 0x7FF << 52
NAN_BITS = INFINITY_BITS | 1 << 51
FRACTION = (1 << 52) - 1
GROWN = 1 << 36
"""Limbs of this magnitude or more are carried into the next position: 2^27 batches of smaller ones add up within 64 bits."""


def _bits_of(typing: Any, real: Any) -> Any:
    """The bits of a double."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


def _real_of(typing: Any, bits: Any) -> Any:
    """The double with these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


bits_of = cast(Callable[[float], int], intrinsic(_bits_of))
real_of = cast(Callable[[int], float], intrinsic(_real_of))


@part
def ordered(word: int) -> int:
    """The bits of a double as a word that sorts like it: of a negative one all bits but the sign are flipped, and there is one NaN."""
    if word & ~WORD_MIN > INFINITY_BITS:
        word = NAN_BITS
    return word ^ ~WORD_MIN if word < 0 else word


@part
def unordered(word: int) -> int:
    """The bits of the double of which `ordered` makes this word."""
    return word ^ ~WORD_MIN if word < 0 else word


@kernel("void(int64, int64, int64, int64[::1])")
def order_bits(source: int, n: int, back: int, out: Words) -> None:
    """The bits of n doubles as words that sort like them. back: 1 to turn such words into bits."""
    for i in range(n):
        word = load(source, i)
        out[i] = unordered(word) if back else ordered(word)


@part
def _digits(mantissa: int, weight: int, shift: int, digits: Any) -> None:
    """digits[0:5] = mantissa · weight · 2^shift in base 2^32; mantissa < 2^53, weight ≤ 2^63 (both unsigned), shift < 32."""
    low, high = mantissa & np.uint64(LOW), mantissa >> np.uint64(32)
    light, heavy = weight & np.uint64(LOW), weight >> np.uint64(32)
    first = low * light
    middle = high * light + (first >> np.uint64(32))
    other = low * heavy + (middle & np.uint64(LOW))
    last = high * heavy + (middle >> np.uint64(32)) + (other >> np.uint64(32))
    digits[0], digits[1] = first & np.uint64(LOW), other & np.uint64(LOW)
    digits[2], digits[3] = last & np.uint64(LOW), last >> np.uint64(32)
    carried = np.uint64(0)
    for i in range(4):
        shifted = digits[i] << shift | carried
        digits[i] = shifted & np.uint64(LOW)
        carried = shifted >> np.uint64(32)
    digits[4] = carried


@part
def _special(word: int) -> int:
    """The position that counts an infinity or NaN with these bits."""
    if word & FRACTION:
        return NAN
    return NEGATIVE_INFINITY if word < 0 else POSITIVE_INFINITY


@part
def _magnitude(word: int) -> int:
    return np.uint64(-word) if word < 0 else np.uint64(word)


@kernel("int64(int64, int64, int64, int64[::1], int64[::1], int64[::1])")
def split_products(values: int, weights: int, n: int, rows: Words, positions: Words, limbs: Words) -> int:
    """(row, position, limb) of each value · weight, no limb 0, |limb| < 2^32 but for the counters. Returns how many limbs there are.

    With no room (len(rows) == 0) it only counts them.
    """
    count = 0
    room = len(rows) > 0
    digits = np.empty(LIMBS, np.uint64)
    for i in range(n):
        word, weight = load(values, i), load(weights, i)
        exponent = (word >> 52) & 0x7FF
        if weight == 0 or word & ~WORD_MIN == 0:
            continue
        if exponent == 0x7FF:
            if room:
                rows[count], positions[count], limbs[count] = i, _special(word), weight
            count += 1
            continue
        mantissa = np.uint64(word & FRACTION | (np.int64(1) << 52 if exponent else 0))
        power = max(exponent, 1) - 1075
        _digits(mantissa, _magnitude(weight), np.uint64(power & 31), digits)
        negative = (word < 0) != (weight < 0)
        for d in range(LIMBS):
            if digits[d]:
                if room:
                    limb = np.int64(digits[d])
                    rows[count], positions[count], limbs[count] = i, (power >> 5) + d, -limb if negative else limb
                count += 1
    return count


@part
def _carry(digits: Any) -> None:
    """Carries, so that all digits but the highest are in [0, 2^32)."""
    for i in range(ROOM - 1):
        digits[i + 1] += digits[i] >> 32
        digits[i] &= LOW


@part
def _round(digits: Any) -> float:
    """The double nearest to the number with these digits, the first at position LOWEST; half to even; an infinity beyond the greatest."""
    _carry(digits)
    negative = digits[ROOM - 1] < 0
    if negative:
        for i in range(ROOM):
            digits[i] = -digits[i]
        _carry(digits)
    top = ROOM - 1
    while top >= 0 and digits[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    bits = 0
    while digits[top] >> bits:
        bits += 1
    word = np.uint64(digits[top]) << np.uint64(64 - bits)
    sticky = False
    if top >= 1:
        word |= np.uint64(digits[top - 1]) << np.uint64(32) >> np.uint64(bits)
    if top >= 2:
        word |= np.uint64(digits[top - 2]) >> np.uint64(bits)
        sticky = (digits[top - 2] & ((np.int64(1) << bits) - 1)) != 0
    for i in range(top - 2):
        sticky |= digits[i] != 0
    mantissa = np.int64(word >> np.uint64(11))
    rest = np.int64(word & np.uint64(0x7FF))
    if rest > 0x400 or (rest == 0x400 and (sticky or mantissa & 1)):
        mantissa += 1
    # Every sum is a multiple of 2^-1074, so a subnormal one has fewer than 53 bits and ldexp does not round it again.
    value = math.ldexp(float(mantissa), 32 * (top + LOWEST) + bits - 53)
    return -value if negative else value


@part
def is_digit(position: int) -> bool:
    """Whether a limb of a sum of doubles may have this position."""
    return LOWEST <= position < LOWEST + ROOM - 1 or NAN <= position <= NEGATIVE_INFINITY


@part
def add_limb(position: int, limb: int, digits: Any, counts: Any) -> None:
    """Adds a limb to a sum: to its digits, or to its counts of NaN and of the infinities."""
    if position >= NAN:
        counts[position - NAN] += limb
    else:
        digits[position - LOWEST] += limb & LOW
        digits[position - LOWEST + 1] += limb >> 32


@part
def rounded_sum(digits: Any, counts: Any) -> float:
    """The double of a sum of fewer than 2^30 limbs, correctly rounded. It changes the digits."""
    positive, negative = counts[1] > 0 or counts[2] < 0, counts[1] < 0 or counts[2] > 0
    if counts[0] or (positive and negative):
        return math.nan
    if positive:
        return math.inf
    return -math.inf if negative else _round(digits)


@kernel("void(int64, int64, int64, float64[::1])")
def round_sums(starts: int, positions: int, limbs: int, out: Any) -> None:
    """out[g] = the correctly rounded sum of limbs starts[g] … starts[g + 1], fewer than 2^30 in any order."""
    digits = np.empty(ROOM, np.int64)
    counts = np.empty(3, np.int64)
    for g in range(len(out)):
        digits[:] = 0
        counts[:] = 0
        for i in range(load(starts, g), load(starts, g + 1)):
            add_limb(load(positions, i), load(limbs, i), digits, counts)
        out[g] = rounded_sum(digits, counts)
