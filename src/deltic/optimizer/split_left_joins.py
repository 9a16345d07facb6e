"""Left joins whose filter compares rows with the row of their key are unions: the inner join by the comparison, and rows without a match.

In `WHERE x > (SELECT avg(x) FROM u WHERE u.g = t.g) OR x IS NULL` the subquery is a left join, since rows without a match may pass. A
change of the average touches the rows between the old and the new one; above the join, all rows of the group were tested again.
"""

from __future__ import annotations

from dataclasses import replace

from deltic.expr.nodes import Expr, Literal, calls_python
from deltic.optimizer.fold import fold_condition
from deltic.optimizer.prune_columns import prune_columns
from deltic.plan.columns import all_columns, named_columns, substitute
from deltic.plan.divided_joins import has_range
from deltic.plan.nodes import Filter, Join, Plan, Project, Reference, Union
from deltic.plan.outside_ranges import has_value
from deltic.plan.streams import is_of_ticks, is_stream
from deltic.plan.walk import kinds, transform


def split_left_joins(plan: Plan) -> Plan:
    """Splits the left joins under a filter by which an inner join looks rows up.

    >>> from deltic.expr import resolve
    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import Aggregate, AggregateCall, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("g", BIGINT, False), Field("x", BIGINT)))))
    >>> g, x, most = Column(0, BIGINT, False, "g"), Column(1, BIGINT, True, "x"), Column(3, BIGINT, True, "most")
    >>> groups = Aggregate(t, (("g", g),), (("most", AggregateCall("max", (x,), BIGINT, True)),))
    >>> plan = Filter(Join(t, groups, "left", ((g, g),)), resolve(">", [resolve("coalesce", [most, Literal(9, BIGINT)]), x]))
    >>> print(show(split_left_joins(plan)))
    Union
      Project g#0, x#1, g#2, most#3
        Join inner on g#0 = g#0 where (coalesce(most#3, 9) > x#1)
          Table t (g, x)
          Aggregate by g#0: most := max(x#1)
            Table t (g, x)
      Project g#0, x#1, g := null, most := null
        Filter (9 > x#1)
          Join anti on g#0 = g#0
            Table t (g, x)
            Aggregate by g#0
              Table t (g, x)
    """
    if is_of_ticks(plan) or Join not in kinds(plan) or Reference in kinds(plan):
        return plan
    split = transform(plan, _split, Filter)
    return plan if split is plan else prune_columns(split)


def _split(plan: Plan) -> Plan:
    match plan:
        case Filter(input=Project(columns=columns, input=Join(kind="left") as join)):
            condition = substitute(plan.predicate, [expr for _, expr in columns])
        case Filter(input=Join(kind="left") as join):
            condition, columns = plan.predicate, named_columns(join.schema)
        case _:
            return plan
    inner = replace(join, kind="inner", residual=condition)
    if join.residual is not None or not join.keys or is_stream(join) or calls_python(condition):
        return plan
    if not has_value(join, left=False) or not has_range(inner):
        return plan
    missing: list[Expr] = [*all_columns(join.left.schema), *(Literal(None, field.type) for field in join.right.schema)]
    alone = Filter(replace(join, kind="anti"), fold_condition(substitute(condition, missing)))
    of_alone = tuple((name, substitute(expr, missing)) for name, expr in columns)
    of_matches = tuple((name, substitute(expr, all_columns(inner.schema))) for name, expr in columns)
    return Union((Project(inner, of_matches), Project(alone, of_alone)))
