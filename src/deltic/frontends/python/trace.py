"""The primitive operators of incremental circuits as plans, under their names in the literature.

A delta is a stream of changes (`differentiate`); a trace is their sum, each with its time, the epoch of its tick. `_time` is the last
column of a trace's rows.
"""

from __future__ import annotations

from typing import Final

from deltic.expr.nodes import Literal
from deltic.frontends.python.linear import first_columns
from deltic.frontends.python.ticks import negated
from deltic.plan.columns import compared, normalized, reference
from deltic.plan.nodes import Filter, Join, OverTicks, Plan, Project, Union, Values, Weighted
from deltic.schema import BIGINT, Schema

TIME: Final = "_time"
NOW: Final = OverTicks(Values(((),), Schema(())), "stamp", TIME)
"""One row: the number of the current epoch."""


def untimed(trace: Plan) -> Plan:
    """The rows of a trace without their times; weights of equal rows are added."""
    return first_columns(trace, len(trace.schema) - 1)


def earlier(trace: Plan) -> Plan:
    """As `untimed`, of the times before now."""
    time = reference(trace.schema, len(trace.schema) - 1)
    now = Join(trace, NOW, "inner", ((time, reference(NOW.schema, 0)),))
    return Union((untimed(trace), negated(first_columns(now, len(trace.schema) - 1))))


def stamped(plan: Plan) -> Plan:
    """Each row with the current time."""
    return OverTicks(plan, "stamp", TIME)


def distinct_change(delta: Plan, trace: Plan) -> Plan:
    """H(old + w) - H(old), where old is the weight in the trace; rows that are not in the delta cancel out."""
    return Union((positive(Union((trace, delta))), negated(positive(trace))))


def positive(plan: Plan) -> Plan:
    """H: each row of positive weight, once."""
    schema = plan.schema
    columns = tuple((name, normalized(reference(schema, i))) for i, name in enumerate(schema.names))
    weighted = Weighted(Project(plan, columns), "weight")
    above = compared("greater", reference(weighted.schema, len(schema)), Literal(0, BIGINT))
    return first_columns(Filter(weighted, above), len(schema))
