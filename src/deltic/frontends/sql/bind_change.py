"""Binds INSERT, UPDATE, DELETE and MERGE: queries whose rows are those that a table loses and gains.

Every query reads the tables as they were before the statement. A value gets the type of its column as in Spark, by its rules for stored
values (`store_assignment`); a column that an INSERT omits gets its DEFAULT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deltic.errors import QueryError, Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr import Expr
from deltic.frontends.sql import tree
from deltic.frontends.sql.assigned_columns import AssignedColumn, assigned_columns, positions_of
from deltic.frontends.sql.bind_query import bind_tree, with_ctes
from deltic.frontends.sql.default_values import DefaultValues
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.store_assignment import as_stored
from deltic.plan.columns import named_columns, reference
from deltic.plan.nodes import Plan, Project
from deltic.plan.signs import as_view
from deltic.schema import StreamSchema, TableSchema


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

    span: the statement. changes_all: whether all rows that match are `matched` parts, so that `matched` cannot fail if these have not.
    """

    table: TableSchema
    parts: tuple[ChangedRows, ...]
    matched: Plan | None
    span: Span
    changes_all: bool = False


def bind_change(node: tree.RowChange, env: Environment, now_us: int) -> BoundChange:
    """The bound statement. now_us: its time, in microseconds since 1970 UTC. Raises QueryError; EvaluationError if a DEFAULT fails."""
    table = _table(node.table if isinstance(node, tree.InsertRows) else node.table.name, env)
    if isinstance(table, StreamSchema) and not (isinstance(node, tree.InsertRows) and not node.overwrites):
        raise Unsupported(f"rows of stream {table.name} can only be inserted", span=node.span, remedy="make it a table")
    defaults = DefaultValues(table, env.catalog, now_us)
    if not isinstance(node, tree.InsertRows):
        _check_hidden(node.table.name, node.given)
        env = with_ctes(node.given, env)
    match node:
        case tree.InsertRows():
            overwritten = tree.TableName(node.table, None, node.table.span)
            overwritten_rows = (_deleted(overwritten, None, node.span, env),) if node.overwrites else ()
            return BoundChange(table, (*overwritten_rows, _inserted(node, defaults, env)), None, node.span)
        case tree.DeleteRows():
            return BoundChange(table, (_deleted(node.table, node.where, node.span, env),), None, node.span)
        case tree.UpdateRows():
            columns, values = _assigned(node.assignments, node.table, defaults)
            query = _rows(node.table, node.where, node.span, values)
            return BoundChange(table, (_updated(query, table, columns, env),), None, node.span)
        case tree.MergeRows():
            return _merged(node, defaults, env)


def _table(name: tree.Name, env: Environment) -> TableSchema:
    relation = env.catalog.relation(name.text)
    if relation is None:
        remedy = did_you_mean(name.text, list(env.catalog.names()))
        raise UnknownName(f"there is no table {name.text!r}", span=name.span, remedy=remedy)
    if not isinstance(relation, TableSchema):
        raise Unsupported(f"{name.text} is a view: its rows follow from those of tables", span=name.span, remedy="change these tables")
    return relation


def _check_hidden(table: tree.Name, given: tree.WithClause) -> None:
    """Raises Unsupported if a query of WITH has the name of the changed table."""
    for cte in given.ctes:
        if cte.name.text.lower() == table.text.lower():
            raise Unsupported(
                f"the CTE {cte.name.text!r} hides the table that is changed", span=cte.name.span, remedy="give it another name"
            )


def _plan(query: tree.Query, env: Environment) -> Plan:
    return as_view(bind_tree(query, env), "the statement")


def _select(items: Sequence[tree.SelectItem], source: tree.Source, where: tree.Expression | None, span: Span) -> tree.SelectQuery:
    return tree.SelectQuery(tuple(items), False, None, source, (), where, None, None, span)


def _item(expression: tree.Expression, name: str) -> tree.SelectItem:
    return tree.SelectItem(expression, (tree.Name(name, expression.span),), expression.span)


def _called(table: tree.TableName) -> tree.Name:
    return table.name if table.alias is None else table.alias.name


def _own_columns(table: tree.TableName) -> tree.SelectItem:
    """Those of the changed table, by its alias or name."""
    return tree.SelectItem(tree.Star(_called(table), (), table.span), (), table.span)


def _assigned(
    assignments: tree.Assignments, table: tree.TableName, defaults: DefaultValues
) -> tuple[list[AssignedColumn], list[tree.SelectItem]]:
    """What is assigned, and the values as select items."""
    columns = assigned_columns([names for names, _ in assignments], defaults.table, _called(table).text)
    values = defaults.in_values([value for _, value in assignments], columns)
    return columns, [_item(tree.Parenthesised(value, value.span), f"new{i}") for i, value in enumerate(values, 1)]  # no table function


def _rows(table: tree.TableName, where: tree.Expression | None, span: Span, values: Sequence[tree.SelectItem] = ()) -> tree.SelectQuery:
    return _select([_own_columns(table), *values], table, where, span)


def _deleted(table: tree.TableName, where: tree.Expression | None, span: Span, env: Environment) -> ChangedRows:
    return ChangedRows(_plan(_rows(table, where, span), env), True, False)


def _inserted(node: tree.InsertRows, defaults: DefaultValues, env: Environment) -> ChangedRows:
    table = defaults.table
    if node.by_name:
        plan = _plan(node.query, env)
        names = [tree.Name(name, node.span) for name in plan.schema.names]
    else:
        names = list(node.columns) or [tree.Name(field.name, node.span) for field in table.schema]
        plan = _plan(defaults.in_query(node.query, positions_of(names, table)), env)
    if len(names) != len(plan.schema):
        expected = f"{len(names)}, found {len(plan.schema)}"
        raise TypeMismatch("the query does not fit the columns of INSERT", span=node.query.span, expected=expected)
    return _filled(plan, positions_of(names, table), defaults, node.query.span)


def _filled(plan: Plan, positions: Sequence[int], defaults: DefaultValues, span: Span) -> ChangedRows:
    """Rows to insert from those of a plan, whose columns have these positions in the table."""
    table = defaults.table
    given = {position: reference(plan.schema, i) for i, position in enumerate(positions)}
    values = [given[i] if i in given else defaults.value(i, span) for i in range(len(table.schema))]
    return ChangedRows(_stored(plan, (), values, table, span), False, True)


def _stored(plan: Plan, kept: Sequence[int], values: Sequence[Expr], table: TableSchema, span: Span) -> Plan:
    """The columns `kept` of a plan, then a value for each column of the table."""
    stored = ((field.name, as_stored(value, field, table.name, span)) for field, value in zip(table.schema, values, strict=True))
    return Project(plan, (*named_columns(plan.schema, kept), *stored))


def _updated(query: tree.SelectQuery, table: TableSchema, columns: Sequence[AssignedColumn], env: Environment) -> ChangedRows:
    """Rows of the table's columns and the assigned values, as rows that go and rows that come."""
    plan = _plan(query, env)
    width = len(table.schema)
    values: list[Expr] = [reference(plan.schema, i) for i in range(width)]
    for i, one in enumerate(columns):
        values[one.position] = one.assigned(values[one.position], reference(plan.schema, width + i), table.name)
    return ChangedRows(_stored(plan, range(width), values, table, query.span), True, True)


def _merged(node: tree.MergeRows, defaults: DefaultValues, env: Environment) -> BoundChange:
    table = defaults.table
    matching = [clause for clause in node.clauses if clause.kind == "matched"]
    matched = _plan(_select([_own_columns(node.table)], _join(node.table, "LEFT SEMI", node.source, node.condition), None, node.span), env)
    if len(matching) == 1 and matching[0].action == "delete" and matching[0].condition is None:
        # the only action for matched rows deletes them all: a row goes once, however many rows of the source match it
        parts = [ChangedRows(matched, True, False)]
        clauses = [clause for clause in node.clauses if clause is not matching[0]]
        return BoundChange(table, (*parts, *_clauses(node, clauses, defaults, env)), None, node.span)
    changes_all = len(matching) == 1 and matching[0].condition is None
    return BoundChange(table, _clauses(node, node.clauses, defaults, env), matched if matching else None, node.span, changes_all)


def _clauses(
    node: tree.MergeRows, clauses: Sequence[tree.MergeClause], defaults: DefaultValues, env: Environment
) -> tuple[ChangedRows, ...]:
    parts: list[ChangedRows] = []
    before: dict[str, list[tree.MergeClause]] = {}
    for clause in clauses:
        earlier = before.setdefault(clause.kind, [])
        if any(one.condition is None for one in earlier):
            remedy = "give the clause before it a condition"
            raise QueryError("a clause before this one takes all rows", span=clause.span, remedy=remedy)
        conditions = [one.condition for one in earlier if one.condition is not None]
        part = _clause(node, clause, _where(clause, conditions), defaults, env)
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
    node: tree.MergeRows, clause: tree.MergeClause, where: tree.Expression | None, defaults: DefaultValues, env: Environment
) -> ChangedRows:
    table = defaults.table
    assignments = _from_source(node, table, env) if clause.assignments is None else clause.assignments
    columns, values = _assigned(assignments, node.table, defaults)
    if clause.action == "insert":
        plan = _plan(_select(values, _join(node.source, "LEFT ANTI", node.table, node.condition), where, clause.span), env)
        return _filled(plan, [one.position for one in columns], defaults, clause.span)
    joined = _join(node.table, "INNER" if clause.kind == "matched" else "LEFT ANTI", node.source, node.condition)
    query = _select([_own_columns(node.table), *values], joined, where, clause.span)
    if clause.action == "delete":
        return ChangedRows(_plan(query, env), True, False)
    return _updated(query, table, columns, env)


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
        assignments.append(((name,), tree.ColumnName(parts, node.span)))
    return tuple(assignments)
