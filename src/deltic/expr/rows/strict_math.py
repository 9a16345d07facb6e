"""Functions of DOUBLE to the last bit of Java's StrictMath, which Spark calls: the algorithms of fdlibm on one row.

The C library rounds some results differently. The arguments are finite and in the domain of the function, unless a docstring says more;
results beyond the range are infinite. Bits are those of IEEE 754: `high` is the upper half of a double, signed.

Source: fdlibm 5.3, Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunSoft, a Sun Microsystems, Inc.
business. Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice is preserved.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Final

_DOUBLE, _LONG = struct.Struct("<d"), struct.Struct("<q")
_LOW: Final = 0xFFFFFFFF
LN2_HIGH, LN2_LOW, INVERSE_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10, 1.44269504088896338700e00
EXP_TERMS = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
LOG_TERMS = (6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01, 1.479819860511658591e-01)  # fmt: skip
_EXPM1 = (
    -3.33333333333331316428e-02,
    1.58730158725481460165e-03,
    -7.93650757867487942473e-05,
    4.00821782732936239552e-06,
    -2.01099218183624371326e-07,
)
_INVERSE_LN10, _LOG10_2_HIGH, _LOG10_2_LOW = 4.34294481903251816668e-01, 3.01029995663611771306e-01, 3.69423907715893078616e-13
_ASIN = ((1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01, -4.00555345006794114027e-02,
    7.91534994289814532176e-04, 3.47933107596021167570e-05), (-2.40339491173441421878e00, 2.02094576023350569471e00,
    -6.88283971605453293030e-01, 7.70381505559019352791e-02))  # fmt: skip
_ATAN_HIGH = (4.63647609000806093515e-01, 7.85398163397448278999e-01, 9.82793723247329054082e-01, 1.57079632679489655800e00)
_ATAN_LOW = (2.26987774529616870924e-17, 3.06161699786838301793e-17, 1.39033110312309984516e-17, 6.12323399573676603587e-17)
_ATAN = (3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01, -1.11111104054623557880e-01,
    9.09088713343650656196e-02, -7.69187620504482999495e-02, 6.66107313738753120669e-02, -5.83357013379057348645e-02,
    4.97687799461593236017e-02, -3.65315727442169155270e-02, 1.62858201153657823623e-02)  # fmt: skip
_HALF_PI, _HALF_PI_LOW, _QUARTER_PI, _PI_LOW = (
    1.57079632679489655800e00,
    6.12323399573676603587e-17,
    7.85398163397448278999e-01,
    1.2246467991473531772e-16,
)
EXP_LARGEST, EXP_LEAST = 7.09782712893383973096e02, -7.45133219101941108420e02


def bits_of(x: float) -> int:
    bits: int = _LONG.unpack(_DOUBLE.pack(x))[0]
    return bits


def of_bits(bits: int) -> float:
    """bits: signed or unsigned, of 64 bits."""
    x: float = _DOUBLE.unpack(_LONG.pack((bits + 2**63) % 2**64 - 2**63))[0]
    return x


def high(x: float) -> int:
    return bits_of(x) >> 32


def magnitude(x: float) -> int:
    """`high` without the sign."""
    return bits_of(x) >> 32 & 0x7FFFFFFF


def of_high(word: int) -> float:
    """The double with this upper half, and zeros below."""
    return of_bits(word << 32)


def with_high(x: float, word: int) -> float:
    return of_bits(word << 32 | bits_of(x) & _LOW)


def cut(x: float) -> float:
    """x without its lower 32 bits."""
    return of_bits(bits_of(x) & ~_LOW)


def polynomial(x: float, coefficients: Sequence[float]) -> float:
    """c0 + x·(c1 + x·(c2 + …))."""
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = coefficient + x * total
    return total


def exp(x: float) -> float:
    """Also of infinities and NaN."""
    if not math.isfinite(x):
        return 0.0 if x == -math.inf else x
    if x > EXP_LARGEST or x < EXP_LEAST:
        return math.inf if x > 0 else 0.0
    size, k, up, down = magnitude(x), 0, 0.0, 0.0
    if size > 0x3FD62E42:
        k = (1 if x > 0 else -1) if size < 0x3FF0A2B2 else int(INVERSE_LN2 * x + (0.5 if x > 0 else -0.5))
        up, down = x - k * LN2_HIGH, k * LN2_LOW
        x = up - down
    elif size < 0x3E300000:
        return 1.0 + x
    t = x * x
    c = x - t * polynomial(t, EXP_TERMS)
    if k == 0:
        return 1.0 - ((x * c) / (c - 2.0) - x)
    y = 1.0 - ((down - (x * c) / (2.0 - c)) - up)
    return math.ldexp(y, k) if k >= -1021 else math.ldexp(y, k + 1000) * 2.0**-1000


def _exponent(x: float) -> tuple[int, int, float]:
    """(k, the high word, x) of a positive x, 2^k ≤ x < 2^(k + 1); a subnormal x is scaled to be normal, and k is its own."""
    word = high(x)
    if word >= 0x00100000:
        return (word >> 20) - 1023, word, x
    x *= 2.0**54
    word = high(x)
    return (word >> 20) - 1077, word, x


def log(x: float) -> float:
    """The natural logarithm of a positive x, also of infinity and NaN."""
    if not math.isfinite(x):
        return x
    k, word, x = _exponent(x)
    word &= 0xFFFFF
    carry = (word + 0x95F64) & 0x100000
    x = with_high(x, word | (carry ^ 0x3FF00000))
    k += carry >> 20
    f = x - 1.0
    if (0xFFFFF & (2 + word)) < 3:
        if f == 0.0:
            return k * LN2_HIGH + k * LN2_LOW if k else 0.0
        r = f * f * (0.5 - 0.33333333333333333 * f)
        return k * LN2_HIGH - ((r - k * LN2_LOW) - f) if k else f - r
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    r = z * polynomial(w, LOG_TERMS[0::2]) + w * polynomial(w, LOG_TERMS[1::2])
    if ((word - 0x6147A) | (0x6B851 - word)) > 0:
        half = 0.5 * f * f
        return k * LN2_HIGH - ((half - (s * (half + r) + k * LN2_LOW)) - f) if k else f - (half - s * (half + r))
    return k * LN2_HIGH - ((s * (f - r) - k * LN2_LOW) - f) if k else f - s * (f - r)


def log10(x: float) -> float:
    """Of a positive x, also of infinity and NaN."""
    if not math.isfinite(x):
        return x
    k, word, x = _exponent(x)
    below = int(k < 0)
    x = with_high(x, (word & 0xFFFFF) | (0x3FF - below) << 20)
    y = float(k + below)
    return (y * _LOG10_2_LOW + _INVERSE_LN10 * log(x)) + y * _LOG10_2_HIGH


def log1p(x: float) -> float:
    """ln(1 + x) of x > -1, also of infinity and NaN."""
    if not math.isfinite(x):
        return x
    word, size, k, c, f, upper = high(x), magnitude(x), 1, 0.0, 0.0, 1
    if word < 0x3FDA827A:
        if size < 0x3E200000:
            return x if size < 0x3C900000 else x - x * x * 0.5
        if word > 0 or word <= 0xBFD2BEC3 - 2**32:
            k, f = 0, x
    if k:
        u = 1.0 + x if word < 0x43400000 else x
        upper = high(u)
        k = (upper >> 20) - 1023
        if word < 0x43400000:
            c = (1.0 - (u - x) if k > 0 else x - (u - 1.0)) / u
        upper &= 0xFFFFF
        if upper < 0x6A09E:
            u = with_high(u, upper | 0x3FF00000)
        else:
            k += 1
            u = with_high(u, upper | 0x3FE00000)
            upper = (0x00100000 - upper) >> 2
        f = u - 1.0
    half = 0.5 * f * f
    if upper == 0:
        if f == 0.0:
            return k * LN2_HIGH + (c + k * LN2_LOW) if k else 0.0
        r = half * (1.0 - 0.66666666666666666 * f)
        return k * LN2_HIGH - ((r - (k * LN2_LOW + c)) - f) if k else f - r
    s = f / (2.0 + f)
    z = s * s
    r = z * polynomial(z, LOG_TERMS)
    return k * LN2_HIGH - ((half - (s * (half + r) + (k * LN2_LOW + c))) - f) if k else f - (half - s * (half + r))


def expm1(x: float) -> float:
    """Also of infinities and NaN."""
    if not math.isfinite(x):
        return -1.0 if x == -math.inf else x
    size, k, c = magnitude(x), 0, 0.0
    if size >= 0x4043687A and x < 0:
        return -1.0
    if x > EXP_LARGEST:
        return math.inf
    if size > 0x3FD62E42:
        k = (1 if x > 0 else -1) if size < 0x3FF0A2B2 else int(INVERSE_LN2 * x + (0.5 if x > 0 else -0.5))
        up, down = x - k * LN2_HIGH, k * LN2_LOW
        x = up - down
        c = (up - x) - down
    elif size < 0x3C900000:
        return x
    half = 0.5 * x
    square = x * half
    r = 1.0 + square * polynomial(square, _EXPM1)
    t = 3.0 - r * half
    e = square * ((r - t) / (6.0 - x * t))
    if k == 0:
        return x - (x * e - square)
    e = (x * (e - c) - c) - square
    if k == -1:
        return 0.5 * (x - e) - 0.5
    if k == 1:
        return -2.0 * (e - (x + 0.5)) if x < -0.25 else 1.0 + 2.0 * (x - e)
    if k <= -2 or k > 56:
        return math.ldexp(1.0 - (e - x), k) - 1.0
    if k < 20:
        return math.ldexp((1.0 - 2.0**-k) - (e - x), k)
    return math.ldexp((x - (e + 2.0**-k)) + 1.0, k)


def sinh(x: float) -> float:
    """Also of infinities and NaN."""
    size, sign = abs(x), -0.5 if x < 0 else 0.5
    if not math.isfinite(x) or magnitude(x) < 0x3E300000:
        return x
    if size < 22.0:
        t = expm1(size)
        return sign * (2.0 * t - t * t / (t + 1.0)) if size < 1.0 else sign * (t + t / (t + 1.0))
    return _half_of_exp(size, sign)


def cosh(x: float) -> float:
    """Also of infinities and NaN."""
    size = abs(x)
    if not math.isfinite(x):
        return size
    if magnitude(x) < 0x3FD62E43:
        t = expm1(size)
        w = 1.0 + t
        return w if magnitude(x) < 0x3C800000 else 1.0 + (t * t) / (w + w)
    if size < 22.0:
        t = exp(size)
        return 0.5 * t + 0.5 / t
    return _half_of_exp(size, 0.5)


def _half_of_exp(size: float, half: float) -> float:
    """half · e^size, beyond the range of EXP too."""
    if magnitude(size) < 0x40862E42:
        return half * exp(size)
    w = exp(0.5 * size)
    return (half * w) * w


def tanh(x: float) -> float:
    """Also of infinities and NaN."""
    if math.isnan(x):
        return x
    if abs(x) >= 22.0:
        return math.copysign(1.0, x)
    size = magnitude(x)
    if size < 0x3C800000:
        return x * (1.0 + x)
    if size >= 0x3FF00000:
        t = expm1(2.0 * abs(x))
        z = 1.0 - 2.0 / (t + 2.0)
    else:
        t = expm1(-2.0 * abs(x))
        z = -t / (t + 2.0)
    return math.copysign(z, x)


def _asin_ratio(z: float) -> float:
    return (z * polynomial(z, _ASIN[0])) / (1.0 + z * polynomial(z, _ASIN[1]))


def acos(x: float) -> float:
    """NaN outside [-1, 1]."""
    if not abs(x) < 1.0:
        return math.nan if abs(x) != 1.0 else 0.0 if x > 0 else math.pi + 2.0 * _HALF_PI_LOW
    if abs(x) < 0.5:
        if magnitude(x) <= 0x3C600000:
            return _HALF_PI + _HALF_PI_LOW
        return _HALF_PI - (x - (_HALF_PI_LOW - x * _asin_ratio(x * x)))
    z = (1.0 - abs(x)) * 0.5
    s, r = math.sqrt(z), _asin_ratio(z)
    if x < 0:
        return math.pi - 2.0 * (s + (r * s - _HALF_PI_LOW))
    most = cut(s)
    return 2.0 * (most + (r * s + (z - most * most) / (s + most)))


def asin(x: float) -> float:
    """NaN outside [-1, 1]."""
    if not abs(x) < 1.0:
        return x * _HALF_PI + x * _HALF_PI_LOW if abs(x) == 1.0 else math.nan
    if abs(x) < 0.5:
        return x if magnitude(x) < 0x3E400000 else x + x * _asin_ratio(x * x)
    t = (1.0 - abs(x)) * 0.5
    s, r = math.sqrt(t), _asin_ratio(t)
    if magnitude(x) >= 0x3FEF3333:
        return math.copysign(_HALF_PI - (2.0 * (s + s * r) - _HALF_PI_LOW), x)
    w = cut(s)
    c = (t - w * w) / (s + w)
    p = 2.0 * s * r - (_HALF_PI_LOW - 2.0 * c)
    return math.copysign(_QUARTER_PI - (p - (_QUARTER_PI - 2.0 * w)), x)


def atan(x: float) -> float:
    """Also of infinities and NaN."""
    size = magnitude(x)
    if math.isnan(x) or size < 0x3E200000:
        return x
    if size >= 0x44100000:
        return math.copysign(_ATAN_HIGH[3] + _ATAN_LOW[3], x)
    place, v = -1, x
    if size >= 0x3FDC0000:
        v = abs(x)
        if size < 0x3FE60000:
            place, v = 0, (2.0 * v - 1.0) / (2.0 + v)
        elif size < 0x3FF30000:
            place, v = 1, (v - 1.0) / (v + 1.0)
        elif size < 0x40038000:
            place, v = 2, (v - 1.5) / (1.0 + 1.5 * v)
        else:
            place, v = 3, -1.0 / v
    z = v * v
    w = z * z
    total = z * polynomial(w, _ATAN[0::2]) + w * polynomial(w, _ATAN[1::2])
    if place < 0:
        return v - v * total
    return math.copysign(_ATAN_HIGH[place] - ((v * total - _ATAN_LOW[place]) - v), x)


def atan2(y: float, x: float) -> float:
    """Also of zeros, infinities and NaN."""
    if x == 0 or y == 0 or not (math.isfinite(x) and math.isfinite(y)):
        return math.atan2(y, x)  # multiples of π/4, which all libraries agree on
    if x == 1.0:
        return atan(y)
    distance = (magnitude(y) - magnitude(x)) >> 20
    z = _HALF_PI + 0.5 * _PI_LOW if distance > 60 else 0.0 if x < 0 and distance < -60 else atan(abs(y / x))
    if x > 0:
        return math.copysign(z, y)
    return math.pi - (z - _PI_LOW) if y > 0 else (z - _PI_LOW) - math.pi


def cbrt(x: float) -> float:
    """Also of zeros, infinities and NaN."""
    if x == 0 or not math.isfinite(x):
        return x
    size = abs(x)
    word = high(size)
    if word < 0x00100000:
        t = size * 2.0**54
        t = with_high(t, high(t) // 3 + 696219795)
    else:
        t = of_high(word // 3 + 715094163)
    r = t * t / size
    s = 5.42857142857142815906e-01 + r * t
    t *= 3.57142857142857150787e-01 + 1.60714285714285720630e00 / (s + 1.41428571428571436819e00 + -7.05306122448979611050e-01 / s)
    t = of_high(high(t) + 1)
    s = t * t
    r = size / s
    r = (r - t) / ((t + t) + r)
    return math.copysign(t + t * r, x)


def hypot(x: float, y: float) -> float:
    """Also of infinities, which outweigh NaN."""
    a, b = max(abs(x), abs(y)), min(abs(x), abs(y))
    if not (math.isfinite(x) and math.isfinite(y)):
        return math.inf if math.isinf(x) or math.isinf(y) else math.nan
    if magnitude(a) - magnitude(b) > 0x3C00000:
        return a + b
    k = 0
    if magnitude(a) > 0x5F300000:
        a, b, k = a * 2.0**-600, b * 2.0**-600, 600
    if magnitude(b) < 0x20B00000:
        if b == 0:
            return math.ldexp(a, k)
        step = 1022 if magnitude(b) < 0x00100000 else 600
        a, b, k = a * 2.0**step, b * 2.0**step, k - step
    w = a - b
    if w > b:
        t = cut(a)
        w = math.sqrt(t * t - (b * -b - (a - t) * (a + t)))
    else:
        t, y1 = of_high(high(a) + 0x00100000), cut(b)
        a = a + a
        w = math.sqrt(t * y1 - (w * -w - (t * (b - y1) + (a - t) * b)))
    return w * 2.0**k if abs(k) < 1000 else math.ldexp(w, k)


def asinh(x: float) -> float:
    """Also of infinities and NaN."""
    size = abs(x)
    if not math.isfinite(x) or size < 2.0**-28:
        return x
    if size > 2.0**28:
        return math.copysign(log(size) + math.log(2.0), x)
    square = x * x
    if size > 2.0:
        return math.copysign(log(2.0 * size + 1.0 / (math.sqrt(square + 1.0) + size)), x)
    return math.copysign(log1p(size + square / (1.0 + math.sqrt(1.0 + square))), x)


def acosh(x: float) -> float:
    """NaN below 1."""
    if not x > 1.0:
        return 0.0 if x == 1.0 else math.nan
    if x >= 2.0**28:
        return log(x) + math.log(2.0)
    if x > 2.0:
        return log(2.0 * x - 1.0 / (x + math.sqrt(x * x - 1.0)))
    t = x - 1.0
    return log1p(t + math.sqrt(2.0 * t + t * t))


def atanh(x: float) -> float:
    """±infinity at ±1, NaN outside; Spark's own formula, and not fdlibm's.

    >>> atanh(1.0), atanh(2.0)
    (inf, nan)
    """
    if not abs(x) < 1.0:
        return math.copysign(math.inf, x) if abs(x) == 1.0 else math.nan
    return 0.5 * (log1p(x) - log1p(-x))
