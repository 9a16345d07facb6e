"""What a session has defined. It is committed with the program, so that names and views change together or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deltic.circuit.nodes import ArrangementSpec, Dataflow
from deltic.errors import UnknownName
from deltic.plan.nodes import Plan
from deltic.runtimes import Committed
from deltic.session.catalog import Catalog
from deltic.session.watermark import Marks
from deltic.trace.reading import Reader


@dataclass(frozen=True, slots=True)
class Stored:
    """How a view is stored, and how its words are read."""

    spec: ArrangementSpec
    reader: Reader


@dataclass(frozen=True, slots=True)
class Definitions:
    """A catalog; of its materialized views the optimized plans, the circuit, and how each is stored; and the watermarks."""

    catalog: Catalog = field(default_factory=Catalog)
    plans: Mapping[str, Plan] = field(default_factory=dict)
    circuit: Dataflow = field(default_factory=Dataflow.empty)
    marks: Marks = field(default_factory=Marks)
    views: Mapping[str, Stored] = field(default_factory=dict)

    @classmethod
    def of(cls, catalog: Catalog, plans: Mapping[str, Plan], circuit: Dataflow, marks: Marks) -> Definitions:
        specs = {view: circuit.arrangements[name] for view, name in circuit.views.items()}
        stored = {view: Stored(spec, Reader(spec.shape.schema, spec.order)) for view, spec in specs.items()}
        return cls(catalog, plans, circuit, marks, stored)

    def stored(self, view: str) -> Stored:
        """Raises UnknownName for a view that is not there any more."""
        if view not in self.views:
            raise UnknownName(f"view {view} has been dropped")
        return self.views[view]


NOTHING = Definitions()
"""Those of a session before its first."""


def definitions_of(committed: Committed) -> Definitions:
    """Those that are part of a commit."""
    found = committed.definitions
    if found is None:
        return NOTHING
    assert isinstance(found, Definitions)
    return found
