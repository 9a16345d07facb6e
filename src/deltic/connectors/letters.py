"""Dead letters: rows of source files that were no changes, as JSON lines, one file for each table and epoch that had some.

They are written in two steps, so that a letter is there exactly if the tick that passed over its row was committed: before the commit
under a hidden name, `.letters-<epoch, 12 digits>-<table>.json`; after it without the dot. The folder is one pipeline's.
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
from deltic.connectors.files import Letter
from deltic.connectors.files.folder import local_path
from deltic.connectors.sinks import written
from deltic.errors import SinkError

_STAGED: Final = re.compile(r"\.(letters-([0-9]{12,})-.*\.json)", re.DOTALL)


class DeadLetters:
    """The folder at `path`, a local path or a file:// URL; it is made for the first letter. Raises SinkError for another scheme."""

    def __init__(self, path: str) -> None:
        self._folder = local_path(path, SinkError)
        self._name = "dead letters"

    def stage(self, epoch: int, table: str, letters: Iterable[Letter]) -> None:
        """Writes the letters of an epoch that is not committed yet, durably, over those of an attempt that failed. Raises SinkError."""
        path = self._folder / f".letters-{epoch:012}-{quote(table, safe='')}.json"
        lines = [(json.dumps(asdict(letter), ensure_ascii=False) + "\n").encode(errors="backslashreplace") for letter in letters]

        def act() -> None:
            disk.make_folder(self._folder)
            disk.replace(path, lines)

        written(act, self._folder, self._name)

    def settle(self, committed: int) -> None:
        """Shows the letters of epochs up to `committed`, and takes staged ones of later epochs away.

        To be called behind each commit, and before the first epoch is staged anew. Raises SinkError.
        """
        written(lambda: self._settle(committed), self._folder, self._name)

    def _settle(self, committed: int) -> None:
        gone = False
        for name in sorted(os.listdir(self._folder)) if self._folder.is_dir() else ():
            staged = _STAGED.fullmatch(name)
            if staged is not None and int(staged[2]) <= committed:
                disk.rename(self._folder / name, self._folder / staged[1])
            elif staged is not None or (name.startswith(".letters-") and disk.is_staged(name)):
                gone |= disk.unlink(self._folder / name)
        if gone:
            disk.sync_folder(self._folder)
