"""APPROX_COUNT_DISTINCT(x[, error]): the number of distinct values, exactly; Spark's may be off by the error, 5 % unless it is given."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.aggregates.definition import AggregateFunction, Linear, Rows, Signature
from deltic.aggregates.rules import refused, refused_argument
from deltic.errors import Span
from deltic.schema import BIGINT, DOUBLE, Type


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    if not types[0].is_ordered:
        raise refused(name, types[0], "a type without a MAP or a VARIANT", span)
    if len(types) > 1 and not types[1].is_numeric:
        raise refused_argument(name, 2, types[1], "a number", span)
    return Signature((types[0], DOUBLE)[: len(types)], BIGINT, nullable=False)


def _reference(rows: Rows, signature: Signature) -> int:
    return len(rows)


AGGREGATES = (
    AggregateFunction(
        "approx_count_distinct",
        _rule,
        Linear(lambda arguments: (), "count"),
        _reference,
        parameters=(1, 2),
        constants={1: ("an error from 0 to 0.39", lambda value: isinstance(value, float) and 0.0 < value <= 0.39)},
        always_distinct=True,
    ),
)
