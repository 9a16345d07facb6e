"""MIN_BY(x, y): x in the row with the least y; rows in which y is NULL do not count.

Among several rows with that y it is the least x, NULL only if all are NULL; Spark returns any of their x. A third argument k
gives an ARRAY of x in the k rows with the least y, in this order. The order is that of MIN.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates.definition import AggregateFunction, First, Listed, Rows, Signature
from deltic.aggregates.rules import LIMIT, first_values, kept, several
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import total_key


def _order(row: Sequence[Value]) -> tuple[object, ...]:
    x, y = row
    return total_key(y), x is None, total_key(x)


def _reference(rows: Rows, signature: Signature) -> Value:
    return min((values for values, _ in rows), key=_order)[0]


def _references(rows: Rows, signature: Signature) -> Value:
    return first_values(rows, descending=False)


_SEVERAL = AggregateFunction(
    "min_by",
    several,
    Listed(First((1, 0), descending=False), limit=2),
    _references,
    parameters=(3, 3),
    optional=frozenset({0}),
    constants=LIMIT,
)
AGGREGATES = (
    AggregateFunction(
        "min_by",
        kept,
        First((1, 0), descending=False),
        _reference,
        parameters=(2, 3),
        optional=frozenset({0}),
        copies=False,
        variants={3: _SEVERAL},
    ),
)
