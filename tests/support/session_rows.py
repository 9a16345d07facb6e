"""Test support: the rows of a session's views in a form to compare, and how many rows a tick touched."""

from __future__ import annotations

from typing import Any

import deltic


def rows_of_view(session: deltic.Session, view: str) -> list[tuple[Any, ...]]:
    """The rows in an order of their own, whatever their values are."""
    return sorted((tuple(row.values()) for row in session.view(view).rows()), key=repr)


def touched_rows(session: deltic.Session, view: str | None = None) -> int:
    """How many rows the last tick touched, or the operators of one view in it."""
    assert session.last_tick is not None
    counters = session.last_tick.counters
    own = counters if view is None else {operator["id"] for operator in session.explain(view).json()["operators"]}
    return sum(counter.touched for node, counter in counters.items() if node in own)
