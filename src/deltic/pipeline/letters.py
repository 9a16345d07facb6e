"""Dead letters: rows that are no changes, written down where their tables say, once the tick that passed over them is committed.

They are staged before the commit, which notes that it had some, and whose. So whatever a process dies at, the next one knows which
staged ones are real, and lets the others go with their rows, which it will read again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

from deltic.connectors.letters import DeadLetters
from deltic.pipeline.notes import LETTERS, Json
from deltic.pipeline.taking import Load


class Letters:
    """The folders of a session's dead letters. paths: by the table's name."""

    def __init__(self, paths: Mapping[str, str], notes: Mapping[str, Json]) -> None:
        """Settles what an earlier process had staged. Raises SinkError."""
        known = notes.get(LETTERS, {"epoch": -1, "writer": "", "paths": []})
        self._paths, self._writer = paths, secrets.token_hex(8)
        self._folders = {path: DeadLetters(path, self._writer) for path in {*paths.values(), *known["paths"]}}
        self._unsettled = False
        for path, folder in self._folders.items():
            DeadLetters(path, known["writer"]).settle(known["epoch"])
            folder.sweep()

    def stage(self, epoch: int, loads: Iterable[Load]) -> dict[str, Json]:
        """Writes the letters of the tick that `epoch` is to be; what must be noted in its commit."""
        loads = [load for load in loads if load.letters]
        self._unsettled |= bool(loads)
        for load in loads:
            self._folders[self._paths[load.table.name]].stage(epoch, load.table.name, load.letters)
        paths = sorted({self._paths[load.table.name] for load in loads})
        return {LETTERS: {"epoch": epoch, "writer": self._writer, "paths": paths}} if loads else {}

    def settle(self, notes: Mapping[str, Json]) -> None:
        """Makes those real that a commit has noted, and takes the other staged ones away."""
        if not self._unsettled:
            return
        known = notes.get(LETTERS)
        committed = known["epoch"] if known is not None and known["writer"] == self._writer else -1
        for folder in self._folders.values():
            folder.settle(committed)
        self._unsettled = False
