"""MAX: the greatest value; -0.0 is less than 0.0 and NaN is greatest."""

from __future__ import annotations

from deltic.aggregates.definition import AggregateFunction, First, Rows, Signature
from deltic.aggregates.rules import same
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import total_key


def _reference(rows: Rows, signature: Signature) -> Value:
    return max((value for (value,), _ in rows), key=total_key)


AGGREGATES = (AggregateFunction("max", same, First((0,), descending=True), _reference, copies=False),)
