"""Rows that a filter compares with an aggregate of their partition are joined with the groups, in which the comparison looks them up.

Of `SELECT id FROM t QUALIFY x > avg(x) OVER (PARTITION BY g)` a change of the average touches the rows between the old and the new one.
The window has the value beside each row, so that all rows of the partition were tested again.
"""

from __future__ import annotations

from deltic.expr.nodes import Expr
from deltic.optimizer.prune_columns import prune_columns
from deltic.optimizer.push_filters_down import push_filters_down
from deltic.plan.columns import formed_below, map_columns, reference, shift
from deltic.plan.divided_joins import is_divided
from deltic.plan.equalities import null_safe, split
from deltic.plan.nodes import Aggregate, Filter, Join, Plan, Project, Reference, Window
from deltic.plan.ranges import range_of
from deltic.plan.streams import is_of_ticks, is_stream
from deltic.plan.walk import kinds, transform


def join_partitions(plan: Plan) -> Plan:
    """Joins the rows of windows with the groups of their partitions, where a filter looks rows up by it.

    >>> from deltic.expr import resolve
    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import AggregateCall, Table, WindowCall
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("g", BIGINT, False), Field("x", BIGINT)))))
    >>> g, x, m = Column(0, BIGINT, False, "g"), Column(1, BIGINT, True, "x"), Column(2, BIGINT, True, "m")
    >>> most = WindowCall("aggregate", BIGINT, True, aggregate=AggregateCall("max", (x,), BIGINT, True))
    >>> print(show(join_partitions(Project(Filter(Window(t, (g,), (), (("m", most),)), resolve("=", [x, m])), (("x", x),)))))
    Project x#0
      Project x#1
        Join inner on g#0 = k0#0, x#1 = m#1
          Table t (g, x)
          Aggregate by k0 := g#0: m := max(x#1)
            Table t (g, x)
    """
    if is_of_ticks(plan) or Window not in kinds(plan) or Reference in kinds(plan):
        return plan
    joined = transform(plan, _joined, Filter)
    return plan if joined is plan else prune_columns(push_filters_down(joined))  # conditions on rows or groups alone


def _joined(plan: Plan) -> Plan:
    if isinstance(plan, Filter) and isinstance(project := plan.input, Project) and isinstance(project.input, Window):
        return formed_below(plan, project, _joined)
    if not isinstance(plan, Filter) or not isinstance(window := plan.input, Window) or is_stream(window):
        return plan
    aggregates = [(name, call.aggregate) for name, call in window.calls if call.is_of_partition and call.aggregate is not None]
    if len(aggregates) < len(window.calls):
        return plan
    rows, count = window.input, len(window.keys)
    keys = tuple((f"k{i}", key) for i, key in enumerate(window.keys))
    groups = Aggregate(rows, keys, tuple(aggregates))
    width = len(rows.schema)

    def moved(expr: Expr) -> Expr:
        return map_columns(expr, lambda column: column if column.index < width else shift(column, count))

    own, condition = split(moved(plan.predicate), width)
    of_partition = null_safe(window.keys, [reference(groups.schema, i) for i in range(count)])
    join = Join(rows, groups, "inner", (*of_partition, *own), condition)
    if not own and range_of(join) is None and not is_divided(join):
        return plan
    kept = [*range(width), *range(width + count, len(join.schema))]
    return Project(join, tuple((window.schema[place].name, reference(join.schema, i)) for place, i in enumerate(kept)))
