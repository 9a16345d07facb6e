"""Warnings about plans: what a view costs that its definition does not show."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from deltic.errors import Span
from deltic.optimizer.keyless_joins import keyless_joins
from deltic.plan.nodes import Plan


class PlanWarning(UserWarning):
    """A view is correct, but its plan is expensive. place: `file:line:column`. text: without the place."""

    def __init__(self, span: Span, text: str) -> None:
        self.place, self.text = f"{span.name}:{span.line}:{span.column}", text
        super().__init__(f"{self.place}: {text}")


def warn_of_plans(plans: Mapping[str, Plan]) -> None:
    """Issues PlanWarning for each join in the plans that has no key, with its place in the text; once for each place."""
    places: dict[tuple[str, int], tuple[str, Span]] = {}
    for view, plan in plans.items():
        for join in keyless_joins(plan):
            if join.span is not None:
                places.setdefault((join.span.name, join.span.start), (view, join.span))
    for view, span in places.values():
        relation = span.written
        cost = "each change is compared with all rows of the other side (deltic explain shows the plan)"
        text = f"view {view}: no equality joins {relation:.60} with the other relations, so {cost}"
        warnings.warn(PlanWarning(span, text), stacklevel=4)
