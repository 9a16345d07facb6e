"""Cells: parts of the number line by which a join finds the intervals that contain a point.

A cell of level L has 2^L numbers and begins at a multiple of them. An interval has the cells that it meets at one level: the least of
LEVELS whose cells are no shorter than it is. So it has one or two, or up to four at the greatest level. A point has the cell that contains
it at each level. If an interval contains a point, they share exactly one cell. The reverse does not hold, so the bounds are compared
afterwards: with points from up to eight times the interval's length.

The number of a cell is the one in its middle, whose lowest bit that is set determines the level.
"""

from __future__ import annotations

import datetime
from typing import Final

from deltic.expr.rows.casts import EPOCH, MICROSECOND

LEVELS: Final = range(2, 64, 2)


def cells_of_point(value: object) -> list[int]:
    """The cells that contain a whole number, DATE or timestamp, from short to long.

    >>> cells_of_point(5)[:3], cells_of_point(5)[0] == cells_of_point(7)[0]
    ([6, 8, 32], True)
    """
    number = _number(value)
    return [_cell(number >> level, level) for level in LEVELS]


def cells_of_interval(low: object, high: object) -> list[int]:
    """The cells of the numbers from `low` to `high`; none if it is less.

    >>> cells_of_interval(5, 6), cells_of_interval(3, 4), cells_of_interval(4, 3)
    ([6], [2, 6], [])
    """
    first, last = _number(low), _number(high)
    if last < first:
        return []
    level = next((level for level in LEVELS if last - first < 1 << level), LEVELS[-1])
    return [_cell(place, level) for place in range(first >> level, (last >> level) + 1)]


def _cell(place: int, level: int) -> int:
    return (place << level) + (1 << (level - 1))


def _number(value: object) -> int:
    """The value as it is stored: a DATE in days, a timestamp in microseconds, since 1970."""
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=datetime.UTC) - EPOCH) // MICROSECOND
    if isinstance(value, datetime.date):
        return (value - EPOCH.date()).days
    assert isinstance(value, int)
    return value
