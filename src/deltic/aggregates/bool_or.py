"""BOOL_OR, ANY or SOME: whether the condition is TRUE in any row; NULL if it is NULL in all rows."""

from __future__ import annotations

from deltic.aggregates.definition import AggregateFunction, Linear, Rows, Signature, Totals
from deltic.aggregates.rules import conditions, count_where
from deltic.schema import BOOLEAN


def _finish(totals: Totals, signature: Signature) -> bool:
    return totals.integer(0) > 0


def _reference(rows: Rows, signature: Signature) -> bool:
    return any(value for (value,), _ in rows)


AGGREGATES = (
    AggregateFunction(
        "bool_or",
        conditions(BOOLEAN, nullable=True),
        Linear(lambda arguments: (count_where(arguments[0]),), _finish),
        _reference,
        aliases=("any", "some"),
        copies=False,
    ),
)
