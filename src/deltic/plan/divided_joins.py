"""Inner joins that are unions of joins which look rows up."""

from __future__ import annotations

from deltic.plan.alternative_keys import by_alternatives, has_alternatives
from deltic.plan.guarded_keys import by_failing_rows, by_guarded_key, is_guarded
from deltic.plan.guarded_ranges import by_guarded_range, has_guarded_range
from deltic.plan.join_nodes import Join
from deltic.plan.monotone_conditions import by_thresholds, has_monotone_condition
from deltic.plan.nodes import Plan
from deltic.plan.outside_ranges import by_outside_range, has_outside_range
from deltic.plan.ranges import range_of


def is_divided(join: Join) -> bool:
    """Whether the inner join with the condition of this one is `divided`."""
    return is_guarded(join) or has_guarded_range(join) or has_monotone_condition(join) or has_outside_range(join) or has_alternatives(join)


def divided(join: Join) -> tuple[Plan, ...] | None:
    """Plans without common pairs whose union is an inner join, or None."""
    guarded = by_guarded_key(join) or by_failing_rows(join) or by_guarded_range(join)
    return guarded or by_thresholds(join) or by_outside_range(join) or by_alternatives(join)


def by_ranges(join: Join) -> tuple[Plan, ...] | None:
    """What an inner join is divided into, if a part looks rows up by a range: of fewer columns, changes cancel before that."""
    parts = divided(join) if join.kind == "inner" else None
    return parts if parts is not None and any(isinstance(part, Join) and has_range(part) for part in parts) else None


def has_range(join: Join) -> bool:
    """Whether the inner join looks rows up by a range, as a whole or in a part."""
    return range_of(join) is not None or by_ranges(join) is not None
