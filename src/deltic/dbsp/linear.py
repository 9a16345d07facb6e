"""The most general linear operator, and the others as its instances.

A logic maps a row to updates (row, time, weight). `join_function` applies it to each update of a stream: the join of the stream with the
collection of all (row, update). Times are joined, weights multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from deltic.dbsp.operators import as_tuple, joined_times, parts
from deltic.dbsp.zset import EntryTime, Row, ZSet, as_time
from deltic.purity import pure
from deltic.trace.time import Time

Update = tuple[Row, int | Time | None, int]
Logic = Callable[[Any], Iterable[Update]]
"""A pure function. The time None precedes or equals every other."""


def join_function(logic: Logic, zset: ZSet) -> ZSet:
    """Maps (row, time, weight) to (row₂, time ∨ time₂, weight · weight₂) for every update that the logic returns for the row.

    >>> join_function(lambda x: [(2 * x, 3 * x, x), (2 * x, 4 * x, -x)], ZSet.of([(2, 7, 1)]))
    ZSet([(4, (7,), 2), (4, (8,), -2)])
    """
    updates = pure(as_tuple(logic))

    def rows() -> Iterator[tuple[tuple[Row, EntryTime], int]]:
        for (element, time), weight in zset.items():
            for update in updates(element):
                row, due, factor = parts(update, 3, logic)
                yield (row, joined(time, due)), weight * factor

    return ZSet.sum(rows(), "join_function")


def map(function: Callable[[Any], Row]) -> Logic:
    """One row for each row."""
    return lambda row: [(function(row), None, 1)]


def filter(predicate: Callable[[Any], bool]) -> Logic:
    """The row itself if the predicate holds."""
    return lambda row: [(row, None, 1)] if predicate(row) else []


def flat_map(function: Callable[[Any], Iterable[Row]]) -> Logic:
    """Any number of rows for each row."""
    return lambda row: [(one, None, 1) for one in function(row)]


def explode(function: Callable[[Any], Iterable[tuple[Row, int]]]) -> Logic:
    """Rows with weights, which may be negative."""
    return lambda row: [(one, None, weight) for one, weight in function(row)]


def temporal_filter(lower: Callable[[Any], int], upper: Callable[[Any], int]) -> Logic:
    """The row at times in [lower(row), upper(row)); nothing if lower ≥ upper."""

    def logic(row: Any) -> Iterable[Update]:
        first, last = lower(row), upper(row)
        return [(row, first, 1), (row, last, -1)] if first < last else []

    return logic


def followed_by(first: Logic, *others: Logic) -> Logic:
    """The composition of these logics, in one pass.

    >>> twice = followed_by(map(lambda x: x + 1), explode(lambda x: [(x, 2)]))
    >>> join_function(twice, ZSet.of([(1, 0, 3)]))
    ZSet([(2, (0,), 6)])
    """
    if not others:
        return first
    second, *rest = others

    def logic(row: Any) -> Iterator[Update]:
        for middle, time, weight in first(row):
            for last, due, factor in second(middle):
                yield last, joined(as_time(time), due), weight * factor

    return followed_by(logic, *rest)


def joined(time: EntryTime, due: int | Time | None) -> EntryTime:
    """time ∨ due, where None precedes or equals every time."""
    later = as_time(due)
    if time is None or later is None:
        return later if time is None else time
    return joined_times(time, later, "join_function")
