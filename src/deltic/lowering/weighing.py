"""The requirements of an aggregate on its input: group columns, and sums as weights (computed by `weigh.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltic.aggregates.definition import Measure
from deltic.expr.nodes import Expr
from deltic.plan.columns import substitute


@dataclass(frozen=True, slots=True)
class Weighing:
    """Group columns and sums of a plan, as expressions over it.

    groups: the columns of the result. measures: its sums. present: expressions that must not be NULL.
    """

    groups: tuple[Expr, ...]
    measures: tuple[Measure, ...]
    present: tuple[Expr, ...] = ()

    def expressions(self) -> tuple[Expr, ...]:
        """All of them, over the plan's rows."""
        return (*self.groups, *self.present, *(measure.argument for measure in self.measures))

    def through(self, columns: Sequence[Expr]) -> Weighing:
        """The same over the input of a projection."""
        return Weighing(
            tuple(substitute(g, columns) for g in self.groups),
            tuple(Measure(m.kind, substitute(m.argument, columns)) for m in self.measures),
            tuple(substitute(p, columns) for p in self.present),
        )
