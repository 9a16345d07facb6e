"""`*` and `t.*`: the columns that they are, in a select list and, as in Spark, among the arguments of functions in it."""

from __future__ import annotations

from dataclasses import replace

from deltic.errors import UnknownName, Unsupported, did_you_mean
from deltic.frontends.sql import tree
from deltic.frontends.sql.scope import Scope, ScopeColumn


def columns_of_star(star: tree.Star, scope: Scope) -> tuple[ScopeColumn, ...]:
    """The columns, in order. Raises UnknownName."""
    qualifier = None if star.qualifier is None else star.qualifier.text
    columns = scope.star(qualifier)
    if not columns:
        qualifiers = [c.qualifier for c in scope.columns if c.qualifier]
        message = f"there is no table {qualifier!r} in FROM" if qualifier else "* requires a FROM clause"
        raise UnknownName(message, span=star.span, remedy=did_you_mean(qualifier or "", qualifiers))
    excluded = {part.text.lower(): part for part in star.excluded}
    for name, part in excluded.items():
        if all(column.name.lower() != name for column in columns):
            remedy = did_you_mean(name, [c.name for c in columns])
            raise UnknownName(f"there is no column {part.text!r} to exclude", span=part.span, remedy=remedy)
    return tuple(column for column in columns if column.name.lower() not in excluded)


def with_columns(node: tree.Expression, scope: Scope) -> tree.Expression:
    """The expression with the names of the columns for each * among the arguments of functions; not of COUNT, which counts rows.

    Raises UnknownName, and Unsupported for a STRUCT of * and of values that have no name: Spark numbers their names by the text.
    """
    match node:
        case tree.FunctionCall(keywords=False):
            arguments = tuple(with_columns(argument, scope) for argument in node.arguments)
            if node.name != "count" and any(isinstance(argument, tree.Star) for argument in arguments):
                if node.name == "struct":
                    _check_names(arguments)
                arguments = tuple(part for argument in arguments for part in _expanded(argument, scope))
            return replace(node, arguments=arguments)
        case tree.NamedValue() | tree.FieldOf() if not isinstance(node.value, tree.Star):
            return replace(node, value=with_columns(node.value, scope))
        case tree.Parenthesised():
            return replace(node, inner=with_columns(node.inner, scope))
        case _:
            return node


def _expanded(argument: tree.Expression, scope: Scope) -> tuple[tree.Expression, ...]:
    if not isinstance(argument, tree.Star):
        return (argument,)
    names = ([word for word in (c.qualifier, c.name) if word is not None] for c in columns_of_star(argument, scope))
    return tuple(tree.ColumnName(tuple(tree.Name(word, argument.span) for word in words), argument.span) for words in names)


def _check_names(arguments: tuple[tree.Expression, ...]) -> None:
    for argument in arguments:
        if not isinstance(argument, tree.Star | tree.ColumnName | tree.NamedValue):
            raise Unsupported("a value without a name beside * in struct()", span=argument.span, remedy="name it: struct(*, x + 1 AS y)")
