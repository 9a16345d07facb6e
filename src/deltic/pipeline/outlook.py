"""What a pipeline would do, without doing it: the files that it would take, its sinks, and what it would find in its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from deltic.errors import SinkError
from deltic.pipeline.pipeline import ROWS_PER_TICK
from deltic.pipeline.progress import Start
from deltic.pipeline.script import Script, state_is_there
from deltic.storage.reader import StateReader

Json: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Pending:
    """What is to be taken of a table. rows: of the source, those of dead letters among them; both were read and judged."""

    table: str
    folder: str
    files: tuple[str, ...]
    rows: int
    letters: int


@dataclass(frozen=True, slots=True)
class Target:
    """A sink. epoch: the last that it had when the state was last committed to; None if it is new."""

    sink: str
    view: str
    folder: str
    mode: str
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Outlook:
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
            "sources": {p.table: {"folder": p.folder, "files": list(p.files), "rows": p.rows, "letters": p.letters} for p in self.sources},
            "sinks": {t.sink: {"view": t.view, "folder": t.folder, "mode": t.mode, "epoch": t.epoch} for t in self.sinks},
        }


def outlook(script: str, *, name: str, state: str, base: str | Path | None = None) -> Outlook:
    """What a Pipeline of these would do. Reads every row that is pending, and so finds what is wrong with them; changes nothing.

    Raises QueryError, StateError, SourceError, DataError, SinkError.
    """
    bound = Script.bind(script, name, base)
    notes: Mapping[str, Json] = {}
    epoch = None
    bound.check_new(state)
    if state_is_there(state):
        with StateReader.open(state, lease_s=None) as reader:
            notes, epoch = reader.manifest.notes, reader.epoch
    bound.check(notes)
    known = bound.standings(notes)
    return Outlook(
        state,
        bound.start(notes, epoch),
        tuple(_pending(bound, table, notes) for table in bound.sources),
        tuple(_target(bound, sink, known[sink].epoch if sink in known else None) for sink in bound.sinks),
    )


def _pending(bound: Script, name: str, notes: Mapping[str, Json]) -> Pending:
    source = bound.source(bound.table(name), ROWS_PER_TICK)
    source.recall(notes)
    source.look(again=True)
    files, rows, letters = [entry.name for entry in source.pending()], 0, 0
    while (load := source.take()) is not None:
        source.commit(load)
        rows, letters = rows + load.rows, letters + len(load.letters)
    return Pending(source.table.name, str(source.folder), tuple(files), rows, letters)


def _target(bound: Script, name: str, epoch: int | None) -> Target:
    definition = bound.sinks[name]
    return Target(definition.name, definition.view, str(bound.folder(definition.sink.path, SinkError)), definition.sink.mode, epoch)
