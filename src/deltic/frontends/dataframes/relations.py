"""Relations of Spark Connect's messages as frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyspark.sql.connect.proto as pb

from deltic.errors import Unsupported
from deltic.frontends.dataframes import columns, groups, joins, sources
from deltic.frontends.dataframes.binder import FrameBinder
from deltic.frontends.dataframes.expressions import Expressions
from deltic.frontends.dataframes.frame import BoundFrame, Sorted
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_limit import cut, slice_of
from deltic.frontends.sql.environment import Environment
from deltic.plan.columns import reference
from deltic.plan.nodes import Order, Plan, Values
from deltic.schema import Schema

NOTHING: Final = BoundFrame(Values(((),), Schema(())), ())
Rule = Callable[[Any, FrameBinder], BoundFrame]
_REASONS: Final = {
    "sample": ("is nondeterministic", "where(…) on a hash of a key"),
    "sample_by": ("is nondeterministic", "where(…) on a hash of a key"),
    "tail": ("depends on an order that a view does not have", "orderBy(…).limit(n)"),
    "crosstab": ("has columns that depend on the rows", "groupBy(…).pivot(column, values).count()"),
    "transpose": ("has columns that depend on the rows", "unpivot(…), or groupBy(…).pivot(column, values)"),
    "describe": ("gives its numbers as texts", "agg(…)"),
    "summary": ("gives its numbers as texts", "agg(…)"),
    "freq_items": ("is approximate", "groupBy(…).count()"),
    "map_partitions": ("depends on how rows are distributed", "a Circuit, or a table function by udtf"),
    "group_map": ("is not supported", "a Circuit's reduce, or an aggregate by Session.register"),
    "co_group_map": ("is not supported", "a join, then a Circuit's reduce"),
    "apply_in_pandas_with_state": ("is not supported", "stream_aggregate of a Circuit"),
    "with_watermark": ("is not supported", "LATENESS of a column in CREATE TABLE"),
}
_METHODS: Final = {
    "sample_by": "sampleBy",
    "freq_items": "freqItems",
    "map_partitions": "mapInPandas",
    "group_map": "applyInPandas",
    "co_group_map": "cogroup",
    "apply_in_pandas_with_state": "applyInPandasWithState",
    "with_watermark": "withWatermark",
}
"""PySpark's names of relations that have others in messages."""
_SAME: Final = ("hint", "repartition", "repartition_by_expression", "collect_metrics")
"""Relations that are their input."""


def bind(message: pb.Relation, binder: FrameBinder) -> BoundFrame:
    """The frame of a relation. Raises QueryError, with the place of the call in the user's program."""
    kind = message.WhichOneof("rel_type")
    binder = binder.at(message.common.plan_id)
    if kind is None or kind not in _RULES:
        why, remedy = _REASONS.get(kind or "", ("is not supported", None))
        raise Unsupported(f"{_METHODS.get(kind or '', kind)} of a DataFrame {why}", span=binder.here, remedy=remedy)
    frame = _RULES[kind](getattr(message, kind), binder)
    return frame.marked(message.common.plan_id) if message.common.HasField("plan_id") else frame


def _project(message: pb.Project, binder: FrameBinder) -> BoundFrame:
    frame = bind(message.input, binder) if message.HasField("input") else NOTHING
    expressions = binder.expressions(frame)
    return binder.project(frame, [item for one in message.expressions for item in expressions.items(one)])


def _filter(message: pb.Filter, binder: FrameBinder) -> BoundFrame:
    frame = bind(message.input, binder)
    return binder.filter(frame, binder.expressions(frame).node(message.condition))


def _sort(message: pb.Sort, binder: FrameBinder) -> BoundFrame:
    """The rows have no order; a limit after it keeps the first ones."""
    frame = replace(bind(message.input, binder), order=())
    if not message.is_global:
        return frame
    order: list[Sorted] = []
    for term in message.order:
        written = binder.expressions(frame).term(term)
        node = written.expression
        column = binder.read(frame, node)
        if column is None:
            shown = len(frame.columns)
            made = tree.SelectItem(node, (tree.Name("order", binder.here),), binder.here)
            wide = binder.project(frame, [*binder.items(frame), made])
            column = wide.columns[shown]
            places = {one.id: one.index for one in (*wide.columns, *wide.below)}
            before = {one.index: one.id for one in (*frame.columns, *frame.below)}
            order = [replace(one, index=places[before[one.index]]) for one in order]
            frame = replace(wide, columns=wide.columns[:shown], below=(*wide.below, column))
        order.append(Sorted(column.index, written.descending, written.nulls_first))
    return replace(frame, order=tuple(order))


def _limit(message: pb.Limit, binder: FrameBinder) -> BoundFrame:
    return _part(bind(message.input, binder), message.limit, 0, binder)


def _offset(message: pb.Offset, binder: FrameBinder) -> BoundFrame:
    frame = bind(message.input, binder)
    return _part(frame, None, message.offset, binder) if message.offset else frame


def _part(frame: BoundFrame, limit: int | None, offset: int, binder: FrameBinder) -> BoundFrame:
    """The rows after the first `offset`, at most `limit` of them, in the order of the frame; without one, by their columns."""
    frame = frame if frame.order else frame.alone()
    select = tree.SelectQuery(tuple(binder.items(frame)), False, None, binder.rows, (), None, None, None, binder.here)
    count = None if limit is None else tree.NumberText(str(limit), binder.here)
    skipped = tree.NumberText(str(offset), binder.here) if offset else None
    whole = tree.WholeQuery((), False, select, (), tree.LimitClause(count, skipped, binder.here), binder.here)
    if frame.order:
        schema, part = frame.plan.schema, slice_of(whole)
        assert part is not None
        terms = tuple(Order(reference(schema, term.index), term.descending, term.nulls_first) for term in frame.order)
        return replace(frame, plan=cut(frame.plan, terms, part))
    return replace(frame, plan=binder.query(whole, frame))


def _alias(message: pb.SubqueryAlias, binder: FrameBinder) -> BoundFrame:
    frame = bind(message.input, binder)
    return replace(frame, columns=tuple(replace(column, qualifier=message.alias) for column in frame.columns))


def _with_relations(message: pb.WithRelations, binder: FrameBinder) -> BoundFrame:
    """spark.sql(text, name=df), and DataFrames in columns: scalar(), exists()."""
    env, subqueries = binder.env, dict(binder.subqueries)
    for one in message.references:
        if one.WhichOneof("rel_type") == "subquery_alias" and message.root.WhichOneof("rel_type") == "sql":
            env = env.with_cte(one.subquery_alias.alias, bind(one, binder).alone().plan)
        else:
            subqueries[one.common.plan_id] = partial(_subquery, one, binder)
    return bind(message.root, replace(binder, env=env, subqueries=subqueries))


def _subquery(message: pb.Relation, binder: FrameBinder, outer: Expressions, env: Environment) -> Plan:
    return bind(message, binder.within(env, outer)).alone().plan


def _lateral_join(message: pb.LateralJoin, binder: FrameBinder) -> BoundFrame:
    return joins.lateral_join(message, bind(message.left, binder), partial(bind, message.right), binder)


def _both(rule: Callable[[Any, BoundFrame, BoundFrame, FrameBinder], BoundFrame], left: str, right: str) -> Rule:
    def of_both(message: Any, binder: FrameBinder) -> BoundFrame:
        return rule(message, bind(getattr(message, left), binder), bind(getattr(message, right), binder), binder)

    return of_both


def _over(rule: Callable[[Any, BoundFrame, FrameBinder], BoundFrame]) -> Rule:
    return lambda message, binder: rule(message, bind(message.input, binder), binder)


_RULES: Final[dict[str, Rule]] = {
    "read": sources.read,
    "sql": sources.sql,
    "local_relation": sources.rows,
    "range": sources.numbers,
    "unresolved_table_valued_function": lambda message, binder: sources.table_function(message, binder, NOTHING),
    "project": _project,
    "filter": _filter,
    "sort": _sort,
    "limit": _limit,
    "offset": _offset,
    "subquery_alias": _alias,
    "with_relations": _with_relations,
    "join": _both(joins.join, "left", "right"),
    "lateral_join": _lateral_join,
    "nearest_by_join": _both(joins.nearest_by_join, "left", "right"),
    "set_op": _both(joins.set_operation, "left_input", "right_input"),
    "aggregate": _over(groups.aggregate),
    "deduplicate": _over(groups.deduplicate),
    "with_columns": _over(columns.with_columns),
    "with_columns_renamed": _over(lambda message, frame, _: columns.renamed(message, frame)),
    "to_df": _over(columns.to_df),
    "to_schema": _over(columns.to_schema),
    "drop": _over(columns.drop),
    "drop_na": _over(columns.drop_na),
    "fill_na": _over(columns.fill_na),
    "replace": _over(columns.replace_values),
    "unpivot": _over(columns.unpivot),
    **{kind: _over(lambda _, frame, __: frame) for kind in _SAME},
}
