"""EXP and the natural logarithm on columns, bit for bit as `rows/strict_math.py`: all branches are computed, and one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from deltic.expr.rows.strict_math import EXP_LARGEST, EXP_LEAST, EXP_TERMS, INVERSE_LN2, LN2_HIGH, LN2_LOW, LOG_TERMS, polynomial

Doubles = npt.NDArray[np.float64]
_polynomial: Final[Callable[[Any, Sequence[float]], Any]] = polynomial
_LOW: Final = np.int64(0xFFFFFFFF)


def _words(x: Doubles) -> npt.NDArray[Any]:
    """The upper halves, signed."""
    return x.view(np.int64) >> 32


def exp(x: Doubles) -> Doubles:
    """x: float64[n]."""
    with np.errstate(all="ignore"):
        inside = np.isfinite(x) & (x <= EXP_LARGEST) & (x >= EXP_LEAST)
        given = np.where(inside, x, 0.0)
        size = _words(given) & 0x7FFFFFFF
        k = np.where(size < 0x3FF0A2B2, np.sign(given), np.trunc(INVERSE_LN2 * given + np.where(given > 0, 0.5, -0.5)))
        k = np.where(size > 0x3FD62E42, k, 0.0)
        up, down = given - k * LN2_HIGH, k * LN2_LOW
        reduced = up - down
        t = reduced * reduced
        c = reduced - t * _polynomial(t, EXP_TERMS)
        y = 1.0 - ((down - (reduced * c) / (2.0 - c)) - up)
        powers = k.astype(np.int32)
        scaled = np.where(powers >= -1021, np.ldexp(y, powers), np.ldexp(y, powers + 1000) * 2.0**-1000)
        exponential = np.where(size < 0x3E300000, 1.0 + given, scaled)
        beyond = np.where(np.isnan(x), x, np.where(x > 0, np.inf, 0.0))
        result: Doubles = np.where(inside, exponential, beyond)
    return result


def log(x: Doubles) -> Doubles:
    """x: float64[n], positive or NaN; the result for others is undefined."""
    with np.errstate(all="ignore"):
        small = x < 2.0**-1022
        given = np.where(small, x * 2.0**54, x)
        word = _words(given)
        k = (word >> 20) - 1023 - 54 * small
        word = word & 0xFFFFF
        carry = (word + 0x95F64) & 0x100000
        f = ((word | (carry ^ 0x3FF00000)) << 32 | (given.view(np.int64) & _LOW)).view(np.float64) - 1.0
        k = (k + (carry >> 20)).astype(np.float64)
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        r = z * _polynomial(w, LOG_TERMS[0::2]) + w * _polynomial(w, LOG_TERMS[1::2])
        half = 0.5 * f * f
        wide = ((word - 0x6147A) | (0x6B851 - word)) > 0
        rest = np.where(wide, half - (s * (half + r) + k * LN2_LOW), s * (f - r) - k * LN2_LOW)
        near = f * f * (0.5 - 0.33333333333333333 * f) - k * LN2_LOW
        rest = np.where((0xFFFFF & (2 + word)) < 3, near, rest)
        result: Doubles = np.where(np.isfinite(x), k * LN2_HIGH - (rest - f), x)
    return result
