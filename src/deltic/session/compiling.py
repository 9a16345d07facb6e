"""From a catalog to a dataflow. Views that a definition does not change are neither optimized nor lowered again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from deltic.circuit.nodes import Dataflow
from deltic.lowering import GrowingProgram
from deltic.optimizer import optimize
from deltic.plan.nodes import Plan
from deltic.session.catalog import Catalog, ViewDefinition
from deltic.session.collector import collector_paused
from deltic.session.recursive import limited


@dataclass(frozen=True, slots=True)
class _Optimized:
    """The optimized plan of a view. definition, denotation: what it was computed from."""

    definition: ViewDefinition
    denotation: Plan
    plan: Plan


class Compiler:
    """Compiles the programs of one session. iteration_limit: as of Session. plans: the optimized plans of the last program."""

    def __init__(self, shards: int, iteration_limit: int | None) -> None:
        self._limit = iteration_limit
        self._growing = GrowingProgram(shards)
        self._optimized: Mapping[str, _Optimized] = {}
        self.optimized_plans: dict[str, Plan] = {}
        """The plans of the views that were optimized for the last program."""

    @property
    def optimized(self) -> int:
        """How many views were optimized for the last program."""
        return len(self.optimized_plans)

    @property
    def lowered(self) -> int:
        """How many nodes the last program added to the circuit."""
        return self._growing.nodes

    @property
    def fused(self) -> int:
        """How many nodes were fused or renumbered for the last program."""
        return self._growing.fusion.made

    @property
    def plans(self) -> Mapping[str, Plan]:
        return MappingProxyType({name: view.plan for name, view in self._optimized.items()})

    @collector_paused()
    def circuit(self, catalog: Catalog) -> Dataflow:
        """The dataflow of a catalog. Raises as `Catalog.plans` and `optimize`; the plans of the last program are then kept."""
        previous, self.optimized_plans = self._optimized, {}
        optimized = {name: self._view(previous.get(name), catalog.views[name.lower()], plan) for name, plan in catalog.plans().items()}
        tables = {table.name: table for table in catalog.tables.values()}
        circuit = self._growing.circuit({name: view.plan for name, view in optimized.items()}, tables)
        self._optimized = optimized
        return circuit

    def _view(self, previous: _Optimized | None, definition: ViewDefinition, denotation: Plan) -> _Optimized:
        if previous is not None and previous.definition is definition and previous.denotation == denotation:
            return previous
        plan = self.optimized_plans[definition.name] = optimize(limited(denotation, self._limit))
        return _Optimized(definition, denotation, plan)
