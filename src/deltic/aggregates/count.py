"""COUNT(*), COUNT(x, …): the number of rows in which no argument is NULL."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates.definition import AggregateFunction, Linear, Rows, Signature
from deltic.aggregates.exact import fitted
from deltic.errors import Span
from deltic.schema import BIGINT, Type


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    return Signature(tuple(types), BIGINT, nullable=False)


def _reference(rows: Rows, signature: Signature) -> int:
    return fitted(sum(weight for _, weight in rows), signature.result)


AGGREGATES = (AggregateFunction("count", _rule, Linear(lambda arguments: (), "count"), _reference, parameters=(0, None)),)
