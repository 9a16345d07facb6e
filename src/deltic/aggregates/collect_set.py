"""COLLECT_SET: an ARRAY of the distinct values that are not NULL, in ascending order; without any, an empty one.

In Spark their order is nondeterministic.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates import collect_list
from deltic.aggregates.definition import AggregateFunction, Listed, Rows, Signature
from deltic.aggregates.rules import without_map
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import normalized, order_key
from deltic.schema import Type


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    without_map(name, types[0], span)
    return collect_list.rule(name, types, span)


def _reference(rows: Rows, signature: Signature) -> Value:
    distinct = {order_key(value): normalized(value) for (value,), _ in rows}
    return tuple(distinct[key] for key in sorted(distinct))


AGGREGATES = (AggregateFunction("collect_set", _rule, Listed(), _reference, copies=False),)
