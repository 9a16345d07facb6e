"""Dead letters: rows that are not valid changes, written where their tables say, once the tick that skipped them is committed.

They are staged before the commit, which notes their epoch and writer. So after a crash the next process can tell which staged letters are
real, and deletes the others: it will read their rows again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

from deltic.connectors.dead_letters import DeadLetterFolder
from deltic.connectors.source import Json
from deltic.pipeline.feeds import Load
from deltic.pipeline.notes import LETTERS


class DeadLetters:
    """The folders of a session's dead letters. paths: by table."""

    def __init__(self, paths: Mapping[str, str], notes: Mapping[str, Json]) -> None:
        """Settles the letters that an earlier process staged. Raises SinkError."""
        note = notes.get(LETTERS, {"epoch": -1, "writer": "", "paths": []})
        self._paths, self._writer = paths, secrets.token_hex(8)
        self._folders = {path: DeadLetterFolder(path, self._writer) for path in {*paths.values(), *note["paths"]}}
        self._unsettled = False
        for path, folder in self._folders.items():
            DeadLetterFolder(path, note["writer"]).settle(note["epoch"])
            folder.sweep()

    def takes(self, table: str) -> bool:
        """Whether the table has a folder for its dead letters."""
        return table in self._paths

    def stage(self, epoch: int, loads: Iterable[Load]) -> dict[str, Json]:
        """Writes the letters of the tick that will be `epoch`; returns the notes for its commit."""
        loads = [load for load in loads if load.batch.dead_letters]
        self._unsettled |= bool(loads)
        for load in loads:
            self._folders[self._paths[load.table.name]].stage(epoch, load.table.name, load.batch.dead_letters)
        paths = sorted({self._paths[load.table.name] for load in loads})
        return {LETTERS: {"epoch": epoch, "writer": self._writer, "paths": paths}} if loads else {}

    def settle(self, notes: Mapping[str, Json]) -> None:
        """Publishes the staged letters that a commit has noted, and deletes the others."""
        if not self._unsettled:
            return
        note = notes.get(LETTERS)
        committed = note["epoch"] if note is not None and note["writer"] == self._writer else -1
        for folder in self._folders.values():
            folder.settle(committed)
        self._unsettled = False
