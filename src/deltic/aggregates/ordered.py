"""Values of the rows of a group in an order: all of them, as for LISTAGG and COLLECT_LIST, or those of the first rows, as for MIN_BY."""

from __future__ import annotations

from collections.abc import Callable

from deltic.aggregates.definition import AggregateFunction, First, Listed, Rows, Signature
from deltic.aggregates.rules import LIMIT, first_values, kept, several
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


def extreme_by(name: str, reference: Callable[[Rows, Signature], Value], *, descending: bool) -> AggregateFunction:
    """MIN_BY or MAX_BY: argument 0 of the first row by argument 1. With a third argument k, an ARRAY of those of the first k rows."""
    several_rows = AggregateFunction(
        name,
        several,
        Listed(First((1, 0), descending=descending), limit=2),
        lambda rows, signature: first_values(rows, descending=descending),
        parameters=(3, 3),
        optional=frozenset({0}),
        constants=LIMIT,
    )
    return AggregateFunction(
        name,
        kept,
        First((1, 0), descending=descending),
        reference,
        parameters=(2, 3),
        optional=frozenset({0}),
        copies=False,
        variants={3: several_rows},
    )
