"""`*`, `t.*` and `struct.*`: the columns that they are, in a select list and, as in Spark, among the arguments of functions in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from deltic.errors import Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr import Expr
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.bind_updated_field import updated_field
from deltic.frontends.sql.scope import Outer, Scope, ScopeColumn
from deltic.schema import Type


def outputs_of_star(star: tree.Star, binder: ExpressionBinder, scope: Scope) -> Iterator[tuple[str, Expr]]:
    """The name and the value of each column of a star in a select list."""
    if (fields := _fields(star, scope)) is not None:
        for name, field in fields:
            yield name, binder.bind(field)
        return
    replaced = {name.text.lower(): expression for expression, name in star.replaced}
    renamed = {old.text.lower(): new.text for old, new in star.renamed}
    outer = _enclosing(star, scope)
    for column, dropped in _columns(star, scope if outer is None else outer.scope):
        name = column.name.lower()
        own = scope.column(column) if outer is None else outer.column(outer.scope.column(column))
        value: Expr = binder.bind(replaced[name]) if name in replaced else replace(own, span=star.span)
        for path in dropped:
            value = updated_field(value, path, None, star.span, in_null=True)
        yield renamed.get(name, column.name), value


def _enclosing(star: tree.Star, scope: Scope) -> Outer | None:
    """The row of the nearest enclosing query that has the star's table, if the query itself has none of that name."""
    if star.qualifier is None or scope.star(_qualifier(star)):
        return None
    return next((outer for outer in scope.around() if outer.scope.star(_qualifier(star))), None)


def _qualifier(star: tree.Star) -> str | None:
    return None if star.qualifier is None else ".".join(name.text for name in (star.qualifier, *star.path))


def _columns(star: tree.Star, scope: Scope) -> Iterator[tuple[ScopeColumn, list[tuple[str, ...]]]]:
    """The columns that EXCEPT keeps, in order, each with the paths of the fields that it leaves out. Raises UnknownName."""
    qualifier = _qualifier(star)
    columns = scope.star(qualifier)
    if not columns:
        qualifiers = [c.qualifier for c in scope.columns if c.qualifier]
        message = f"there is no table {qualifier!r} in FROM" if qualifier else "* requires a FROM clause"
        raise UnknownName(message, span=star.span, remedy=did_you_mean(qualifier or "", qualifiers))
    names = [column.name for column in columns]
    excluded = _excluded(star, [(column.name, tuple(column.qualifiers()), scope.schema[column.index].type) for column in columns])
    for what, named in (("replace", [name for _, name in star.replaced]), ("rename", [name for name, _ in star.renamed])):
        for part in named:
            _check_column(what, part, names)
    return ((column, dropped) for column, dropped in zip(columns, excluded, strict=True) if () not in dropped)


def _excluded(star: tree.Star, columns: Sequence[tuple[str, Sequence[str | None], Type]]) -> list[list[tuple[str, ...]]]:
    """For each column, the paths of the fields that EXCEPT leaves out; the empty path is the whole column.

    columns: their names, what may be before them, and types. table.column is meant where there is one, else column.field.
    Raises UnknownName, and TypeMismatch for what is left out twice.
    """
    excluded: list[list[tuple[str, ...]]] = [[] for _ in columns]
    for named in star.excluded:
        words = [part.text.lower() for part in named.parts]
        for length in range(len(words) - 1, -1, -1):
            before = ".".join(words[:length]) or None
            meant = [
                i
                for i, (name, qualifiers, _) in enumerate(columns)
                if name.lower() == words[length] and (before is None or before in qualifiers)
            ]
            if meant:
                break
        else:
            _check_column("exclude", named.parts[0], [name for name, _, _ in columns])
        path = tuple(words[length + 1 :])
        for i in meant:
            _check_field(columns[i][2], named.parts[length + 1 :])
            if any(path[: len(other)] == other or other[: len(path)] == path for other in excluded[i]):
                raise TypeMismatch(
                    "EXCEPT leaves it out twice", span=named.span, expected="different columns, and none with a field of its own"
                )
            excluded[i].append(path)
    return excluded


def _check_column(what: str, name: tree.Name, columns: Sequence[str]) -> None:
    if name.text.lower() not in [column.lower() for column in columns]:
        raise UnknownName(f"there is no column {name.text!r} to {what}", span=name.span, remedy=did_you_mean(name.text, columns))


def _check_field(type: Type, path: Sequence[tree.Name]) -> None:
    for name in path:
        if type.name != "STRUCT":
            raise TypeMismatch(f"{type.sql} has no fields to exclude", span=name.span, expected="a STRUCT")
        types = [part.type for part in type.parts if part.name.lower() == name.text.lower()]
        if not types:
            remedy = did_you_mean(name.text, [part.name for part in type.parts])
            raise UnknownName(f"there is no field {name.text!r} to exclude", span=name.span, remedy=remedy)
        type = types[0]


def _fields(star: tree.Star, scope: Scope) -> list[tuple[str, tree.Expression]] | None:
    """The names and values of the fields of the struct that the star's qualifiers name; None if they name a table, or nothing."""
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
    excluded = _excluded(star, [(part.name, (None,), part.type) for part in value.type.parts])
    return [
        (field, _without(tree.FieldOf(named, tree.Name(field, star.span), star.span), dropped))
        for field, dropped in zip(fields, excluded, strict=True)
        if () not in dropped
    ]


def _without(value: tree.Expression, dropped: Sequence[tuple[str, ...]]) -> tree.Expression:
    """The STRUCT without the fields at these paths; as in Spark, NULL becomes a STRUCT of NULLs."""
    for path in dropped:
        value = tree.UpdatedField(value, path, None, value.span, in_null=True)
    return value


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
        return tuple(field for _, field in fields)
    if argument.replaced or argument.renamed:
        raise Unsupported("REPLACE and RENAME in the arguments of a function", span=argument.span, remedy="name the columns")
    return tuple(_without(_named(column, argument.span), dropped) for column, dropped in _columns(argument, scope))


def _named(column: ScopeColumn, span: Span) -> tree.ColumnName:
    words = (word for word in (column.qualifier, column.name) if word is not None)
    return tree.ColumnName(tuple(tree.Name(word, span) for word in words), span)


def _check_names(arguments: tuple[tree.Expression, ...]) -> None:
    for argument in arguments:
        if not isinstance(argument, tree.Star | tree.ColumnName | tree.FieldOf | tree.NamedValue):
            raise Unsupported("a value without a name beside * in struct()", span=argument.span, remedy="name it: struct(*, x + 1 AS y)")
