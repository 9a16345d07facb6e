"""The oracle's aggregates over the weighted rows of one group: the rows that count, and the function's reference over them.

Rows with a NULL argument do not count, nor do those that FILTER rejects. If the weights of the others add up to 0 the value is NULL, except
for COUNT.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltic.expr.interpreter import evaluate as value_of
from deltic.expr.nodes import PythonFunction, Value
from deltic.expr.python import value_of_group
from deltic.plan.nodes import AggregateCall
from deltic.plan.relation import Relation, Row, normal_row

Weighted = tuple[Row, int]


def aggregate_value(call: AggregateCall, members: Iterable[Weighted]) -> Value:
    """The aggregate over the rows of one group. Raises ArithmeticOverflow if the result does not fit its type."""
    rows = argument_lists(call, members)
    if call.nullable and not sum(weight for _, weight in rows):
        return None
    if call.user is not None:
        result = PythonFunction(call.user, (), 0, call.type, call.nullable, call.span)
        return value_of_group(result, rows, [argument.type for argument in call.arguments])
    return call.definition.reference(rows, call.signature)


def argument_lists(call: AggregateCall, members: Iterable[Weighted]) -> list[Weighted]:
    """The argument lists that count, with their weights; with DISTINCT each once, with weight 1."""
    listed = []
    for row, weight in members:
        if call.filter is not None and value_of(call.filter, row) is not True:
            continue
        # Nullable arguments first: if one is NULL, the others are not evaluated.
        if not any(argument.nullable and value_of(argument, row) is None for argument in call.required):
            listed.append((tuple(value_of(argument, row) for argument in call.arguments), weight))
    if not call.distinct:
        return listed
    once = Relation((normal_row(values), weight) for values, weight in listed)
    return [(values, 1) for values, weight in once.pairs() if weight > 0]
