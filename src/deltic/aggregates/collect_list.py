"""COLLECT_LIST, or ARRAY_AGG: an ARRAY of the values that are not NULL, in ascending order; without any, an empty one.

Rows have no order but that of a window, so the values are sorted; in Spark they come in the order of the rows, which is nondeterministic.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates.definition import AggregateFunction, Listed, Rows, Signature
from deltic.aggregates.ordered import in_order
from deltic.aggregates.rules import kept
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.schema import Type
from deltic.types import array_type


def rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    """An ARRAY of any type."""
    signature = kept(name, types, span)
    return Signature(signature.arguments, array_type(types[0]), nullable=False)


def _reference(rows: Rows, signature: Signature) -> Value:
    return tuple(in_order(rows, signature))


AGGREGATES = (AggregateFunction("collect_list", rule, Listed(), _reference, aliases=("array_agg",), within="window"),)
