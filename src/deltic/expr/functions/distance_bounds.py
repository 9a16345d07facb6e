"""distance_bound(m, k, rises, strict): the number from which on x - m > k holds, with the rounding of DOUBLE. Not in SQL: joins look rows
up by it (plan/distances.py).

Subtraction is monotone in x for finite x, also as it is rounded, so the values of which the condition is TRUE are those from one number
on. It is found by halves among the numbers in their order: 64 subtractions.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from deltic.errors import Span
from deltic.expr.arrays.datum import Datum, dense
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Typed
from deltic.schema import BOOLEAN, DOUBLE

DISTANCE_BOUND: Final = "distance_bound"
_LARGEST: Final = struct.unpack("<q", struct.pack("<d", np.finfo(np.float64).max))[0]
"""The place of the greatest finite number; 0.0 is at 0, and -x at the opposite of the place of x."""


def distance_bound(m: Expr, k: Expr, *, rises: bool, strict: bool) -> Call:
    """Over DOUBLEs. Of a finite x, x >= this is x - m > k; or >= k unless `strict`. Unless `rises`, x < this is m - x > k, or >= k."""
    flags = Literal(rises, BOOLEAN), Literal(strict, BOOLEAN)
    return Call(DISTANCE_BOUND, (m, k, *flags), DOUBLE, m.nullable or k.nullable)


def _signature(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    return Typed(tuple(arguments), DOUBLE, any(argument.nullable for argument in arguments))


def _number(place: int) -> float:
    magnitude: float = struct.unpack("<d", struct.pack("<q", abs(place)))[0]
    return math.copysign(magnitude, place)


def _rows(call: Call, m: float, k: float, rises: bool, strict: bool) -> float:
    def is_from_here(x: float) -> bool:
        distance = x - m if rises else m - x
        holds = _greater(distance, k) if strict else not _greater(k, distance)
        return holds == rises

    low, high = -_LARGEST, _LARGEST + 1  # the greatest place that is not yet there is before `high`
    while low < high:
        middle = (low + high) // 2
        if is_from_here(_number(middle)):
            high = middle
        else:
            low = middle + 1
    return -math.inf if low == -_LARGEST else math.inf if low > _LARGEST else _number(low) + 0.0


def _greater(x: float, y: float) -> bool:
    """In the order of SQL: NaN is the greatest number."""
    return not math.isnan(y) and (math.isnan(x) or x > y)


def _arrays(call: Call, length: int, *arguments: Datum) -> pa.Array:
    m_array, k_array = (dense(argument, length) for argument in arguments[:2])
    rises, strict = (_flag(argument) for argument in call.arguments[2:])
    nulls = np.asarray(m_array.is_null()) | np.asarray(k_array.is_null())
    m, k = (array.fill_null(0.0).to_numpy(zero_copy_only=False) for array in (m_array, k_array))
    low, high = np.full(length, -_LARGEST, np.int64), np.full(length, _LARGEST + 1, np.int64)
    with np.errstate(all="ignore"):
        while (low < high).any():
            middle = (low & high) + ((low ^ high) >> 1)
            x = np.copysign(np.abs(middle).view(np.float64), middle.astype(np.float64))
            distance = x - m if rises else m - x
            holds = _above(distance, k) if strict else ~_above(k, distance)
            there = (holds == rises) & (low < high)
            low = np.where(there | (low >= high), low, middle + 1)
            high = np.where(there, middle, high)
    x = np.copysign(np.abs(np.minimum(low, _LARGEST)).view(np.float64), low.astype(np.float64)) + 0.0
    x = np.where(low == -_LARGEST, -np.inf, np.where(low > _LARGEST, np.inf, x))
    return pa.array(x, pa.float64(), mask=nulls)


def _above(x: Any, y: Any) -> Any:
    return ~np.isnan(y) & (np.isnan(x) | (x > y))


def _flag(argument: Expr) -> bool:
    assert isinstance(argument, Literal)
    return argument.value is True


FUNCTIONS: Final = (Function(name=DISTANCE_BOUND, named=False, signature=_signature, can_fail=False, rows=_rows, arrays=_arrays),)
