"""The quotient of two decimals, rounded half up: a part of `evaluation.evaluate`. Magnitudes are digits of 32 bits, lowest first."""

from __future__ import annotations

from typing import Any

import numpy as np

from deltic.kernels.compiler import part
from deltic.kernels.memory import Words
from deltic.kernels.wide import is_less, magnitude, minus, negated

DIGITS = 14
"""Room for 38 decimal digits times 10^77."""
LOW = 0xFFFFFFFF
PLACES, FIRST_HIGH, BOUND_HIGH = 0, 1, 3
"""Operands: the power of ten by which the dividend is multiplied; the words of a second divisor, or 0; those of the least magnitude that
does not fit."""


@part
def divide_half_up(digits: Any, high: int, low: int) -> None:
    """digits = digits / a divisor of up to 127 bits, rounded half up: bit by bit."""
    rest_high, rest_low, started = np.int64(0), np.int64(0), False
    for j in range(DIGITS - 1, -1, -1):
        digit, quotient = digits[j], np.int64(0)
        started |= digit != 0
        for b in range(31 if started else -1, -1, -1):
            carried = np.int64(rest_low < 0)
            rest_high, rest_low = rest_high << 1 | carried, rest_low << 1 | (digit >> b & 1)
            quotient <<= 1
            if not is_less(rest_high, rest_low, high, low):
                rest_high, rest_low = minus(rest_high, rest_low, high, low)
                quotient |= 1
        digits[j] = quotient
    short_high, short_low = minus(high, low, rest_high, rest_low)
    if not is_less(rest_high, rest_low, short_high, short_low):
        j = 0
        while digits[j] == LOW:
            digits[j] = 0
            j += 1
        digits[j] += 1


@part
def quotient(code: Words, at: int, high: int, low: int, by_high: int, by_low: int, digits: Any) -> tuple[bool, int, int]:
    """(whether it fits, its words) of a decimal divided by another one that is not 0, by the operands at word `at`."""
    negative = (high < 0) != (by_high < 0)
    high, low = magnitude(high, low)
    by_high, by_low = magnitude(by_high, by_low)
    digits[:] = 0
    digits[0], digits[1], digits[2], digits[3] = low & LOW, low >> 32 & LOW, high & LOW, high >> 32 & LOW
    for _ in range(code[at + PLACES]):
        carried = np.int64(0)
        for j in range(DIGITS):
            carried += digits[j] * 10
            digits[j] = carried & LOW
            carried >>= 32
    divide_half_up(digits, by_high, by_low)
    if code[at + FIRST_HIGH] != 0 or code[at + FIRST_HIGH + 1] != 0:
        divide_half_up(digits, code[at + FIRST_HIGH], code[at + FIRST_HIGH + 1])
    fits = True
    for j in range(4, DIGITS):
        fits &= digits[j] == 0
    high, low = digits[3] << 32 | digits[2], digits[1] << 32 | digits[0]
    fits = fits and is_less(high, low, code[at + BOUND_HIGH], code[at + BOUND_HIGH + 1])
    if negative:
        high, low = negated(high, low)
    return fits, high, low
