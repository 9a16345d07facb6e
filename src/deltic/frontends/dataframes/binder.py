"""Selects over frames, by SQL's binder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyspark.sql.connect.proto as pb

from deltic.errors import Span
from deltic.expr import Expr
from deltic.frontends.dataframes.expressions import Expressions
from deltic.frontends.dataframes.frame import BoundFrame, FrameColumn
from deltic.frontends.dataframes.places import Sites
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import has_aggregate
from deltic.frontends.sql.bind_query import bind_tree
from deltic.frontends.sql.bind_table_function import makes_rows
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.naming import output_name
from deltic.frontends.sql.scope import ScopedRelation
from deltic.frontends.sql.user_functions import marked
from deltic.frontends.statements import Namespace
from deltic.plan.columns import reference
from deltic.plan.nodes import Filter, Plan, Project

_MORE: Final = (*tree.QUERIES, tree.OverCall, tree.Star)
"""Nodes of expressions that are computed by more than a projection: subqueries and window functions, and what may be many columns."""


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
        read = read_by(items, frame)
        computed = [item for item, column in zip(items, read, strict=True) if column is None or item.names]
        if any(has_aggregate(item.expression) for item in computed):
            plan = self.select(frame, items)
            return BoundFrame(plan, named(items, read, plan, len(plan.schema)), ids=frame.ids)
        shown = {column.id for item, column in zip(items, read, strict=True) if column is not None and not item.names}
        kept = list({column.id: column for column in (*frame.columns, *frame.below) if column.id not in shown}.values())
        plan = self._projected(frame, items, computed, kept)
        made = len(plan.schema) - len(kept)
        columns = named(items, read, plan, made)
        below = tuple(replace(column, index=made + i) for i, column in enumerate(kept))
        places = {column.id: column.index for column in (*columns, *below)}
        before = {column.index: places[column.id] for column in (*frame.columns, *frame.below)} if frame.order else {}
        order = tuple(replace(term, index=before[term.index]) for term in frame.order)
        return BoundFrame(plan, columns, below, frame.ids, order)

    def _projected(
        self, frame: BoundFrame, items: Sequence[tree.SelectItem], computed: Sequence[tree.SelectItem], kept: Sequence[FrameColumn]
    ) -> Plan:
        """The plan of a select list, and of columns after it. computed: the items that are more than a column.

        SQL's binder binds these alone, where they can be computed side by side: chains of withColumn repeat many columns.
        """
        bound: tuple[tuple[str, Expr], ...] | None = ()
        if computed:
            bound = self._side_by_side(frame, computed)
        if bound is None:
            return self.select(frame, [*items, *(self.item(column) for column in kept)])
        made, marks, outputs = iter(bound), frame.by_mark, list[tuple[str, Expr]]()
        for item in items:
            column = None if item.names else _read(item.expression, marks)
            outputs.append(next(made) if column is None else (output_name(item), reference(frame.plan.schema, column.index)))
        outputs += [(column.name, reference(frame.plan.schema, column.index)) for column in kept]
        return Project(frame.plan, tuple(outputs))

    def _side_by_side(self, frame: BoundFrame, items: Sequence[tree.SelectItem]) -> tuple[tuple[str, Expr], ...] | None:
        """The names and values of items over the rows of the frame; None if these are not enough to compute them."""
        if any(makes_rows(item.expression) or any(isinstance(part, _MORE) for part in tree.walk(item.expression)) for item in items):
            return None
        plan = self.select(frame, items)
        simple = isinstance(plan, Project) and plan.input is frame.plan and len(plan.columns) == len(items)
        return plan.columns if isinstance(plan, Project) and simple else None

    def read(self, frame: BoundFrame, node: tree.Expression) -> FrameColumn | None:
        """The column that an expression is."""
        return _read(node, frame.by_mark)

    def item(self, column: FrameColumn, name: str | None = None) -> tree.SelectItem:
        """A column as an item, under its name or another one."""
        names = () if name is None else (tree.Name(name, self.here),)
        return tree.SelectItem(column.written(self.here), names, self.here)

    def items(self, frame: BoundFrame) -> list[tree.SelectItem]:
        """All columns of a frame."""
        return [self.item(column) for column in frame.columns]

    def filter(self, frame: BoundFrame, condition: tree.Expression) -> BoundFrame:
        """The rows that satisfy the condition."""
        one = tree.SelectItem(tree.NumberText("1", self.here), (), self.here)
        plan = self.select(frame, [one], where=condition) if not any(isinstance(part, _MORE) for part in tree.walk(condition)) else None
        if isinstance(plan, Project) and isinstance(plan.input, Filter) and plan.input.input is frame.plan:
            return replace(frame, plan=plan.input)
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


def read_by(items: Sequence[tree.SelectItem], frame: BoundFrame) -> list[FrameColumn | None]:
    """The column that each item is."""
    marks = frame.by_mark
    return [_read(item.expression, marks) for item in items]


def _read(node: tree.Expression, marks: Mapping[str, FrameColumn]) -> FrameColumn | None:
    written = isinstance(node, tree.ColumnName) and len(node.parts) == 2
    return marks.get(node.parts[0].text) if isinstance(node, tree.ColumnName) and written else None


def named(items: Sequence[tree.SelectItem], read: Sequence[FrameColumn | None], plan: Plan, count: int) -> tuple[FrameColumn, ...]:
    """The columns that a select list makes, the first `count` of the plan; those that it only repeats keep their ids.

    read: the columns that the items are, as of `read_by`.
    """
    if count != len(items):  # a function that returns several columns
        return tuple(FrameColumn(plan.schema[i].name, i) for i in range(count))
    columns = []
    for i, (item, column) in enumerate(zip(items, read, strict=True)):
        if column is None or item.names:
            columns.append(FrameColumn(plan.schema[i].name, i))
        else:
            columns.append(replace(column, index=i, name=plan.schema[i].name))
    return tuple(columns)
