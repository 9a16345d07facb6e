"""From a catalog to a dataflow. Views that a definition does not change are neither optimized nor lowered again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from deltic.circuit.nodes import Dataflow
from deltic.errors import Span
from deltic.lowering import GrowingProgram, lower_prepared
from deltic.lowering.streams import NO_FORMS
from deltic.optimizer import optimize
from deltic.optimizer.row_estimates import Sizes
from deltic.plan.isolate import isolated
from deltic.plan.nodes import Plan, Table
from deltic.plan.streams import keeps_ticks
from deltic.plan.table_forms import in_earliest_forms
from deltic.plan.walk import nodes
from deltic.runtimes.program import forms_of
from deltic.runtimes.view_errors import SUFFIX, errors_of
from deltic.schema import Forms
from deltic.session.alterations import Transition
from deltic.session.catalog import Catalog
from deltic.session.collector import without_collector
from deltic.session.definitions import Definitions
from deltic.session.plan_sizes import PlanSizes
from deltic.session.recursive import limited
from deltic.session.view_definitions import ViewDefinition
from deltic.stacks import unbounded


@dataclass(frozen=True, slots=True)
class _Optimized:
    """The optimized plan of a view. definition, denotation, read, sizes: what it was computed from; see `optimize` for the last two."""

    definition: ViewDefinition
    denotation: Plan
    read: Mapping[Plan, Plan]
    sizes: Sizes
    plan: Plan


@dataclass(frozen=True, slots=True)
class _InForms:
    """The optimized plan of a view, the tables that it reads, those of them that have forms, and the plan over these."""

    plan: Plan
    tables: frozenset[str]
    forms: Mapping[str, Forms]
    formed: Plan


class Compiler:
    """Compiles the programs of one session. iteration_limit: as of Session. plans: the optimized plans of the last program.

    isolates: whether errors of views are data: such a view has a second one, of its errors.
    """

    def __init__(self, shards: int, iteration_limit: int | None, *, isolates: bool = False) -> None:
        self._limit, self._isolates = iteration_limit, isolates
        self.places: Mapping[str, Mapping[str, Span]] = {}
        """Of the last program's views with errors, the places of the expressions that can fail, by their text."""
        self._shards, self._growing = shards, GrowingProgram(shards)
        self.plans: Mapping[str, Plan] = MappingProxyType({})
        self._in_forms: dict[str, _InForms] = {}
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
    def sizes(self) -> Mapping[Plan, Sizes]:
        """By the denotation of a view of the last program, the sizes by which its joins were ordered."""
        return {view.denotation: view.sizes for view in self._optimized.values()}

    @property
    def sizes_of_views(self) -> Mapping[str, Sizes]:
        """The same by the name of the view, in lower case."""
        return {_defined(name): view.sizes for name, view in self._optimized.items()}

    @property
    def denotations(self) -> Mapping[str, Plan]:
        """The views of the last program over base tables alone, as they are written."""
        return {name: view.denotation for name, view in self._optimized.items()}

    @without_collector
    def circuit(self, catalog: Catalog, sizes: PlanSizes, forms: Mapping[str, Forms]) -> Dataflow:
        """The dataflow of a catalog. sizes: for views that are optimized. forms: by table in lower case, of those that were altered.

        Raises as `Catalog.plans` and `optimize`; the plans of the last program are then kept.
        """
        plans, places = self._meanings(catalog)
        optimized = self._views(catalog, plans, sizes)
        tables = {table.name: table for table in catalog.tables.values()}
        lowered = {name: self._in_form(name, view.plan, forms) for name, view in optimized.items()}
        circuit = self._growing.circuit(lowered, tables, forms)
        self._optimized, self.places, self.plans = optimized, places, MappingProxyType(lowered)
        return circuit

    def prepared(self, definitions: Definitions, transitions: Iterable[Transition]) -> tuple[Dataflow, list[str]]:
        """The dataflow of these definitions, with the arrangements that tables will have when they are altered, and their names."""
        tables = {table.name: table for table in definitions.catalog.tables.values()}
        alterations = [(one.before, one.after, one.origins) for one in transitions]
        return lower_prepared(definitions.plans, tables, forms_of(definitions.circuit), alterations, self._shards)

    def _in_form(self, view: str, plan: Plan, forms: Mapping[str, Forms]) -> Plan:
        """The plan over the forms of tables: the same object as for the last program, if nothing has changed."""
        known = self._in_forms.get(view)
        if known is None or known.plan is not plan:
            read = frozenset(node.table.name.lower() for node in nodes(plan) if isinstance(node, Table))
            known = self._in_forms[view] = _InForms(plan, read, NO_FORMS, plan)
        own = {table: forms[table] for table in known.tables & forms.keys()}
        if known.forms != own:
            known = self._in_forms[view] = replace(known, forms=own, formed=in_earliest_forms(plan, self._in_place(own)))
        return known.formed

    def _in_place(self, forms: Mapping[str, Forms]) -> Mapping[str, Forms]:
        """Those of tables whose rows stay in their shards when columns come and go: without a key, all columns say where a row is."""
        return {table: own for table, own in forms.items() if self._shards == 1 or own[-1].table.key}

    def _meanings(self, catalog: Catalog) -> tuple[dict[str, Plan], dict[str, Mapping[str, Span]]]:
        """The plans of the materialized views, and of their errors, and the places of errors."""
        plans = {name: limited(plan, self._limit) for name, plan in catalog.plans().items()}
        places: dict[str, Mapping[str, Span]] = {}
        for name, plan in list(plans.items()) if self._isolates else ():
            view = isolated(plan)
            plans[name] = view.content
            if view.errors is not None:
                plans[errors_of(name)], places[name] = view.errors, view.places
        return plans, places

    def _views(self, catalog: Catalog, plans: Mapping[str, Plan], sizes: PlanSizes) -> dict[str, _Optimized]:
        """The materialized views, each after those that it reads."""
        done: dict[str, _Optimized] = {}
        self.optimized_plans = {}
        replanned = {plan for name, plan in plans.items() if _defined(name) in sizes.replanned}

        @unbounded
        def optimized(name: str) -> _Optimized:
            if name not in done:
                read = {plans[one]: optimized(one).plan for one in _kept(catalog, plans, name)}
                definition = catalog.views[_defined(name)]
                size = sizes.of(_defined(name), plans[name], replanned=plans[name] in replanned)
                done[name] = self._view(self._optimized.get(name), name, definition, plans[name], read, size)
            return done[name]

        return {name: optimized(name) for name in plans}

    def _view(
        self,
        previous: _Optimized | None,
        name: str,
        definition: ViewDefinition,
        denotation: Plan,
        read: Mapping[Plan, Plan],
        sizes: Sizes,
    ) -> _Optimized:
        if (
            previous is not None
            and previous.definition is definition
            and (previous.denotation, previous.read, previous.sizes) == (denotation, read, sizes)
        ):
            return previous
        plan = self.optimized_plans[name] = optimize(denotation, read, sizes)
        return _Optimized(definition, denotation, read, sizes, plan)


def _defined(view: str) -> str:
    """The name in lower case of the view of which this is the content, or the errors."""
    return view.removesuffix(SUFFIX).lower()


def _kept(catalog: Catalog, plans: Mapping[str, Plan], view: str) -> list[str]:
    """The views that the view reads whose state depends on earlier ticks, except those that read it."""
    if not keeps_ticks(plans[view]):
        return []
    upstream = catalog.upstream(view)
    read = [name for name, plan in plans.items() if name.lower() in upstream and keeps_ticks(plan)]
    within = set(nodes(plans[view])) if read else set()
    return [name for name in read if plans[name] in within and view.lower() not in catalog.upstream(name)]
