"""The environment in which a query is bound: the catalog, the visible CTEs, and the enclosing query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from deltic.frontends.sql import tree
from deltic.frontends.sql.scope import Outer, ScopedRelation
from deltic.frontends.statements import Namespace
from deltic.plan.nodes import Hint, Plan, Reference
from deltic.plan.subquery_nodes import Unnest
from deltic.plan.unnest import unnest


@dataclass(frozen=True, slots=True)
class Environment:
    """ctes: by lower-case name. reads: collects the catalog's relations that the query reads, by their names in the catalog.

    outer: the row of the enclosing query, in a subquery. hint: the join hint of the current SELECT. given: the ArgumentRows of the query.
    unnest: how the joins with subqueries are made. unready: names, in lower case, that are defined but not here, with what to do.
    """

    catalog: Namespace
    ctes: Mapping[str, Plan] = field(default_factory=dict)
    outer: Outer | None = None
    reads: set[str] = field(default_factory=set)
    hint: Hint | None = None
    given: ScopedRelation | None = None
    unnest: Unnest = unnest
    unready: Mapping[str, str] = field(default_factory=dict)

    def closed(self) -> Environment:
        """The environment of a query that sees the catalog alone."""
        return Environment(self.catalog, reads=self.reads, unnest=self.unnest)

    def within(self, outer: Outer) -> Environment:
        """The environment of a subquery that may read a row of the query around it."""
        return replace(self, outer=outer)

    def with_cte(self, name: str, plan: Plan) -> Environment:
        """The environment with another CTE, which hides a relation of the same name."""
        return replace(self, ctes={**self.ctes, name.lower(): plan})

    def before(self, unready: Mapping[str, str]) -> Environment:
        """The environment of a query before these names are defined."""
        return replace(self, unready={**self.unready, **unready})

    def unused(self, name: str) -> str:
        """A unique name for a recursive relation: the given name, with a number if it is in use."""
        used = {plan.name for plan in self.ctes.values() if isinstance(plan, Reference)}
        known = {one.lower() for one in self.catalog.names()}  # a catalog may have to look up others elsewhere
        number, candidate = 1, name
        while candidate in used or (candidate.lower() in known and isinstance(self.catalog.relation(candidate), Reference)):
            number, candidate = number + 1, f"{name}_{number + 1}"
        return candidate


BindQuery = Callable[[tree.Query, Environment], Plan]
