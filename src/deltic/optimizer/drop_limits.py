"""Removes LIMIT from relations of at most one row, such as `SELECT count(*) … ORDER BY 1 LIMIT 100`: there is nothing to rank."""

from __future__ import annotations

from deltic.optimizer.drop_distinct import unique_key
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Plan, TopK, Values
from deltic.plan.streams import is_of_ticks
from deltic.plan.walk import kinds, map_inputs


@once_per_node
def drop_limits(plan: Plan) -> Plan:
    """Replaces a top-k over at most one row by that row. Plans whose state would begin again (plan/streams.py) stay as they are.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import Aggregate, AggregateCall, Order, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("a", BIGINT),))))
    >>> count = Aggregate(t, (), (("n", AggregateCall("count", (), BIGINT, False)),))
    >>> plan = TopK(count, (Order(Column(0, BIGINT, False, "n")),), 100)
    >>> print(show(plan))
    TopK 100 by n#0
      Aggregate: n := count(*)
        Table t (a)
    >>> print(show(drop_limits(plan)))
    Aggregate: n := count(*)
      Table t (a)
    """
    if TopK not in kinds(plan) or is_of_ticks(plan):
        return plan
    plan = map_inputs(plan, drop_limits)
    return plan.input if isinstance(plan, TopK) and plan.limit and not plan.offset and has_one_row(plan.input) else plan


def has_one_row(plan: Plan) -> bool:
    """Whether the relation has at most one row, whatever the tables have."""
    return unique_key(plan) == frozenset() or (isinstance(plan, Values) and len(plan.rows) < 2)
