"""Warnings about plans: what a view costs that its definition does not show."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Final

from deltic.errors import PlanWarning, Span
from deltic.optimizer.keyless_joins import keyless_joins, one_sided_joins
from deltic.plan.nodes import Plan

ALL: Final = "no equality joins {} with the other relations, so each change is compared with all rows of the other side"
SOME: Final = (
    "one comparison looks up rows of {}, and no equality, so each change is compared with all rows of the other side that satisfy it"
)


def warn_of_plans(plans: Mapping[str, Plan]) -> None:
    """Issues PlanWarning for each join in the plans that has no key, with its place in the text; once for each place."""
    places: dict[tuple[str, int], tuple[str, str, Span]] = {}
    for view, plan in plans.items():
        for text, joins in ((ALL, keyless_joins(plan)), (SOME, one_sided_joins(plan))):
            for join in joins:
                if join.span is not None:
                    places.setdefault((join.span.name, join.span.start), (view, text, join.span))
    for view, text, span in places.values():
        text = f"view {view}: {text.format(f'{span.written:.60}')} (deltic explain shows the plan)"
        warnings.warn(PlanWarning(span, text), stacklevel=4)
