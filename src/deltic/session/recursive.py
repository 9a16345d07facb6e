"""Views that are declared recursive: what they denote together, once all of them have their query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from deltic.errors import CatalogError, Span
from deltic.frontends.sql import DeclareView, no_base
from deltic.plan.monotone import check_monotone
from deltic.plan.nodes import Plan, Recursion, Reference, references
from deltic.plan.recursion import components, finished, has_base
from deltic.plan.walk import nodes, transform


def limited(plan: Plan, limit: int | None) -> Plan:
    """The plan with no recursion that goes on for more iterations."""
    if limit is None:
        return plan
    return transform(plan, lambda node: replace(node, limit=min(node.limit, limit)) if isinstance(node, Recursion) else node)


def meanings(declared: Iterable[DeclareView], bodies: Mapping[str, Plan]) -> dict[str, Plan]:
    """What each declared view denotes, over base tables alone, by the name that it is declared with; `bodies` likewise.

    Raises CatalogError where a view has no query, and Unsupported where the views that read one another have no base or are not stratified.
    """
    declarations = {one.name: one for one in declared}
    for one in declarations.values():
        if one.name not in bodies:
            raise CatalogError(
                f"view {one.name} is declared, and not created in this script",
                span=one.span,
                remedy=f"CREATE [MATERIALIZED] VIEW {one.name} AS … behind the declarations",
            )
    for group in components(bodies):
        mine = {name: bodies[name] for name in group}
        check_monotone(mine)
        for name in group:
            if not has_base(mine, name):
                raise no_base(name, declarations[name].span)
    return finished(bodies, {one.name: one.limit for one in declarations.values()})


def check_complete(view: str, plan: Plan) -> None:
    """Raises CatalogError if the view's plan, a denotation, still reads a view that was dropped."""
    for name, _ in references(plan):
        raise CatalogError(
            f"view {view} reads {name}, which is dropped", span=_place(plan, name), remedy=f"drop {view} too, or create {name} again"
        )


def _place(plan: Plan, name: str) -> Span | None:
    return next(node.span for node in nodes(plan) if isinstance(node, Reference) and node.name == name)
