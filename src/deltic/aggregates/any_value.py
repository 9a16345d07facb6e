"""ANY_VALUE: the least value that is not NULL. Spark returns any, which may be NULL unless a second argument is TRUE."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates.definition import AggregateFunction, First, Rows, Signature
from deltic.aggregates.rules import kept, refused_argument
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import total_key
from deltic.schema import BOOLEAN, Type


def any_rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    """Any type; the result has it. A second argument is BOOLEAN."""
    signature = kept(name, types[:1], span)
    if any(type != BOOLEAN for type in types[1:]):
        raise refused_argument(name, 2, types[1], "BOOLEAN", span)
    return Signature(tuple(types), signature.result)


def extreme_value(name: str, *aliases: str, descending: bool) -> AggregateFunction:
    """The least value that is not NULL, or the greatest. A second argument is whether NULL is ignored, as it always is."""
    pick = max if descending else min

    def reference(rows: Rows, signature: Signature) -> Value:
        return pick((values[0] for values, _ in rows), key=total_key)

    return AggregateFunction(
        name,
        any_rule,
        First((0,), descending=descending),
        reference,
        aliases=aliases,
        parameters=(1, 2),
        copies=False,
        constants={1: ("TRUE or FALSE, whether NULL is ignored", lambda value: isinstance(value, bool))},
    )


AGGREGATES = (extreme_value("any_value", descending=False),)
