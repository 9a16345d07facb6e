"""Dry runs: what a pipeline would read, the offsets of its sinks, and how its program differs from its state. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deltic.connectors.source import Json
from deltic.pipeline.bound_program import BoundProgram, state_is_there
from deltic.pipeline.pipeline import ROWS_PER_TICK
from deltic.pipeline.progress import Start
from deltic.session import Program
from deltic.session.options import OnViewError
from deltic.storage.program import ProgramDescription
from deltic.storage.reader import StateReader


@dataclass(frozen=True, slots=True)
class Pending:
    """What a run would read for a table. files: the parts of the source. rows: of the source, including dead letters."""

    table: str
    location: str
    files: tuple[str, ...]
    rows: int
    letters: int

    def json(self) -> dict[str, Json]:
        return {"location": self.location, "files": list(self.files), "rows": self.rows, "letters": self.letters}


@dataclass(frozen=True, slots=True)
class Target:
    """A sink. epoch: the last one that it had received at the last commit; None if it is new."""

    sink: str
    view: str
    location: str
    mode: str
    epoch: int | None

    def json(self) -> dict[str, Json]:
        return {"view": self.view, "location": self.location, "mode": self.mode, "epoch": self.epoch}


@dataclass(frozen=True, slots=True)
class DryRun:
    """state: its folder."""

    state: str
    start: Start
    sources: tuple[Pending, ...]
    sinks: tuple[Target, ...]

    def json(self) -> dict[str, Json]:
        return {
            "event": "dry-run",
            "state": self.state,
            "start": self.start.json(),
            "sources": {pending.table: pending.json() for pending in self.sources},
            "sinks": {target.sink: target.json() for target in self.sinks},
        }


def dry_run(
    program: str | Program, *, state: str, name: str = "<sql>", base: str | Path | None = None, on_view_error: OnViewError = "isolate"
) -> DryRun:
    """What a Pipeline with these arguments would do. Reads and checks all pending rows; changes nothing.

    Raises QueryError, CircuitError, StateError, SourceError, DataError, SinkError.
    """
    parsed = Program.of(program, name)
    notes: Mapping[str, Json] = {}
    epoch = None
    if state_is_there(state):
        with StateReader.open(state, lease_s=None) as reader:
            notes, epoch = reader.manifest.notes, reader.epoch
    bound = BoundProgram.bind(parsed, base, on_view_error, notes)
    bound.check_new(state)
    bound.check(notes)
    offsets = bound.sink_offsets(notes)
    return DryRun(
        state,
        bound.start(notes, epoch),
        tuple(_pending(bound, table, notes) for table in bound.sources),
        tuple(_target(bound, sink, offsets[sink].epoch if sink in offsets else None) for sink in bound.sinks),
    )


def _pending(bound: BoundProgram, name: str, notes: Mapping[str, Json]) -> Pending:
    feed = bound.feed(bound.table(name), ROWS_PER_TICK)
    held = {table.lower() for table in ProgramDescription.of(notes).tables}
    feed.restore(notes if name.lower() in held else {})  # offsets of a table that an earlier version dropped are removed
    feed.source.refresh(force=True)
    files, rows, letters = tuple(feed.source.pending()), 0, 0
    while (load := feed.read()) is not None:
        feed.source.committed(load.batch)
        rows, letters = rows + load.batch.rows, letters + len(load.batch.dead_letters)
    return Pending(feed.table.name, feed.source.location, files, rows, letters)


def _target(bound: BoundProgram, name: str, epoch: int | None) -> Target:
    definition = bound.sinks[name]
    return Target(definition.name, definition.view, bound.location(name), definition.sink.mode, epoch)
