"""Local copies of the data files of an object store: fetched once, mapped by every process of this user, bounded in bytes.

Copies are kept in a private folder, DELTIC_CACHE or the user's cache folder, and take at most DELTIC_CACHE_BYTES in all (default 16 GiB);
the least recently used are evicted first. A copy is synced before it gets its name, so its length alone shows that it is complete; its
checksums are verified as always. Deleting a mapped copy does no harm.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
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
        with failing(self._subject, "created"):
            home.mkdir(_PRIVATE, parents=True, exist_ok=True)
            _check_private(home)
        self._folder = home / hashlib.sha256(url.encode()).hexdigest()[:32]

    def find(self, name: str, size_bytes: int) -> mmap.mmap | None:
        """A copy, mapped; None if there is none of this length."""
        try:
            copy = self._mapped(name, size_bytes)
        except CorruptState:
            return None
        if copy is not None:
            with suppress(OSError):  # only the order of eviction depends on it
                os.utime(self._folder / name)
        return copy

    def open(self, name: str, size_bytes: int) -> mmap.mmap:
        """A copy that was just placed. Raises CorruptState, and drops the copy, if the fetched file has another length."""
        try:
            copy = self._mapped(name, size_bytes)
        except CorruptState:
            self.forget(name)
            raise
        if copy is None:
            raise StateError(
                f"the copy of {name} was deleted while it was being opened",
                expected=f"a cache larger than one file of {size_bytes} bytes",
                remedy="increase DELTIC_CACHE_BYTES",
            )
        return copy

    def place(self, name: str, parts: Iterable[Any]) -> None:
        """Stores a copy of these bytes-like parts, and evicts others to make room."""
        with failing(self._subject, "written"):
            self._folder.mkdir(_PRIVATE, exist_ok=True)
            disk.replace(self._folder / name, parts)
            _make_room(self._folder.parent, self._folder / name)

    @contextmanager
    def filling(self, name: str) -> Iterator[disk.NewFile]:
        """As `place`, for a copy that the body fills; without an effect if the body raises."""
        with failing(self._subject, "written"):
            self._folder.mkdir(_PRIVATE, exist_ok=True)
            staged = disk.staged_name(self._folder / name)
            with disk.filling(staged) as file:
                yield file
            disk.rename(staged, self._folder / name)
            _make_room(self._folder.parent, self._folder / name)

    def forget(self, name: str) -> None:
        """Drops a copy."""
        with suppress(FileNotFoundError):
            os.unlink(self._folder / name)

    def _mapped(self, name: str, size_bytes: int) -> mmap.mmap | None:
        with failing(self._subject, "read"):
            return mapped(self._folder / name, name, size_bytes)


def _home() -> Path:
    """The folder of the copies of all URLs."""
    if chosen := os.environ.get("DELTIC_CACHE"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")).absolute() / "deltic" / "objects"


def _check_private(home: Path) -> None:
    """Raises StateError if other users could read or replace what is in it."""
    status = os.lstat(home)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & ~_PRIVATE:
        raise StateError(
            f"the cache folder {home} is accessible to other users",
            expected="a folder owned by this user with permissions rwx------",
            remedy=f"run chmod 700 {home}, or set DELTIC_CACHE to another folder",
        )


def _bound() -> int:
    text = os.environ.get("DELTIC_CACHE_BYTES", str(_BYTES))
    if not text.isdecimal():
        raise StateError(f"DELTIC_CACHE_BYTES is {text!r}", expected="a number of bytes", remedy="correct it or unset it")
    return int(text)


def _make_room(home: Path, kept: Path) -> None:
    """Deletes the least recently used copies except `kept` until the rest fit the bound, and files of killed processes. O(copies)."""
    files = list(_files(home))
    total = sum(status.st_size for status, _ in files)
    bound, stale = _bound(), time.time() - _STAGED_S
    for status, path in sorted(files, key=lambda each: each[0].st_mtime_ns):
        superfluous = status.st_mtime < stale if disk.is_staged(path.name) else total > bound
        if path == kept or not superfluous:
            continue
        with suppress(FileNotFoundError):
            os.unlink(path)
        total -= status.st_size


def _files(home: Path) -> Iterator[tuple[os.stat_result, Path]]:
    """All files in the folders of URLs, except those that other processes move or delete meanwhile."""
    for folder in os.scandir(home):
        for entry in os.scandir(folder) if folder.is_dir() else ():
            with suppress(FileNotFoundError):
                yield entry.stat(), Path(entry.path)
