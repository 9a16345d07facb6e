"""Local copies of the data files of an object store: fetched once, mapped by every process of this user, bounded in bytes.

Copies stand in a folder of the user's own, DELTIC_CACHE or the user's cache folder, at most DELTIC_CACHE_BYTES of them in all (16 GiB
unless said); those unused longest go first. A copy is synced before it has its name, so that its length alone shows it is whole, and
its file's checksums are checked as always. Deleting one that is mapped does no harm.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from deltic import disk
from deltic.errors import CorruptState, StateError
from deltic.storage.local import failing, mapped

_BYTES: Final = 16 << 30
_STAGED_S: Final = 3600.0
_PRIVATE: Final = 0o700


class Copies:
    """The copies of one URL's files."""

    def __init__(self, url: str) -> None:
        home = _home()
        self._subject = f"the cache folder {home}"
        with failing(self._subject, "made"):
            home.mkdir(_PRIVATE, parents=True, exist_ok=True)
            _check_private(home)
        self._folder = home / hashlib.sha256(url.encode()).hexdigest()[:32]

    def find(self, name: str, size_bytes: int) -> mmap.mmap | None:
        """A copy, mapped; None if there is none of this length."""
        try:
            found = self._mapped(name, size_bytes)
        except CorruptState:
            return None
        if found is not None:
            with suppress(OSError):  # only the order in which copies go depends on it
                os.utime(self._folder / name)
        return found

    def open(self, name: str, size_bytes: int) -> mmap.mmap:
        """A copy that has just been placed. Raises CorruptState, and drops the copy, if what was fetched has another length."""
        try:
            found = self._mapped(name, size_bytes)
        except CorruptState:
            self.forget(name)
            raise
        if found is None:
            raise StateError(
                f"the copy of {name} was deleted while it was opened",
                expected=f"a cache that is larger than one file of {size_bytes} bytes",
                remedy="set DELTIC_CACHE_BYTES to more",
            )
        return found

    def place(self, name: str, parts: Iterable[Any]) -> None:
        """Makes a copy of these bytes-like parts, and room for it."""
        with failing(self._subject, "written"):
            self._folder.mkdir(_PRIVATE, exist_ok=True)
            disk.replace(self._folder / name, parts)
            _make_room(self._folder.parent, self._folder / name)

    def forget(self, name: str) -> None:
        """Drops a copy."""
        with suppress(FileNotFoundError):
            os.unlink(self._folder / name)

    def _mapped(self, name: str, size_bytes: int) -> mmap.mmap | None:
        with failing(self._subject, "read"):
            return mapped(self._folder / name, name, size_bytes)


def _home() -> Path:
    """Where the copies of all URLs are."""
    if chosen := os.environ.get("DELTIC_CACHE"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")).absolute() / "deltic" / "objects"


def _check_private(home: Path) -> None:
    """Others could read the state in it, or put another in its place. Raises StateError."""
    found = os.lstat(home)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & ~_PRIVATE:
        raise StateError(
            f"the cache folder {home} is open to others",
            expected="a folder of this user's own, with the rights rwx------",
            remedy="chmod 700 it, or name another one in DELTIC_CACHE",
        )


def _bound() -> int:
    text = os.environ.get("DELTIC_CACHE_BYTES", str(_BYTES))
    if not text.isdecimal():
        raise StateError(f"DELTIC_CACHE_BYTES is {text!r}", expected="a number of bytes", remedy="set it to one, or not at all")
    return int(text)


def _make_room(home: Path, kept: Path) -> None:
    """Deletes the copies unused longest, but not `kept`, until all are within the bound; and what killed processes left. O(copies)."""
    found = list(_files(home))
    total = sum(status.st_size for status, _ in found)
    bound, stale = _bound(), time.time() - _STAGED_S
    for status, path in sorted(found, key=lambda each: each[0].st_mtime_ns):
        superfluous = status.st_mtime < stale if disk.is_staged(path.name) else total > bound
        if path == kept or not superfluous:
            continue
        with suppress(FileNotFoundError):
            os.unlink(path)
        total -= status.st_size


def _files(home: Path) -> Iterator[tuple[os.stat_result, Path]]:
    """All that stands in the folders of URLs, but for what other processes move or delete meanwhile."""
    for folder in os.scandir(home):
        for entry in os.scandir(folder) if folder.is_dir() else ():
            with suppress(FileNotFoundError):
                yield entry.stat(), Path(entry.path)
