"""Binds ALTER TABLE: the types of new columns, and their values in the rows that the table has."""

from __future__ import annotations

from deltic.errors import EvaluationError, TypeMismatch, Unsupported
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Expr, Literal, is_fixed, user_functions
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_change import as_stored
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.scope import Scope
from deltic.frontends.sql.sql_types import sql_type
from deltic.frontends.statements import AlterTable, NewColumn
from deltic.schema import Field, Schema


def alter_table(node: tree.TableAlteration) -> AlterTable:
    """The statement. The catalog checks the names."""
    added = tuple(_added(column, node.table.text) for column in node.added)
    dropped = tuple((name.text, name.span) for name in node.dropped)
    old, new = node.renamed or (None, None)
    renamed = None if old is None or new is None else (old.text, old.span, new.text, new.span)
    return AlterTable(node.table.text, added, dropped, renamed, node.if_exists, node.table.span)


def _added(column: tree.AddedColumn, table: str) -> NewColumn:
    node = column.definition
    field = Field(node.name.text, sql_type(node.type), not node.required)
    if column.default is None:
        if node.required:
            message = f"column {field.name} is NOT NULL, and the rows of table {table} have no value for it"
            raise TypeMismatch(message, span=node.span, remedy=f"{field.name} {field.type.sql} NOT NULL DEFAULT value")
        return NewColumn(field, Literal(None, field.type.read), node.span)
    if field.type.is_limited:
        raise Unsupported(f"DEFAULT of a column of type {field.type.sql} is not supported", span=node.span, remedy="declare it STRING")
    return NewColumn(field, _value(column.default, field, table), node.span)


def _value(node: tree.Expression, field: Field, table: str) -> Literal:
    if any(isinstance(part, tree.ColumnName | tree.ScalarQuery | tree.Star) for part in tree.walk(node)):
        raise TypeMismatch("a DEFAULT is a constant", span=node.span, expected=f"{field.name} {field.type.sql} DEFAULT value")
    value: Expr = as_stored(ExpressionBinder(Scope((), Schema(())), "DEFAULT").bind(node), field, table, node.span)
    if not is_fixed(value) or any(user_functions(value)):
        raise TypeMismatch("a DEFAULT is a constant", span=node.span, expected=f"{field.name} {field.type.sql} DEFAULT value")
    try:
        constant = evaluate(value, ())
    except EvaluationError as error:
        raise TypeMismatch(error.message, span=node.span) from error
    if constant is None and not field.nullable:
        raise TypeMismatch(f"column {field.name} is NOT NULL, and its DEFAULT is NULL", span=node.span, remedy="another DEFAULT")
    return Literal(constant, field.type, node.span)
