"""The values of aggregates, from the sums of their groups.

Counts, totals and means are computed for all groups at once; aggregates with a finish function of their own (deltic.aggregates) group by
group, from the exact sums, unless an estimate determines how they are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal as OneOf
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from deltic.aggregates import Signature, aggregate_function
from deltic.aggregates.definition import SPECIAL, DigitKind, Linear, MeasureKind, Totals
from deltic.circuit.certified import Certified
from deltic.errors import ArithmeticOverflow, Span
from deltic.expr.nodes import Value
from deltic.intervals import FIRST
from deltic.schema import BIGINT, DOUBLE, Field, Type
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import MARKER, encode, encode_words
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable
from deltic.trace.sums import carry, divide_decimal, join64, join_decimal, round_limbs, sum_digits

Words = tuple[np.ndarray, ...]
ResultKind = OneOf["count", "total", "mean", "try_total", "try_mean", "computed", "extreme"]
ESTIMATED = 64
"""So many groups are estimated together."""
_FEWER_DIGITS = "cast the values to a DECIMAL of a smaller scale, or to DOUBLE"


@dataclass(frozen=True, slots=True)
class SumSource:
    """The location of a sum: `width` weights from `slot` on or, for digits, the rows of `slot`. scale: that of a decimal sum."""

    kind: MeasureKind | DigitKind
    slot: int
    width: int = 1
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """One aggregate of a group.

    counted: the weight that counts its rows; a count of 0 gives NULL. sources: its sums; none for an extreme. extreme, part: the number of
    the extreme, and of its value. function, arguments: the aggregate function that computes it, and the types of its arguments.
    """

    kind: ResultKind
    target: Field
    sources: tuple[SumSource, ...] = ()
    counted: int = 0
    extreme: int = 0
    part: int = 0
    function: str = ""
    arguments: tuple[Type, ...] = ()
    span: Span | None = field(default=None, compare=False)


class SlotDigits(NamedTuple):
    """The digits of one slot: those of group g are from starts[g] to starts[g + 1]."""

    starts: np.ndarray
    positions: np.ndarray
    digits: np.ndarray

    def by_group(self, groups: np.ndarray) -> list[Mapping[int, int]]:
        """For each of these groups, position → digit."""
        starts, counts = self.starts[groups], self.starts[groups + 1] - self.starts[groups]
        ends = np.cumsum(counts)
        places = np.repeat(starts - ends + counts, counts) + np.arange(counts.sum())
        positions, digits = self.positions[places].tolist(), self.digits[places].tolist()
        return [dict(zip(positions[a:b], digits[a:b], strict=True)) for a, b in pairwise([0, *ends.tolist()])]

    def certified(self) -> Certified:
        """The number of each group, Σ digit · 2^(32 · position), with an infinite error where it is none."""
        starts, counts = self.starts[:-1], np.diff(self.starts)
        total = Certified.of(np.zeros(len(starts), np.int64))
        groups = np.flatnonzero(counts)
        for number in range(counts.max(initial=0)):
            groups = groups[counts[groups] > number]
            places = starts[groups] + number
            positions = self.positions[places]
            digits = Certified.of(self.digits[places]).scaled(32 * np.minimum(positions, SPECIAL))
            total.put(groups, digits + total.take(groups) if number else digits)
        return total


def slot_digits(source: np.ndarray, columns: Words, digit: np.ndarray, groups: int, slots: int) -> list[SlotDigits]:
    """The digits of each slot, from rows (group, slot, position) with digits as weights."""
    rows = consolidate(Rows((source, *columns), (digit,)))
    by_slot = []
    for slot in range(slots):
        own = rows.columns[1] == slot
        group, position, words = rows.columns[0][own], rows.columns[2][own], rows.weights[0][own]
        by_slot.append(SlotDigits(np.searchsorted(group, np.arange(groups + 1)), position, words))
    return by_slot


def result_words(
    result: Result, sums: Words, digits: Sequence[SlotDigits], extremes: Sequence[Sequence[Words]], strings: StringTable
) -> Words:
    """The words of the result for each group."""
    match result.kind:
        case "extreme":
            return extremes[result.extreme][result.part]
        case "count":
            return _nullable(sums[result.counted], None, result.target)
        case "computed":
            return _computed_words(result, sums, digits, strings)
        case "total" | "try_total":
            none = sums[result.counted] == 0 if result.target.nullable else np.zeros(len(sums[0]), bool)
            return _total_words(result, result.sources[0], sums, digits, none)
        case "mean" | "try_mean":
            return _mean_words(result, result.sources[0], sums, digits, sums[result.counted] == 0)


def _total_words(result: Result, source: SumSource, sums: Words, digits: Sequence[SlotDigits], none: np.ndarray) -> Words:
    slot = source.slot
    if result.target.type.is_interval:
        return _interval_words(result, *_interval_sum(result.target.type, source, sums), none)
    match source.kind:
        case "count" | "int":
            return _nullable(sums[slot], none, result.target)
        case "bigint":
            total, overflow = join64(*sums[slot : slot + 2])
            if result.kind.startswith("try_"):
                none = none | overflow
            if overflow.any() and (overflow & ~none).any():
                raise ArithmeticOverflow(
                    "arithmetic overflow: SUM of BIGINT",
                    span=result.span,
                    expected=f"a sum from {-(2**63)} to {2**63 - 1}",
                    remedy="cast the summed values to DECIMAL(38, 0)",
                )
            return _nullable(total, none, result.target)
        case "decimal":
            value, overflow = join_decimal(sums[slot : slot + source.width], result.target.type)
            if result.kind.startswith("try_"):
                none = none | overflow
            if (overflow & ~none).any():
                raise ArithmeticOverflow(
                    f"arithmetic overflow: SUM of {result.target.type}",
                    span=result.span,
                    expected=f"a sum of at most {result.target.type.precision} digits, {result.target.type.scale} of them after the point",
                    remedy=_FEWER_DIGITS,
                )
            return encode_words(_masked(value, none), result.target)
        case "real":
            return encode_words(pa.array(_rounded_reals(digits[slot]), mask=none), result.target)
        case _:
            raise AssertionError(f"no total of {source.kind}")


def _mean_words(result: Result, source: SumSource, sums: Words, digits: Sequence[SlotDigits], none: np.ndarray) -> Words:
    slot, counts = source.slot, sums[result.counted]
    if result.target.type.is_interval:
        total, overflow = _interval_sum(result.target.type, source, sums)
        by = np.where(none, 1, np.abs(counts))
        quotient, rest = np.divmod(np.abs(total), by)
        quotient += rest >= by - rest  # half away from zero
        return _interval_words(result, np.where((total < 0) != (counts < 0), -quotient, quotient), overflow, none)
    match source.kind:
        case "decimal":
            value, overflow = divide_decimal(sums[slot : slot + source.width], counts, source.scale, result.target.type)
            if result.kind.startswith("try_"):
                none = none | overflow
            elif overflow.any():
                type = result.target.type
                message = f"arithmetic overflow: AVG leaves {type.sql}, or its sum DECIMAL({sum_digits(type)},{source.scale})"
                raise ArithmeticOverflow(message, span=result.span, remedy=_FEWER_DIGITS)
            return encode_words(_masked(value, none), result.target)
        case "int":
            number = sums[slot].astype(np.float64)
        case "rounded":
            number = _rounded(sums[slot], sums[slot + 1])
        case "real":
            number = _rounded_reals(digits[slot])
        case _:
            raise AssertionError(f"no mean of {source.kind}")
    divisors = np.where(none | (number == 0), 1, counts)  # a total of 0.0 has the mean 0.0, whatever the sign of the count
    return encode_words(pa.array(number / divisors, mask=none), result.target)


def _interval_sum(type_: Type, source: SumSource, sums: Words) -> tuple[np.ndarray, np.ndarray]:
    """(a sum of microseconds or months, where the type does not have it)."""
    if source.kind == "bigint":
        total, overflow = join64(*sums[source.slot : source.slot + 2])
    else:
        total, overflow = sums[source.slot], np.zeros(len(sums[source.slot]), bool)
    return total, overflow | (total < FIRST if type_.is_day_time else (total < -(2**31)) | (total >= 2**31))


def _interval_words(result: Result, units: np.ndarray, overflow: np.ndarray, none: np.ndarray) -> Words:
    """The words of intervals. Raises ArithmeticOverflow where the sum does not fit."""
    if result.kind.startswith("try_"):
        none = none | overflow
    if (overflow & ~none).any():
        remedy = "try_sum and try_avg give NULL instead"
        raise ArithmeticOverflow(f"arithmetic overflow: a sum of {result.target.type}", span=result.span, remedy=remedy)
    return (np.where(none, MARKER, units),)


def _computed_words(result: Result, sums: Words, digits: Sequence[SlotDigits], strings: StringTable) -> Words:
    """The results of the aggregate's finish function for each group; NULL over no rows. Of many groups those alone that its estimate leaves
    open are computed one by one."""
    state = aggregate_function(result.function).state
    assert isinstance(state, Linear) and callable(state.finish)
    counts = sums[result.counted]
    if state.estimate is None or len(counts) < ESTIMATED:
        values = pa.array(_finished(result, state.finish, sums, digits, np.arange(len(counts))), result.target.type.arrow)
        return encode(values, result.target, strings)
    with np.errstate(all="ignore"):
        estimated = state.estimate(Certified.of(counts), *(digits[source.slot].certified() for source in result.sources))
        assert isinstance(estimated, Certified) and result.target.type == DOUBLE
        numbers, known = estimated.rounded()
    none = np.zeros(len(counts), bool)
    left = np.flatnonzero(~known | (counts <= 0))
    finished = _finished(result, state.finish, sums, digits, left)
    none[left] = [value is None for value in finished]
    numbers[left] = [0.0 if value is None else value for value in finished]
    return encode_words(pa.array(numbers, mask=none), result.target)


def _finished(
    result: Result, finish: Callable[[Totals, Signature], Value], sums: Words, digits: Sequence[SlotDigits], groups: np.ndarray
) -> list[Value]:
    """The results for these groups, one by one."""
    signature = Signature(result.arguments, result.target.type, result.target.nullable)
    by_group = [_by_group(source, sums, digits, groups) for source in result.sources]
    values: list[Value] = []
    for place, count in enumerate(sums[result.counted][groups].tolist()):
        if count <= 0 and result.target.nullable:
            values.append(None)
            continue
        try:
            values.append(finish(Totals(count, tuple(each[place] for each in by_group)), signature))
        except ArithmeticOverflow as error:
            raise ArithmeticOverflow(error.message, span=result.span, remedy=error.remedy) from error
    return values


def _by_group(source: SumSource, sums: Words, digits: Sequence[SlotDigits], groups: np.ndarray) -> Sequence[Mapping[int, int]]:
    """For each of these groups, position → digit of the sum, whose limbs are ordered from high to low."""
    if source.kind in ("real", "product", "bits"):
        return digits[source.slot].by_group(groups)
    limbs = zip(*(word[groups].tolist() for word in sums[source.slot : source.slot + source.width]), strict=True)
    return [dict(enumerate(reversed(each))) for each in limbs]


def _rounded_reals(digits: SlotDigits) -> np.ndarray:
    """float64[groups]: the exact sums, rounded once."""
    return round_limbs(digits.starts, digits.positions, digits.digits)


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
