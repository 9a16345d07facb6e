"""Views that are declared recursive: the plans that they denote together, once each has its query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from deltic.errors import CatalogError, Span
from deltic.frontends.sql import DeclareView, no_base
from deltic.plan.monotone import check_monotone
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Plan, Recursion, Reference, references
from deltic.plan.recursion import components, finished, has_base
from deltic.plan.walk import map_inputs, nodes


def limited(plan: Plan, limit: int | None) -> Plan:
    """The plan, with no recursion limited to more iterations than `limit`."""
    return plan if limit is None else _limited(plan, limit)


@once_per_node
def _limited(plan: Plan, limit: int) -> Plan:
    plan = map_inputs(plan, lambda below: _limited(below, limit))
    return replace(plan, limit=min(plan.limit, limit)) if isinstance(plan, Recursion) else plan


def meanings(declared: Iterable[DeclareView], bodies: Mapping[str, Plan]) -> dict[str, Plan]:
    """The plan of each declared view over base tables alone. bodies: their queries. Both by the name with which a view is declared.

    Raises CatalogError if a view has no query, and Unsupported if views that read one another have no base or are not stratified.
    """
    declarations = {view.name: view for view in declared}
    for view in declarations.values():
        if view.name not in bodies:
            raise CatalogError(
                f"view {view.name} is declared, but not created in this script",
                span=view.span,
                remedy=f"CREATE [MATERIALIZED] VIEW {view.name} AS … after the declarations",
            )
    for group in components(bodies):
        group_bodies = {name: bodies[name] for name in group}
        check_monotone(group_bodies)
        for name in group:
            if not has_base(group_bodies, name):
                raise no_base(name, declarations[name].span)
    return finished(bodies, {view.name: view.limit for view in declarations.values()})


def check_complete(view: str, plan: Plan) -> None:
    """Raises CatalogError if the plan of a view, as `meanings` returns it, reads a view that was dropped."""
    for name, _ in references(plan):
        raise CatalogError(
            f"view {view} reads {name}, which has been dropped", span=_place(plan, name), remedy=f"drop {view} too, or create {name} again"
        )


def _place(plan: Plan, name: str) -> Span | None:
    return next(node.span for node in nodes(plan) if isinstance(node, Reference) and node.name == name)
