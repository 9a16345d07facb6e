"""TRY_SUM and TRY_AVG: SUM and AVG, but NULL where the result, or the sum of decimals, does not fit its type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from deltic.aggregates.avg import AGGREGATES as MEANS
from deltic.aggregates.definition import AggregateFunction, Finish, Linear, Rows, Signature
from deltic.aggregates.sum import AGGREGATES as SUMS
from deltic.errors import ArithmeticOverflow
from deltic.expr.nodes import Value


def _tried(reference: Callable[[Rows, Signature], Value]) -> Callable[[Rows, Signature], Value]:
    def tried(rows: Rows, signature: Signature) -> Value:
        try:
            return reference(rows, signature)
        except ArithmeticOverflow:
            return None

    return tried


def _lenient(function: AggregateFunction, finish: Finish) -> AggregateFunction:
    assert isinstance(function.state, Linear)
    state = replace(function.state, finish=finish)
    return replace(function, name=f"try_{function.name}", aliases=(), state=state, reference=_tried(function.reference))


AGGREGATES = (_lenient(SUMS[0], "try_total"), _lenient(MEANS[0], "try_mean"))
