"""Binds recursive relations: CTEs of WITH RECURSIVE, and the queries of views that are declared recursive.

A recursive relation has the columns and types of its base terms, the terms of its query that do not read it. A column is nullable if it
is nullable in any term.
"""

from __future__ import annotations

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import cast, common_type
from deltic.expr.functions.comparison import check_ordered
from deltic.frontends.sql import tree
from deltic.frontends.sql.base_terms import base_of
from deltic.frontends.sql.environment import BindQuery, Environment
from deltic.plan.columns import reference
from deltic.plan.monotone import check_monotone
from deltic.plan.nodes import ITERATION_LIMIT, Distinct, Plan, Project, Recursion, Reference
from deltic.plan.recursion import as_declared, has_base
from deltic.schema import NULL, Field, Schema


def bind_recursive(cte: tree.CommonTable, env: Environment, bind_query: BindQuery) -> Plan:
    """The plan of a recursive CTE. bind_query: binds its query under the CTE's column names."""
    name, place = cte.name.text, cte.name.span
    base = base_of(cte.query, name)
    if base is None:
        raise no_base(name, place)
    unique = env.unused(name)
    body = _body(cte, name, unique, bind_query(base, env).schema, env, bind_query)
    check_monotone({unique: body})
    if not has_base({unique: body}, unique):
        raise no_base(name, place)
    return Recursion(((unique, body),), unique, ITERATION_LIMIT if cte.limit is None else cte.limit)


def no_base(name: str, place: Span) -> Unsupported:
    """The error for a recursion without a base case."""
    return Unsupported(
        f"the recursive relation {name} has no base case: every term reads it",
        span=place,
        expected="base UNION step, where base does not read the relation",
    )


def _body(cte: tree.CommonTable, name: str, unique: str, schema: Schema, env: Environment, bind_query: BindQuery) -> Plan:
    """The query bound over itself: first with the nullability of its base, then with more nullable columns until a fixed point."""
    while True:
        body = bind_query(cte.query, env.with_cte(name, Reference(unique, schema)))
        _check_types(name, schema, body.schema, _step(cte))
        wider = schema.with_nulls_of(body.schema)
        if wider == schema:
            return as_declared(body, schema)
        schema = wider


def _step(cte: tree.CommonTable) -> Span:
    """The place of the last term of a set operation, the recursive step; that of the name if there is none."""
    query = cte.query
    while isinstance(query, tree.WholeQuery):
        query = query.body
    return query.parts[-1].span if isinstance(query, tree.SetQuery) else cte.name.span


def _check_types(name: str, base: Schema, whole: Schema, place: Span) -> None:
    for field, actual in zip(base, whole, strict=True):
        if field.type != actual.type:
            step = "" if field.type == NULL else f", or CAST(… AS {field.type.sql}) in the step"
            raise TypeMismatch(
                f"column {field.name} of the recursive relation {name} is {field.type.sql} in its base and {actual.type.sql} with its step",
                span=place,
                remedy=f"CAST(… AS {actual.type.sql}) in the base{step}",
            )


def declared_body(plan: Plan, declared: Reference, place: Span) -> Plan:
    """The query of a view that is declared recursive, as a set of rows with the declared columns. place: the view's name."""
    schema = plan.schema
    if [name.lower() for name in schema.names] != [name.lower() for name in declared.schema.names]:
        raise TypeMismatch(
            f"view {declared.name} does not have its declared columns",
            span=place,
            expected=f"{', '.join(declared.schema.names)}, found {', '.join(schema.names)}",
        )
    for field, other in zip(declared.schema, schema, strict=True):
        _check_fits(declared.name, field, other, place)
    columns = tuple((f.name, cast(reference(schema, i), f.type, place)) for i, f in enumerate(declared.schema))
    typed = plan if schema == declared.schema else Project(plan, columns)
    for field in typed.schema:
        check_ordered("UNION", field.type, place)
    return as_declared(Distinct(typed), declared.schema)


def _check_fits(view: str, declared: Field, actual: Field, place: Span) -> None:
    if common_type([declared.type, actual.type]) != declared.type:
        raise TypeMismatch(
            f"column {declared.name} of view {view} is declared as {declared.type.sql}, and its query gives {actual.type.sql}",
            span=place,
            remedy=f"CAST(… AS {declared.type.sql}), or declare it as {actual.type.sql}",
        )
    if actual.nullable and not declared.nullable:
        raise TypeMismatch(
            f"column {declared.name} of view {view} is declared NOT NULL, and its query may give NULL",
            span=place,
            remedy="declare it without NOT NULL, or coalesce it",
        )
