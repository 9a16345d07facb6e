"""MIN_BY(x, y): x in the row with the least y; rows in which y is NULL do not count.

Among several rows with that y it is the least x, NULL only if all are NULL; Spark returns any of their x. A third argument k
gives an ARRAY of x in the k rows with the least y, in this order. The order is that of MIN.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates.definition import Rows, Signature
from deltic.aggregates.ordered import extreme_by
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import total_key


def _order(row: Sequence[Value]) -> tuple[object, ...]:
    x, y = row
    return total_key(y), x is None, total_key(x)


def _reference(rows: Rows, signature: Signature) -> Value:
    return min((values for values, _ in rows), key=_order)[0]


AGGREGATES = (extreme_by("min_by", _reference, descending=False),)
