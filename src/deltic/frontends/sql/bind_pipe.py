"""Binds pipe syntax: each step takes the relation of the steps before it, with the names of its columns, to another.

A step keeps the columns of the relation before it as the first columns of its plan where it can, even those that have no name any more, so
that the order of an ORDER BY before it stays valid: a later LIMIT takes the rows in that order, as in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from deltic.errors import AmbiguousName, QueryError, Span, UnknownName, Unsupported, did_you_mean
from deltic.expr import Expr
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import has_aggregate
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_limit import cut, slice_of
from deltic.frontends.sql.bind_pivot import bind_pivot, bind_unpivot
from deltic.frontends.sql.bind_relation import bind_from, bind_join
from deltic.frontends.sql.bind_select import SelectBlock, bind_block, bind_order, is_grouped
from deltic.frontends.sql.environment import BindQuery, Environment
from deltic.frontends.sql.literals import whole
from deltic.frontends.sql.scope import Scope, ScopeColumn, ScopedRelation, relation
from deltic.plan.columns import reference
from deltic.plan.nodes import Order, Plan, Project


@dataclass(frozen=True, slots=True)
class _Piped:
    """The relation after a step. order: that of the last ORDER BY, over the plan's columns; empty if there is none."""

    rows: ScopedRelation
    order: tuple[Order, ...] = ()

    @property
    def columns(self) -> tuple[ScopeColumn, ...]:
        """The columns of *."""
        return self.rows.scope.star(None)

    @property
    def shown(self) -> Plan:
        """The relation with the columns of * alone."""
        return Project(self.rows.plan, tuple((column.name, self.rows.scope.column(column)) for column in self.columns))


@dataclass(frozen=True, slots=True)
class _Binder:
    """The functions that bind queries, and their environment."""

    env: Environment
    query: BindQuery

    def block(self, piped: _Piped, select: tree.SelectQuery) -> SelectBlock:
        """A SELECT over the relation."""
        select = replace(select, source=tree.PipedRows(piped.rows, select.span))
        return bind_block(select, (), self.env, self.query)


def bind_pipe(node: tree.PipeQuery, env: Environment, bind_query: BindQuery) -> Plan:
    """The plan of a query in pipe syntax."""
    binder = _Binder(env, bind_query)
    piped = _Piped(_first(node.first, binder))
    for step in node.steps:
        piped = _step(step, piped, binder)
    return piped.shown


def _first(query: tree.Query, binder: _Binder) -> ScopedRelation:
    """The relation before the first step. FROM relation, … keeps the names of its relations as qualifiers."""
    if isinstance(query, tree.SelectQuery) and _is_every_column(query):
        return bind_from(query, binder.env, binder.query)
    return _rows(binder.query(query, binder.env), None, binder.env)


def _is_every_column(query: tree.SelectQuery) -> bool:
    """Whether the query is SELECT * FROM …, or FROM … alone."""
    first = query.items[0]
    every = (
        len(query.items) == 1 and isinstance(first.expression, tree.Star) and first.expression == tree.Star(None, (), first.expression.span)
    )
    return (
        every
        and query.source is not None
        and query == tree.SelectQuery(query.items, False, query.hint, query.source, query.laterals, None, None, None, query.span)
    )


def _rows(plan: Plan, qualifier: str | None, env: Environment) -> ScopedRelation:
    rows = relation(plan, qualifier)
    return replace(rows, scope=replace(rows.scope, outer=env.outer))


def _step(step: tree.PipeStep, piped: _Piped, binder: _Binder) -> _Piped:
    match step:
        case tree.PipeWhere():
            return _where(step, piped, binder)
        case tree.PipeSelect():
            return _select(step, piped, binder)
        case tree.PipeExtend():
            return _extend(step, piped, binder)
        case tree.PipeSet():
            for name, expression in step.assignments:
                piped = _set(name, expression, piped, binder)
            return piped
        case tree.PipeDrop():
            for column in step.columns:
                piped = _drop(column, piped)
            return piped
        case tree.PipeAlias():
            return _alias(step, piped)
        case tree.PipeAggregate():
            return _aggregate(step, piped, binder)
        case tree.PipeJoin():
            joined = bind_join(piped.rows, step.join, binder.env, binder.query)
            return _Piped(replace(joined, scope=replace(joined.scope, outer=binder.env.outer)))
        case tree.PipeCombine():
            first = _query(_every(step.span), tree.PipedRows(piped.rows, step.span))
            both = tree.SetQuery(step.operator, step.distinct, (first, step.right), step.span, step.by_name)
            return _Piped(_rows(binder.query(both, binder.env), None, binder.env))
        case tree.PipeOrder():
            return _ordered(step, piped)
        case tree.PipeLimit():
            return _limited(step, piped)
        case tree.PipePivot():
            clause = step.clause
            return _Piped(bind_pivot(clause, piped.rows) if isinstance(clause, tree.PivotedTable) else bind_unpivot(clause, piped.rows))
        case _:
            assert_never(step)


def _query(items: Sequence[tree.SelectItem], source: tree.Source | None = None) -> tree.SelectQuery:
    return tree.SelectQuery(tuple(items), False, None, source, (), None, None, None, items[0].span)


def _every(span: Span) -> tuple[tree.SelectItem, ...]:
    return (tree.SelectItem(tree.Star(None, (), span), (), span),)


def _where(step: tree.PipeWhere, piped: _Piped, binder: _Binder) -> _Piped:
    block = binder.block(piped, replace(_query(_every(step.span)), where=step.condition))
    return _onto(block.plan, piped)


def _onto(plan: Plan, piped: _Piped) -> _Piped:
    """The relation over a plan that begins with the columns of the one before."""
    fields = piped.rows.plan.schema.fields
    assert [field.type for field in plan.schema.fields[: len(fields)]] == [field.type for field in fields]
    return replace(piped, rows=ScopedRelation(plan, replace(piped.rows.scope, schema=plan.schema)))


def _extended(select: tree.SelectQuery, piped: _Piped, binder: _Binder) -> tuple[_Piped, tuple[ScopeColumn, ...]]:
    """(the relation with a column for each item after its own, which have no names yet; these columns)."""
    block = binder.block(piped, select)
    width = len(piped.rows.plan.schema)
    kept = tuple((field.name, reference(block.plan.schema, i)) for i, field in enumerate(piped.rows.plan.schema))
    plan = Project(block.plan, (*kept, *block.outputs))
    return _onto(plan, piped), tuple(ScopeColumn(name, None, width + i) for i, (name, _) in enumerate(block.outputs))


def _extend(step: tree.PipeExtend, piped: _Piped, binder: _Binder) -> _Piped:
    for item in step.items:
        _check_plain(item.expression, "EXTEND")
    wide, added = _extended(_query(step.items), piped, binder)
    return _named(wide, (*piped.rows.scope.columns, *added))


def _named(piped: _Piped, columns: tuple[ScopeColumn, ...]) -> _Piped:
    scope = piped.rows.scope
    return replace(piped, rows=replace(piped.rows, scope=Scope(columns, scope.schema, scope.outer)))


def _check_plain(expression: tree.Expression, word: str) -> None:
    if has_aggregate(expression):
        raise Unsupported(f"an aggregate is not allowed in |> {word}", span=expression.span, expected="|> AGGREGATE …")


def _set(name: tree.Name, expression: tree.Expression, piped: _Piped, binder: _Binder) -> _Piped:
    _check_plain(expression, "SET")
    (old,) = _matches(tree.ColumnName((name,), name.span), piped)
    wide, (new,) = _extended(_query([tree.SelectItem(expression, (name,), expression.span)]), piped, binder)
    new = replace(new, name=old.name)
    return _named(wide, tuple(new if column == old else column for column in piped.rows.scope.columns))


def _drop(column: tree.ColumnName, piped: _Piped) -> _Piped:
    dropped = _matches(column, piped)
    kept = tuple(each for each in piped.rows.scope.columns if each not in dropped)
    if not any(not each.hidden for each in kept):
        raise QueryError("DROP leaves no column", span=column.span, expected="at least one column")
    return _named(piped, kept)


def _matches(node: tree.ColumnName, piped: _Piped) -> tuple[ScopeColumn, ...]:
    """The column that the name means. Raises UnknownName, AmbiguousName."""
    *qualifiers, name = (part.text for part in node.parts)
    matches = piped.rows.scope.find(name, ".".join(qualifiers) or None)
    if not matches:
        raise UnknownName(f"there is no column {name!r}", span=node.span, remedy=did_you_mean(name, [c.name for c in piped.columns]))
    if len(matches) > 1:
        raise AmbiguousName(f"the name {name!r} is ambiguous", span=node.span, remedy="|> SELECT … with qualified names")
    return matches


def _alias(step: tree.PipeAlias, piped: _Piped) -> _Piped:
    columns = tuple(ScopeColumn(c.name, step.name.text, c.index, filled=c.filled) for c in piped.columns)
    return _named(piped, columns)


def _select(step: tree.PipeSelect, piped: _Piped, binder: _Binder) -> _Piped:
    select = step.query
    if select.distinct or is_grouped(select) or select.hint is not None:
        source = tree.PipedRows(piped.rows, step.span)
        plan = binder.query(replace(select, source=source), binder.env)
        return _Piped(_qualified(plan, select.items, piped, binder.env))
    wide, added = _extended(select, piped, binder)
    qualifiers = _qualifiers(select.items, piped)
    if len(qualifiers) == len(added):
        added = tuple(replace(column, qualifier=q) for column, q in zip(added, qualifiers, strict=True))
    return _named(wide, added)


def _qualified(plan: Plan, items: Sequence[tree.SelectItem], piped: _Piped, env: Environment) -> ScopedRelation:
    """The relation of a plan whose columns are the items; an item that is a column alone keeps its qualifier."""
    rows = _rows(plan, None, env)
    qualifiers = _qualifiers(items, piped)
    if len(qualifiers) != len(rows.scope.columns):
        return rows
    columns = tuple(replace(column, qualifier=q) for column, q in zip(rows.scope.columns, qualifiers, strict=True))
    return replace(rows, scope=replace(rows.scope, columns=columns))


def _qualifiers(items: Sequence[tree.SelectItem], piped: _Piped) -> list[str | None]:
    """For each column of the items the qualifier that it keeps."""
    scope, kept = piped.rows.scope, list[str | None]()
    for item in items:
        node = tree.unnest(item.expression)
        if isinstance(node, tree.Star):
            kept += [column.qualifier for column in scope.star(None if node.qualifier is None else node.qualifier.text)]
        elif isinstance(node, tree.ColumnName) and not item.names and len(node.parts) < 3:
            name, qualifier = node.parts[-1].text, node.parts[0].text if len(node.parts) > 1 else None
            kept.append(next((column.qualifier for column in scope.find(name, qualifier)), None))
        else:
            kept.append(None)
    return kept


def _aggregate(step: tree.PipeAggregate, piped: _Piped, binder: _Binder) -> _Piped:
    """GROUP BY keys, whose columns come first."""
    for item in step.items:
        if not has_aggregate(item.expression):
            message = "an expression of |> AGGREGATE has no aggregate"
            raise Unsupported(message, span=item.span, expected="AGGREGATE sum(x), … GROUP BY key, …: keys come after GROUP BY alone")
    keys = tuple(_key(key, piped) for key in step.keys)
    group = tree.GroupClause(tuple(key.expression for key in keys), False, step.span) if keys else None
    items = (*keys, *step.items)
    query = replace(_query(items, tree.PipedRows(piped.rows, step.span)), group=group)
    return _Piped(_qualified(binder.query(query, binder.env), items, piped, binder.env))


def _key(item: tree.SelectItem, piped: _Piped) -> tree.SelectItem:
    """A key; a number is the position of a column."""
    number = tree.unnest(item.expression)
    if not isinstance(number, tree.NumberText):
        return item
    position = whole(number, len(piped.columns))
    if not position:
        raise QueryError(f"GROUP BY {number.text:.40} is not a column", span=item.span, expected=f"1 to {len(piped.columns)}")
    column = piped.columns[position - 1]
    names = [name for name in (column.qualifier, column.name) if name is not None]
    return replace(item, expression=tree.ColumnName(tuple(tree.Name(name, item.span) for name in names), item.span))


def _ordered(step: tree.PipeOrder, piped: _Piped) -> _Piped:
    scope = piped.rows.scope
    outputs: list[tuple[str, Expr]] = [(column.name, scope.column(column)) for column in piped.columns]
    return replace(piped, order=bind_order(step.terms, ExpressionBinder(scope, "ORDER BY"), outputs))


def _limited(step: tree.PipeLimit, piped: _Piped) -> _Piped:
    part = slice_of(tree.WholeQuery((), False, tree.ValuesQuery((), None, step.span), (), step.limit, step.span))
    if part is None:
        return piped
    if piped.order:
        return _onto(cut(piped.rows.plan, piped.order, part), piped)
    plan = cut(piped.shown, (), part)
    columns = tuple(replace(column, index=i) for i, column in enumerate(piped.columns))
    return _Piped(ScopedRelation(plan, Scope(columns, plan.schema, piped.rows.scope.outer)))
