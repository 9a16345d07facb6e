"""Windows of time: when a group of rows is final, from the expressions that it is grouped by and the lateness of their table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from deltic.expr.nodes import Expr, columns_of
from deltic.plan.columns import all_columns, shift, substitute
from deltic.plan.nodes import (
    Aggregate,
    Bound,
    ByWatermark,
    Distinct,
    Filter,
    FlatMap,
    Inspect,
    Join,
    Multiset,
    OverTicks,
    Phase,
    Plan,
    Project,
    SetOperation,
    Table,
    TemporalFilter,
    TopK,
    Union,
    Window,
)
from deltic.plan.streams import is_stream
from deltic.plan.walk import nodes
from deltic.plan.window_ends import length, sliding_end, window_end
from deltic.schema import TableSchema


def by_windows(plan: Plan, windows: Sequence[Expr], phase: Phase) -> Plan | None:
    """The plan over the rows of open windows, or of those that a tick closes; None if none of `windows`, over its columns, is one.

    Every row has its columns from one table, which is replaced: a join keeps its other side as it is. A group of a stream is one of a tick
    and stays so: the rows of windows are then those of the groups.
    """
    match plan:
        case Aggregate() | Distinct() if is_stream(plan):
            return _over_groups(plan, windows, phase)
        case Table():
            lateness = plan.table.lateness
            if lateness is None:
                return None
            ends = [end for window in windows if (end := window_end(window, lateness.column)) is not None]
            return ByWatermark(plan, plan.table, min(ends, key=length), phase) if ends else None
        case Project():
            below = by_windows(plan.input, [substitute(window, [expr for _, expr in plan.columns]) for window in windows], phase)
        case Filter() | Distinct() | Multiset() | Inspect():
            below = by_windows(plan.input, windows, phase)
        case Aggregate():
            keys = [expr for _, expr in plan.keys]
            below = by_windows(plan.input, [substitute(w, keys) for w in _over(windows, range(len(keys)))], phase)
        case Join():
            return _joined(plan, windows, phase)
        case FlatMap(function="window_starts"):
            return _sliding(plan, windows, phase)
        case _:
            return None
    return None if below is None else replace(plan, input=below)


def _sliding(plan: FlatMap, windows: Sequence[Expr], phase: Phase) -> Plan | None:
    """The rows of sliding windows, which are in several: each until its own window closes. Not over joins, which are as of that tick."""
    element = len(plan.input.schema)
    below = by_windows(plan.input, _over(windows, range(element)), phase)
    if below is not None:
        return replace(plan, input=below)
    table, time = origin(plan.input, plan.arguments[0])
    if table is None or table.lateness is None or not _is_scan(plan.input):
        return None
    ends = [end for window in windows if (end := sliding_end(plan, time, table.lateness.column, window)) is not None]
    return ByWatermark(plan, table, ends[0], phase) if ends else None


def _is_scan(plan: Plan) -> bool:
    """Whether it is projections and filters of a table."""
    while isinstance(plan, Project | Filter | Multiset | Inspect):
        plan = plan.input
    return isinstance(plan, Table)


def _over_groups(plan: Plan, windows: Sequence[Expr], phase: Phase) -> Plan | None:
    ends: list[tuple[Bound, TableSchema]] = []
    for window in windows:
        table, expr = origin(plan, window)
        if table is not None and table.lateness is not None and (end := window_end(expr, table.lateness.column, window)) is not None:
            ends.append((end, table))
    if not ends:
        return None
    end, table = min(ends, key=lambda one: length(one[0]))
    return ByWatermark(plan, table, end, phase)


def origin(plan: Plan, expr: Expr) -> tuple[TableSchema | None, Expr]:
    """The table whose columns an expression over the plan's columns reads, and the expression over them."""
    match plan:
        case Table():
            return plan.table, expr
        case Project():
            return origin(plan.input, substitute(expr, [column for _, column in plan.columns]))
        case Filter() | Distinct() | Multiset() | Inspect():
            return origin(plan.input, expr)
        case Aggregate() if _over([expr], range(len(plan.keys))):
            return origin(plan.input, substitute(expr, [key for _, key in plan.keys]))
        case Join() if is_stream(plan.left) and is_stream(plan.right):
            return None, expr  # a row that is joined may be older than the watermark
        case Join() if plan.kind not in ("right", "full") and _over([expr], range(len(plan.left.schema))):
            return origin(plan.left, expr)
        case Join() if plan.kind in ("inner", "right") and _over([expr], range(len(plan.left.schema), len(plan.schema))):
            return origin(plan.right, shift(expr, -len(plan.left.schema)))
        case _:
            return None, expr


def _joined(plan: Join, windows: Sequence[Expr], phase: Phase) -> Plan | None:
    width = len(plan.left.schema)
    if is_stream(plan.left) and is_stream(plan.right):
        return None
    if phase == "closed" and is_stream(plan.left) != is_stream(plan.right):
        by_left, by_right = is_stream(plan.left), is_stream(plan.right)
    else:
        by_left = by_right = True
    if by_left and plan.kind not in ("right", "full") and (left := by_windows(plan.left, _over(windows, range(width)), phase)) is not None:
        return replace(plan, left=left)
    if not by_right or plan.kind not in ("inner", "right"):
        return None
    after = [shift(window, -width) for window in _over(windows, range(width, len(plan.schema)))]
    right = by_windows(plan.right, after, phase)
    return None if right is None else replace(plan, right=right)


def _over(windows: Iterable[Expr], columns: range) -> list[Expr]:
    """Those that read these columns alone."""
    return [window for window in windows if all(i in columns for i in columns_of(window))]


def at_window_close(plan: Plan, *, grouped: bool) -> Plan | None:
    """The stream of the groups of a GROUP BY or DISTINCT, each once, when its window closes; None if the plan has no windows.

    grouped: whether the query itself has GROUP BY or aggregates; else it has DISTINCT. Groups of a view that it reads are rows to it.
    """
    match plan:
        case Project() | Filter() | Multiset() | Inspect():
            below = at_window_close(plan.input, grouped=grouped)
        case Distinct() if grouped:
            below = at_window_close(plan.input, grouped=True)
        case Distinct():
            schema = plan.input.schema
            below = by_windows(plan.input, all_columns(schema), "closed")
        case Aggregate() if grouped:
            below = by_windows(plan.input, [expr for _, expr in plan.keys], "closed")
        case _:
            return None
    return None if below is None else replace(plan, input=below)


def obstacle(plan: Plan) -> str | None:
    """What a query has that windows do not pass, above a table with a lateness, as SQL calls it; None if there is nothing like it."""
    match plan:
        case Project() | Filter() | Distinct() | Multiset() | Inspect() | Aggregate():
            return obstacle(plan.input)
        case FlatMap(function="window_starts") if not _is_scan(plan.input):
            return obstacle(plan.input) or "sliding windows over a join or groups"
        case FlatMap():
            return obstacle(plan.input)
        case Join():
            if is_stream(plan.left) and is_stream(plan.right) and _has_lateness(plan):
                return "a join of two streams"
            if is_stream(plan.left) != is_stream(plan.right) and _has_lateness(plan.left if is_stream(plan.right) else plan.right):
                return "windows of a table that is joined to a stream"
            return obstacle(plan.left) or obstacle(plan.right)
        case _:
            return _called(plan) if not isinstance(plan, Table) and _has_lateness(plan) else None


def _has_lateness(plan: Plan) -> bool:
    return any(isinstance(node, Table) and node.table.lateness is not None for node in nodes(plan))


def _called(plan: Plan) -> str | None:
    match plan:
        case TemporalFilter():
            return "now()"
        case Union():
            return "UNION"
        case SetOperation():
            return "EXCEPT or INTERSECT"
        case TopK():
            return "LIMIT"
        case Window():
            return "session_window()" if plan.calls[0][1].function == "session_start" else "a window function"
        case OverTicks():
            return f"{plan.function}()"
        case ByWatermark():
            return "a view that has EMIT ON WINDOW CLOSE itself"
        case _:
            return None
