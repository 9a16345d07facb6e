"""Moves comparisons between the two sides of a join from the filter above it into the join, which looks rows up by them.

So does what divides a join (plan/divided_joins.py): an equality that can fail, of which push_filters_down makes no key, or an OR.
"""

from __future__ import annotations

from dataclasses import replace

from deltic.optimizer.merge_projections import merged
from deltic.plan.columns import choose_columns, columns_of_all, conjunction, formed_below, remap
from deltic.plan.divided_joins import has_range, is_divided
from deltic.plan.nodes import Aggregate, Filter, Join, Plan, Project
from deltic.plan.ranges import range_of
from deltic.plan.walk import expressions, map_expressions, transform


def form_range_joins(plan: Plan) -> Plan:
    """The condition of an inner join is part of it where rows are looked up by a range of it (plan/ranges.py), or by an equality.

    An aggregate over such a join reads it through a projection: with fewer columns, changes of bounds cancel before they are looked up.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.expr.nodes import Call, Column
    >>> from deltic.schema import BIGINT, BOOLEAN, Field, Schema, TableSchema
    >>> t, u = (Table(TableSchema(name, Schema((Field(column, BIGINT),)))) for name, column in (("t", "a"), ("u", "b")))
    >>> less = Call("less", (Column(0, BIGINT, True, "a"), Column(1, BIGINT, True, "b")), BOOLEAN, True)
    >>> print(show(form_range_joins(Filter(Join(t, u, "inner"), less))))
    Join inner where (a#0 < b#1)
      Table t (a)
      Table u (b)
    """
    return transform(plan, _formed)


def _formed(plan: Plan) -> Plan:
    match plan:
        case Filter(input=Join(kind="inner") as join):
            parts = [plan.predicate] if join.residual is None else [join.residual, plan.predicate]
            ranged = replace(join, residual=conjunction(parts))
            return plan if range_of(ranged) is None and not is_divided(ranged) else ranged
        case Filter(input=Project(input=Join(kind="inner")) as project):
            return formed_below(plan, project, _formed)
        case Project(input=Project(input=Join(kind="inner") as join)) if has_range(join):
            return merged(plan)
        case Aggregate(input=Project(input=Join(kind="inner") as join)) if has_range(join) and (below := merged(plan)) is not plan:
            return _formed(below)
        case Aggregate(input=Join(kind="inner") as join) if has_range(join):
            return _narrowed(plan, join)
        case _:
            return plan


def _narrowed(plan: Aggregate, join: Join) -> Plan:
    """The aggregate over the columns that it reads."""
    read = sorted(columns_of_all(expressions(plan)))
    if len(read) == len(join.schema):
        return plan
    below = choose_columns(join, read)
    places = {old: new for new, old in enumerate(read)}
    return map_expressions(replace(plan, input=below), lambda expr: remap(expr, places, below.schema))
