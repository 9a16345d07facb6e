"""Windows of time: when a group of rows is final, from the expressions that it is grouped by and the lateness of their table.

A window is a value of a column with LATENESS, its date, DATE_TRUNC or TIME_BUCKET: nondecreasing functions, so when the watermark has
reached the least time of the next window, no row of this one can come.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from deltic.expr.nodes import Call, Cast, Column, Expr, Literal, columns_of
from deltic.expr.rows.dates import DATE_UNITS, TIME_UNITS
from deltic.plan.columns import reference, shift, substitute
from deltic.plan.nodes import (
    Aggregate,
    Bound,
    ByWatermark,
    Distinct,
    Filter,
    Inspect,
    Join,
    Multiset,
    Phase,
    Plan,
    Project,
    Table,
)
from deltic.schema import DATE, INT, TIMESTAMP

_DAY_US: Final = 86_400_000_000
_FIXED_US: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": _DAY_US,
    "WEEK": 7 * _DAY_US,
}
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_CLIPPED_DAYS: Final = 3
"""A day of the month after the 28th may be that many days later in the next window than in this one."""


def window_end(window: Expr, column: int) -> Bound | None:
    """The end of a row's window: the least value of `column` in the next one, or later; None if the expression is not a window of it.

    >>> from deltic.expr.nodes import Column
    >>> window_end(Column(0, TIMESTAMP, False), 0).offset
    1
    """
    match window:
        case Column(index=index):
            return Bound(window, 1) if index == column and window.type == TIMESTAMP else None
        case Cast(argument=Column(index=index), lenient=False) if index == column and window.type == DATE:
            return Bound(Cast(window, TIMESTAMP, window.nullable), _DAY_US)
        case Call("date_trunc", (Literal(value=str(unit)), Column(index=index))) if index == column:
            return _truncated(window, {**DATE_UNITS, **TIME_UNITS}.get(unit.upper()))
        case Call("time_bucket", (Literal(value=int(months)), Literal(value=int(size_us)), Column(index=index), Literal(value=origin))):
            if index != column or not isinstance(origin, datetime.datetime):
                return None
            clipped = _CLIPPED_DAYS * _DAY_US if origin.day > 28 else 0
            return _later(window, months, clipped) if months else Bound(window, size_us)
        case _:
            return None


def _truncated(window: Call, unit: str | None) -> Bound | None:
    if unit in _FIXED_US:
        return Bound(window, _FIXED_US[unit])
    return _later(window, _MONTHS[unit], 0) if unit in _MONTHS else None


def _later(window: Expr, months: int, offset: int) -> Bound:
    return Bound(Call("add_months", (window, Literal(months, INT)), TIMESTAMP, window.nullable), offset)


def by_windows(plan: Plan, windows: Sequence[Expr], phase: Phase) -> Plan | None:
    """The plan over the rows of open windows, or of those that a tick closes; None if none of `windows`, over its columns, is one.

    Every row has its columns from one table, which is replaced: a join keeps its other side as it is.
    """
    match plan:
        case Table():
            lateness = plan.table.lateness
            if lateness is None:
                return None
            ends = [end for window in windows if (end := window_end(window, lateness.column)) is not None]
            return ByWatermark(plan, plan.table, min(ends, key=_length_us), phase) if ends else None
        case Project():
            below = by_windows(plan.input, [substitute(window, [expr for _, expr in plan.columns]) for window in windows], phase)
        case Filter() | Distinct() | Multiset() | Inspect():
            below = by_windows(plan.input, windows, phase)
        case Aggregate():
            keys = [expr for _, expr in plan.keys]
            below = by_windows(plan.input, [substitute(w, keys) for w in _over(windows, range(len(keys)))], phase)
        case Join():
            return _joined(plan, windows, phase)
        case _:
            return None
    return None if below is None else replace(plan, input=below)


def _joined(plan: Join, windows: Sequence[Expr], phase: Phase) -> Plan | None:
    width = len(plan.left.schema)
    if plan.kind not in ("right", "full") and (left := by_windows(plan.left, _over(windows, range(width)), phase)) is not None:
        return replace(plan, left=left)
    if plan.kind not in ("inner", "right"):
        return None
    after = [shift(window, -width) for window in _over(windows, range(width, len(plan.schema)))]
    right = by_windows(plan.right, after, phase)
    return None if right is None else replace(plan, right=right)


def _over(windows: Iterable[Expr], columns: range) -> list[Expr]:
    """Those that read these columns alone."""
    return [window for window in windows if all(i in columns for i in columns_of(window))]


def _length_us(end: Bound) -> int:
    """About how long the window is, to choose the shortest."""
    match end.moment:
        case Call("add_months", (_, Literal(value=int(months)))):
            return months * 31 * _DAY_US
        case _:
            return end.offset


def at_window_close(plan: Plan) -> Plan | None:
    """The stream of the groups of a GROUP BY or DISTINCT, each once, when its window closes; None if the plan has no windows."""
    match plan:
        case Project() | Filter() | Multiset() | Inspect():
            below = at_window_close(plan.input)
        case Aggregate():
            below = by_windows(plan.input, [expr for _, expr in plan.keys], "closed")
        case Distinct():
            schema = plan.input.schema
            below = by_windows(plan.input, [reference(schema, i) for i in range(len(schema))], "closed")
        case _:
            return None
    return None if below is None else replace(plan, input=below)
