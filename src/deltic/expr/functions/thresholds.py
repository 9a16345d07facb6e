"""threshold(x -> condition, rises): the number from which on a condition holds. Not in SQL: joins look rows up by it
(plan/monotone_conditions.py).

The condition is monotone in x over the finite numbers, also as its terms are rounded: it is FALSE up to some number and TRUE from there on,
or the other way round. That number is found by halves among the numbers in their order, with 64 evaluations; of few rows by 256ths, since
columns of them take as long as a value, and of very few row by row.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from deltic.errors import Span
from deltic.expr.arrays.datum import Datum, dense, truths
from deltic.expr.columns import Frame, value_of
from deltic.expr.failing import can_fail
from deltic.expr.functions.failures import read_rows
from deltic.expr.interpreter import Row, applied
from deltic.expr.nodes import Call, Expr, Lambda, LambdaVariable, Literal, calls_python
from deltic.expr.registry import Function, Nulls, Typed
from deltic.schema import BOOLEAN, DOUBLE

THRESHOLD: Final = "threshold"
NUMBER: Final = LambdaVariable(0, 0, DOUBLE, False, "x")
"""What the condition is monotone in."""
_LARGEST: Final = struct.unpack("<q", struct.pack("<d", np.finfo(np.float64).max))[0]
"""The place of the greatest finite number; 0.0 is at 0, and -x at the opposite of the place of x."""
_FEW: Final = 64
"""Rows that are searched by 256ths."""
_ONE_BY_ONE: Final = 8
"""Rows of which columns take longer than their values."""


def threshold(condition: Expr, *, rises: bool) -> Call:
    """condition: over NUMBER. It cannot fail, and is NULL of all numbers if of one; then the threshold is NULL.

    For finite x, the condition holds where x >= threshold; unless `rises`, where x < threshold.
    """
    assert not can_fail(condition)
    return Call(THRESHOLD, (Lambda((NUMBER,), condition), Literal(rises, BOOLEAN)), DOUBLE, condition.nullable)


def _signature(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    return Typed(tuple(arguments), DOUBLE, any(argument.nullable for argument in arguments))


def _parts(call: Call) -> tuple[Lambda, bool]:
    condition, rises = call.arguments
    assert isinstance(condition, Lambda) and isinstance(rises, Literal)
    return condition, rises.value is True


def _number(place: int) -> float:
    magnitude: float = struct.unpack("<d", struct.pack("<q", abs(place)))[0]
    return math.copysign(magnitude, place)


def _rows(call: Call, row: Row) -> float | None:
    condition, rises = _parts(call)
    if applied(condition, row, 0.0) is None:
        return None
    low, high = -_LARGEST, _LARGEST + 1  # the greatest place that is not yet there is before `high`
    while low < high:
        middle = (low + high) // 2
        if (applied(condition, row, _number(middle)) is True) == rises:
            high = middle
        else:
            low = middle + 1
    return -math.inf if low == -_LARGEST else math.inf if low > _LARGEST else _number(low) + 0.0


def _arrays(call: Call, frame: Frame) -> pa.Array:
    condition, rises = _parts(call)
    n, parts = frame.length, 256 if frame.length <= _FEW else 2
    if n <= _ONE_BY_ONE and not calls_python(condition):
        return pa.array([_rows(call, row) for row in read_rows(call, frame, np.arange(n))], pa.float64())
    low, high = np.full(n, -_LARGEST, np.int64), np.full(n, _LARGEST + 1, np.int64)
    while (low < high).any():
        rows = np.flatnonzero(low < high)
        places = _between(low[rows], high[rows], parts)
        values = dense(_applied(condition, frame, rows, places), places.size)
        reached = (truths(values, places.size) == rises).reshape(places.shape)
        before = (~reached).sum(axis=1)  # of the places: those after it are reached
        ends = np.arange(len(rows))
        high[rows] = np.where(before < parts - 1, places[ends, np.minimum(before, parts - 2)], high[rows])
        low[rows] = np.where(before > 0, places[ends, before - 1] + 1, low[rows])
    x = np.where(low == -_LARGEST, -np.inf, np.where(low > _LARGEST, np.inf, _numbers(np.minimum(low, _LARGEST)) + 0.0))
    zeros = dense(_applied(condition, frame, np.arange(n), np.zeros((n, 1), np.int64)), n)
    return pa.array(x, pa.float64(), mask=np.asarray(zeros.is_null()))


def _between(low: np.ndarray, high: np.ndarray, parts: int) -> np.ndarray:
    """int64[n, parts - 1]: the ends of the parts of each interval, ascending, all of them before its high end."""
    width = (high - low).view(np.uint64)[:, None]
    steps, k = np.arange(1, parts, dtype=np.uint64), np.uint64(parts)
    places: np.ndarray = low[:, None] + (width // k * steps + width % k * steps // k).view(np.int64)
    return places


def _numbers(places: np.ndarray) -> np.ndarray:
    numbers: np.ndarray = np.copysign(np.abs(places).view(np.float64), places.astype(np.float64))
    return numbers


def _applied(condition: Lambda, frame: Frame, rows: np.ndarray, places: np.ndarray) -> Datum:
    """The condition on these rows of the frame, each with its places."""
    repeated = frame.applied(np.repeat(rows, places.shape[1]), condition, [pa.array(_numbers(places.reshape(-1)))])
    return value_of(condition.body, repeated)


FUNCTIONS: Final = (
    Function(name=THRESHOLD, named=False, signature=_signature, nulls=Nulls.LAZY, can_fail=False, rows=_rows, arrays=_arrays),
)
