"""When to recompute a view rather than to apply the changes of a refresh to it.

Both costs are in rows: recomputation passes over all rows of the tables that a view reads, and a tick costs some times as much for each row
that changes. The factors are measured: over 200,000 rows, a tick of a join or an aggregate takes as long as a fill when 30 % of the rows
have changed, and one of window functions somewhere between 1 % (0.36 of a fill) and 10 % (2.3); 4 % is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from deltic.plan.nodes import Plan
from deltic.plan.walk import nodes
from deltic.plan.window_nodes import Window
from deltic.projects.planning import DatasetPlan, tables_of

PER_CHANGE: Final = 3.3
PER_CHANGE_OF_WINDOWS: Final = 25.0
LEAST_ROWS: Final = 10_000
"""Views over fewer rows are always maintained: neither way takes long."""


@dataclass(frozen=True, slots=True)
class Recomputation:
    """Why a view is recomputed. changed, held: rows of the tables that it reads."""

    key: str
    changed: int
    held: int

    def __str__(self) -> str:
        return f"{self.key}: recomputed by Deltic, which is cheaper: {self.changed:,} changes to {self.held:,} rows"


def recomputation(one: DatasetPlan, changed: Mapping[str, int], held: Mapping[str, int]) -> Recomputation | None:
    """Whether the changes of a refresh are so many that recomputing a view is cheaper. changed, held: rows by table."""
    if one.plan is None or one.policy != "auto" or one.dataset.live:
        return None
    tables = tables_of(one.plan)
    changes = sum(changed.get(name, 0) for name in tables)
    rows = sum(held.get(name, 0) for name in tables)
    if rows < LEAST_ROWS or changes * _factor(one.plan) <= rows:
        return None
    return Recomputation(one.dataset.key, changes, rows)


def _factor(plan: Plan) -> float:
    return PER_CHANGE_OF_WINDOWS if any(isinstance(node, Window) for node in nodes(plan)) else PER_CHANGE
