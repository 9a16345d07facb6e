"""What a query is bound in: the catalog, the CTEs in sight, and the query around."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from deltic.frontends.sql import tree
from deltic.frontends.sql.scope import Scope
from deltic.frontends.statements import Namespace
from deltic.plan.nodes import Hint, Plan, Reference


@dataclass(frozen=True, slots=True)
class Environment:
    """`ctes` go by lower-case name. `reads` collects the catalog's relations that were read, by the catalog's names.

    hint: for the joins of the SELECT that is bound.
    """

    catalog: Namespace
    ctes: Mapping[str, Plan] = field(default_factory=dict)
    outer: Scope | None = None
    reads: set[str] = field(default_factory=set)
    hint: Hint | None = None

    def alone(self) -> Environment:
        """For a derived table, which sees no other query's columns."""
        return replace(self, outer=None)

    def within(self, scope: Scope) -> Environment:
        """For a subquery of a condition over `scope`."""
        return replace(self, outer=scope)

    def with_cte(self, name: str, plan: Plan) -> Environment:
        """With one more CTE, which hides a relation of the same name."""
        return replace(self, ctes={**self.ctes, name.lower(): plan})

    def unused(self, name: str) -> str:
        """A name for a recursive relation that no other one in sight has: this one, or with a number after it."""
        used = {plan.name for plan in self.ctes.values() if isinstance(plan, Reference)}
        number, candidate = 1, name
        while candidate in used or isinstance(self.catalog.relation(candidate), Reference):
            number, candidate = number + 1, f"{name}_{number + 1}"
        return candidate


BindQuery = Callable[[tree.Query, Environment], Plan]
