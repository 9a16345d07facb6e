"""The sizes of tables by which joins were ordered. They are part of the state, so a plan stays while its tables grow, and over restarts.

They belong to a query, by its fingerprint. A new query gets the sizes of today's tables, and so does one that is replanned. The views of a
state that names no sizes were planned without.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from deltic.circuit.nodes import Dataflow
from deltic.optimizer.row_estimates import UNKNOWN, Sizes, TableSize
from deltic.plan.fingerprint import fingerprint
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Join, Plan, Table
from deltic.plan.walk import nodes
from deltic.runtimes import Runtime
from deltic.storage.parsing import Json
from deltic.storage.program import PlannedSizes
from deltic.trace.encoding import Layout
from deltic.trace.sampling import Sample
from deltic.trace.spine import Spine

FEWEST_JOINS: Final = 2
"""Those of a plan that can be ordered."""


class PlanSizes:
    """The sizes of a runtime's tables as of its last commit, and those that the state names.

    sampled: whether rows are at hand, so that values are counted. replanned: the views, in lower case, that get the sizes of today.
    stated: the sizes that another state names. kept: by view in lower case, those that it has unless it is replanned.
    """

    def __init__(
        self,
        runtime: Runtime,
        circuit: Dataflow,
        *,
        sampled: bool,
        replanned: Collection[str] = (),
        stated: Mapping[str, PlannedSizes] | None = None,
        kept: Mapping[str, Sizes],
    ) -> None:
        self._runtime, self._circuit, self._sampled, self.replanned = runtime, circuit, sampled, replanned
        self._stated = runtime.committed.program.plans if stated is None else stated
        self._kept = kept
        self._views = {view.lower() for view in runtime.committed.program.views}
        self._now: dict[str, TableSize | None] = {}
        self._statistics: Mapping[str, tuple[int, int]] | None = None

    def of(self, view: str, query: Plan, *, replanned: bool) -> Sizes:
        """Those for a view, by its name in lower case. replanned: whether its query is planned again, by today's sizes."""
        if not _has_joins(query):
            return UNKNOWN
        if not replanned:
            if view in self._kept:
                return self._kept[view]
            if self._stated is None and view in self._views:
                return UNKNOWN
            if (stated := (self._stated or {}).get(fingerprint(query))) is not None:
                return _sizes(stated)
        tables = {node.table.name.lower(): node for node in nodes(query) if isinstance(node, Table)}
        sizes = ((name, self._size(tables[name])) for name in sorted(tables))
        return Sizes(tuple((name, size) for name, size in sizes if size is not None))

    def _size(self, node: Table) -> TableSize | None:
        """None if the table has no rows yet, or keeps none."""
        name = node.table.name
        if name not in self._now:
            self._now[name] = self._measured(node)
        return self._now[name]

    def _measured(self, node: Table) -> TableSize | None:
        name = node.table.name
        described = self._runtime.committed.program.tables.get(name)
        if self._statistics is None:
            self._statistics = self._runtime.statistics()
        rows = 0 if described is None else self._statistics.get(described.arrangement, (0, 0))[0]
        if not rows:
            return None
        if not self._sampled or name not in self._circuit.tables:
            return TableSize(rows)
        spec = self._circuit.arrangements[self._circuit.tables[name]]
        sample = Sample(self._runtime.snapshot(spec.id))
        schema = spec.shape.schema  # the stored table's, which the same script may alter
        values = {name.lower(): sample.values(part) for name, part in zip(schema.names, Layout.of(schema).slices, strict=True)}
        return TableSize(rows, tuple(sorted(values.items())))


def sizes_of(contents: Mapping[str, Sequence[Spine]]) -> Sizes:
    """The rows of tables with this content, a spine for each shard."""
    rows = {name.lower(): sum(spine.rows for spine in spines) for name, spines in contents.items()}
    return Sizes(tuple((name, TableSize(rows[name])) for name in sorted(rows)))


def sizes_note(sizes: Mapping[Plan, Sizes]) -> Json:
    """The note of the sizes by which these queries were planned."""
    return {
        fingerprint(query): {name: [size.rows, dict(size.values)] for name, size in each.tables}
        for query, each in sizes.items()
        if _has_joins(query)
    }


@once_per_node
def _has_joins(query: Plan) -> bool:
    """Whether there is an order to choose."""
    return sum(isinstance(node, Join) for node in nodes(query)) >= FEWEST_JOINS


def _sizes(stated: PlannedSizes) -> Sizes:
    return Sizes(tuple((name, TableSize(rows, tuple(values.items()))) for name, (rows, values) in stated.items()))
