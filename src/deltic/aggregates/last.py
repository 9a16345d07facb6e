"""LAST, or LAST_VALUE: the greatest value that is not NULL. In Spark it is that of the last row, in an order that is nondeterministic."""

from __future__ import annotations

from deltic.aggregates.any_value import any_rule
from deltic.aggregates.definition import AggregateFunction, First, Rows, Signature
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import total_key


def _reference(rows: Rows, signature: Signature) -> Value:
    return max((values[0] for values, _ in rows), key=total_key)


AGGREGATES = (
    AggregateFunction(
        "last",
        any_rule,
        First((0,), descending=True),
        _reference,
        aliases=("last_value",),
        parameters=(1, 2),
        copies=False,
        constants={1: ("TRUE or FALSE, whether NULL is ignored", lambda value: isinstance(value, bool))},
    ),
)
