"""Rows of windows that the watermark of their table has closed, or not yet."""

from __future__ import annotations

from deltic.errors import CircuitError
from deltic.frontends.python.query import selected, text_of
from deltic.plan.nodes import Phase, Plan, Project
from deltic.plan.window_ends import WINDOWS
from deltic.plan.windows import by_windows


def windowed(plan: Plan, window: str, phase: Phase) -> Plan:
    """The rows by their windows, which are an SQL expression over the columns. Raises CircuitError, QueryError."""
    bound = selected(plan, [f"{text_of(window)} AS window"])
    assert isinstance(bound, Project)
    ((_, expr),) = bound.columns
    after = by_windows(plan, [expr], phase) if bound.input == plan else None
    if after is None:
        raise CircuitError(
            f"{window} is not a window of a column with a lateness",
            expected=WINDOWS,
            remedy='declare it: circuit.stream(…, lateness={"column": "1 hour"})',
        )
    return after
