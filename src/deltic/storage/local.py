"""A state folder on a file system. `disk` makes its operations durable; this module turns failures into errors that name the folder."""

from __future__ import annotations

import errno
import json
import mmap
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from deltic import disk
from deltic.errors import CorruptState, SetupError, StateError, StateInUse
from deltic.storage.log_file import LogWriter
from deltic.storage.names import DATA, ENTRIES, LOCK, LOG, MANIFESTS, checked
from deltic.storage.parsing import REMEDY, missing_file

try:
    import fcntl
except ImportError:  # on Windows, where sessions keep their state in memory
    fcntl = None  # type: ignore[assignment]

_FULL: Final = ("free space for the new files", "free some space and retry; nothing was changed")
_REFUSED: Final = ("a folder that this process can read and write", "grant it the permissions, or choose another folder")
_NO_FOLDER: Final = ("a folder", "choose another one")
_NO_FILE: Final = ("regular files, not symbolic links", "restore the state folder from a copy, or choose another one")
_FILES: Final = ("a limit on open files that leaves room", "raise the limit (ulimit -n), or close files, and retry; nothing was changed")
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
    errno.EOVERFLOW: (f"at most {disk.READ_BYTES} bytes", "restore the state folder from a copy"),
    errno.EFBIG: ("a limit on the size of files that leaves room", "raise the limit (ulimit -f) and retry; nothing was changed"),
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
}


class LocalFolder:
    """The folder `path`; see StateFolder."""

    local: Final = True

    def __init__(self, path: Path) -> None:
        self._path = path.expanduser().absolute()
        self.root = str(self._path)
        self._subject = f"the state folder {self._path}"
        self._lock: int | None = None
        self._locked_by = 0
        """The process that has taken the lock."""

    def check(self) -> None:
        with failing(self._subject, "read"):
            names = sorted(os.listdir(self._path)) if self._path.is_dir() else []
        other = next((name for name in names if name not in ENTRIES and not name.startswith(".")), None)
        if other is None or any(self.names(MANIFESTS)):
            return
        raise StateError(
            f"{self._subject} already contains other files, such as {other}",
            expected="a new or empty folder, or an existing state folder",
            remedy="choose another folder",
        )

    def make(self) -> None:
        self.check()
        path = self._path_of(DATA)
        with failing(self._subject, "created"):
            disk.make_folder(path)

    def create(self, name: str, content: bytes) -> bool:
        path = self._path_of(name)
        with failing(self._subject, "written"):
            disk.make_folder(path.parent)
            return disk.create_if_absent(path, [content])

    def put(self, name: str, content: bytes) -> None:
        path = self._path_of(name)
        with failing(self._subject, "written"):
            disk.make_folder(path.parent)
            disk.replace(path, [content])

    def overwrite(self, name: str, content: bytes) -> None:
        path = self._path_of(name)
        with failing(self._subject, "written"):
            disk.overwrite(path, content)

    def read(self, name: str) -> bytes | None:
        path = self._path_of(name)
        with failing(self._subject, "read"):
            return disk.read(path)

    def presence(self, name: str) -> Callable[[], bool]:
        """Tells, at the cost of one call of the system, whether a file has this name."""
        return partial(os.access, f"{self.root}/{checked(name)}", os.F_OK)  # no exception where there is none

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self._listing(prefix) if not disk.is_staged(name))

    def sizes(self, prefix: str) -> dict[str, int]:
        with failing(self._subject, "read"):
            sizes = {}
            for name in self._listing(prefix):
                with suppress(FileNotFoundError):
                    sizes[name] = (self._path_of(prefix) / name).stat().st_size
            return sizes

    def delete(self, names: Iterable[str]) -> None:
        with failing(self._subject, "written"):
            for name in names:
                disk.unlink(self._path_of(name))

    def sweep(self, prefix: str, *, older_s: float = 0.0) -> None:
        with failing(self._subject, "written"):
            for path in [self._path_of(prefix) / name for name in self._listing(prefix) if disk.is_staged(name)]:
                with suppress(FileNotFoundError):
                    if not older_s or time.time() - path.lstat().st_mtime >= older_s:
                        disk.unlink(path)

    def lock(self) -> None:
        """See StateFolder. A process that is forked from this one has no part in the lock."""
        if fcntl is None:
            raise SetupError(
                f"{self._subject} cannot be locked: this system has no POSIX file locks",
                remedy="run on Linux or macOS (on Windows: in WSL), use an object store, or keep the state in memory with state=None",
            )
        with failing(self._subject, "locked"):
            descriptor = disk.open_regular(self._path / LOCK, os.O_RDWR | os.O_CREAT)
        try:
            self._take(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._lock, self._locked_by = descriptor, os.getpid()
        _LOCKED.add(self)

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
                    remedy=f"{'close the session that uses it' if holder == this else 'end that process'}, or use another folder",
                ) from None
            os.ftruncate(descriptor, 0)
            os.write(descriptor, this.encode())

    def unlock(self) -> None:
        descriptor, self._lock = self._lock, None  # first: it is closed once, also if this is interrupted and called again
        if descriptor is None:
            return
        try:
            if self._locked_by == os.getpid():  # else the lock is that of the process from which this one was forked
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing is not enough: one that is being forked has the descriptor, too
        finally:
            os.close(descriptor)

    def write_data(self, name: str, parts: Sequence[Any]) -> None:
        path = self._path_of(f"{DATA}/{name}")
        with failing(self._subject, "written"):
            disk.create(path, parts)

    @contextmanager
    def fill_data(self, name: str) -> Iterator[disk.NewFile]:
        path = self._path_of(f"{DATA}/{name}")
        with failing(self._subject, "written"), disk.filling(path) as file:
            yield file

    def write_unsynced(self, name: str, parts: Sequence[Any]) -> None:
        """As `write_data`, but the file survives a power failure only after `sync_data`."""
        path = self._path_of(f"{DATA}/{name}")
        with failing(self._subject, "written"):
            disk.create_unsynced(path, parts)

    def sync_data(self, names: Sequence[str]) -> None:
        """Makes data files survive a power failure."""
        paths = [self._path_of(f"{DATA}/{name}") for name in names]
        with failing(self._subject, "written"):
            disk.sync_files(paths)

    def create_in_order(self, prefix: str, contents: Sequence[tuple[str, bytes]]) -> int:
        """Creates files in a subfolder, until a name exists; returns how many. A power failure meanwhile may leave any of them."""
        path = self._path_of(prefix)
        with failing(self._subject, "written"):
            return disk.create_in_order(path, contents)

    def map_data(self, name: str, size_bytes: int) -> mmap.mmap:
        path = self._path_of(f"{DATA}/{name}")
        with failing(self._subject, "read"):
            content = mapped(path, name, size_bytes)
        if content is None:
            raise missing_file(name)
        return content

    def forget_data(self, name: str) -> None:
        """No effect: there are no copies."""

    def new_log(self, name: str) -> LogWriter:
        """Creates a commit log under a new name, which survives a power failure. Raises StateError."""
        path = self._path_of(f"{LOG}/{name}")
        with failing(self._subject, "written"):
            disk.make_folder(path.parent)
            return LogWriter(path)

    def log_failure(self, error: OSError) -> StateError:
        """What an OSError of a commit log is for users."""
        return _failure(self._subject, "written", error)

    def _path_of(self, name: str) -> Path:
        folder = self._path / checked(name).partition("/")[0]
        if os.path.islink(folder):
            with failing(self._subject, "used"):
                raise OSError(errno.ELOOP, f"{folder.name} is a symbolic link", str(folder))
        return self._path / name

    def _listing(self, prefix: str) -> list[str]:
        path = self._path_of(prefix)
        with failing(self._subject, "read"):
            try:
                return os.listdir(path)
            except FileNotFoundError:
                return []


_LOCKED: Final[WeakSet[LocalFolder]] = WeakSet()
"""The folders that were locked in this process."""


def _leave_locks() -> None:
    """In a child of a fork: else it would hold the locks as long as it lives, though the process that has taken them may end."""
    for folder in _LOCKED:
        folder.unlock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_leave_locks)


def mapped(path: Path, name: str, size_bytes: int) -> mmap.mmap | None:
    """A file's bytes, mapped; None if it does not exist. Raises CorruptState if it has another length; OSError."""
    disk.at("read:before", str(path))
    try:
        descriptor = disk.open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        length = os.fstat(descriptor).st_size
        if length != size_bytes or not length:
            raise wrong_length(name, length, size_bytes)
        return mmap.mmap(descriptor, length, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)


def wrong_length(name: str, length: int, expected: int) -> CorruptState:
    return CorruptState(f"{name}: the file has {length} bytes", expected=f"{expected} bytes", remedy=REMEDY)


@contextmanager
def failing(subject: str, done: str) -> Iterator[None]:
    """Turns an OSError into a StateError. subject: the folder; done: the failed action as a participle, such as "written"."""
    try:
        yield
    except OSError as error:
        raise _failure(subject, done, error) from None


def _failure(subject: str, done: str, error: OSError) -> StateError:
    expected, remedy = _CURES.get(error.errno or 0, ("a working disk", "check the disk; nothing was changed"))
    return StateError(f"{subject} cannot be {done}: {error.strerror}", expected=expected, remedy=remedy)


def _holder(text: str) -> str:
    try:
        holder = json.loads(text)
        return f"process {int(holder['pid'])} on {holder['host']}"
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"
