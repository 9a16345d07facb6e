"""Selects over frames, by SQL's binder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyspark.sql.connect.proto as pb

from deltic.errors import Span
from deltic.expr import Expr
from deltic.frontends.dataframes.expressions import Expressions
from deltic.frontends.dataframes.frame import BoundFrame, FrameColumn
from deltic.frontends.dataframes.places import Sites
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import has_aggregate
from deltic.frontends.sql.bind_query import bind_tree
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.naming import output_name
from deltic.frontends.sql.scope import ScopedRelation
from deltic.frontends.sql.user_functions import marked
from deltic.frontends.statements import Namespace
from deltic.plan.nodes import Plan, Project


@dataclass(frozen=True, slots=True)
class FrameBinder:
    """Binds over a namespace. env: the relations, and those of spark.sql(…, name=df). here: the place of what is being bound.

    calls: collects the users' functions that are called. subqueries, outer: as of Expressions.
    """

    namespace: Namespace
    env: Environment
    sites: Sites
    here: Span
    calls: set[str] = field(default_factory=set)
    subqueries: Mapping[int, Callable[[Expressions, Any], Plan]] = field(default_factory=dict)
    outer: Expressions | None = None

    def at(self, plan_id: int) -> FrameBinder:
        """The binder at the place of a DataFrame."""
        span = self.sites.span(plan_id)
        return self if span is None else replace(self, here=span)

    def within(self, env: Environment, outer: Expressions) -> FrameBinder:
        """The binder of a DataFrame that is evaluated for each row around it."""
        return replace(self, env=env, outer=outer, subqueries={**self.subqueries, **outer.subqueries})

    def expressions(self, frame: BoundFrame) -> Expressions:
        return Expressions(frame, self.here, self.subqueries, self.outer)

    def query(self, query: tree.Query, frame: BoundFrame | None = None) -> Plan:
        """The plan of a query whose FROM may have the frame, as ArgumentRows."""
        query, calls = marked(query, self.namespace)
        self.calls.update(calls)
        given = None if frame is None else ScopedRelation(frame.plan, frame.scope)
        return bind_tree(query, replace(self.env, given=given))

    def select(
        self,
        frame: BoundFrame,
        items: Sequence[tree.SelectItem],
        *,
        where: tree.Expression | None = None,
        group: tree.GroupClause | None = None,
        distinct: bool = False,
    ) -> Plan:
        """The plan of SELECT items FROM frame [WHERE …] [GROUP BY …]."""
        return self.query(tree.SelectQuery(tuple(items), distinct, None, self.rows, (), where, group, None, self.here), frame)

    def constant(self, frame: BoundFrame, message: pb.Expression) -> Expr:
        """A value of spark.sql(…, args=…), which reads no column."""
        plan = self.select(frame, [tree.SelectItem(self.expressions(frame).node(message), (), self.here)])
        assert isinstance(plan, Project)
        ((_, value),) = plan.columns
        return value

    @property
    def rows(self) -> tree.ArgumentRows:
        """The frame in a FROM."""
        return tree.ArgumentRows(self.here)

    def project(self, frame: BoundFrame, items: Sequence[tree.SelectItem]) -> BoundFrame:
        """The frame with a select list, under which its columns and the order of its rows stay, unless it aggregates."""
        if any(has_aggregate(item.expression) for item in items):
            plan = self.select(frame, items)
            return BoundFrame(plan, self.named(frame, items, plan, len(plan.schema)), ids=frame.ids)
        kept = [*frame.columns, *frame.below]
        plan = self.select(frame, [*items, *(self.item(column) for column in kept)])
        made = len(plan.schema) - len(kept)
        columns = self.named(frame, items, plan, made)
        below = tuple(replace(column, index=made + i) for i, column in enumerate(kept))
        places = {column.index: made + i for i, column in enumerate(kept)}
        shown = {column.id for column in columns}
        below = tuple(column for column in below if column.id not in shown)
        order = tuple(replace(term, index=places[term.index]) for term in frame.order)
        return BoundFrame(plan, columns, below, frame.ids, order)

    def named(self, frame: BoundFrame, items: Sequence[tree.SelectItem], plan: Plan, count: int) -> tuple[FrameColumn, ...]:
        """The columns that a select list makes, the first `count` of the plan; those that it only repeats keep their ids."""
        if count != len(items):  # a function that returns several columns
            return tuple(FrameColumn(plan.schema[i].name, i) for i in range(count))
        columns = []
        for i, item in enumerate(items):
            read = self.read(frame, item.expression)
            if read is None or item.names:
                columns.append(FrameColumn(plan.schema[i].name, i))
            else:
                columns.append(replace(read, index=i, name=plan.schema[i].name))
        return tuple(columns)

    def read(self, frame: BoundFrame, node: tree.Expression) -> FrameColumn | None:
        """The column that an expression is."""
        if not isinstance(node, tree.ColumnName):
            return None
        for column in (*frame.columns, *frame.below):
            if column.is_written(node):
                return column
        return None

    def item(self, column: FrameColumn, name: str | None = None) -> tree.SelectItem:
        """A column as an item, under its name or another one."""
        names = () if name is None else (tree.Name(name, self.here),)
        return tree.SelectItem(column.written(self.here), names, self.here)

    def items(self, frame: BoundFrame) -> list[tree.SelectItem]:
        """All columns of a frame."""
        return [self.item(column) for column in frame.columns]

    def filter(self, frame: BoundFrame, condition: tree.Expression) -> BoundFrame:
        """The rows that satisfy the condition."""
        kept = [*frame.columns, *frame.below]
        plan = self.select(frame, [self.item(column) for column in kept], where=condition)
        places = {column.index: i for i, column in enumerate(kept)}
        columns = tuple(replace(column, index=i) for i, column in enumerate(kept))
        order = tuple(replace(term, index=places[term.index]) for term in frame.order)
        return BoundFrame(plan, columns[: len(frame.columns)], columns[len(frame.columns) :], frame.ids, order)

    def call(self, name: str, *arguments: tree.Expression, distinct: bool = False) -> tree.FunctionCall:
        return tree.FunctionCall(name, arguments, distinct, None, False, self.here)

    def name(self, item: tree.SelectItem) -> str:
        return output_name(item)
