"""COLLECT_SET: an ARRAY of the distinct values that are not NULL, in ascending order; without any, an empty one.

In Spark their order is nondeterministic.
"""

from __future__ import annotations

from deltic.aggregates.collect_list import rule
from deltic.aggregates.definition import AggregateFunction, Listed, Rows, Signature
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import normalized, order_key


def _reference(rows: Rows, signature: Signature) -> Value:
    distinct = {order_key(value): normalized(value) for (value,), _ in rows}
    return tuple(distinct[key] for key in sorted(distinct))


AGGREGATES = (AggregateFunction("collect_set", rule, Listed(), _reference, copies=False),)
