"""GROUP BY of MAPs, as in Spark: MAPs with the same entries are one key, whose entries are sorted by their keys."""

from __future__ import annotations

from dataclasses import replace

from deltic.errors import Unsupported
from deltic.expr.functions import resolve
from deltic.expr.functions.maps import SORTED
from deltic.expr.nodes import Call, Expr
from deltic.plan.nodes import Aggregate, Plan
from deltic.plan.walk import transform


def by_sorted_maps(plan: Plan) -> Plan:
    """The plan with sorted MAPs as keys of groups. Raises Unsupported."""
    return transform(plan, _by_sorted_maps)


def _by_sorted_maps(plan: Plan) -> Plan:
    if not isinstance(plan, Aggregate) or not any(key.type.has_map for _, key in plan.keys):
        return plan
    return replace(plan, keys=tuple((name, _sorted(key)) for name, key in plan.keys))


def _sorted(key: Expr) -> Expr:
    if not key.type.has_map or (isinstance(key, Call) and key.function == SORTED):
        return key
    if key.type.is_collated:
        message = f"GROUP BY does not support {key.type.sql}: a MAP with texts of a collation"
        raise Unsupported(message, span=key.span, remedy="GROUP BY map_entries() of a MAP of UTF8_BINARY")
    return resolve(SORTED, [key])
