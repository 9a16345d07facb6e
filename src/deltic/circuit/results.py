"""How the value of an aggregate is read off what its group has summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf

import numpy as np
import pyarrow as pa

from deltic.errors import ArithmeticOverflow, Span
from deltic.schema import BIGINT, Field
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import encode_words
from deltic.trace.rows import Rows
from deltic.trace.sums import carry, divide_decimal, join64, join_decimal, round_limbs

Words = tuple[np.ndarray, ...]
ResultKind = OneOf[
    "count", "sum_int", "sum_bigint", "sum_decimal", "sum_float", "avg_int", "avg_rounded", "avg_decimal", "avg_float", "extreme"
]
_FEWER_DIGITS = "cast the values to a DECIMAL of a smaller scale, or to DOUBLE"


@dataclass(frozen=True, slots=True)
class Result:
    """One aggregate of a group.

    slot: its first weight among the sums, its float slot, or its extreme. counted: the weight that says over how many values it
    is taken; 0 of them give NULL. limbs, scale: of a decimal sum.
    """

    kind: ResultKind
    target: Field
    slot: int
    counted: int = 0
    limbs: int = 0
    scale: int = 0
    span: Span | None = field(default=None, compare=False)


def result_words(result: Result, sums: Words, floats: Sequence[np.ndarray], extremes: Sequence[Words]) -> Words:
    """The words of the result for each group."""
    match result.kind:
        case "extreme":
            return extremes[result.slot]
        case "count":
            return _nullable(sums[result.slot], None, result.target)
    none = sums[result.counted] <= 0
    at = result.slot
    match result.kind:
        case "sum_int":
            return _nullable(sums[at], none, result.target)
        case "sum_bigint":
            total, overflow = join64(*sums[at : at + 2])
            if overflow.any() and (overflow & ~none).any():
                raise ArithmeticOverflow(
                    "arithmetic overflow: SUM of BIGINT",
                    span=result.span,
                    expected=f"a sum from {-(2**63)} to {2**63 - 1}",
                    remedy="cast the summed values to DECIMAL(38, 0)",
                )
            return _nullable(total, none, result.target)
        case "sum_decimal":
            value, overflow = join_decimal(sums[at : at + result.limbs], result.target.type)
            if (overflow & ~none).any():
                raise ArithmeticOverflow(
                    f"arithmetic overflow: SUM of {result.target.type}",
                    span=result.span,
                    expected=f"a sum of at most {result.target.type.precision} digits, {result.target.type.scale} of them behind the point",
                    remedy=_FEWER_DIGITS,
                )
            return encode_words(_masked(value, none), result.target)
        case "avg_decimal":
            try:
                value = divide_decimal(sums[at : at + result.limbs], sums[result.counted], result.scale, result.target.type)
            except ArithmeticOverflow as error:
                raise ArithmeticOverflow(error.message, span=result.span, remedy=_FEWER_DIGITS) from error
            return encode_words(_masked(value, none), result.target)
        case "sum_float":
            number = floats[at]
        case "avg_int":
            number = sums[at].astype(np.float64) / np.where(none, 1, sums[result.counted])
        case "avg_rounded":
            number = _rounded(sums[at], sums[at + 1]) / np.where(none, 1, sums[result.counted])
        case "avg_float":
            number = floats[at] / np.where(none, 1, sums[result.counted])
    return encode_words(pa.array(number, mask=none), result.target)


def float_sums(source: np.ndarray, columns: Words, limb: np.ndarray, groups: int, slots: int) -> list[np.ndarray]:
    """The exact sums, rounded once: float64[groups] per slot, from limbs (source group, slot, position)."""
    rows = consolidate(Rows((source, *columns), (limb,)))
    sums = []
    for slot in range(slots):
        mine = rows.columns[1] == slot
        group, position, words = rows.columns[0][mine], rows.columns[2][mine], rows.weights[0][mine]
        starts = np.searchsorted(group, np.arange(groups + 1))
        sums.append(round_limbs(starts, position, words))
    return sums


def _rounded(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """high·2^32 + low as the nearest double."""
    high, low = carry((high, low))
    exact = (high << np.int64(32)) + low
    small = np.abs(high) < 2**30
    if small.all():
        return exact.astype(np.float64)
    return np.array([float((h << 32) + w) for h, w in zip(high.tolist(), low.tolist(), strict=True)])


def _masked(value: pa.Array, none: np.ndarray) -> pa.Array:
    return pa.compute.if_else(pa.array(none), pa.scalar(None, value.type), value) if none.any() else value


def _nullable(value: np.ndarray, none: np.ndarray | None, field: Field) -> Words:
    """The words of a BIGINT result."""
    assert field.type == BIGINT
    if not field.nullable:
        return (value,)
    if none is None:
        return (np.ones(len(value), np.int64), value)
    return ((~none).astype(np.int64), np.where(none, 0, value))
