"""The kernels over 128-bit decimals: joins the 32-bit limbs of sums and divides them.

A decimal is an unscaled integer. In an Arrow buffer it is a pair of words, low then high. As a sum it is two to four limbs, from high
to low, Σ limb · 2^(32 · i), each a signed word. In between it is ten digits of 32 bits, lowest first, and a sign.
A bound 10^p is the pair of its words, high then low.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import Words, load, store
from deltic.kernels.wide import is_less, negated

DIGITS = 10
LOW = 0xFFFFFFFF
MOST = 2**63 - 1
SHORT_HIGH, SHORT_LOW = 2**30, 2**62
"""Below these, two limbs are a sum of one word."""


@part
def _gather(limbs: Words, i: int, digits: Any) -> bool:
    """The magnitude of sum i as digits; returns whether it is negative."""
    digits[:] = 0
    for j in range(len(limbs)):
        _add(digits, j, load(limbs[len(limbs) - 1 - j], i))
    return _signed(digits)


@part
def _add(digits: Any, j: int, limb: int) -> None:
    digits[j] += limb & LOW
    digits[j + 1] += limb >> 32


@part
def _signed(digits: Any) -> bool:
    """Makes a sum its magnitude; returns whether it is negative."""
    _carry(digits)
    negative = bool(digits[DIGITS - 1] < 0)
    if negative:
        for j in range(DIGITS):
            digits[j] = -digits[j]
        _carry(digits)
    return negative


@part
def _carry(digits: Any) -> None:
    """Carries, so that all digits but the highest are in [0, 2^32)."""
    for j in range(DIGITS - 1):
        digits[j + 1] += digits[j] >> 32
        digits[j] &= LOW


@part
def _fits(digits: Any, bound_high: int, bound_low: int) -> bool:
    """Whether a magnitude is less than a bound."""
    for j in range(4, DIGITS):
        if digits[j]:
            return False
    high, low = digits[3] << 32 | digits[2], digits[1] << 32 | digits[0]
    return is_less(high, low, bound_high, bound_low)


@part
def _words(digits: Any, negative: bool) -> tuple[int, int]:
    """The words of a number, high and low."""
    high, low = digits[3] << 32 | digits[2], digits[1] << 32 | digits[0]
    return negated(high, low) if negative else (high, low)


@part
def _divide(digits: Any, divisor: int) -> int:
    """digits //= divisor, of up to 63 bits; returns the remainder."""
    rest = np.uint64(0)
    narrow = divisor <= LOW
    divisor = np.uint64(divisor)
    for j in range(DIGITS - 1, -1, -1):
        if narrow:
            part_ = rest << np.uint64(32) | np.uint64(digits[j])
            digits[j] = np.int64(part_ // divisor)
            rest = part_ % divisor
            continue
        quotient = np.int64(0)
        for b in range(31, -1, -1):
            rest = rest << np.uint64(1) | np.uint64((digits[j] >> b) & 1)
            quotient <<= 1
            if rest >= divisor:
                rest -= divisor
                quotient |= 1
        digits[j] = quotient
    return np.int64(rest)


@part
def _is_lifted(rest: int, count: int, slack: int) -> bool:
    """Whether a quotient with this remainder is rounded up.

    Half up: 2 · rest ≥ count. The first rounding also lifts what is below a half by count / slack at most.
    """
    short = count - rest - rest if rest <= count - rest else 0
    return short <= (count // slack if slack else 0)


@part
def _is_short(high: int, low: int) -> bool:
    """Whether the sum of the last two limbs is one word."""
    return -SHORT_HIGH < high < SHORT_HIGH and -SHORT_LOW < low < SHORT_LOW


@part
def _short_quotient(word: int, count: int, zeros: int, slack: int, bounds: Words) -> tuple[int, bool]:
    """The quotient of a sum of one word, and True if all is within one word and the bounds; else it is for `_quotient`."""
    negative = (word < 0) != (count < 0)
    word, count = abs(word), abs(count)
    fits = is_less(0, word, bounds[0], bounds[1])
    for _ in range(zeros):
        fits &= word <= MOST // 10
        word *= 10
    if not fits or count == 0:
        return np.int64(0), False
    quotient = word // count
    quotient += np.int64(count > 1 and _is_lifted(word - quotient * count, count, slack))
    return -quotient if negative else quotient, is_less(0, quotient, bounds[2], bounds[3])


@part
def _quotient(digits: Any, count: int, zeros: int, slack: int, bounds: Words) -> bool:
    """A magnitude · 10^zeros / count, as `divide` says, for a count that is not negative; whether both are within bounds."""
    if count == 0:
        digits[:] = 0
        count = 1
    fits = _fits(digits, bounds[0], bounds[1])
    for _ in range(zeros):
        for j in range(DIGITS):
            digits[j] *= 10
        _carry(digits)
    if count > 1 and _is_lifted(_divide(digits, count), count, slack):
        digits[0] += 1
        _carry(digits)
    return fits and _fits(digits, bounds[2], bounds[3])


@kernel("void(int64[::1], int64, int64, int64, int64[::1], int64, uint8[::1])")
def divide(limbs: Words, counts: int, zeros: int, slack: int, bounds: Words, pairs: int, overflow: Any) -> None:
    """Number i of `pairs` = sum i · 10^zeros / count i, half up, after a first rounding half up that adds 1 / (2 · slack) at most.

    limbs: addresses. counts: their address; 0 if all are 1. The quotient by a count of 0 is 0. slack: 10^k, k the digits between the two
    roundings; 0 if these are more than 18. bounds: of the sum, then of the quotient; if one is reached, the number is 0 and overflow[i] 1.
    """
    digits = np.empty(DIGITS, np.int64)
    for i in range(len(overflow)):
        count = load(counts, i) if counts else 1
        if len(limbs) == 2 and _is_short(load(limbs[0], i), load(limbs[1], i)):
            quotient, fits = _short_quotient((load(limbs[0], i) << 32) + load(limbs[1], i), count, zeros, slack, bounds)
            if fits:
                overflow[i] = False
                store(pairs, 2 * i, quotient)
                store(pairs, 2 * i + 1, quotient >> 63)
                continue
        negative = _gather(limbs, i, digits)
        if count < 0:
            negative, count = not negative, -count
        overflow[i] = not _quotient(digits, count, zeros, slack, bounds)
        if overflow[i]:
            digits[:] = 0
        high, low = _words(digits, negative)
        store(pairs, 2 * i, low)
        store(pairs, 2 * i + 1, high)


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], int64, int64[::1])")
def mean(sums: Words, slot: int, limbs: int, count: int, code: Words, at: int, out: Words) -> int:
    """out = the words, high and low, of a sum whose limbs begin at `slot`, divided as `divide` does; 0, or -1 if a bound is reached.

    The code has at `at`: zeros, slack, bounds.
    """
    if limbs == 2 and _is_short(sums[slot], sums[slot + 1]):
        quotient, fits = _short_quotient((sums[slot] << 32) + sums[slot + 1], count, code[at], code[at + 1], code[at + 2 : at + 6])
        if fits:
            out[0], out[1] = quotient >> 63, quotient
            return 0
    digits = np.zeros(DIGITS, np.int64)
    for j in range(limbs):
        _add(digits, j, sums[slot + limbs - 1 - j])
    negative = _signed(digits)
    if count < 0:
        negative, count = not negative, -count
    if not _quotient(digits, count, code[at], code[at + 1], code[at + 2 : at + 6]):
        return -1
    out[0], out[1] = _words(digits, negative)
    return 0
