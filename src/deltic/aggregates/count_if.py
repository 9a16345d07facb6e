"""COUNT_IF: the number of rows in which the condition is TRUE."""

from __future__ import annotations

from deltic.aggregates.definition import AggregateFunction, Linear, Rows, Signature
from deltic.aggregates.exact import fitted
from deltic.aggregates.rules import conditions, count_where
from deltic.schema import BIGINT


def _reference(rows: Rows, signature: Signature) -> int:
    return fitted(sum(weight for (value,), weight in rows if value), signature.result)


AGGREGATES = (
    AggregateFunction(
        "count_if",
        conditions(BIGINT, nullable=False),
        Linear(lambda arguments: (count_where(arguments[0]),), "total"),
        _reference,
    ),
)
