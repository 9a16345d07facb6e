"""Queries assembled from a user's texts: checks that a text contains only its part of the query."""

from __future__ import annotations

from dataclasses import dataclass, fields

from deltic.errors import Span, SyntaxFailure
from deltic.frontends.sql import tree


@dataclass(frozen=True, slots=True)
class Form:
    """The form of such a query. part: the texts' role, for errors. columns: the number of select items; None for any.

    clauses: the allowed clauses beside the select list, by their names in the tree.
    """

    part: str
    clauses: frozenset[str]
    columns: int | None = None


def check_form(query: tree.Query, form: Form) -> None:
    """Raises SyntaxFailure if a text contains clauses, columns or queries of its own."""
    whole = query if isinstance(query, tree.WholeQuery) else None
    select = query if whole is None else whole.body
    if not isinstance(select, tree.SelectQuery):
        raise SyntaxFailure("this is more than one SELECT", span=query.span, expected=form.part)
    for node in (select, whole):
        for clause in () if node is None else fields(node):
            value = getattr(node, clause.name)
            if value and clause.name not in form.clauses | {"items", "body", "span"}:
                raise SyntaxFailure("this does not belong here", span=_place(value, query.span), expected=form.part)
    if form.columns is not None and len(select.items) != form.columns:
        raise SyntaxFailure(f"these are {len(select.items)} columns", span=select.items[-1].span, expected=form.part)


def _place(value: object, otherwise: Span) -> Span:
    first = value[0] if isinstance(value, tuple) else value
    if isinstance(first, tree.OrderTerm):
        first = first.expression
    span = first if isinstance(first, Span) else getattr(first, "span", None)
    return span if isinstance(span, Span) else otherwise
