"""GROUP BY and DISTINCT by windows over all rows of a stream keep the results of closed windows, and the rows of open ones."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.expr.nodes import Expr, calls_python
from deltic.plan.columns import all_columns
from deltic.plan.nodes import Aggregate, Distinct, Filter, FlatMap, OverTicks, Plan, Project, Table, Union
from deltic.plan.streams import is_stream
from deltic.plan.walk import expressions, map_inputs, transform
from deltic.plan.windows import by_windows


def forget_closed_windows(plan: Plan) -> Plan:
    """A group of a window that the watermark has closed is final: it is computed once, and its rows are forgotten.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, TIMESTAMP, Field, Lateness, Schema, StreamSchema
    >>> schema = Schema((Field("at", TIMESTAMP, False), Field("id", BIGINT)))
    >>> s = Table(StreamSchema("s", schema, lateness=Lateness(0, 0)))
    >>> print(show(Distinct(OverTicks(s, "integrate"))))
    Distinct
      Integrate
        Stream s (at, id)
    >>> print(show(forget_closed_windows(Distinct(OverTicks(s, "integrate")))))
    Union
      Integrate
        Distinct
          Windows closed at the watermark of s: at#0 + 1 µs
            Stream s (at, id)
      Distinct
        Windows open at the watermark of s: at#0 + 1 µs
          Stream s (at, id)
    """
    return transform(plan, _forget, OverTicks)


def _forget(plan: Plan) -> Plan:
    match plan:
        case Aggregate() if plan.keys:
            windows: Sequence[Expr] = [expr for _, expr in plan.keys]
        case Distinct():
            windows = all_columns(plan.input.schema)
        case _:
            return plan
    rows = rows_of_ticks(plan.input)
    if rows is None or any(map(calls_python, expressions(plan))):
        return plan
    closed, open_ = by_windows(rows, windows, "closed"), by_windows(rows, windows, "open")
    if closed is None or open_ is None:
        return plan
    final, rest = map_inputs(plan, lambda _: closed), map_inputs(plan, lambda _: open_)
    return Union((OverTicks(final, "integrate"), rest))


def rows_of_ticks(plan: Plan) -> Plan | None:
    """The plan without its integrate, if it is projections and filters of all rows of a stream; they call no functions of users."""
    match plan:
        case OverTicks(function="integrate") if is_stream(plan.input) and _is_scan(plan.input):
            return plan.input
        case Project() | Filter() | FlatMap() if not any(map(calls_python, expressions(plan))):
            below = rows_of_ticks(plan.input)
            return None if below is None else map_inputs(plan, lambda _: below)
        case _:
            return None


def _is_scan(plan: Plan) -> bool:
    if isinstance(plan, Project | Filter | FlatMap):
        return not any(map(calls_python, expressions(plan))) and _is_scan(plan.input)
    return isinstance(plan, Table)
