"""Binds the statements of a script: names, types, and the plans of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, assert_never

from deltic.errors import QueryError, Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr.functions.comparison import incomparable
from deltic.expr.nodes import Literal
from deltic.frontends import lateness
from deltic.frontends.sql import interval_literals, tree
from deltic.frontends.sql.bind_alteration import alter_table
from deltic.frontends.sql.bind_query import bind_tree, renamed
from deltic.frontends.sql.bind_recursive import declared_body
from deltic.frontends.sql.bind_select import is_grouped
from deltic.frontends.sql.bind_table_function import makes_rows
from deltic.frontends.sql.column_defaults import column_default
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.naming import output_name
from deltic.frontends.sql.nesting import shallow
from deltic.frontends.sql.options import check_timed
from deltic.frontends.sql.parse_statement import Parsed, QueryStatement, TableStatement
from deltic.frontends.sql.sql_types import sql_type
from deltic.frontends.sql.user_functions import create_function, marked
from deltic.frontends.sql.variables import bind_variables, variables_of
from deltic.frontends.statements import (
    BoundView,
    CreateSink,
    CreateTable,
    CreateView,
    DeclareView,
    DropFunction,
    DropSink,
    DropStream,
    DropTable,
    DropVariable,
    DropView,
    Namespace,
    Replan,
    Statement,
)
from deltic.plan.nodes import ITERATION_LIMIT, Plan, Reference
from deltic.plan.signs import as_view
from deltic.plan.window_ends import WINDOWS
from deltic.plan.windows import at_window_close, obstacle
from deltic.schema import BIGINT, NULL, Field, Schema, StreamSchema, TableSchema

_ALONE: Final = "session.query(…) answers it once; CREATE MATERIALIZED VIEW name AS SELECT … keeps it"


def bind_statement(parsed: Parsed, env: Environment) -> Statement:
    """The bound statement."""
    match parsed:
        case TableStatement():
            return _create_table(parsed, env)
        case tree.NamedQuery():
            return _create_view(parsed, env)
        case tree.ViewDeclaration():
            name = parsed.table.name
            fields, _ = _columns(parsed.table)
            limit = ITERATION_LIMIT if parsed.limit is None else parsed.limit
            return DeclareView(name.text, Schema(tuple(fields)).read, limit, name.span)
        case QueryStatement(explained=True):
            raise Unsupported("EXPLAIN is not a statement of a script", span=parsed.span, remedy="session.query(…) answers it")
        case QueryStatement():
            raise Unsupported("a query by itself is not a statement of a script", span=parsed.span, remedy=_ALONE)
        case tree.FunctionDefinition():
            return create_function(parsed, env.catalog)
        case tree.InsertRows() | tree.UpdateRows() | tree.DeleteRows() | tree.MergeRows() | tree.TransactionMark():
            raise Unsupported("a change of rows is not a definition", span=parsed.span, remedy="session.sql() runs it")
        case tree.TableAlteration():
            return alter_table(parsed, env.catalog)
        case tree.VariableDeclaration() | tree.VariableAssignments():
            return bind_variables(parsed, variables_of(env.catalog))
        case CreateSink() | DropSink() | DropTable() | DropStream() | DropView() | DropFunction() | DropVariable() | Replan():
            return parsed
        case _:
            assert_never(parsed)


def _create_table(parsed: TableStatement, env: Environment) -> CreateTable:
    definition = parsed.table
    fields, key = _columns(definition)
    if parsed.stream and key:
        last = next(part for part in definition.parts if isinstance(part, tree.KeyDefinition) or part.key)
        remedy = "leave it out, or make it a table"
        raise Unsupported("a stream has no PRIMARY KEY: it holds the rows of one tick", span=last.span, remedy=remedy)
    for i in key:
        if not fields[i].type.is_ordered:
            raise TypeMismatch(f"a PRIMARY KEY of {fields[i].type.sql}: {incomparable(fields[i].type)}", span=definition.name.span)
        if fields[i].type.is_collated:
            remedy = "declare it STRING, and write COLLATE in queries"
            raise Unsupported(f"a PRIMARY KEY of {fields[i].type.sql} is not supported", span=definition.name.span, remedy=remedy)
    nullable = tuple(replace(field, nullable=field.nullable and i not in key) for i, field in enumerate(fields))
    name, schema = definition.name.text, Schema(nullable)
    table = StreamSchema(name, schema) if parsed.stream else TableSchema(name, schema, key)
    table = _with_lateness(table, definition)
    if parsed.timed is not None:
        check_timed(table, parsed.timed)
    columns = [part for part in definition.parts if isinstance(part, tree.ColumnDefinition)]
    defaults = {
        field.name.lower(): column_default(column.default, field, name, env.catalog)
        for column, field in zip(columns, table.schema, strict=True)
        if column.default is not None
    }
    places = {column.name.text.lower(): column.name.span for column in columns}
    return CreateTable(table, definition.if_not_exists, definition.name.span, parsed.source, parsed.timed, defaults, places)


def _with_lateness(table: TableSchema, definition: tree.TableDefinition) -> TableSchema:
    columns = [part for part in definition.parts if isinstance(part, tree.ColumnDefinition)]
    late = [(i, column, column.lateness) for i, column in enumerate(columns) if column.lateness is not None]
    if len(late) > 1:
        raise Unsupported("LATENESS of two columns", span=late[1][1].span, expected="at most one column, by which rows are late")
    for i, column, clause in late:
        ahead = None if clause.ahead is None else _delay(clause.ahead)
        table = lateness.in_sql(table, i, _delay(clause.delay), ahead, column.span)
    return table


def _delay(node: tree.IntervalText | tree.NumberText) -> Literal:
    """An INTERVAL, or a BIGINT."""
    if isinstance(node, tree.IntervalText):
        return interval_literals.bound(node)
    if not node.text.isdecimal():
        raise TypeMismatch(f"invalid LATENESS {node.text}", span=node.span, expected="a whole number, or INTERVAL 1 HOUR")
    return Literal(int(node.text), BIGINT, node.span)


def _columns(table: tree.TableDefinition) -> tuple[list[Field], tuple[int, ...]]:
    """(the columns, the positions of the primary key)."""
    fields: list[Field] = []
    keys: list[tuple[int, ...]] = []
    for part in table.parts:
        if isinstance(part, tree.ColumnDefinition):
            fields.append(_field(part, fields))
            keys += [(len(fields) - 1,)] * part.key
    for part in table.parts:
        if isinstance(part, tree.KeyDefinition):
            keys.append(_key(part, fields))
    if len(keys) > 1:
        last = [part for part in table.parts if isinstance(part, tree.KeyDefinition) or part.key][1]
        raise Unsupported("a table has one PRIMARY KEY", span=last.span, remedy="PRIMARY KEY (a, b) for a key of two columns")
    return fields, keys[0] if keys else ()


def _field(node: tree.ColumnDefinition, fields: Sequence[Field]) -> Field:
    name = node.name.text
    if any(field.name.lower() == name.lower() for field in fields):
        raise QueryError(f"the column {name!r} is defined twice", span=node.name.span, remedy="give it another name")
    return Field(name, sql_type(node.type), not node.required)


def _key(node: tree.KeyDefinition, fields: Sequence[Field]) -> tuple[int, ...]:
    names = [field.name.lower() for field in fields]
    positions: list[int] = []
    for part in node.columns:
        if part.text.lower() not in names:
            remedy = did_you_mean(part.text, [field.name for field in fields])
            raise UnknownName(f"there is no column {part.text!r}", span=part.span, remedy=remedy)
        positions.append(names.index(part.text.lower()))
        if positions.index(positions[-1]) != len(positions) - 1:
            raise QueryError(f"the column {part.text!r} occurs twice in the key", span=part.span)
    return tuple(positions)


def _create_view(node: tree.NamedQuery, env: Environment) -> CreateView:
    called, calls = marked(node, env.catalog)
    plan = bind_view(called, env)
    reads = tuple(sorted(env.reads))

    def rebind(catalog: Namespace) -> BoundView:
        with shallow(node.name.span):
            called, calls = marked(node, catalog)
            env = Environment(catalog)
            return BoundView(bind_view(called, env), tuple(sorted(env.reads)), calls)

    return CreateView(node.name.text, plan, node.materialized, node.or_replace, node.if_not_exists, rebind, node.name.span, reads, calls)


def bind_view(node: tree.NamedQuery, env: Environment) -> Plan:
    """The plan of a view's query, under the view's column names and, if it is declared recursive, its declared types."""
    name = node.name.text
    itself = f"if the view reads itself, write WITH RECURSIVE in its query, or DECLARE RECURSIVE VIEW {name} (…) before it"
    plan = renamed(bind_tree(node.query, env.before({name.lower(): itself})), node.columns)
    if node.emits is not None:
        plan = _at_window_close(plan, node.query, node.emits)
    _check_view(plan, node)
    declared = env.catalog.relation(node.name.text)
    return as_view(declared_body(plan, declared, node.name.span) if isinstance(declared, Reference) else plan)


def _at_window_close(plan: Plan, query: tree.Query, span: Span) -> Plan:
    while isinstance(query, tree.WholeQuery):
        query = query.body
    select = query if isinstance(query, tree.SelectQuery) else None
    grouped = select is not None and is_grouped(select)
    closed = at_window_close(plan, grouped=grouped) if select is not None and (grouped or select.distinct) else None
    if closed is None and (feature := obstacle(plan)) is not None:
        remedy = "leave it out, or apply it in another view, which reads this one"
        raise Unsupported(f"EMIT ON WINDOW CLOSE of a query with {feature}", span=span, remedy=remedy)
    if closed is None:
        raise Unsupported(
            "EMIT ON WINDOW CLOSE of a query without windows",
            span=span,
            expected=f"GROUP BY or SELECT DISTINCT of {WINDOWS}",
            remedy="declare LATENESS for the column in CREATE TABLE or CREATE STREAM",
        )
    return closed


def _check_view(plan: Plan, node: tree.NamedQuery) -> None:
    """Raises QueryError unless the view's columns have distinct names, and types."""
    seen: set[str] = set()
    for i, field in enumerate(plan.schema):
        if field.name.lower() in seen:
            span = _place(field.name, node, 1)
            raise QueryError(f"two columns of the view are called {field.name!r}", span=span, remedy="AS gives one another name")
        seen.add(field.name.lower())
        if field.type == NULL:
            span = _value_place(i, node) or _place(field.name, node, 0)
            raise TypeMismatch(f"the column {field.name!r} is only NULL and has no type", span=span, remedy="CAST(NULL AS type)")


def _value_place(position: int, node: tree.NamedQuery) -> Span | None:
    """The place of the expression in the select list that is this column; None if a star may come before it."""
    expressions = [item.expression for item in _select_list(node.query)[: position + 1]]
    plain = len(expressions) > position and not any(isinstance(one, tree.Star) or makes_rows(one) for one in expressions)
    return expressions[position].span if plain else None


def _place(name: str, node: tree.NamedQuery, nth: int) -> Span:
    """The place of the nth column with that name; a star may expand to several."""
    places = [column.span for column in node.columns if column.text.lower() == name.lower()]
    if not node.columns:
        for item in _select_list(node.query):
            if isinstance(item.expression, tree.Star) or output_name(item).lower() == name.lower():
                places.append(item.names[0].span if item.names else item.span)
    return places[min(nth, len(places) - 1)] if places else node.span


def _select_list(query: tree.Query) -> tuple[tree.SelectItem, ...]:
    """The select list that determines the column names of a query."""
    match query:
        case tree.SelectQuery():
            return query.items
        case tree.SetQuery():
            return _select_list(query.parts[0])
        case tree.WholeQuery():
            return _select_list(query.body)
        case tree.ValuesQuery() | tree.PipeQuery() | tree.GivenQuery():
            return ()
