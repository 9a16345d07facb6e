"""The definitions of a session. They are part of a commit, so names and views change together or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deltic.circuit.nodes import ArrangementSpec, Dataflow
from deltic.circuit.unread import unread_strings
from deltic.errors import Span, UnknownName
from deltic.plan.nodes import Plan
from deltic.runtimes import Committed
from deltic.session.catalog import Catalog
from deltic.session.lateness import LateTable, late_tables
from deltic.session.watermark import Marks
from deltic.trace.reading import Reader


@dataclass(frozen=True, slots=True)
class Stored:
    """The layout of a view's or a table's arrangement, and the reader of its words."""

    spec: ArrangementSpec
    reader: Reader


@dataclass(frozen=True, slots=True)
class Definitions:
    """A catalog, the watermarks, and of the materialized views the optimized plans, the dataflow and the layouts. late: see LateTable.

    tables: the layouts of the tables, by their names in lower case. unread: see `unread_strings`.
    places: of the views whose errors are isolated, the places of what can fail, by its text.
    """

    catalog: Catalog = field(default_factory=Catalog)
    plans: Mapping[str, Plan] = field(default_factory=dict)
    circuit: Dataflow = field(default_factory=Dataflow.empty)
    marks: Marks = field(default_factory=Marks)
    views: Mapping[str, Stored] = field(default_factory=dict)
    late: tuple[LateTable, ...] = ()
    places: Mapping[str, Mapping[str, Span]] = field(default_factory=dict)
    tables: Mapping[str, Stored] = field(default_factory=dict)
    unread: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        catalog: Catalog,
        plans: Mapping[str, Plan],
        circuit: Dataflow,
        marks: Marks,
        previous: Definitions,
        places: Mapping[str, Mapping[str, Span]],
    ) -> Definitions:
        """previous: the definitions before, of which equal layouts stay."""
        views = _layouts(circuit, circuit.views, previous.views)
        tables = _layouts(circuit, {table.lower(): name for table, name in circuit.tables.items()}, previous.tables)
        late, unread = late_tables(catalog.tables.values()), unread_strings(circuit)
        return cls(catalog, plans, circuit, marks, views, late, places, tables, unread)

    def stored(self, view: str) -> Stored:
        """The layout of a view. Raises UnknownName for one that has been dropped."""
        if view not in self.views:
            raise UnknownName(f"view {view} has been dropped")
        return self.views[view]

    def stored_table(self, table: str) -> Stored:
        """The layout of a table. Raises UnknownName for one that has been dropped."""
        if table.lower() not in self.tables:
            raise UnknownName(f"table {table} has been dropped")
        return self.tables[table.lower()]


def _layouts(circuit: Dataflow, arrangements: Mapping[str, str], previous: Mapping[str, Stored]) -> dict[str, Stored]:
    """By the name of a view or a table."""
    return {relation: _stored(circuit.arrangements[name], previous.get(relation)) for relation, name in arrangements.items()}


def _stored(spec: ArrangementSpec, previous: Stored | None) -> Stored:
    return previous if previous is not None and previous.spec == spec else Stored(spec, Reader(spec.shape.schema, spec.order))


NOTHING = Definitions()
"""Those of a new session."""


def definitions_of(committed: Committed) -> Definitions:
    """The definitions of a commit."""
    definitions: Definitions | None = committed.definitions
    return NOTHING if definitions is None else definitions
