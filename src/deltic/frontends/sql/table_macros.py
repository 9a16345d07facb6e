"""Table functions in SQL: CREATE FUNCTION … RETURNS TABLE (…) RETURN a query. A call is the query with constants for its parameters.

No parameter may have the name of a column that the query can read, so it does not matter where in the query it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from deltic.errors import CatalogError, Span, Unsupported
from deltic.expr.functions.signature import check_count
from deltic.frontends.sql import tree
from deltic.frontends.statements import Namespace


@dataclass(frozen=True, slots=True)
class TableBody:
    """columns: the declared columns of the result; () are those of the query."""

    name: tree.Name
    parameters: tuple[tree.FunctionParameter, ...]
    columns: tuple[tree.FunctionParameter, ...]
    query: tree.Query


def expanded(body: TableBody, arguments: Sequence[tree.Expression], namespace: Namespace, span: Span) -> tree.Query:
    """The query of a call. Raises TypeMismatch for a wrong number of arguments, Unsupported for one that reads columns."""
    least = sum(parameter.default is None for parameter in body.parameters)
    check_count(body.name.text, arguments, least, len(body.parameters), span)
    for argument in arguments:
        if column := next(varying(argument), None):
            remedy = f"LATERAL {body.name.text}(…), after a comma, for columns of the relations before it; or constants"
            raise Unsupported(f"an argument of {body.name.text} is not constant", span=column, expected="constants", remedy=remedy)
    check_names(body, namespace)
    values: dict[str, tree.Expression] = {}
    for i, parameter in enumerate(body.parameters):
        given = arguments[i] if i < len(arguments) else parameter.default
        assert given is not None
        cast = tree.CastCall(given, parameter.type, False, given.span)
        values[parameter.name.text.lower()] = tree.Parenthesised(cast, given.span)
    query = substituted(body.query, values, body.name.text.lower())
    return _typed(query, body) if body.columns else query


def varying(node: object) -> Iterator[Span]:
    """The places of columns and queries in an argument; the body of a function that it calls has only parameters."""
    if isinstance(node, (tree.ColumnName, *tree.QUERIES)):
        yield node.span
    for part in node.arguments if isinstance(node, tree.DefinedCall) else tree.parts(node):
        yield from varying(part)


def unknown_arguments(body: TableBody) -> tuple[tree.Expression, ...]:
    """NULL for each parameter, to check the body before any call."""
    return tuple(tree.KeywordExpression("NULL", parameter.name.span) for parameter in body.parameters)


def _typed(query: tree.Query, body: TableBody) -> tree.Query:
    """SELECT CAST(column AS its type), … FROM the query."""
    span, names = query.span, tuple(column.name for column in body.columns)
    items = tuple(
        tree.SelectItem(tree.CastCall(tree.ColumnName((c.name,), c.name.span), c.type, False, c.name.span), (c.name,), c.name.span)
        for c in body.columns
    )
    source = tree.DerivedTable(query, tree.TableAlias(body.name, names, span), span)
    return tree.SelectQuery(items, False, None, source, (), None, None, None, span)


def check_names(body: TableBody, namespace: Namespace) -> None:
    """Raises CatalogError for a parameter with the name of a column of a relation, or of an output, in the query."""
    columns = set(_columns(body.query, namespace))
    for parameter in body.parameters:
        if parameter.name.text.lower() in columns:
            message = f"the parameter {parameter.name.text!r} has the name of a column in the query"
            raise CatalogError(message, span=parameter.name.span, remedy="give the parameter another name")


def _columns(query: tree.Query, namespace: Namespace) -> Iterator[str]:
    for part in tree.walk(query):
        match part:
            case tree.TableName():
                relation = namespace.relation(part.name.text)
                yield from () if relation is None else (name.lower() for name in relation.schema.names)
            case tree.SelectItem():
                yield from (name.text.lower() for name in part.names)
            case tree.TableAlias():
                yield from (name.text.lower() for name in part.columns)
            case tree.TableCall() | tree.LateralView():
                yield from ("col", "pos", "key", "value", "id")


def substituted(node: Any, values: Mapping[str, tree.Expression], function: str) -> Any:
    """The tree with values for the names of parameters, alone or after the function's name."""
    if isinstance(node, tuple):
        parts = tuple(substituted(part, values, function) for part in node)
        return node if all(new is old for new, old in zip(parts, node, strict=True)) else parts
    if not tree.is_node(node):
        return node
    if isinstance(node, tree.ColumnName):
        *before, name = (part.text.lower() for part in node.parts)
        return values.get(name, node) if before in ([], [function]) else node
    changed = {}
    for field in fields(node):
        old = getattr(node, field.name)
        if (new := substituted(old, values, function)) is not old:
            changed[field.name] = new
    if isinstance(node, tree.SelectItem) and not node.names and isinstance(node.expression, tree.ColumnName) and changed:
        changed["names"] = node.expression.parts[-1:]
    return replace(node, **changed) if changed else node
