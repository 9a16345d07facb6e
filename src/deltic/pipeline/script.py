"""A script, bound but not run: its tables, views, sources and sinks, and what it would find in a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from deltic.connectors.files import FileReader
from deltic.connectors.files.folder import local_path
from deltic.connectors.sinks import MARKER, ChangesSink, SnapshotSink, check_claim
from deltic.errors import DelticError, SinkError, SourceError
from deltic.frontends.sql import FileSource
from deltic.pipeline.delivery import Outlet, check_empty
from deltic.pipeline.notes import SINKS, Json, Standing, forgotten, standings
from deltic.pipeline.progress import Start
from deltic.pipeline.taking import Source
from deltic.runtimes.program import check_tables
from deltic.schema import Schema, TableSchema
from deltic.session import Session
from deltic.session.catalog import SinkDefinition
from deltic.storage.folder import open_folder
from deltic.storage.names import MANIFESTS
from deltic.storage.program import ProgramDescription, TableDescription

Notes = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Script:
    """base: the folder that relative paths count from. tables: by name. sources, sinks: by name in lower case.

    views: by name the id of what each is kept as, and its columns. described: the tables as a state notes them.
    """

    base: Path
    tables: Mapping[str, TableSchema]
    sources: Mapping[str, FileSource]
    sinks: Mapping[str, SinkDefinition]
    views: Mapping[str, tuple[str, Schema]]
    described: Mapping[str, TableDescription]

    @classmethod
    def bind(cls, text: str, name: str, base: str | Path | None) -> Self:
        """The script `text`, which is called `name`. Raises QueryError."""
        with Session(clock="wall") as session:
            session.program(text, name=name)
            return cls.of(session, base)

    @classmethod
    def of(cls, session: Session, base: str | Path | None) -> Self:
        """What a session has been told."""
        views = [session.view(name) for name in session.views]
        return cls(
            Path.cwd() if base is None else Path(base).absolute(),
            {name: session.table(name) for name in session.tables},
            session.sources,
            session.sinks,
            {view.name: (view.arrangement, view.schema) for view in views},
            ProgramDescription.of(session.notes).tables,
        )

    @property
    def unfed(self) -> tuple[str, ...]:
        """The tables that take no files."""
        return tuple(name for name in self.tables if name.lower() not in self.sources)

    def start(self, notes: Notes, epoch: int | None) -> Start:
        """What becomes of a state with these notes; epoch: its last, None if it is new."""
        known = ProgramDescription.of(notes)
        if epoch is None or not known.tables:
            return Start(None, unfed=self.unfed)
        names, tables = {view.lower() for view in self.views}, {table.lower() for table in self.tables}
        return Start(
            epoch,
            reused=tuple(view for view, (arrangement, _) in self.views.items() if arrangement in known.arrangements),
            filled=tuple(view for view, (arrangement, _) in self.views.items() if arrangement not in known.arrangements),
            dropped=tuple(view for view in known.views if view.lower() not in names),
            dropped_tables=tuple(table for table in known.tables if table.lower() not in tables),
            unfed=self.unfed,
        )

    def renewed(self, notes: Notes) -> dict[str, Json]:
        """The notes that change when a state takes the script for its program: those on tables that it has not go.

        So do those on sinks whose folder was emptied, which are new ones thereby.
        """
        known = notes.get(SINKS, {})
        kept = {name: standing for name, standing in known.items() if name not in self.sinks or not self._is_new(self.sinks[name])}
        return {**forgotten(notes, self.tables), **({SINKS: kept or None} if kept != known else {})}

    def reader(self, table: str) -> FileReader:
        """What reads the files of a table."""
        source = self.sources[table.lower()]
        return FileReader(
            self.table(table),
            source.format,
            self._path(source.path),
            op_column=source.op_column,
            on_error=source.on_error,
            header=source.header,
            sep=source.sep,
            null_value=source.null_value,
        )

    def source(self, table: TableSchema, rows_per_tick: int) -> Source:
        """What takes the files of a table."""
        return Source(table, self.reader(table.name), self.folder(self.sources[table.name.lower()].path, SourceError), rows_per_tick)

    def letter_paths(self) -> dict[str, str]:
        """Where the dead letters of each table go."""
        paths = ((name, source.dead_letter_path) for name, source in self.sources.items())
        return {self.table(name).name: self._path(path) for name, path in paths if path is not None}

    def outlets(self, state_id: str) -> list[Outlet]:
        """The sinks of the state that `state_id` names. Makes their folders. Raises SinkError."""
        return [self._outlet(name, definition, state_id) for name, definition in self.sinks.items()]

    def check_new(self, state: str) -> None:
        """Raises StateError if `state` is a folder of something else, SinkError if sinks have had epochs and it is no state."""
        open_folder(state).check()
        had = next((definition for definition in self.sinks.values() if not self._is_new(definition)), None)
        if had is None or state_is_there(state):
            return
        raise SinkError(
            f"sink {had.name}: the folder {self.folder(had.sink.path, SinkError)} has had epochs of a state, and {state} is none",
            span=had.sink.span,
            expected="the state folder that the pipeline had before",
            remedy="name it, or restore it from a copy; to begin anew, empty the folders of all sinks",
        )

    def _check_columns(self, notes: Notes) -> None:
        """Raises SinkError if a view that a sink has had changes of would have other columns than these."""
        views = ProgramDescription.of(notes).views
        before = {view.lower(): [(f.name, f.type.sql) for f in entry.columns] for view, entry in views.items()}
        for name, standing in standings(notes).items():
            definition = self.sinks.get(name)
            if definition is None or definition.sink.mode != "changes" or definition.view.lower() != standing.view:
                continue
            now = [(field.name, field.type.sql) for field in self.views[definition.view][1]]
            if before.get(standing.view, now) != now:
                raise _other_columns(definition, before[standing.view], now)

    def check(self, notes: Notes) -> None:
        """Raises StateError or SinkError if a state with these notes would not take the script, or a sink's folder not the sink."""
        check_tables(ProgramDescription.of(notes).tables, self.described)
        self._check_columns(notes)
        known = self.standings(notes)
        for name, definition in self.sinks.items():
            folder = self.folder(definition.sink.path, SinkError)
            marker = self._marker(name, definition, ProgramDescription.of(notes).id or "")
            check_claim(folder, {**marker, "format": definition.sink.format})
            standing = known.get(name)
            if definition.sink.mode == "changes" and (standing is None or standing.view != definition.view.lower()):
                check_empty(name, folder)

    def standings(self, notes: Notes) -> dict[str, Standing]:
        """How far the sinks are when a state with these notes has taken the script."""
        return standings({SINKS: self.renewed(notes).get(SINKS, notes.get(SINKS)) or {}})

    def _outlet(self, name: str, definition: SinkDefinition, state_id: str) -> Outlet:
        sink, path = definition.sink, self._path(definition.sink.path)
        marker = self._marker(name, definition, state_id)
        kind = SnapshotSink if sink.mode == "snapshot" else ChangesSink
        made = kind(path, sink.format, marker, header=sink.header, sep=sink.sep)
        return Outlet(name, definition.view, made, self.folder(sink.path, SinkError))

    def _marker(self, name: str, definition: SinkDefinition, state_id: str) -> dict[str, str]:
        return {"state": state_id, "sink": name, "mode": definition.sink.mode, "view": definition.view.lower()}

    def _is_new(self, definition: SinkDefinition) -> bool:
        return not (self.folder(definition.sink.path, SinkError) / MARKER).exists()

    def table(self, name: str) -> TableSchema:
        """A table, whatever the case of its name."""
        return next(table for table in self.tables.values() if table.name.lower() == name.lower())

    def folder(self, path: str, error: type[DelticError]) -> Path:
        """The folder that a path of the script means. Raises `error` if it is not local."""
        return local_path(self._path(path), error)

    def _path(self, path: str) -> str:
        return path if "://" in path else str(self.base / Path(path).expanduser())


def state_is_there(state: str) -> bool:
    """Whether the folder or URL has a state already. Raises StateError."""
    return bool(open_folder(state).names(MANIFESTS))


def _other_columns(definition: SinkDefinition, before: list[tuple[str, str]], now: list[tuple[str, str]]) -> SinkError:
    return SinkError(
        f"sink {definition.name} has had changes of view {definition.view} with the columns {_listed(before)}; now it has {_listed(now)}",
        span=definition.sink.span,
        expected="the same columns, since what a sink has had stays as it is",
        remedy="give the sink a new name and an empty folder: it then gets all that the view holds",
    )


def _listed(columns: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns)
