"""Dead letters: rows of source files that were no changes, as JSON lines, one file for each table and epoch that had some.

They are written in two steps, so that a letter is there exactly if the tick that passed over its row was committed: before the commit
under a hidden name, `.<writer>letters-<epoch, 12 digits>-<table>.json`; after it as `letters-…`. The folder is one pipeline's, but
for a moment two processes may run that: each has a name as a writer, and leaves what the other has staged.
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
    """The folder at `path`, a local path or a file:// URL; it is made for the first letter. Raises SinkError for another scheme.

    writer: who stages, in hexadecimal digits.
    """

    def __init__(self, path: str, writer: str = "") -> None:
        self._folder, self._writer = local_path(path, SinkError), writer
        self._name = "dead letters"

    def stage(self, epoch: int, table: str, letters: Iterable[DeadLetter]) -> None:
        """Writes the letters of an epoch that is not committed yet, durably, over those of an attempt that failed. Raises SinkError."""
        path = self._folder / f".{self._writer}letters-{epoch:012}-{quote(table, safe='')}.json"
        lines = [(json.dumps(asdict(letter), ensure_ascii=False) + "\n").encode(errors="backslashreplace") for letter in letters]

        def act() -> None:
            disk.make_folder(self._folder)
            disk.replace(path, lines)

        written(act, self._folder, self._name)

    def settle(self, committed: int) -> None:
        """Shows the writer's letters of epochs up to `committed`, and takes its staged ones of later epochs away.

        To be called after each commit, and before the first epoch is staged again. Raises SinkError.
        """
        written(lambda: self._settle(committed), self._folder, self._name)

    def sweep(self) -> None:
        """Takes away what all other writers have staged; none of them may commit any more. Raises SinkError."""
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
        """The names of staged letters, and who staged them."""
        names = sorted(os.listdir(self._folder)) if self._folder.is_dir() else []
        found = [(name, _UNFINISHED.fullmatch(name)) for name in names if _STAGED.fullmatch(name) or disk.is_staged(name)]
        return [(name, whose[1]) for name, whose in found if whose is not None]

    def _delete(self, names: list[str]) -> None:
        for name in names:
            disk.unlink(self._folder / name)
        if names:
            disk.sync_folder(self._folder)
