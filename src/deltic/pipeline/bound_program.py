"""A program, bound but not run: its tables, views, sources and sinks, and how it differs from a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

from deltic.circuit.nodes import Dataflow
from deltic.connectors.connector import SourceSpec
from deltic.connectors.files.folder import under
from deltic.connectors.sink import Owner, Sink, claim_id_of
from deltic.connectors.source import Json
from deltic.errors import QueryError, SinkError
from deltic.pipeline.delivery import OpenSink, check_columns, check_empty
from deltic.pipeline.feeds import Feed
from deltic.pipeline.notes import SINKS, SinkOffset, claims_of, sink_offsets
from deltic.pipeline.progress import Start
from deltic.runtimes.program import check_tables
from deltic.runtimes.view_errors import is_errors
from deltic.schema import Schema, TableSchema
from deltic.session import Program, Session
from deltic.session.alterations import Alteration, forms_in_state
from deltic.session.earlier_ticks import check_earlier_ticks
from deltic.session.options import OnViewError
from deltic.session.view_definitions import SinkDefinition
from deltic.storage.folder import open_folder
from deltic.storage.names import MANIFESTS
from deltic.storage.program import ProgramDescription

Notes = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class BoundProgram:
    """base: the folder that relative paths count from. tables: by name. sources, sinks: by name in lower case.

    views: by name the id of what each is kept as, and its columns. described: the program as a state notes it. altered: as of Catalog.
    """

    base: Path
    tables: Mapping[str, TableSchema]
    sources: Mapping[str, SourceSpec]
    sinks: Mapping[str, SinkDefinition]
    views: Mapping[str, tuple[str, Schema]]
    described: ProgramDescription
    circuit: Dataflow
    altered: Mapping[str, tuple[Alteration, ...]]

    @classmethod
    def bind(
        cls, program: Program, base: str | Path | None, on_view_error: OnViewError = "isolate", notes: Notes = MappingProxyType({})
    ) -> Self:
        """The program over empty tables, planned as in a state with these notes. Raises QueryError and CircuitError.

        A program that defines nothing is refused: it would drop all tables of its state, and is more likely a file that was emptied.
        """
        with Session(clock="wall", on_view_error=on_view_error) as session:
            described = ProgramDescription.of(notes)
            session._commits.plans, session._commits.tables = described.plans, described.tables
            session.program(program)
            if not (session.tables or session.views):
                raise QueryError("the program defines no tables and no views", expected="CREATE TABLE … and CREATE MATERIALIZED VIEW …")
            return cls.of(session, base)

    @classmethod
    def of(cls, session: Session, base: str | Path | None) -> Self:
        """The program of a session."""
        views = [session.view(name) for name in session.views]
        return cls(
            Path.cwd() if base is None else Path(base).absolute(),
            {name: session.table(name) for name in session.tables},
            session.sources,
            session.sinks,
            {view.name: (view._arrangement, view.schema) for view in views},
            ProgramDescription.of(session.notes),
            session._definitions.circuit,
            session._catalog.altered,
        )

    @property
    def unfed(self) -> tuple[str, ...]:
        """The tables without a source."""
        return tuple(name for name in self.tables if name.lower() not in self.sources)

    def start(self, notes: Notes, epoch: int | None) -> Start:
        """How the program differs from a state with these notes. epoch: the last of the state, None if there is no state."""
        description = ProgramDescription.of(notes)
        if epoch is None or (epoch == 0 and not description.tables):
            return Start(None, unfed=self.unfed)
        names, tables = {view.lower() for view in self.views}, {table.lower() for table in self.tables}
        return Start(
            epoch,
            reused=tuple(view for view, (arrangement, _) in self.views.items() if arrangement in description.arrangements),
            filled=tuple(view for view, (arrangement, _) in self.views.items() if arrangement not in description.arrangements),
            dropped=tuple(view for view in description.views if view.lower() not in names and not is_errors(view)),
            dropped_tables=tuple(table for table in description.tables if table.lower() not in tables),
            unfed=self.unfed,
        )

    def renewed(self, notes: Notes) -> dict[str, Json]:
        """The notes that change when a state takes the program: those on sinks that were emptied, or have another location, are removed, so
        these are new ones."""
        offsets, claims = notes.get(SINKS, {}), claims_of(notes)
        kept = {name: offset for name, offset in offsets.items() if name not in self.sinks or self._has_location(name, claims.get(name))}
        return {SINKS: kept or None} if kept != offsets else {}

    def _has_location(self, name: str, claim: str | None) -> bool:
        """Whether a sink's location is the one that it has claimed with this id; None if that is unknown."""
        sink = self._sink(name)
        return sink.epoch() is not None and claim in (None, claim_id_of(sink))

    def feed(self, table: TableSchema, rows_per_tick: int) -> Feed:
        """The table and its source, at its beginning."""
        return Feed(table, self.sources[table.name.lower()].open(table, self.base), rows_per_tick)

    def letter_paths(self) -> dict[str, str]:
        """The folder of the dead letters of each table that has one."""
        paths = ((name, source.dead_letter_path) for name, source in self.sources.items())
        return {self.table(name).name: under(self.base, path) for name, path in paths if path is not None}

    def open_sinks(self, state_id: str) -> list[OpenSink]:
        """The sinks, claimed for the state with this id. Raises SinkError."""
        open_sinks = [OpenSink(name, sink.view, sink.sink.mode, self._sink(name, state_id)) for name, sink in self.sinks.items()]
        for open_sink in open_sinks:
            open_sink.sink.claim()
        return open_sinks

    def check_new(self, state: str) -> None:
        """Raises StateError if `state` is a folder with other content, SinkError if sinks have epochs but it is not a state."""
        open_folder(state).check()
        claimed = next((name for name in self.sinks if self._sink(name).epoch() is not None), None)
        if claimed is None or state_is_there(state):
            return
        definition = self.sinks[claimed]
        raise SinkError(
            f"sink {definition.name}: {self.location(claimed)} has epochs of a state, and {state} is not a state",
            span=definition.sink.span,
            expected="the state folder that the sinks belong to",
            remedy="choose that folder, or restore it from a copy; to start again, empty all sinks",
        )

    def check(self, notes: Notes) -> None:
        """Raises StateError or SinkError if a state with these notes would refuse the program, or a sink the state."""
        state = ProgramDescription.of(notes)
        altered = {one.before.name for one in forms_in_state(self.tables.values(), self.altered, state.tables)[1]}
        check_tables({name: table for name, table in state.tables.items() if name not in altered}, self.described.tables)
        check_earlier_ticks(state, self.circuit, self.described.queries or {}, replace=True)
        self.check_sinks(notes)

    def check_sinks(self, notes: Notes) -> None:
        """Raises SinkError if a sink would refuse a state with these notes."""
        self._check_columns(notes)
        offsets = self.sink_offsets(notes)
        for name, definition in self.sinks.items():
            sink = self._sink(name, ProgramDescription.of(notes).id or "")
            sink.check()
            offset = offsets.get(name)
            if definition.sink.mode == "changes" and (offset is None or offset.view != definition.view.lower()):
                check_empty(name, sink)

    def _check_columns(self, notes: Notes) -> None:
        """Raises SinkError if a view whose changes a sink has received would have other columns than these."""
        before = {view.lower(): Schema(tuple(entry.columns)) for view, entry in ProgramDescription.of(notes).views.items()}
        for name, offset in sink_offsets(notes).items():
            definition = self.sinks.get(name)
            if definition is None or definition.sink.mode != "changes" or definition.view.lower() != offset.view:
                continue
            now = self.views[definition.view][1]
            check_columns(definition.name, definition.view, before.get(offset.view, now), now, definition.sink.span)

    def sink_offsets(self, notes: Notes) -> dict[str, SinkOffset]:
        """The offsets of the sinks after a state with these notes has taken the program."""
        return sink_offsets({SINKS: self.renewed(notes).get(SINKS, notes.get(SINKS)) or {}})

    def location(self, sink: str) -> str:
        """The location of a sink."""
        return self._sink(sink).location

    def _sink(self, name: str, state_id: str = "") -> Sink:
        """A sink of a state, not claimed yet."""
        definition = self.sinks[name]
        return definition.sink.open(Owner(state_id, name, definition.sink.mode, definition.view.lower()), self.base)

    def table(self, name: str) -> TableSchema:
        """A table by its name in any case."""
        return next(table for table in self.tables.values() if table.name.lower() == name.lower())


def state_is_there(state: str) -> bool:
    """Whether the folder or URL has a state already. Raises StateError."""
    return bool(open_folder(state).names(MANIFESTS))
