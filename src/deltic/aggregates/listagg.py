"""LISTAGG, or STRING_AGG: the values that are not NULL as one STRING or BINARY, separated by a constant, in the order of WITHIN GROUP.

Rows that are equal in that order are sorted by the value, and without an order all are; in Spark their order is nondeterministic.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates.definition import AggregateFunction, Listed, Rows, Signature
from deltic.aggregates.ordered import in_order
from deltic.aggregates.rules import refused, refused_argument
from deltic.errors import Span
from deltic.expr.nodes import Value
from deltic.schema import BINARY, NULL, STRING, Type


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    result = BINARY if types[0] == BINARY else types[0] if types[0].collation else STRING
    if types[0].is_nested:
        raise refused(name, types[0], "STRING or BINARY", span)
    if len(types) > 1 and types[1] not in (result, NULL):
        raise refused_argument(name, 2, types[1], result.sql, span)
    return Signature((result,) * len(types), result)


def _reference(rows: Rows, signature: Signature) -> Value:
    values = in_order(rows, signature)
    between = rows[0][0][1] if len(signature.arguments) - len(signature.directions) > 1 else None
    if signature.result == BINARY:
        return (between if isinstance(between, bytes) else b"").join(value for value in values if isinstance(value, bytes))
    return (between if isinstance(between, str) else "").join(value for value in values if isinstance(value, str))


AGGREGATES = (
    AggregateFunction(
        "listagg",
        _rule,
        Listed(),
        _reference,
        aliases=("string_agg",),
        parameters=(1, 2),
        optional=frozenset({1}),
        constants={1: ("the separator", lambda value: True)},
        within="rows",
    ),
)
