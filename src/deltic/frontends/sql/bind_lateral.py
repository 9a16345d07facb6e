"""Binds LATERAL calls of table functions in SQL over columns: joins of the rows before them with the results of the function's query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.expr import Expr, Literal, cast, resolve
from deltic.expr.functions.comparison import check_ordered
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.environment import BindQuery, Environment
from deltic.frontends.sql.scope import Scope, ScopeColumn, ScopedRelation, check_names
from deltic.frontends.sql.sql_types import read_type
from deltic.plan.columns import reference
from deltic.plan.nodes import Distinct, Join, Plan, Project
from deltic.schema import STRING


def bind_defined_lateral(
    node: tree.DefinedLateral, left: ScopedRelation, env: Environment, bind_query: BindQuery, *, outer: bool
) -> ScopedRelation:
    """The rows of `left`, each joined with the rows that the function returns for it. outer: or with NULLs."""
    binder = ExpressionBinder(left.scope, "LATERAL")
    values = [binder.bind(argument) for argument in node.arguments]
    rows = _argument_rows(node, left.plan, values)
    inner = bind_query(node.query, replace(env.closed(), given=rows))
    own = len(inner.schema) - len(rows.plan.schema)
    columns = _columns(node, inner, own)
    width = len(left.plan.schema)
    assert not (outer and node.by_row)
    if node.by_row:
        kept = [(field.name, reference(inner.schema, own + i)) for i, field in enumerate(left.plan.schema)]
        plan: Plan = Project(inner, (*kept, *columns))
    else:
        given = [(f"argument {i}", reference(inner.schema, own + i)) for i in range(len(values))]
        right = Project(inner, (*columns, *given))
        arguments = [reference(right.schema, own + i) for i in range(len(values))]
        plan = Join(left.plan, right, "left" if outer else "inner", _equal(values, arguments))
    qualifier = node.name if node.alias is None else node.alias.name.text
    added = tuple(ScopeColumn(name, qualifier, width + i) for i, (name, _) in enumerate(columns))
    return ScopedRelation(plan, Scope(left.scope.columns + added, plan.schema, left.scope.outer))


def _argument_rows(node: tree.DefinedLateral, left: Plan, values: list[Expr]) -> ScopedRelation:
    """The ArgumentRows: those of `left` with the arguments, or the different arguments. Only their parameters have names that are found."""
    kept = [(f"column {i}", reference(left.schema, i)) for i in range(len(left.schema))] if node.by_row else []
    plan: Plan = Project(left, (*kept, *zip(node.parameters, values, strict=True)))
    if not node.by_row:
        for value in values:
            check_ordered(f"LATERAL {node.name}", value.type, value.span)
        plan = Distinct(plan)
    columns = (ScopeColumn(field.name, node.rows, i, hidden=True) for i, field in enumerate(plan.schema))
    return ScopedRelation(plan, Scope(tuple(columns), plan.schema))


def _columns(node: tree.DefinedLateral, inner: Plan, own: int) -> list[tuple[str, Expr]]:
    """The columns of the function, by their types and names."""
    values: list[Expr] = [reference(inner.schema, i) for i in range(own)]
    names = [field.name for field in inner.schema][:own]
    if node.columns:
        values = [cast(value, read_type(type), node.span) for value, (_, type) in zip(values, node.columns, strict=True)]
        names = [name.text for name, _ in node.columns]
    if node.alias is not None and node.alias.columns:
        names = [name.text for name in node.alias.columns]
    check_names(names, own, node.span)
    return list(zip(names, values, strict=True))


def _equal(left: Sequence[Expr], right: Sequence[Expr]) -> tuple[tuple[Expr, Expr], ...]:
    """Keys of a join, for which NULL is a value like any other."""
    if not any(value.nullable for value in left):
        return tuple(zip(left, right, strict=True))
    return ((_together(left), _together(right)),)


def _together(values: Sequence[Expr]) -> Expr:
    """A STRUCT of the values, which is not NULL where they are."""
    plain = [replace(value, span=None) for value in values]
    return resolve("named_struct", [part for i, value in enumerate(plain) for part in (Literal(f"v{i}", STRING), value)], None)
