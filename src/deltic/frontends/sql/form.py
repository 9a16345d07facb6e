"""Queries that were put together out of a user's texts: whether each text is no more than what stands in its place."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from deltic.errors import SyntaxFailure
from deltic.frontends.sql.spans import Places


@dataclass(frozen=True, slots=True)
class Form:
    """What such a query is. part: what its texts are, for errors. columns: how many expressions are selected; None is any number.

    clauses: what it has beside its select list, as sqlglot calls it.
    """

    part: str
    clauses: frozenset[str]
    columns: int | None = None


def check_form(tree: exp.Expr, places: Places, form: Form) -> None:
    """Raises SyntaxFailure where a text brought clauses, columns or queries of its own."""
    if not isinstance(tree, exp.Select):
        raise SyntaxFailure("this is more than one SELECT", span=places.of(tree), expected=form.part)
    for clause, found in tree.args.items():
        if found and clause != "expressions" and clause not in form.clauses:
            parts = [part for part in (found if isinstance(found, list) else [found]) if isinstance(part, exp.Expr)]
            span = places.of(parts[0]) if parts else places.statement
            raise SyntaxFailure("this does not belong here", span=span, expected=form.part)
    if form.columns is not None and len(tree.expressions) != form.columns:
        raise SyntaxFailure(f"these are {len(tree.expressions)} columns", span=places.of(tree.expressions[-1]), expected=form.part)
