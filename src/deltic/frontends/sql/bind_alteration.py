"""Binds ALTER TABLE: the types of new columns, their values in the rows that the table has, and the defaults of columns."""

from __future__ import annotations

from deltic.errors import EvaluationError, TypeMismatch, Unsupported
from deltic.expr.nodes import Literal
from deltic.frontends.sql import tree
from deltic.frontends.sql.column_defaults import column_default, value_of_rows
from deltic.frontends.sql.sql_types import sql_type
from deltic.frontends.sql.statement_time import lacks_time
from deltic.frontends.statements import AlterDefaults, AlterTable, Namespace, NewColumn
from deltic.schema import Field, TableSchema


def alter_table(node: tree.TableAlteration, catalog: Namespace) -> AlterTable | AlterDefaults:
    """The statement. The catalog checks the names."""
    if node.defaults:
        return _defaults(node, catalog)
    added = tuple(_added(column, node.table.text, catalog) for column in node.added)
    dropped = tuple((name.text, name.span) for name in node.dropped)
    old, new = node.renamed or (None, None)
    renamed = None if old is None or new is None else (old.text, old.span, new.text, new.span)
    return AlterTable(node.table.text, added, dropped, renamed, node.if_exists, node.table.span)


def _defaults(node: tree.TableAlteration, catalog: Namespace) -> AlterDefaults:
    """The default of a column that there is not is not bound."""
    table = catalog.relation(node.table.text)
    columns = []
    for name, expression in node.defaults:
        fields = [table.schema[i] for i in table.schema.find(name.text)] if isinstance(table, TableSchema) else []
        bound = None if expression is None or not fields else column_default(expression, fields[0], node.table.text, catalog)
        columns.append((name.text, name.span, bound))
    return AlterDefaults(node.table.text, tuple(columns), node.table.span)


def _added(node: tree.ColumnDefinition, table: str, catalog: Namespace) -> NewColumn:
    field = Field(node.name.text, sql_type(node.type), not node.required)
    if node.default is None:
        if node.required:
            message = f"column {field.name} is NOT NULL, and the rows of table {table} have no value for it"
            raise TypeMismatch(message, span=node.span, remedy=f"{field.name} {field.type.sql} NOT NULL DEFAULT value")
        return NewColumn(field, Literal(None, field.type.read), node.span)
    default = column_default(node.default, field, table, catalog)
    if lacks_time(node.default):
        message = f"the rows of table {table} get a value of {default.text}, and the definitions of a program have no time"
        raise Unsupported(message, span=node.default.span, remedy="session.sql(…) has one; or a constant, and SET DEFAULT after it")
    try:
        return NewColumn(field, value_of_rows(default, field, table), node.span, default)
    except EvaluationError as error:
        raise TypeMismatch(error.message, span=node.default.span) from error
