"""Inner joins without keys that are unions of joins which look rows up."""

from __future__ import annotations

from deltic.plan.alternative_keys import by_alternatives, has_alternatives
from deltic.plan.guarded_keys import by_failing_rows, by_guarded_key, is_guarded
from deltic.plan.join_nodes import Join
from deltic.plan.nodes import Plan


def is_divided(join: Join) -> bool:
    """Whether the inner join with the condition of this one is `divided`."""
    return is_guarded(join) or has_alternatives(join)


def divided(join: Join) -> tuple[Plan, ...] | None:
    """Plans without common pairs whose union is an inner join, or None."""
    return by_guarded_key(join) or by_failing_rows(join) or by_alternatives(join)
