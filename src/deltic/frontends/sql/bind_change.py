"""Binds INSERT, UPDATE, DELETE and MERGE: queries whose rows are those that a table loses and gains.

Every query reads the tables as they were before the statement. A value gets the type of its column as in Spark, by its rules for stored
values: any number as a number, any value as a STRING, but no STRING as anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from deltic.errors import QueryError, Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr import Expr, Literal, cast
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_query import bind_tree
from deltic.frontends.sql.environment import Environment
from deltic.plan.columns import reference
from deltic.plan.nodes import Plan, Project
from deltic.plan.signs import as_view
from deltic.schema import NULL, STRING, Field, StreamSchema, TableSchema, Type

_DATES: Final = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"))


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """A query. Its columns are those of the table for a row that goes, if `removes`, then those for a row that comes, if `adds`.

    matched: whether the rows that go are matched by rows of the source of a MERGE, each row for each of them.
    """

    plan: Plan
    removes: bool
    adds: bool
    matched: bool = False


@dataclass(frozen=True, slots=True)
class BoundChange:
    """What a statement changes in a table. matched: the rows that a MERGE matches, each once: no more than these may be `matched` parts.

    span: the statement.
    """

    table: TableSchema
    parts: tuple[ChangedRows, ...]
    matched: Plan | None
    span: Span


def bind_change(node: tree.RowChange, env: Environment) -> BoundChange:
    """The bound statement. Raises QueryError."""
    table = _table(node.table if isinstance(node, tree.InsertRows) else node.table.name, env)
    if isinstance(table, StreamSchema) and not isinstance(node, tree.InsertRows):
        raise Unsupported(f"rows of stream {table.name} can only be inserted", span=node.span, remedy="make it a table")
    match node:
        case tree.InsertRows():
            return BoundChange(table, (_inserted(node, table, env),), None, node.span)
        case tree.DeleteRows():
            rows = _plan(_rows(node.table, node.where, node.span), env)
            return BoundChange(table, (ChangedRows(rows, True, False),), None, node.span)
        case tree.UpdateRows():
            query = _rows(node.table, node.where, node.span, node.assignments)
            return BoundChange(table, (_updated(query, table, node.assignments, env),), None, node.span)
        case tree.MergeRows():
            return _merged(node, table, env)


def _table(name: tree.Name, env: Environment) -> TableSchema:
    relation = env.catalog.relation(name.text)
    if relation is None:
        remedy = did_you_mean(name.text, list(env.catalog.names()))
        raise UnknownName(f"there is no table {name.text!r}", span=name.span, remedy=remedy)
    if not isinstance(relation, TableSchema):
        raise Unsupported(f"{name.text} is a view: its rows follow from those of tables", span=name.span, remedy="change these tables")
    return relation


def _plan(query: tree.Query, env: Environment) -> Plan:
    return as_view(bind_tree(query, env), "the statement")


def _select(items: Sequence[tree.SelectItem], source: tree.Source, where: tree.Expression | None, span: Span) -> tree.SelectQuery:
    return tree.SelectQuery(tuple(items), False, None, source, (), where, None, None, span)


def _item(expression: tree.Expression, name: str) -> tree.SelectItem:
    return tree.SelectItem(expression, (tree.Name(name, expression.span),), expression.span)


def _own_columns(table: tree.TableName) -> tree.SelectItem:
    """Those of the changed table, by its alias or name."""
    name = table.name if table.alias is None else table.alias.name
    return tree.SelectItem(tree.Star(name, (), table.span), (), table.span)


def _rows(table: tree.TableName, where: tree.Expression | None, span: Span, assignments: tree.Assignments = ()) -> tree.SelectQuery:
    values = [_item(value, f"new{i}") for i, (_, value) in enumerate(assignments, 1)]
    return _select([_own_columns(table), *values], table, where, span)


def _inserted(node: tree.InsertRows, table: TableSchema, env: Environment) -> ChangedRows:
    plan = _plan(node.query, env)
    if node.by_name:
        names = [tree.Name(name, node.span) for name in plan.schema.names]
    else:
        names = list(node.columns) or [tree.Name(field.name, node.span) for field in table.schema]
    if len(names) != len(plan.schema):
        expected = f"{len(names)}, found {len(plan.schema)}"
        raise TypeMismatch("the query does not fit the columns of INSERT", span=node.query.span, expected=expected)
    positions = _positions(names, table)
    values: list[Expr | None] = [None] * len(table.schema)
    for i, position in enumerate(positions):
        values[position] = reference(plan.schema, i)
    return ChangedRows(_stored(plan, (), values, table, node.query.span), False, True)


def _positions(names: Sequence[tree.Name], table: TableSchema) -> list[int]:
    """The columns of the table, each once."""
    own = [name.lower() for name in table.schema.names]
    positions: list[int] = []
    for name in names:
        if name.text.lower() not in own:
            remedy = did_you_mean(name.text, list(table.schema.names))
            raise UnknownName(f"table {table.name} has no column {name.text!r}", span=name.span, remedy=remedy)
        if (position := own.index(name.text.lower())) in positions:
            raise QueryError(f"the column {name.text!r} is given twice", span=name.span)
        positions.append(position)
    return positions


def _stored(plan: Plan, kept: Sequence[int], values: Sequence[Expr | None], table: TableSchema, span: Span) -> Plan:
    """The columns `kept` of a plan, then a value for each column of the table; None is NULL."""
    columns: list[tuple[str, Expr]] = [(plan.schema[i].name, reference(plan.schema, i)) for i in kept]
    for field, value in zip(table.schema, values, strict=True):
        columns.append((field.name, as_stored(Literal(None, NULL, span) if value is None else value, field, table.name, span)))
    return Project(plan, tuple(columns))


def as_stored(value: Expr, field: Field, table: str, span: Span) -> Expr:
    """The value as a column of a table keeps it. Raises TypeMismatch, by Spark's rules of store assignment."""
    if isinstance(value, Literal) and value.value is None and not field.nullable:
        raise TypeMismatch(f"column {field.name} of table {table} is NOT NULL and gets no value", span=span, remedy="give it a value")
    type = field.type.read
    if not _may_store(value.type, type):
        message = f"column {field.name} of table {table} is {type.sql}"
        raise TypeMismatch(message, span=value.span or span, expected=f"{type.sql}, found {value.type.sql}", remedy="CAST the value")
    return cast(value, type, value.span or span)


def _may_store(source: Type, target: Type) -> bool:
    """Spark's ANSI store assignment."""
    if source in (target, NULL) or source.plain == target.plain:
        return True
    if source.is_numeric and target.is_numeric:
        return True
    if target.plain == STRING:
        return not source.is_nested
    if {source.name, target.name} <= _DATES:
        return True
    if source.is_interval and target.is_interval:
        return source.is_day_time == target.is_day_time
    if source.name == target.name and source.is_nested and len(source.parts) == len(target.parts):
        return all(_may_store(a.type, b.type) for a, b in zip(source.parts, target.parts, strict=True))
    return False


def _updated(query: tree.SelectQuery, table: TableSchema, assignments: tree.Assignments, env: Environment) -> ChangedRows:
    """Rows of the table's columns and the assigned values, as rows that go and rows that come."""
    plan = _plan(query, env)
    width = len(table.schema)
    values: list[Expr | None] = [reference(plan.schema, i) for i in range(width)]
    for i, position in enumerate(_positions([name for name, _ in assignments], table)):
        values[position] = reference(plan.schema, width + i)
    return ChangedRows(_stored(plan, range(width), values, table, query.span), True, True)


def _merged(node: tree.MergeRows, table: TableSchema, env: Environment) -> BoundChange:
    matching = [clause for clause in node.clauses if clause.kind == "matched"]
    matched = _plan(_select([_own_columns(node.table)], _join(node.table, "LEFT SEMI", node.source, node.condition), None, node.span), env)
    if len(matching) == 1 and matching[0].action == "delete" and matching[0].condition is None:
        # the only action for matched rows deletes them all: a row goes once, however many rows of the source match it
        parts = [ChangedRows(matched, True, False)]
        clauses = [clause for clause in node.clauses if clause is not matching[0]]
        return BoundChange(table, (*parts, *_clauses(node, clauses, table, env)), None, node.span)
    return BoundChange(table, _clauses(node, node.clauses, table, env), matched if matching else None, node.span)


def _clauses(node: tree.MergeRows, clauses: Sequence[tree.MergeClause], table: TableSchema, env: Environment) -> tuple[ChangedRows, ...]:
    parts: list[ChangedRows] = []
    before: dict[str, list[tree.MergeClause]] = {}
    for clause in clauses:
        earlier = before.setdefault(clause.kind, [])
        if any(one.condition is None for one in earlier):
            remedy = "give the clause before it a condition"
            raise QueryError("a clause before this one takes all rows", span=clause.span, remedy=remedy)
        conditions = [one.condition for one in earlier if one.condition is not None]
        part = _clause(node, clause, _where(clause, conditions), table, env)
        parts.append(replace(part, matched=clause.kind == "matched"))
        earlier.append(clause)
    return tuple(parts)


def _where(clause: tree.MergeClause, earlier: Sequence[tree.Expression]) -> tree.Expression | None:
    """The clause's condition, and none of those before it."""
    parts: list[tree.Expression] = [tree.IsTest(tree.Parenthesised(one, one.span), "TRUE", True, one.span) for one in earlier]
    parts += [] if clause.condition is None else [tree.Parenthesised(clause.condition, clause.condition.span)]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else tree.Operation(("AND",) * (len(parts) - 1), tuple(parts), clause.span)


def _join(first: tree.Source, kind: str, right: tree.Source, condition: tree.Expression) -> tree.JoinedTables:
    return tree.JoinedTables(first, (tree.JoinClause(kind, False, right, condition, (), condition.span),), None, condition.span)


def _clause(
    node: tree.MergeRows, clause: tree.MergeClause, where: tree.Expression | None, table: TableSchema, env: Environment
) -> ChangedRows:
    if clause.action == "insert":
        assignments = _from_source(node, table, env) if clause.assignments is None else clause.assignments
        items = [_item(value, f"new{i}") for i, (_, value) in enumerate(assignments, 1)]
        plan = _plan(_select(items, _join(node.source, "LEFT ANTI", node.table, node.condition), where, clause.span), env)
        values: list[Expr | None] = [None] * len(table.schema)
        for i, position in enumerate(_positions([name for name, _ in assignments], table)):
            values[position] = reference(plan.schema, i)
        return ChangedRows(_stored(plan, (), values, table, clause.span), False, True)
    joined = _join(node.table, "INNER" if clause.kind == "matched" else "LEFT ANTI", node.source, node.condition)
    assignments = _from_source(node, table, env) if clause.assignments is None else clause.assignments
    values_of_row = [_item(value, f"new{i}") for i, (_, value) in enumerate(assignments, 1)]
    query = _select([_own_columns(node.table), *values_of_row], joined, where, clause.span)
    if clause.action == "delete":
        return ChangedRows(_plan(query, env), True, False)
    return _updated(query, table, assignments, env)


def _from_source(node: tree.MergeRows, table: TableSchema, env: Environment) -> tree.Assignments:
    """Each column of the table and the source's column of that name, for *."""
    source = bind_tree(_select([tree.SelectItem(tree.Star(None, (), node.span), (), node.span)], node.source, None, node.span), env)
    alias = getattr(node.source, "alias", None)
    qualifier = alias.name if alias is not None else node.source.name if isinstance(node.source, tree.TableName) else None
    names = {name.lower() for name in source.schema.names}
    assignments = []
    for field in table.schema:
        if field.name.lower() not in names:
            raise UnknownName(f"the source has no column {field.name!r}", span=node.source.span, remedy="name the columns and values")
        name = tree.Name(field.name, node.span)
        parts = (name,) if qualifier is None else (qualifier, name)
        assignments.append((name, tree.ColumnName(parts, node.span)))
    return tuple(assignments)
