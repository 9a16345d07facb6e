"""BOOL_AND, or EVERY: whether the condition is TRUE in every row in which it is not NULL."""

from __future__ import annotations

from deltic.aggregates.definition import AggregateFunction, Linear, Rows, Signature, Totals
from deltic.aggregates.rules import conditions, count_where
from deltic.schema import BOOLEAN


def _finish(totals: Totals, signature: Signature) -> bool:
    return totals.integer(0) == totals.count


def _reference(rows: Rows, signature: Signature) -> bool:
    return all(value for (value,), _ in rows)


AGGREGATES = (
    AggregateFunction(
        "bool_and",
        conditions(BOOLEAN, nullable=True),
        Linear(lambda arguments: (count_where(arguments[0]),), _finish),
        _reference,
        aliases=("every",),
        copies=False,
    ),
)
