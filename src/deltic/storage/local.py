"""A state folder on a file system. What it does durably, `disk` does; here its failures become errors that name the folder."""

from __future__ import annotations

import errno
import json
import mmap
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from deltic import disk
from deltic.errors import CorruptState, SetupError, StateError, StateInUse
from deltic.storage.names import DATA, ENTRIES, LOCK, MANIFESTS, checked
from deltic.storage.parsing import REMEDY

try:
    import fcntl
except ImportError:  # on Windows, where sessions keep their state in memory
    fcntl = None  # type: ignore[assignment]

_FULL: Final = ("room for the new files", "make room; nothing was changed, so this can be done again then")
_REFUSED: Final = ("a folder that this process may read and write", "give it the right to, or name another folder")
_NO_FOLDER: Final = ("a folder", "name another one")
_NO_FILE: Final = ("regular files, and no symbolic links", "restore the state folder from a copy, or name another one")
_CURES: Final = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _REFUSED,
    errno.EPERM: _REFUSED,
    errno.EROFS: _REFUSED,
    errno.ENOENT: _NO_FOLDER,
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
    errno.EINVAL: _NO_FILE,
    errno.ELOOP: _NO_FILE,
    errno.ENXIO: _NO_FILE,
    errno.EFBIG: (f"at most {disk.READ_BYTES} bytes", "restore the state folder from a copy"),
}


class LocalFolder:
    """The folder `path`; see StateFolder."""

    local: Final = True

    def __init__(self, path: Path) -> None:
        self._path = path.expanduser().absolute()
        self._subject = f"the state folder {self._path}"
        self._lock: int | None = None

    @property
    def root(self) -> str:
        return str(self._path)

    def check(self) -> None:
        with failing(self._subject, "read"):
            found = sorted(os.listdir(self._path)) if self._path.is_dir() else []
        other = next((name for name in found if name not in ENTRIES and not name.startswith(".")), None)
        if other is None or any(self.names(MANIFESTS)):
            return
        raise StateError(
            f"{self._subject} is no state and already holds something else: {other}",
            expected="a new or an empty folder, or the state folder of a pipeline",
            remedy="name another folder",
        )

    def make(self) -> None:
        self.check()
        path = self._at(DATA)
        with failing(self._subject, "made"):
            disk.make_folder(path)

    def create(self, name: str, content: bytes) -> bool:
        path = self._at(name)
        with failing(self._subject, "written"):
            disk.make_folder(path.parent)
            return disk.create_if_absent(path, [content])

    def put(self, name: str, content: bytes) -> None:
        path = self._at(name)
        with failing(self._subject, "written"):
            disk.make_folder(path.parent)
            disk.replace(path, [content])

    def overwrite(self, name: str, content: bytes) -> None:
        path = self._at(name)
        with failing(self._subject, "written"):
            disk.overwrite(path, content)

    def read(self, name: str) -> bytes | None:
        path = self._at(name)
        with failing(self._subject, "read"):
            return disk.read(path)

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self._listing(prefix) if not disk.is_staged(name))

    def sizes(self, prefix: str) -> dict[str, int]:
        with failing(self._subject, "read"):
            found = {}
            for name in self._listing(prefix):
                with suppress(FileNotFoundError):
                    found[name] = (self._at(prefix) / name).stat().st_size
            return found

    def delete(self, names: Iterable[str]) -> None:
        with failing(self._subject, "written"):
            for name in names:
                disk.unlink(self._at(name))

    def sweep(self, prefix: str) -> None:
        with failing(self._subject, "written"):
            for name in filter(disk.is_staged, self._listing(prefix)):
                disk.unlink(self._at(prefix) / name)

    def lock(self) -> None:
        if fcntl is None:
            raise SetupError(
                f"{self._subject} cannot be locked: this system has no POSIX file locks",
                remedy="run on Linux or macOS (on Windows: in WSL), name an object store, or keep the state in memory by state=None",
            )
        with failing(self._subject, "locked"):
            descriptor = disk.open_regular(self._path / LOCK, os.O_RDWR | os.O_CREAT)
        try:
            self._take(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._lock = descriptor

    def _take(self, descriptor: int) -> None:
        this = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        with failing(self._subject, "locked"):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 4096).decode(errors="replace").strip()
                raise StateInUse(
                    f"the state folder {self.root} is in use by {_holder(holder)}",
                    expected="one writer at a time",
                    remedy=f"{'close the session that has it' if holder == this else 'end that process'}, or use another folder",
                ) from None
            os.ftruncate(descriptor, 0)
            os.write(descriptor, this.encode())

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write_data(self, name: str, parts: Sequence[Any]) -> None:
        path = self._at(f"{DATA}/{name}")
        with failing(self._subject, "written"):
            disk.create(path, parts)

    def map_data(self, name: str, size_bytes: int) -> mmap.mmap:
        path = self._at(f"{DATA}/{name}")
        with failing(self._subject, "read"):
            found = mapped(path, name, size_bytes)
        if found is None:
            raise CorruptState(f"{name}: the file is missing, though the manifest names it", remedy=REMEDY)
        return found

    def forget_data(self, name: str) -> None:
        """There is no copy."""

    def _at(self, name: str) -> Path:
        folder = self._path / checked(name).partition("/")[0]
        if os.path.islink(folder):
            with failing(self._subject, "used"):
                raise OSError(errno.ELOOP, f"{folder.name} is a symbolic link", str(folder))
        return self._path / name

    def _listing(self, prefix: str) -> list[str]:
        path = self._at(prefix)
        with failing(self._subject, "read"):
            try:
                return os.listdir(path)
            except FileNotFoundError:
                return []


def mapped(path: Path, name: str, size_bytes: int) -> mmap.mmap | None:
    """A file's bytes, mapped; None if there is no file. Raises CorruptState if it has another length, and OSError."""
    disk.at("read:before", str(path))
    try:
        descriptor = disk.open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(descriptor).st_size
        if found != size_bytes or not found:
            raise wrong_length(name, found, size_bytes)
        return mmap.mmap(descriptor, found, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)


def wrong_length(name: str, found: int, expected: int) -> CorruptState:
    return CorruptState(f"{name}: the file has {found} bytes", expected=f"{expected} bytes", remedy=REMEDY)


@contextmanager
def failing(subject: str, done: str) -> Iterator[None]:
    """Tells what the operating system refuses as a StateError. subject: of which folder; done: what cannot be done to it, as "written"."""
    try:
        yield
    except OSError as error:
        expected, remedy = _CURES.get(error.errno or 0, ("a disk that works", "look after the disk; nothing was changed"))
        raise StateError(f"{subject} cannot be {done}: {error.strerror}", expected=expected, remedy=remedy) from None


def _holder(text: str) -> str:
    try:
        found = json.loads(text)
        return f"process {int(found['pid'])} on {found['host']}"
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"
