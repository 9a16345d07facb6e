"""PERCENTILE(x, p[, frequency]), PERCENTILE_CONT(p) and PERCENTILE_DISC(p) WITHIN GROUP (ORDER BY x), MEDIAN(x), of numbers and INTERVALs.

Numbers are those of DOUBLE.
p is a constant from 0 to 1, or for PERCENTILE, PERCENTILE_CONT and PERCENTILE_DISC an ARRAY of some, with an ARRAY of results. As in Spark
the microseconds or months of an INTERVAL pass through a DOUBLE, whose fraction is cut off. A row counts as often as its frequency says, an
integer of at least 0.
"""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final

from deltic.aggregates.definition import AggregateFunction, Rank, Ranked, Rows, Signature
from deltic.aggregates.rules import numeric, refused_argument
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.frequencies import checked_frequency, checked_total
from deltic.expr.rows.ordering import total_key
from deltic.intervals import interval_of, units_of, whole_units
from deltic.schema import BIGINT, DAY_TO_SECOND, DOUBLE, NULL, YEAR_TO_MONTH, Type
from deltic.types import array_type


def is_fraction(value: Value) -> bool:
    """Whether the value is a percentage, or an array of some."""
    fractions = value if isinstance(value, tuple) else (value,)
    return bool(fractions) and all(isinstance(each, float) and 0.0 <= each <= 1.0 for each in fractions)


FRACTION: Final = {1: ("a number from 0 to 1, or an ARRAY of such numbers", is_fraction)}


def fraction_type(name: str, type: Type, span: Span | None) -> Type:
    """The type to which a percentage is cast. Raises TypeMismatch."""
    several = type.name == "ARRAY"
    if several:
        type = type.parts[0].type
    if not type.is_numeric:
        raise refused_argument(name, 2, type, "a number, or an ARRAY of numbers", span)
    return array_type(DOUBLE) if several else DOUBLE


def _value_type(name: str, type: Type, span: Span | None) -> Type:
    """That of a percentile: DOUBLE, or an INTERVAL with all fields of its family."""
    if type.is_interval:
        return DAY_TO_SECOND if type.is_day_time else YEAR_TO_MONTH
    numeric(name, type, span)
    return DOUBLE


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    value = _value_type(name, types[0], span)
    fraction = fraction_type(name, types[1], span)
    return Signature((value, fraction), array_type(value) if fraction.name == "ARRAY" else value)


def _frequency_rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    if not types[2].is_integer and types[2] != NULL:
        raise refused_argument(name, 3, types[2], "an integer", span)
    signature = _rule(name, types[:2], span)
    return Signature((*signature.arguments, BIGINT), signature.result)


def _median_rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    value = _value_type(name, types[0], span)
    return Signature((value,), value)


def at_ranks(rows: Rows, signature: Signature, ranks: Sequence[Rank]) -> tuple[Value, ...]:
    """The value at each rank of the values of argument 0, sorted; the weights do not add up to 0."""
    descending = bool(signature.directions) and signature.directions[0][0]
    ordered = sorted((row for row in rows if row[1]), key=lambda row: total_key(row[0][0]), reverse=descending)
    ends = list(accumulate(weight for _, weight in ordered))
    results = []
    for rank in ranks:
        low, high, share = rank.places(ends[-1])
        lower, higher = (ordered[bisect_right(ends, place)][0][0] for place in (low, high))
        results.append(_between(lower, higher, share, signature.arguments[0]))
    return tuple(results)


def _between(lower: Value, higher: Value, share: float, type: Type) -> Value:
    """The value at that share of the way from one to the other; one of them where they are equal."""
    if type.is_interval and isinstance(lower, datetime.timedelta | int) and isinstance(higher, datetime.timedelta | int):
        return interval_of(whole_units(_number_between(float(units_of(lower)), float(units_of(higher)), share), type), type)
    if isinstance(lower, float) and isinstance(higher, float):
        return _number_between(lower, higher, share)
    return lower


def _number_between(lower: float, higher: float, share: float) -> float:
    return (1.0 - share) * lower + share * higher if share and lower != higher else lower


def _reference(state: Ranked) -> Callable[[Rows, Signature], Value]:
    def reference(rows: Rows, signature: Signature) -> Value:
        named = rows[0][0][1]
        if state.frequency is not None:
            rows = [(values, weight * checked_frequency(values[state.frequency])) for values, weight in rows]
            if not checked_total(sum(weight for _, weight in rows)):
                return None
        results = at_ranks(rows, signature, state.ranks(rows[0][0]))
        return results if isinstance(named, tuple) else results[0]

    return reference


def _percentile(name: str, state: Ranked, *, ordered: bool) -> AggregateFunction:
    reference = _reference(state)
    return AggregateFunction(
        name, _rule, state, reference, parameters=(2, 2), constants=FRACTION, within="required" if ordered else "nothing"
    )


_OFTEN: Final = Ranked(interpolated=True, frequency=2)
_BY_FREQUENCY: Final = AggregateFunction("percentile", _frequency_rule, _OFTEN, _reference(_OFTEN), parameters=(3, 3), constants=FRACTION)


AGGREGATES = (
    replace(_percentile("percentile", Ranked(interpolated=True), ordered=False), parameters=(2, 3), variants={3: _BY_FREQUENCY}),
    _percentile("percentile_cont", Ranked(interpolated=True), ordered=True),
    _percentile("percentile_disc", Ranked(interpolated=False), ordered=True),
    AggregateFunction("median", _median_rule, Ranked(True, 0.5), lambda rows, signature: at_ranks(rows, signature, [Rank(0.5, True)])[0]),
)
