"""Kernels for exact sums of doubles as 32-bit limbs: taking numbers apart, and rounding sums once.

x = Σ limb · 2^(32 · position). Finite doubles have positions −34 … 31; three more count NaN, +∞ and −∞.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import load, store

LOWEST = -34
ROOM = 80
NAN = 1000
POSITIVE_INFINITY = 1001
NEGATIVE_INFINITY = 1002
LOW = 0xFFFFFFFF


@part
def _put(at: int, row: int, position: int, limb: int, rows: int, positions: int, limbs: int) -> int:
    if limb != 0:
        store(rows, at, row)
        store(positions, at, position)
        store(limbs, at, limb)
        return at + 1
    return at


@kernel("int64(float64[::1], int64, int64, int64, int64)")
def take_apart(values: Any, weights: int, rows: int, positions: int, limbs: int) -> int:
    """(row, position, limb) of each value · weight, |weight| < 2^29; room for three a value. Returns how many there are."""
    at = 0
    for i in range(len(values)):
        x, w = values[i], load(weights, i)
        if math.isnan(x):
            at = _put(at, i, NAN, w, rows, positions, limbs)
        elif math.isinf(x):
            at = _put(at, i, POSITIVE_INFINITY if x > 0 else NEGATIVE_INFINITY, w, rows, positions, limbs)
        elif x != 0.0:
            fraction, exponent = math.frexp(x)
            mantissa = np.int64(math.ldexp(fraction, 53))
            if mantissa < 0:
                mantissa, w = -mantissa, -w
            exponent -= 53
            position = exponent >> 5
            shift = exponent & 31
            low, high = (mantissa & LOW) << shift, (mantissa >> 32) << shift
            at = _put(at, i, position, (low & LOW) * w, rows, positions, limbs)
            at = _put(at, i, position + 1, (np.int64(np.uint64(low) >> np.uint64(32)) + (high & LOW)) * w, rows, positions, limbs)
            at = _put(at, i, position + 2, (high >> 32) * w, rows, positions, limbs)
    return at


@part
def _carry(digits: Any) -> None:
    for i in range(ROOM - 1):
        digits[i + 1] += digits[i] >> 32
        digits[i] &= LOW


@part
def _round(digits: Any) -> float:
    """The double nearest to the number with these limbs from LOWEST on, half to even."""
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
    value = math.ldexp(float(mantissa), 32 * (top + LOWEST) + bits - 53)
    return -value if negative else value


@kernel("void(int64[::1], int64, int64, float64[::1])")
def round_sums(starts: Any, positions: int, limbs: int, out: Any) -> None:
    """out[g] = the correctly rounded sum of limbs starts[g] … starts[g + 1]."""
    digits = np.empty(ROOM, np.int64)
    for g in range(len(out)):
        digits[:] = 0
        nan, plus, minus = False, False, False
        for i in range(starts[g], starts[g + 1]):
            position, limb = load(positions, i), load(limbs, i)
            if position == NAN:
                nan |= limb != 0
            elif position == POSITIVE_INFINITY:
                plus |= limb != 0
            elif position == NEGATIVE_INFINITY:
                minus |= limb != 0
            else:
                digits[position - LOWEST] += limb
        if nan or (plus and minus):
            out[g] = math.nan
        elif plus:
            out[g] = math.inf
        elif minus:
            out[g] = -math.inf
        else:
            out[g] = _round(digits)
