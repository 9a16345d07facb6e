"""EXISTS by one comparison: some row is greater than a value where the greatest is, so that one row for each key decides."""

from __future__ import annotations

from dataclasses import replace

from deltic.expr.failing import can_fail
from deltic.expr.functions import resolve
from deltic.plan.aggregate_nodes import Aggregate, AggregateCall
from deltic.plan.columns import named_columns, reference
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Join, Plan, Project
from deltic.plan.ranges import range_of
from deltic.plan.signs import may_be_negative
from deltic.plan.streams import is_stream


@once_per_node
def by_extreme(plan: Join) -> Plan | None:
    """A semi join, or the one that an anti join is without, with the extremes of its right side instead of all of its rows.

    None if its condition is not one comparison of both sides, or the computation of an operand can fail.

    >>> from deltic.expr.nodes import Call, Column
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, BOOLEAN, Field, Schema, TableSchema
    >>> a, b = (Table(TableSchema(t, Schema((Field("k", BIGINT, False), Field("x", BIGINT))))) for t in "ab")
    >>> (k, x), y = (Column(i, BIGINT, i > 0, name) for i, name in enumerate("kx")), Column(3, BIGINT, True, "x")
    >>> plan = by_extreme(Join(a, b, "semi", ((k, k),), Call("less", (x, y), BOOLEAN, True)))
    >>> print(show(plan))
    Project k#0, x#1
      Join inner on k#0 = key0#0 where (x#1 < extreme#3)
        Table a (k, x)
        Aggregate by key0 := k#0: extreme := max(x#1)
          Table b (k, x)
    """
    assert plan.kind in ("semi", "anti")
    by = range_of(plan)
    if by is None or by.is_interval or by.rest or may_be_negative(plan.right) or is_stream(plan.left) or is_stream(plan.right):
        return None
    bound = by.low or by.high
    assert bound is not None
    if bound.open or can_fail(by.point) or can_fail(bound.expr):
        return None
    left, right = (by.point, bound.expr) if by.side == 0 else (bound.expr, by.point)
    greatest = (by.low is None) == (by.side == 0)
    call = AggregateCall("max" if greatest else "min", (right,), right.type, True)
    keys = tuple((f"key{i}", key) for i, (_, key) in enumerate(plan.keys))
    extremes = Aggregate(plan.right, keys, (("extreme", call),))
    width = len(plan.left.schema)
    extreme = replace(reference(extremes.schema, len(keys)), index=width + len(keys))
    sign = ("<" if greatest else ">") + ("" if bound.strict else "=")
    on = tuple((key, reference(extremes.schema, i)) for i, (key, _) in enumerate(plan.keys))
    joined = Join(plan.left, extremes, "inner", on, resolve(sign, [left, extreme]), span=plan.span)
    return Project(joined, named_columns(plan.left.schema))
