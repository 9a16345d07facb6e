"""Aggregates of DataFrames: groupBy, pivot, and dropDuplicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyspark.sql.connect.proto as pb

from deltic.errors import Unsupported
from deltic.expr.functions.comparison import check_ordered
from deltic.frontends.dataframes.binder import FrameBinder, named, read_by
from deltic.frontends.dataframes.expressions import Expressions
from deltic.frontends.dataframes.frame import BoundFrame, over
from deltic.frontends.dataframes.literals import literal
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import restricted
from deltic.frontends.sql.naming import expression_name
from deltic.frontends.sql.parse_grouping import analytic_sets
from deltic.plan.columns import reference
from deltic.plan.nodes import TopK


def aggregate(message: pb.Aggregate, frame: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """groupBy, rollup, cube and groupingSets(…).agg(…), and pivot with its values."""
    kind = pb.Aggregate.GroupType.Name(message.group_type).removeprefix("GROUP_TYPE_")
    expressions = binder.expressions(frame)
    keys = [item for one in message.grouping_expressions for item in expressions.items(one)]
    values = [item for one in message.aggregate_expressions for item in expressions.items(one)]
    if kind == "PIVOT":
        values = _pivoted(message.pivot, values, frame, binder)
    sets = _sets(kind, message, keys, expressions)
    group = None if not keys and sets is None else tree.GroupClause(tuple(item.expression for item in keys), False, binder.here, sets)
    if not values and group is None:
        raise Unsupported("agg() without aggregates", span=binder.here, expected="groupBy(…).agg(…)")
    plan = binder.select(frame, [*keys, *values], group=group)
    items = [*keys, *values]
    return BoundFrame(plan, named(items, read_by(items, frame), plan, len(plan.schema)), ids=frame.ids)


def _sets(
    kind: str, message: pb.Aggregate, keys: Sequence[tree.SelectItem], expressions: Expressions
) -> tuple[tree.KeyNumbers, ...] | None:
    """The grouping sets, as numbers of keys; None where there is only the set of all."""
    if kind in ("ROLLUP", "CUBE"):
        return analytic_sets(kind, tuple((i,) for i in range(len(keys))))
    if kind != "GROUPING_SETS":
        return None
    numbers = {tree.without_places(item.expression): i for i, item in enumerate(keys)}
    return tuple(tuple(numbers[tree.without_places(node)] for node in expressions.nodes(one.grouping_set)) for one in message.grouping_sets)


def _pivoted(pivot: pb.Aggregate.Pivot, values: Sequence[tree.SelectItem], frame: BoundFrame, binder: FrameBinder) -> list[tree.SelectItem]:
    """For each value of the pivot's column, the aggregates of the rows that have it: NULL where none has."""
    if not pivot.values:
        remedy = "pivot(column, [value, …]): the columns of a view do not depend on its rows"
        raise Unsupported("pivot without values is not supported", span=binder.here, remedy=remedy)
    column = binder.expressions(frame).node(pivot.col)
    items = []
    for value in pivot.values:
        written = literal(value, binder.here)
        rows = tree.Operation(("<=>",), (column, written), binder.here)
        number = tree.FunctionCall("count", (tree.Star(None, (), binder.here),), False, rows, False, binder.here)
        exists = tree.Operation((">",), (number, tree.NumberText("0", binder.here)), binder.here)
        for item in values:
            aggregated = tree.SearchedCase(None, ((exists, _restricted(item.expression, rows)),), None, binder.here)
            name = expression_name(written)
            name = name if len(values) == 1 else f"{name}_{binder.name(item)}"
            items.append(tree.SelectItem(aggregated, (tree.Name(name, binder.here),), binder.here))
    return items


def _restricted(node: tree.Expression, rows: tree.Expression) -> tree.Expression:
    """The expression with its aggregates over some rows only."""
    return tree.rewritten(node, lambda part: restricted(part, rows))


def deduplicate(message: pb.Deduplicate, frame: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """dropDuplicates: of rows that are equal in some columns, the least stays; which one is not defined in Spark."""
    if message.within_watermark:
        raise Unsupported("dropDuplicatesWithinWatermark is not supported", span=binder.here, remedy="dropDuplicates")
    frame = frame.alone()
    names = {name.lower() for name in message.column_names}
    if message.all_columns_as_keys or names >= {column.name.lower() for column in frame.columns}:
        return replace(frame, plan=binder.select(frame, binder.items(frame), distinct=True))
    keys = [binder.expressions(frame).column(name, binder.here) for name in message.column_names]
    for column in frame.columns:
        check_ordered("dropDuplicates", frame.plan.schema[column.index].type, binder.here)
    schema = frame.plan.schema
    plan = TopK(frame.plan, (), 1, tuple(reference(schema, column.index) for column in keys))
    return replace(over(plan), columns=frame.columns, ids=frame.ids)
