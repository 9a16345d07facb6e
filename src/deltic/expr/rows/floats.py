"""Functions of DOUBLE on one row as Java's Math has them: NaN instead of an error, infinity beyond the range.

SIN, COS and TAN are those of the C library, which may differ from Java's in the last place; others are in `strict_math.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from deltic.expr.rows import strict_math
from deltic.expr.rows.numbers import float_quotient

DEGREES: Final = 57.29577951308232
RADIANS: Final = 0.017453292519943295
"""Java's constants: degrees in a radian, and the reverse."""


def total(function: Callable[[float], float], beyond: Callable[[float], float] = abs) -> Callable[[float], float]:
    """The function with NaN outside its domain; beyond its range, infinity with the sign of `beyond`."""

    def run(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.copysign(math.inf, beyond(x))

    return run


def cot(x: float) -> float:
    return float_quotient(1.0, _tan(x))


def csc(x: float) -> float:
    return float_quotient(1.0, _sin(x))


def sec(x: float) -> float:
    return float_quotient(1.0, _cos(x))


def log1p(x: float) -> float | None:
    """ln(1 + x); NULL at -1 and below."""
    return None if x <= -1 else strict_math.log1p(x)


def rint(x: float) -> float:
    """The nearest whole number, ties to even, with the sign of x."""
    return math.copysign(float(round(x)), x) if math.isfinite(x) else x


_tan, _sin, _cos = (total(function) for function in (math.tan, math.sin, math.cos))
