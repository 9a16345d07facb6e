"""Dead letters: rows of source files that are not valid changes, as JSON lines, one file per table and epoch that has any.

They are written in two steps, so a letter is visible if and only if the tick that skipped its row was committed: before the commit the
file has a hidden name, `.<writer>letters-<epoch, 12 digits>-<table>.json`; after it, `letters-…`. The folder belongs to one pipeline,
but two processes may briefly run it: each has its own writer name, and ignores the other's staged files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Final
from urllib.parse import quote

from deltic import disk
from deltic.connectors.files.folder import local_path
from deltic.connectors.files.sinks import written
from deltic.connectors.source import DeadLetter
from deltic.errors import SinkError

_STAGED: Final = re.compile(r"\.([0-9a-f]*)(letters-([0-9]{12,})-.*\.json)", re.DOTALL)
_UNFINISHED: Final = re.compile(r"\.([0-9a-f]*)letters-.*", re.DOTALL)


class DeadLetterFolder:
    """The folder at `path`, a local path or a file:// URL; created with the first letter. Raises SinkError for another scheme.

    writer: the writer's name, hexadecimal digits.
    """

    def __init__(self, path: str, writer: str = "") -> None:
        self._folder, self._writer = local_path(path, SinkError), writer
        self._name = "dead letters"

    def stage(self, epoch: int, table: str, letters: Iterable[DeadLetter]) -> None:
        """Writes the letters of the next epoch durably, replacing those of a failed attempt. Raises SinkError."""
        path = self._folder / f".{self._writer}letters-{epoch:012}-{quote(table, safe='')}.json"
        lines = [(json.dumps(asdict(letter), ensure_ascii=False) + "\n").encode(errors="backslashreplace") for letter in letters]

        def act() -> None:
            disk.make_folder(self._folder)
            disk.replace(path, lines)

        written(act, self._folder, self._name)

    def settle(self, committed: int) -> None:
        """Publishes the writer's letters of epochs up to `committed`, and deletes its staged ones of later epochs.

        To be called after each commit, and before the first epoch is staged again. Raises SinkError.
        """
        written(lambda: self._settle(committed), self._folder, self._name)

    def sweep(self) -> None:
        """Deletes the staged letters of all other writers, which can no longer commit. Raises SinkError."""
        written(lambda: self._delete([name for name, writer in self._unsettled() if writer != self._writer]), self._folder, self._name)

    def _settle(self, committed: int) -> None:
        dropped = []
        for name in [name for name, writer in self._unsettled() if writer == self._writer]:
            staged = _STAGED.fullmatch(name)
            if staged is not None and int(staged[3]) <= committed:
                disk.rename(self._folder / name, self._folder / staged[2])
            else:
                dropped.append(name)
        self._delete(dropped)

    def _unsettled(self) -> list[tuple[str, str]]:
        """(name, writer) of each staged file."""
        names = sorted(os.listdir(self._folder)) if self._folder.is_dir() else []
        matches = [(name, _UNFINISHED.fullmatch(name)) for name in names if _STAGED.fullmatch(name) or disk.is_staged(name)]
        return [(name, whose[1]) for name, whose in matches if whose is not None]

    def _delete(self, names: list[str]) -> None:
        for name in names:
            disk.unlink(self._folder / name)
        if names:
            disk.sync_folder(self._folder)
