"""`*`, `t.*` and `struct.*`: the columns that they are, in a select list and, as in Spark, among the arguments of functions in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from deltic.errors import TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr import Expr
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.scope import Outer, Scope, ScopeColumn


def outputs_of_star(star: tree.Star, binder: ExpressionBinder, scope: Scope) -> Iterator[tuple[str, Expr]]:
    """The name and the value of each column of a star in a select list."""
    if (fields := _fields(star, scope)) is not None:
        for field in fields:
            yield field.field.text, binder.bind(field)
        return
    replaced = {name.text.lower(): expression for expression, name in star.replaced}
    renamed = {old.text.lower(): new.text for old, new in star.renamed}
    outer = _enclosing(star, scope)
    for column in columns_of_star(star, scope if outer is None else outer.scope):
        name = column.name.lower()
        own = scope.column(column) if outer is None else outer.column(outer.scope.column(column))
        yield renamed.get(name, column.name), binder.bind(replaced[name]) if name in replaced else replace(own, span=star.span)


def _enclosing(star: tree.Star, scope: Scope) -> Outer | None:
    """The row of the nearest enclosing query that has the star's table, if the query itself has none of that name."""
    if star.qualifier is None or scope.star(_qualifier(star)):
        return None
    return next((outer for outer in scope.around() if outer.scope.star(_qualifier(star))), None)


def _qualifier(star: tree.Star) -> str | None:
    return None if star.qualifier is None else ".".join(name.text for name in (star.qualifier, *star.path))


def columns_of_star(star: tree.Star, scope: Scope) -> tuple[ScopeColumn, ...]:
    """The columns, in order. Raises UnknownName."""
    qualifier = _qualifier(star)
    columns = scope.star(qualifier)
    if not columns:
        qualifiers = [c.qualifier for c in scope.columns if c.qualifier]
        message = f"there is no table {qualifier!r} in FROM" if qualifier else "* requires a FROM clause"
        raise UnknownName(message, span=star.span, remedy=did_you_mean(qualifier or "", qualifiers))
    names = [column.name for column in columns]
    for what, named in (
        ("exclude", star.excluded),
        ("replace", [name for _, name in star.replaced]),
        ("rename", [name for name, _ in star.renamed]),
    ):
        _check_columns(what, named, names)
    excluded = {part.text.lower() for part in star.excluded}
    return tuple(column for column in columns if column.name.lower() not in excluded)


def _check_columns(what: str, named: Sequence[tree.Name], columns: Sequence[str]) -> None:
    folded = [column.lower() for column in columns]
    for part in named:
        if part.text.lower() not in folded:
            raise UnknownName(f"there is no column {part.text!r} to {what}", span=part.span, remedy=did_you_mean(part.text, columns))


def _fields(star: tree.Star, scope: Scope) -> list[tree.FieldOf] | None:
    """The fields of the struct that the star's qualifiers name; None if they name a table, or nothing."""
    if star.qualifier is None or scope.star(_qualifier(star)):
        return None
    names = (star.qualifier, *star.path)
    named = tree.ColumnName(names, replace(star.qualifier.span, end=names[-1].span.end))
    if not any(scope.find(name.text, None if i == 0 else names[i - 1].text) for i, name in enumerate(names[:2])):
        return None
    value = ExpressionBinder(scope, "SELECT").bind(named)
    if value.type.name != "STRUCT":
        raise TypeMismatch(f"* of a {value.type.sql}", span=star.span, expected="a table, or a STRUCT")
    if star.replaced or star.renamed:
        raise Unsupported("REPLACE and RENAME of the fields of a STRUCT", span=star.span, remedy="name the fields")
    fields = [part.name for part in value.type.parts]
    _check_columns("exclude", star.excluded, fields)
    excluded = {part.text.lower() for part in star.excluded}
    return [tree.FieldOf(named, tree.Name(field, star.span), star.span) for field in fields if field.lower() not in excluded]


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
    if (fields := _fields(argument, scope)) is not None:
        return tuple(fields)
    if argument.replaced or argument.renamed:
        raise Unsupported("REPLACE and RENAME in the arguments of a function", span=argument.span, remedy="name the columns")
    names = ([word for word in (c.qualifier, c.name) if word is not None] for c in columns_of_star(argument, scope))
    return tuple(tree.ColumnName(tuple(tree.Name(word, argument.span) for word in words), argument.span) for words in names)


def _check_names(arguments: tuple[tree.Expression, ...]) -> None:
    for argument in arguments:
        if not isinstance(argument, tree.Star | tree.ColumnName | tree.FieldOf | tree.NamedValue):
            raise Unsupported("a value without a name beside * in struct()", span=argument.span, remedy="name it: struct(*, x + 1 AS y)")
