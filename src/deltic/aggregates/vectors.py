"""VECTOR_SUM, VECTOR_AVG: of vectors, ARRAYs of FLOATs of one length, element by element. A vector with a NULL element does not count.

Each element is the exact sum, or that divided by the number of vectors, rounded; in Spark its last digits depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deltic.aggregates.definition import AggregateFunction, Listed, Rows, Signature
from deltic.aggregates.exact import float_sum
from deltic.aggregates.rules import refused
from deltic.errors import EvaluationError, Span
from deltic.expr.nodes import Value
from deltic.expr.rows.numbers import single
from deltic.schema import FLOAT, NULL, Type
from deltic.types import array_type

_VECTOR = array_type(FLOAT)


def _rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    if types[0] not in (_VECTOR, NULL):
        raise refused(name, types[0], "ARRAY<FLOAT>", span)
    return Signature((_VECTOR,), _VECTOR)


def _reference(name: str, element: Callable[[float, int], float]) -> Callable[[Rows, Signature], Value]:
    def reference(rows: Rows, signature: Signature) -> Value:
        vectors = [(vector, weight) for (vector,), weight in rows if isinstance(vector, tuple) and None not in vector and weight]
        lengths = sorted({len(vector) for vector, _ in vectors})
        if not lengths:
            return None
        if len(lengths) > 1:
            raise EvaluationError(f"{name}: the vectors have {lengths[0]} and {lengths[-1]} elements", remedy="use vectors of one length")
        count = sum(weight for _, weight in vectors)
        sums = (float_sum((vector[i], weight) for vector, weight in vectors) for i in range(lengths[0]))
        return tuple(single(element(total, count)) for total in sums)

    return reference


AGGREGATES = (
    AggregateFunction("vector_sum", _rule, Listed(), _reference("vector_sum", lambda total, count: total)),
    AggregateFunction("vector_avg", _rule, Listed(), _reference("vector_avg", lambda total, count: total / count)),
)
