"""Multiway joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltic.plan.columns import reference
from deltic.plan.nodes import Filter, Join, MultiwayJoin, Plan, Project

if TYPE_CHECKING:
    from deltic.lowering.lower import Lowering


def lower_multiway_join(lowering: Lowering, plan: MultiwayJoin) -> int:
    return lowering.relation(_binary(plan))


def _binary(plan: MultiwayJoin) -> Plan:
    """The same relation by joins of two, the inputs in their order."""
    joined: Plan = plan.inputs[0]
    seen = list(plan.variables[0])
    for part, mine in zip(plan.inputs[1:], plan.variables[1:], strict=True):
        pairs = [(seen.index(variable), i) for i, variable in enumerate(mine) if variable in seen]
        joined = Join(joined, part, "inner", tuple((reference(joined.schema, a), reference(part.schema, b)) for a, b in pairs))
        seen += mine
    if plan.condition is not None:
        joined = Filter(joined, plan.condition)
    return Project(joined, tuple((joined.schema[i].name, reference(joined.schema, i)) for i in plan.output))
