"""HISTOGRAM_NUMERIC(x, n): an ARRAY of at most n bins (x, y), each the mean of the values in it and their number, ascending.

Each different value is a bin at first; then the two neighbours whose means are nearest, the first of several such pairs, become one, until
n bins are left. So the result depends on the values alone. Spark merges bins while rows arrive (Ben-Haim and Tom-Tov 2010), in the order of
the rows; the two agree where there are at most n different values, in one partition of Spark's.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Final

from deltic.aggregates.definition import AggregateFunction, Listed, Rows, Signature
from deltic.aggregates.rules import refused, refused_argument
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.numbers import fit, single
from deltic.expr.rows.ordering import total_key
from deltic.intervals import interval_of, units_of
from deltic.schema import DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, Field, Type
from deltic.types import array_type, struct

_EPOCH: Final = datetime.datetime(1970, 1, 1)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_CONSTANTS: Final = {1: ("the number of bins, from 2", lambda value: isinstance(value, int) and value >= 2)}


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    value = DOUBLE if types[0] in (STRING, NULL) else types[0]
    if not value.is_numeric and not value.is_interval and value not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise refused(name, value, "a number, a DATE, a TIMESTAMP or an INTERVAL", span)
    if not types[1].is_numeric:
        raise refused_argument(name, 2, types[1], "an integer", span)
    return Signature((value, INT), array_type(struct((Field("x", value), Field("y", DOUBLE)))))


def _number(value: Value) -> float:
    match value:
        case datetime.datetime():
            return float((value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)
        case datetime.date():
            return float(value.toordinal() - _EPOCH.toordinal())
        case datetime.timedelta():
            return float(units_of(value))
        case _:
            assert isinstance(value, float | int | Decimal)
            return float(value)


def _value(number: float, type: Type) -> Value:
    """The value of the type, without a fraction where it has none."""
    if type == DOUBLE:
        return number
    if type.is_float:
        return single(number)
    if type.is_decimal:
        return fit(Fraction(Decimal(repr(number))), type)
    whole = int(number)
    if type == DATE:
        return datetime.date.fromordinal(whole + _EPOCH.toordinal())
    if type in (TIMESTAMP, TIMESTAMP_NTZ):
        moment = _EPOCH + whole * _MICROSECOND
        return moment.replace(tzinfo=datetime.UTC) if type == TIMESTAMP else moment
    return interval_of(whole, type) if type.is_interval else whole


def _merged(counts: Sequence[tuple[float, int]], limit: int) -> list[tuple[float, float]]:
    """The bins (mean, number) of different values, ascending, with their numbers."""
    means, sizes = [value for value, _ in counts], [float(count) for _, count in counts]
    after, before = list(range(1, len(means) + 1)), list(range(-1, len(means) - 1))
    version = [0] * len(means)

    def pair(i: int) -> tuple[float, int, int, int]:
        """By its distance, then by its place: bin i and the one after it, valid for these versions."""
        distance = means[after[i]] - means[i]
        return distance if distance == distance else float("inf"), i, version[i], version[after[i]]

    pairs = [pair(i) for i in range(len(means) - 1)]
    heapify(pairs)
    left = len(means)
    while left > limit:
        _, i, of_first, of_second = heappop(pairs)
        j = after[i]
        if j >= len(means) or (of_first, of_second) != (version[i], version[j]):
            continue
        size = sizes[i] + sizes[j]
        means[i], sizes[i] = (means[i] * sizes[i] + means[j] * sizes[j]) / size, size
        after[i], version[i], version[j] = after[j], version[i] + 1, -1
        left -= 1
        if after[i] < len(means):
            before[after[i]] = i
            heappush(pairs, pair(i))
        if before[i] >= 0:
            heappush(pairs, pair(before[i]))
    return [(mean, size) for mean, size, own in zip(means, sizes, version, strict=True) if own >= 0]


def _reference(rows: Rows, signature: Signature) -> Value:
    limit = rows[0][0][1]
    assert isinstance(limit, int)
    counts: dict[object, int] = {}
    numbers: dict[object, float] = {}
    for (value, _), weight in sorted(rows, key=lambda row: total_key(row[0][0])):
        number = _number(value) + 0.0
        key = number if number == number else "NaN"
        numbers.setdefault(key, number)
        counts[key] = counts.get(key, 0) + weight
    bins = _merged([(numbers[key], count) for key, count in counts.items() if count], limit)
    return tuple((_value(mean, signature.arguments[0]), size) for mean, size in bins)


AGGREGATES = (AggregateFunction("histogram_numeric", _rule, Listed(), _reference, parameters=(2, 2), constants=_CONSTANTS),)
