"""PERCENTILE(x, p), PERCENTILE_CONT(p) and PERCENTILE_DISC(p) WITHIN GROUP (ORDER BY x), MEDIAN(x), of numbers as DOUBLE, and of INTERVALs.

p is a constant from 0 to 1, or for PERCENTILE, PERCENTILE_CONT and PERCENTILE_DISC an ARRAY of some, with an ARRAY of results. As in Spark
the microseconds or months of an INTERVAL pass through a DOUBLE, whose fraction is cut off.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Final

from deltic.aggregates.definition import AggregateFunction, Rank, Ranked, Rows, Signature
from deltic.aggregates.rules import numeric, refused_argument
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import total_key
from deltic.intervals import interval_of, units_of, whole_units
from deltic.schema import DAY_TO_SECOND, DOUBLE, YEAR_TO_MONTH, Type
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


def _median_rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    value = _value_type(name, types[0], span)
    return Signature((value,), value)


def at_ranks(rows: Rows, signature: Signature, ranks: Sequence[Rank]) -> tuple[Value, ...]:
    """The value at each rank of the values of argument 0, sorted."""
    descending = bool(signature.directions) and signature.directions[0][0]
    ordered = sorted((row for row in rows if row[1]), key=lambda row: total_key(row[0][0]), reverse=descending)
    values = [values[0] for values, weight in ordered for _ in range(weight)]
    results = []
    for rank in ranks:
        low, high, share = rank.places(len(values))
        results.append(_between(values[low], values[high], share, signature.arguments[0]))
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
        results = at_ranks(rows, signature, state.ranks(rows[0][0]))
        return results if isinstance(named, tuple) else results[0]

    return reference


def _percentile(name: str, state: Ranked, *, ordered: bool) -> AggregateFunction:
    reference = _reference(state)
    return AggregateFunction(
        name, _rule, state, reference, parameters=(2, 2), constants=FRACTION, within="required" if ordered else "nothing"
    )


AGGREGATES = (
    _percentile("percentile", Ranked(interpolated=True), ordered=False),
    _percentile("percentile_cont", Ranked(interpolated=True), ordered=True),
    _percentile("percentile_disc", Ranked(interpolated=False), ordered=True),
    AggregateFunction("median", _median_rule, Ranked(True, 0.5), lambda rows, signature: at_ranks(rows, signature, [Rank(0.5, True)])[0]),
)
