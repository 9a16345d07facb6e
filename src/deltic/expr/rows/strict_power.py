"""POWER to the last bit of Java's StrictMath.pow, by the algorithm of fdlibm: 2^(y·log2 x), with both in two doubles each.

Source: fdlibm 5.3, Copyright (C) 2004 by Sun Microsystems, Inc. All rights reserved. Permission to use, copy, modify, and distribute this
software is freely granted, provided that this notice is preserved.
"""

from __future__ import annotations

import math

from deltic.expr.rows.strict_math import cut, high, magnitude, of_high, polynomial, with_high

_LOG2 = (5.99999999999994648725e-01, 4.28571428578550184252e-01, 3.33333329818377432918e-01, 2.72728123808534006489e-01,
    2.30660745775561754067e-01, 2.06975017800338417784e-01)  # fmt: skip
_EXP2 = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_BASES = ((1.0, 0.0, 0.0), (1.5, 5.84962487220764160156e-01, 1.35003920212974897128e-08))
"""(a number near x, its log2 in two parts)."""
_C, _C_HIGH, _C_LOW = 9.61796693925975554329e-01, 9.61796700954437255859e-01, -7.02846165095275826516e-09
_LN2, _LN2_HIGH, _LN2_LOW = 6.93147180559945286227e-01, 6.93147182464599609375e-01, -1.90465429995776804525e-09
_INVERSE, _INVERSE_HIGH, _INVERSE_LOW = 1.44269504088896338700e00, 1.44269502162933349609e00, 1.92596299112661746887e-08
_OVERFLOW = 8.0085662595372944372e-17


def power(x: float, y: float) -> float:
    """x^y of a finite x > 0 and a finite y other than 0."""
    if x == 1.0 or y in (1.0, 2.0, -1.0, 0.5):
        return 1.0 if x == 1.0 else x if y == 1.0 else x * x if y == 2.0 else math.sqrt(x) if y == 0.5 else _inverse(x)
    size = magnitude(y)
    if size > 0x41E00000:
        word = high(x)
        if size > 0x43F00000 or word < 0x3FEFFFFF or word > 0x3FF00000:
            return math.inf if (x > 1.0) == (y > 0) else 0.0
        more, less = _log2_near_1(x)
    else:
        more, less = _log2(x)
    most = cut(y)
    low = (y - most) * more + y * less
    return _exp2(most * more, low)


def _inverse(x: float) -> float:
    return 1.0 / x


def _log2_near_1(x: float) -> tuple[float, float]:
    t = x - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u, v = _INVERSE_HIGH * t, t * _INVERSE_LOW - w * _INVERSE
    more = cut(u + v)
    return more, v - (more - u)


def _log2(x: float) -> tuple[float, float]:
    """log2 x in two parts."""
    n, word = 0, high(x)
    if word < 0x00100000:
        x *= 2.0**53
        n, word = -53, high(x)
    n += (word >> 20) - 0x3FF
    j = word & 0xFFFFF
    word = j | 0x3FF00000
    k = 0
    if 0x3988E < j < 0xBB67A:
        k = 1
    elif j >= 0xBB67A:
        n += 1
        word -= 0x00100000
    x = with_high(x, word)
    base, log_high, log_low = _BASES[k]
    u, v = x - base, 1.0 / (x + base)
    s = u * v
    s_high = cut(s)
    t_high = of_high(((word >> 1) | 0x20000000) + 0x00080000 + (k << 18))
    t_low = x - (t_high - base)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    square = s * s
    r = square * square * polynomial(square, _LOG2) + s_low * (s_high + s)
    square = s_high * s_high
    t_high = cut(3.0 + square + r)
    t_low = r - ((t_high - 3.0) - square)
    u, v = s_high * t_high, s_low * t_high + t_low * s
    p_high = cut(u + v)
    p_low = v - (p_high - u)
    z_high, z_low = _C_HIGH * p_high, _C_LOW * p_high + p_low * _C + log_low
    more = cut(((z_high + z_low) + log_high) + n)
    return more, z_low - (((more - n) - log_high) - z_high)


def _exp2(p_high: float, p_low: float) -> float:
    """2^(p_high + p_low)."""
    z = p_low + p_high
    if not -1075.0 <= z <= 1024.0 or (z == 1024.0 and p_low + _OVERFLOW > z - p_high) or (z == -1075.0 and p_low <= z - p_high):
        return math.inf if z > 0 else 0.0
    word = high(z)
    i = word & 0x7FFFFFFF
    k, n = (i >> 20) - 0x3FF, 0
    if i > 0x3FE00000:
        n = word + (0x00100000 >> (k + 1))
        k = ((n & 0x7FFFFFFF) >> 20) - 0x3FF
        t = of_high(n & ~(0x000FFFFF >> k))
        n = ((n & 0x000FFFFF) | 0x00100000) >> (20 - k)
        n = -n if word < 0 else n
        p_high -= t
    t = cut(p_low + p_high)
    u, v = t * _LN2_HIGH, (p_low - (t - p_high)) * _LN2 + t * _LN2_LOW
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * polynomial(t, _EXP2)
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    z = 1.0 - (r - z)
    try:
        return math.ldexp(z, n)
    except OverflowError:
        return math.inf
