"""Of all rows so far of a stream aggregates keep one row for each group, and first rows themselves alone."""

from __future__ import annotations

from deltic.aggregates.definition import First, Linear
from deltic.plan.nodes import Aggregate, AggregateCall, Distinct, Filter, OverTicks, Plan, Project, TickAggregate, TickTopK, TopK
from deltic.plan.signs import may_be_negative
from deltic.plan.streams import integrals
from deltic.plan.walk import map_inputs, transform


def forget_aggregated_rows(plan: Plan) -> Plan:
    """Rows that are never retracted are summed up and compared once, in the tick that adds them. So are those of which the first of each
    group are asked: a row that is not among them never will be.

    DISTINCT below extremes is dropped: copies do not matter to them.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import OverTicks, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, StreamSchema
    >>> s = Table(StreamSchema("s", Schema((Field("k", BIGINT), Field("v", BIGINT)))))
    >>> k, v = (Column(i, BIGINT, True, name) for i, name in enumerate("kv"))
    >>> top = ("top", AggregateCall("max", (v,), BIGINT, True))
    >>> print(show(forget_aggregated_rows(Aggregate(OverTicks(s, "integrate"), (("k", k),), (top,)))))
    TickAggregate by k#0: top := max(v#1)
      Integrate
        Stream s (k, v)
    >>> print(show(forget_aggregated_rows(Aggregate(OverTicks(s, "current"), (("k", k),), (top,)))))
    Aggregate by k#0: top := max(v#1)
      Current
        Stream s (k, v)
    """
    return transform(plan, _forget, OverTicks)


def _forget(plan: Plan) -> Plan:
    if isinstance(plan, TopK):
        folds = plan.keys and not plan.offset and not isinstance(plan, TickTopK) and integrals(plan.input)
        return TickTopK(plan.input, plan.order, plan.limit, plan.keys) if folds and not may_be_negative(plan.input) else plan
    if not isinstance(plan, Aggregate) or isinstance(plan, TickAggregate) or not all(_is_folded(call) for _, call in plan.aggregates):
        return plan
    counted = not plan.aggregates or any(call.definition.copies for _, call in plan.aggregates)
    below = plan.input if counted else _with_copies(plan.input)
    if not integrals(below) or may_be_negative(below):
        return plan
    return TickAggregate(below, plan.keys, plan.aggregates)


def _is_folded(call: AggregateCall) -> bool:
    """Whether the value before a tick and the rows of the tick determine the value after it."""
    state = call.definition.state
    return isinstance(state, First) or (isinstance(state, Linear) and not call.distinct)


def _with_copies(plan: Plan) -> Plan:
    """Without DISTINCT, except over values that it changes: -0.0, which becomes 0.0."""
    match plan:
        case Distinct() if not any(field.type.has_zeros for field in plan.schema):
            return _with_copies(plan.input)
        case Project() | Filter():
            return map_inputs(plan, _with_copies)
        case _:
            return plan
