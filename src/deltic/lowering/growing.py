"""Programs as they grow and shrink: only the tables and views that a definition changes are lowered again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from deltic.circuit.builder import BuilderSize, Growth
from deltic.circuit.nodes import Dataflow
from deltic.lowering.fuse import Fusion
from deltic.lowering.lower import Lowering, LoweringSize
from deltic.lowering.streams import NO_FORMS, Origins, Streams
from deltic.plan.nodes import Plan
from deltic.plan.streams import keeps_ticks, stored_integrals
from deltic.schema import Forms, TableSchema

Name = tuple[str, str]
"""("table" or "view", its name)."""


def lower(views: Mapping[str, Plan], tables: Mapping[str, TableSchema], shards: int | None = None) -> Dataflow:
    """The dataflow that maintains `views` (name → optimized plan). Tables that no view reads are kept too.

    shards: the number of shards. On one, rows need not be moved, and joins of any shape share arrangements; on several, multiway joins are
    divided among them. None: the dataflow is correct on any number.
    """
    return GrowingProgram(shards).circuit(views, tables)


@dataclass(slots=True)
class _Part:
    """A table or a view as it was lowered: what that added, the parts whose additions it reads, and those that read its own.

    keys: of the streams that it added; None if what was lowered after it may depend on it without reading it.
    """

    growth: Growth
    keys: list[Hashable] | None
    sources: set[Name] = field(default_factory=set)
    readers: set[Name] = field(default_factory=set)


class _Lowered:
    """The parts of one growing lowering."""

    def __init__(self, shards: int | None, forms: Mapping[str, Forms]) -> None:
        self.lowering = Lowering(Streams(single=shards == 1, forms=forms), shards=shards)
        self.builder = self.lowering.streams.builder
        self.views: dict[str, Plan] = {}
        self.tables: dict[str, tuple[TableSchema, Forms]] = {}
        self.removed = 0
        """How many of the builder's nodes are of parts that were removed."""
        self._parts: dict[Name, _Part] = {}
        self._adding: list[Name] = []
        """For each node the part that added it."""
        self._owners: dict[str, Name] = {}
        """For each arrangement the part that added the node that owns it."""

    def add_table(self, name: str, table: TableSchema, forms: Forms) -> None:
        sizes = self.builder.size(), self.lowering.size()
        self.lowering.streams.table(table)
        self._added(("table", name), *sizes)
        self.tables[name] = table, forms

    def add_view(self, name: str, plan: Plan) -> None:
        sizes = self.builder.size(), self.lowering.size()
        self.lowering.view(name, plan)
        self._added(("view", name), *sizes)
        self.views[name] = plan

    def _added(self, part: Name, built: BuilderSize, lowered: LoweringSize) -> None:
        growth, nodes = self.builder.since(built), self.builder.nodes
        self._parts[part] = own = _Part(growth, self.lowering.since(lowered))
        self._adding += [part] * len(growth.nodes)
        for node in map(nodes.__getitem__, growth.nodes):
            self._owners.update(dict.fromkeys(node.owned, part))
        for node in map(nodes.__getitem__, growth.nodes):  # a feedback over ticks reads what later nodes own
            own.sources.update(map(self._adding.__getitem__, node.inputs), map(self._owners.__getitem__, node.reads))
        own.sources.discard(part)
        for source in own.sources:
            self._parts[source].readers.add(part)

    def remove(self, parts: set[Name]) -> bool:
        """Removes parts; False, and none is removed, if others depend on what they added."""
        own = [self._parts[part] for part in parts]
        if any(one.keys is None or not one.readers <= parts for one in own):
            return False
        for part in parts:
            for source in self._parts[part].sources - parts:
                self._parts[source].readers.remove(part)
        for part in parts:
            self._remove(part, self._parts.pop(part))
        return True

    def _remove(self, part: Name, added: _Part) -> None:
        assert added.keys is not None
        kind, name = part
        for i in added.growth.nodes:
            for arrangement in self.builder.nodes[i].owned:
                del self._owners[arrangement]
        self.builder.remove(added.growth)
        self.lowering.forget(added.keys)
        self.removed += len(added.growth.nodes)
        if kind == "view":
            del self.views[name], self.builder.views[name]
        else:
            del self.tables[name], self.builder.tables[name]


class GrowingProgram:
    """Lowers a series of programs. Only the tables and views that the one before did not have are lowered, unless others read what goes.

    nodes: the number of nodes that the last program added.
    """

    def __init__(self, shards: int | None = None) -> None:
        self._shards = shards
        self._last: _Lowered | None = None
        self.nodes = 0
        self.fusion = Fusion()

    def circuit(self, views: Mapping[str, Plan], tables: Mapping[str, TableSchema], forms: Mapping[str, Forms] = NO_FORMS) -> Dataflow:
        """See `lower`. Costs O(new nodes) to lower, and O(all nodes) to build the dataflow.

        Plans that stay must be the same objects, since they hold places in the text.
        forms: by table in lower case, of those that were altered. A plan may read such a table in any of them.
        """
        last, self._last = self._last, None  # after an error the next program is lowered as a whole
        formed = {name: (table, forms.get(name.lower(), ())) for name, table in tables.items()}
        lowered = last if last is not None and _shrunk(last, views, formed) else _Lowered(self._shards, forms)
        lowered.lowering.streams.forms = forms
        builder = lowered.builder
        before = len(builder.nodes)
        for name, (table, own) in formed.items():
            if name not in lowered.tables:
                lowered.add_table(name, table, own)
        added = [(name, plan) for name, plan in views.items() if name not in lowered.views]
        lowered.lowering.stored.update(*(stored_integrals(plan) for _, plan in added))
        for name, plan in added:
            lowered.add_view(name, plan)
        builder.tables = {name: builder.tables[name] for name in tables}
        builder.views = {name: builder.views[name] for name in views}
        self._last, self.nodes = lowered, len(builder.nodes) - before
        return builder.finish(self.fusion.fused(builder.nodes))


def _shrunk(last: _Lowered, views: Mapping[str, Plan], tables: Mapping[str, tuple[TableSchema, Forms]]) -> bool:
    """Removes what the program has no more; False if it is to be lowered as a whole."""
    gone: set[Name] = {("view", name) for name, plan in last.views.items() if views.get(name) is not plan}
    gone |= {("table", name) for name, own in last.tables.items() if tables.get(name) != own}
    if any(kind == "view" and keeps_ticks(last.views[name]) for kind, name in gone) or not last.remove(gone):
        return False  # the lowering of others depends on the integrals that views keep
    return 2 * last.removed <= len(last.builder.nodes)


def lower_prepared(
    views: Mapping[str, Plan],
    tables: Mapping[str, TableSchema],
    forms: Mapping[str, Forms],
    alterations: Iterable[tuple[TableSchema, TableSchema, Origins]],
    shards: int,
) -> tuple[Dataflow, list[str]]:
    """A program as of `GrowingProgram.circuit`, and the arrangements that tables will have when they are altered, with their names.

    alterations: of each such table what it is, what it becomes, and for each column of that its position before, or its value. Tables that
    the program lacks are added as they are.
    """
    lowering = Lowering(Streams(single=shards == 1, forms=forms), shards=shards)
    streams = lowering.streams
    for table in tables.values():
        streams.table(table)
    lowering.stored.update(*(stored_integrals(plan) for plan in views.values()))
    for name, plan in views.items():
        lowering.view(name, plan)
    names = [streams.prepare(before, after, origins) for before, after, origins in alterations]
    return streams.builder.finish(Fusion().fused(streams.builder.nodes)), names
