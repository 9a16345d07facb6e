"""ANY_VALUE: the least value that is not NULL. Spark returns any, which may be NULL unless a second argument is TRUE."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates.definition import AggregateFunction, First, Rows, Signature
from deltic.aggregates.rules import refused_argument, same
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import total_key
from deltic.schema import BOOLEAN, Type


def any_rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    """Any type that has an order; the result has it. A second argument is BOOLEAN."""
    signature = same(name, types[:1], span)
    if any(type != BOOLEAN for type in types[1:]):
        raise refused_argument(name, 2, types[1], "BOOLEAN", span)
    return Signature(tuple(types), signature.result)


def _reference(rows: Rows, signature: Signature) -> Value:
    return min((values[0] for values, _ in rows), key=total_key)


AGGREGATES = (
    AggregateFunction(
        "any_value",
        any_rule,
        First((0,), descending=False),
        _reference,
        parameters=(1, 2),
        copies=False,
        constants={1: ("TRUE or FALSE, whether NULL is ignored", lambda value: isinstance(value, bool))},
    ),
)
