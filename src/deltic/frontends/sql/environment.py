"""The environment in which a query is bound: the catalog, the visible CTEs, and the enclosing query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from deltic.frontends.sql import tree
from deltic.frontends.sql.scope import Scope, ScopedRelation
from deltic.frontends.statements import Namespace
from deltic.plan.nodes import Hint, Plan, Reference


@dataclass(frozen=True, slots=True)
class Environment:
    """ctes: by lower-case name. reads: collects the catalog's relations that the query reads, by their names in the catalog.

    hint: the join hint of the current SELECT. given: the ArgumentRows of the query.
    """

    catalog: Namespace
    ctes: Mapping[str, Plan] = field(default_factory=dict)
    outer: Scope | None = None
    reads: set[str] = field(default_factory=set)
    hint: Hint | None = None
    given: ScopedRelation | None = None

    def alone(self) -> Environment:
        """The environment of a derived table, which cannot read the enclosing query's columns."""
        return replace(self, outer=None)

    def within(self, scope: Scope) -> Environment:
        """The environment of a subquery in a condition over `scope`."""
        return replace(self, outer=scope)

    def with_cte(self, name: str, plan: Plan) -> Environment:
        """The environment with another CTE, which hides a relation of the same name."""
        return replace(self, ctes={**self.ctes, name.lower(): plan})

    def unused(self, name: str) -> str:
        """A unique name for a recursive relation: the given name, with a number if it is in use."""
        used = {plan.name for plan in self.ctes.values() if isinstance(plan, Reference)}
        number, candidate = 1, name
        while candidate in used or isinstance(self.catalog.relation(candidate), Reference):
            number, candidate = number + 1, f"{name}_{number + 1}"
        return candidate


BindQuery = Callable[[tree.Query, Environment], Plan]
