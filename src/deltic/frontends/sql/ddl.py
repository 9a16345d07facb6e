"""CREATE and DROP into statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from sqlglot import exp

from deltic.errors import QueryError, Span, TypeMismatch, UnknownName, Unsupported
from deltic.frontends.sql.bind_query import bind_tree, renamed
from deltic.frontends.sql.bind_recursive import declared_body
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.heads import check_head
from deltic.frontends.sql.levels import check_owners
from deltic.frontends.sql.naming import output_name
from deltic.frontends.sql.options import check_op_column, check_timed
from deltic.frontends.sql.scope import did_you_mean
from deltic.frontends.sql.spans import Places
from deltic.frontends.sql.sql_types import sql_type
from deltic.frontends.sql.statements import CreateTable, CreateView, DeclareView, DropTable, DropView, FileSource, Statement, Timed
from deltic.plan.nodes import ITERATION_LIMIT, Plan, Reference
from deltic.plan.signs import as_view
from deltic.schema import NULL, Field, Schema, TableSchema

KINDS = (
    "CREATE TABLE, CREATE [OR REPLACE] [MATERIALIZED | TEMPORARY] VIEW, CREATE SINK, DECLARE RECURSIVE VIEW, "
    "DROP TABLE, DROP [MATERIALIZED] VIEW, DROP SINK"
)


def bind_statement(tree: exp.Expr, source: FileSource | None, timed: Timed | None, env: Environment) -> Statement:
    """A statement of a script. source, timed: what stands behind the columns of CREATE TABLE."""
    if isinstance(tree, exp.Create) and tree.kind == "TABLE":
        statement: Statement = _create_table(tree, source, timed, env.places)
        check_head(env.places, "CREATE TABLE")
    elif is_view(tree):
        statement = _create_view(tree, env)
    elif isinstance(tree, exp.Drop) and tree.kind in ("TABLE", "VIEW"):
        statement = _drop(tree, env.places)
        check_head(env.places, "DROP TABLE")
    elif isinstance(tree, exp.Query | exp.Values):
        remedy = "CREATE MATERIALIZED VIEW name AS SELECT …, then session.view(name)"
        raise Unsupported("a query by itself is not a statement of a script", span=env.places.statement, remedy=remedy)
    else:
        raise Unsupported("this is not a statement of a script", span=env.places.statement, expected=KINDS)
    return statement


def bind_declaration(tree: exp.Expr, env: Environment) -> DeclareView:
    """DECLARE RECURSIVE VIEW, parsed as a CREATE TABLE."""
    assert isinstance(tree, exp.Create)
    check_head(env.places, "DECLARE")
    name, span = _name(tree.this, env.places)
    check_owners([span.start], env.levels)
    fields, _ = _columns(tree.this, env.places)
    level = env.levels.get(span.start)
    return DeclareView(name, Schema(tuple(fields)), ITERATION_LIMIT if level is None else level.limit, span)


def is_view(tree: exp.Expr) -> TypeGuard[exp.Create]:
    """Whether the statement is CREATE VIEW, of whatever kind."""
    return isinstance(tree, exp.Create) and tree.kind == "VIEW"


def _name(node: exp.Expr, places: Places) -> tuple[str, Span]:
    table = node.this if isinstance(node, exp.Schema) else node
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise Unsupported("this is no name", span=places.of(node), expected="a name, in `back quotes` where it has other characters")
    return table.name, places.of(table.this)


def _create_table(tree: exp.Create, source: FileSource | None, timed: Timed | None, places: Places) -> CreateTable:
    name, span = _name(tree.this, places)
    _check_properties(tree, places, (exp.SchemaCommentProperty,))
    if tree.args.get("replace"):
        raise Unsupported("CREATE OR REPLACE TABLE is not supported", span=span, remedy="DROP TABLE, then CREATE TABLE")
    if tree.expression is not None:
        remedy = "CREATE MATERIALIZED VIEW … AS, or CREATE TABLE with columns and session.transaction()"
        raise Unsupported("CREATE TABLE … AS SELECT is not supported", span=span, remedy=remedy)
    if not isinstance(tree.this, exp.Schema) or not tree.this.expressions:
        raise Unsupported("a table without columns", span=span, expected=f"CREATE TABLE {name} (column type, …)")
    fields, key = _columns(tree.this, places)
    nullable = tuple(replace(field, nullable=field.nullable and i not in key) for i, field in enumerate(fields))
    table = TableSchema(name, Schema(nullable), key)
    if source is not None:
        check_op_column(table, source)
    if timed is not None:
        check_timed(table, timed)
    return CreateTable(table, bool(tree.args.get("exists")), span, source, timed)


def _columns(schema: exp.Schema, places: Places) -> tuple[list[Field], tuple[int, ...]]:
    """The columns and the positions of the primary key."""
    fields: list[Field] = []
    keys: list[tuple[int, ...]] = []
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef) and _field(part, fields, places):
            keys.append((len(fields) - 1,))
    for part in schema.expressions:
        for primary in part.expressions if isinstance(part, exp.Constraint) else [part]:
            if isinstance(primary, exp.PrimaryKey):
                keys.append(_key(primary, fields, places))
            elif not isinstance(primary, exp.ColumnDef):
                raise Unsupported("this is no column", span=places.of(primary), expected="column type [NOT NULL] [PRIMARY KEY]")
        if len(keys) > 1:
            raise Unsupported("a table has one PRIMARY KEY", span=places.of(part), remedy="PRIMARY KEY (a, b) for a key of two columns")
    return fields, keys[0] if keys else ()


def _field(node: exp.ColumnDef, fields: list[Field], places: Places) -> bool:
    """Adds the column to `fields`; says whether it is the primary key."""
    name, span = node.name, places.of(node.this)
    if any(field.name.lower() == name.lower() for field in fields):
        raise QueryError(f"the column {name!r} is defined twice", span=span, remedy="give it another name")
    if node.args.get("kind") is None:
        raise TypeMismatch(f"the column {name!r} has no type", span=span, expected=f"{name} BIGINT, for example")
    constraints = [constraint.args["kind"] for constraint in node.args.get("constraints") or []]
    required = any(isinstance(one, exp.NotNullColumnConstraint) for one in constraints)
    fields.append(Field(name, sql_type(node.args["kind"], places), not required))
    return any(isinstance(one, exp.PrimaryKeyColumnConstraint) for one in constraints)


def _key(node: exp.PrimaryKey, fields: list[Field], places: Places) -> tuple[int, ...]:
    names = [field.name.lower() for field in fields]
    positions: list[int] = []
    for part in node.expressions:
        span = places.of(part)
        if not isinstance(part, exp.Identifier | exp.Column):
            raise Unsupported("a key is of columns alone", span=span, expected="PRIMARY KEY (column, …)")
        if part.name.lower() not in names:
            remedy = did_you_mean(part.name, [field.name for field in fields])
            raise UnknownName(f"there is no column {part.name!r}", span=span, remedy=remedy)
        positions.append(names.index(part.name.lower()))
        if positions.index(positions[-1]) != len(positions) - 1:
            raise QueryError(f"the column {part.name!r} is twice in the key", span=span)
    return tuple(positions)


def _check_properties(tree: exp.Create, places: Places, known: tuple[type[exp.Expr], ...]) -> None:
    properties = tree.args.get("properties")
    for one in properties.expressions if properties is not None else ():
        if not isinstance(one, known):
            raise Unsupported(
                f"{type(one).__name__.removesuffix('Property').upper()} does not fit here", span=places.of(one), remedy="leave it out"
            )


def _create_view(tree: exp.Create, env: Environment) -> CreateView:
    places = env.places
    name, span = _name(tree.this, places)
    _check_properties(tree, places, (exp.MaterializedProperty, exp.TemporaryProperty, exp.SchemaCommentProperty))
    plan = bind_view(tree, env)
    properties = tree.args.get("properties")
    materialized = any(isinstance(one, exp.MaterializedProperty) for one in (properties.expressions if properties else ()))
    whole = places.statement
    text = whole.text[whole.start : whole.end]
    replaces, exists = bool(tree.args.get("replace")), bool(tree.args.get("exists"))
    if replaces and exists:
        raise Unsupported("OR REPLACE and IF NOT EXISTS together", span=span, remedy="leave one of them out")
    return CreateView(name, plan, materialized, replaces, exists, text, span, tuple(sorted(env.reads)))


def bind_view(tree: exp.Create, env: Environment) -> Plan:
    """The plan of a view's query, its columns called as the view says; of one that is declared recursive, as it is declared."""
    query, places = tree.expression, env.places
    if not isinstance(query, exp.Query | exp.Values):
        raise Unsupported("a view without a query", span=places.of(tree.this), expected="CREATE VIEW name AS SELECT …")
    columns = list(tree.this.expressions) if isinstance(tree.this, exp.Schema) else []
    plan = renamed(bind_tree(query, env), [_view_column(column, places) for column in columns], env)
    check_head(places, "VIEW [IF NOT")
    _check_view(plan, columns or _select_list(query), places)
    name, span = _name(tree.this, places)
    declared = env.catalog.relation(name)
    return as_view(declared_body(plan, declared, span) if isinstance(declared, Reference) else plan)


def _view_column(node: exp.Expr, places: Places) -> exp.Expr:
    column = node.this if isinstance(node, exp.ColumnDef) and node.args.get("kind") is None else node
    if not isinstance(column, exp.Identifier):
        raise Unsupported("a view's columns take their types from its query", span=places.of(node), expected="names alone")
    return column


def _check_view(plan: Plan, written: list[exp.Expr], places: Places) -> None:
    """A view's columns have different names, and types."""
    seen: dict[str, int] = {}
    for i, field in enumerate(plan.schema):
        if field.name.lower() in seen:
            span = _place(field.name, written, places, 1)
            raise QueryError(f"two columns of the view are called {field.name!r}", span=span, remedy="AS gives one another name")
        seen[field.name.lower()] = i
        if field.type == NULL:
            remedy = "CAST(NULL AS type)"
            raise TypeMismatch(
                f"the column {field.name!r} is only NULL and has no type", span=_place(field.name, written, places, 0), remedy=remedy
            )


def _select_list(query: exp.Expr) -> list[exp.Expr]:
    """The select list that names the columns of a query."""
    while not isinstance(query, exp.Select) and isinstance(query.this, exp.Expr):
        query = query.this
    return list(query.expressions)


def _place(name: str, written: list[exp.Expr], places: Places, nth: int) -> Span:
    """The nth item of the select list that gives a column of that name; a star may give several."""
    found = [item for item in _items(name, written, places)]
    if not found:
        return places.statement
    item = found[min(nth, len(found) - 1)]
    return places.of(item.args["alias"] if isinstance(item, exp.Alias) else item)


def _items(name: str, written: list[exp.Expr], places: Places) -> Iterator[exp.Expr]:
    for item in written:
        if item.is_star or (item.name if isinstance(item, exp.Identifier) else output_name(item, places)).lower() == name.lower():
            yield item


def _drop(tree: exp.Drop, places: Places) -> Statement:
    targets = tree.args.get("tables") or []
    if len(targets) != 1:
        raise Unsupported("DROP of several at once is not supported", span=places.statement, remedy="one statement for each")
    name, span = _name(targets[0], places)
    if_exists = bool(tree.args.get("exists"))
    return DropTable(name, if_exists, span) if tree.kind == "TABLE" else DropView(name, if_exists, span)
