"""The values of a group in the order of its rows, as LISTAGG and COLLECT_LIST read them."""

from __future__ import annotations

from deltic.aggregates.definition import Rows, Signature
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import order_key, total_key


def in_order(rows: Rows, signature: Signature) -> list[Value]:
    """Argument 0 of the rows, each as often as it occurs, by the terms that are the last arguments, then by itself, ascending."""
    terms = len(signature.directions)
    ordered = sorted(rows, key=lambda row: total_key(row[0][0]))
    for i, (descending, nulls_first) in reversed(list(enumerate(signature.directions))):
        place = len(signature.arguments) - terms + i
        ordered.sort(key=lambda row: order_key(row[0][place]), reverse=descending)
        ordered.sort(key=lambda row: (row[0][place] is None) != nulls_first)
    return [values[0] for values, weight in ordered for _ in range(weight)]
