"""Durable operations on local files: the one place that creates, replaces, renames and deletes files so that they survive power failures.

Always: a file's bytes are synced before its name is, and its name is synced before an operation returns. An operation that fails with an
OSError removes what it wrote, if the disk permits; a killed one may leave a file for which `is_staged` is true, which the folder's owner
sweeps. Errors remain OSErrors here: the callers know the purpose of the file.

Every operation reports its steps to `at(step, path)`: "write:before", "write:after", and likewise for sync, link, rename, unlink,
overwrite, folder-sync, make-folder, append, data-sync, fill and read. It does nothing; tests replace it to stop or fail at a step.
"""

from __future__ import annotations

import errno
import mmap
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

_STAGED: Final = ".staged"
_PARTS_AT_ONCE: Final = 512
_SYNC: Final = getattr(os, "fdatasync", os.fsync)
READ_BYTES: Final = 1 << 30
"""The size limit of `read`."""
FLUSHED_BYTES: Final = 1 << 25
"""A file that is filled has at most about so many bytes that are not on the disk yet: these cannot leave memory."""
_MOVED_BYTES: Final = 1 << 20


def _no_hook(step: str, path: str) -> None:
    """The default of `at`."""


at: Callable[[str, str], None] = _no_hook


def is_staged(name: str) -> bool:
    """Whether a name is that of an unfinished file; if its writer is dead, the file is garbage."""
    return name.endswith(_STAGED)


def staged_name(path: Path) -> Path:
    """A unique name beside `path`; hidden, so that programs that read the folder as a data set skip it."""
    hidden = "" if path.name.startswith(".") else "."
    return path.with_name(f"{hidden}{path.name}.{secrets.token_hex(8)}{_STAGED}")


def create(path: Path, parts: Iterable[Any]) -> None:
    """Creates a file of these bytes-like parts under a new name; it survives a power failure. O(bytes).

    Not atomic: a kill leaves a torn file under its own name. Raises FileExistsError.
    """
    _write(path, parts)
    try:
        sync_folder(path.parent)
    except OSError:
        _forget(path)
        raise


def create_unsynced(path: Path, parts: Iterable[Any]) -> None:
    """Creates a file of these bytes-like parts under a new name; it survives a power failure after `sync_files`. Raises FileExistsError."""
    _fill_new(path, parts)


class NewFile:
    """A new file, open to be filled at any offsets; see `filling`. size: its length, once `end` is called."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor, self._unsynced = path, descriptor, 0
        self.size = 0

    def put(self, part: Any, offset: int) -> None:
        """Writes these bytes at the offset."""
        _step("fill", self._path, lambda: self._put(memoryview(part).cast("B"), offset))

    def move(self, source: int, target: int, size: int) -> None:
        """Moves bytes to a lower offset."""
        assert target <= source
        for done in range(0, size if target < source else 0, _MOVED_BYTES):
            self.put(os.pread(self._descriptor, min(_MOVED_BYTES, size - done), source + done), target + done)

    def map(self, offset: int, size: int) -> mmap.mmap:
        """These bytes, mapped. offset: a multiple of `mmap.ALLOCATIONGRANULARITY`."""
        return mmap.mmap(self._descriptor, size, prot=mmap.PROT_READ, offset=offset)

    def end(self, size: int) -> None:
        """Makes this the length of the file."""
        os.ftruncate(self._descriptor, size)
        self.size = size

    def pieces(self, size: int) -> Iterator[bytes]:
        """The content, in pieces of so many bytes."""
        for offset in range(0, self.size, size):
            yield os.pread(self._descriptor, min(size, self.size - offset), offset)

    def _put(self, part: memoryview, offset: int) -> None:
        self._unsynced += len(part)
        while part:
            written = os.pwrite(self._descriptor, part[:FLUSHED_BYTES], offset)
            part, offset = part[written:], offset + written
        if self._unsynced >= FLUSHED_BYTES:
            _SYNC(self._descriptor)
            self._unsynced = 0


@contextmanager
def filling(path: Path) -> Iterator[NewFile]:
    """Creates a file that the body fills; once the body has ended, it survives a power failure. Raises FileExistsError.

    Not atomic: a kill leaves a torn file under its own name. If the body raises, there is no file.
    """
    at("write:before", str(path))
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        yield NewFile(path, descriptor)
        at("write:after", str(path))
        _step("sync", path, lambda: os.fsync(descriptor))
        sync_folder(path.parent)
    except (Exception, KeyboardInterrupt):
        _forget(path)
        raise
    finally:
        os.close(descriptor)


def sync_files(paths: Sequence[Path]) -> None:
    """Makes files of one folder and their names survive a power failure: much cheaper than one by one, since they share a journal."""
    for path in paths:
        _sync_file(path)
    if paths:
        sync_folder(paths[0].parent)


def create_in_order(folder: Path, contents: Sequence[tuple[str, bytes]]) -> int:
    """Creates files, each atomically, until a name exists; returns how many. They survive a power failure once this returns.

    A power failure before that may leave any of them.
    """
    staged = [(staged_name(folder / name), folder / name) for name, _ in contents]
    created = 0
    try:
        for (temporary, _), (_, content) in zip(staged, contents, strict=True):
            _fill_new(temporary, [content])
        for temporary, _ in staged:
            _sync_file(temporary)
        for temporary, path in staged:
            with suppress(FileExistsError):
                _step("link", path, lambda temporary=temporary, path=path: os.link(temporary, path))  # type: ignore[misc]
                created += 1
                continue
            break
    except OSError:
        for temporary, _ in staged:
            _forget(temporary)
        raise
    for temporary, _ in staged:
        unlink(temporary)
    sync_folder(folder)
    return created


def create_if_absent(path: Path, parts: Iterable[Any]) -> bool:
    """Atomically creates a file that survives a power failure; False, with no effect, if the name exists."""
    staged = staged_name(path)
    _write(staged, parts)
    try:
        _step("link", path, lambda: os.link(staged, path))
    except FileExistsError:
        unlink(staged)
        return False
    except OSError:
        _forget(staged)
        raise
    try:
        unlink(staged)
        sync_folder(path.parent)
    except OSError:
        _forget(staged)
        _forget(path)
        raise
    return True


def replace(path: Path, parts: Iterable[Any]) -> None:
    """Atomically replaces a file's content; once this returns, the new content survives a power failure."""
    staged = staged_name(path)
    _write(staged, parts)
    try:
        rename(staged, path)
    except OSError:
        _forget(staged)
        raise


def rename(source: Path, target: Path) -> None:
    """Renames a synced file within its folder, replacing the target, and syncs the folder. If the sync fails, the rename stands."""
    assert source.parent == target.parent
    _step("rename", target, lambda: os.replace(source, target))
    sync_folder(target.parent)


def overwrite(path: Path, content: bytes) -> None:
    """Writes these bytes at the start of a file, created if missing, without syncing: a power failure may undo it."""
    _step("overwrite", path, lambda: _overwrite(path, content))


def append(descriptor: int, name: str, parts: Sequence[Any], offset: int) -> None:
    """Writes these bytes-like parts at an offset of an open file, without syncing: a power failure may leave any of their sectors.

    name: the file's path.
    """
    at("append:before", name)  # without `_step`: a small commit does little else
    content = b"".join(parts)  # one buffer: a call of writev costs more than copying a few KiB
    while content:
        written = os.pwrite(descriptor, content, offset)
        content, offset = content[written:], offset + written
    at("append:after", name)


def sync_data(descriptor: int, name: str) -> None:
    """Makes an open file's bytes and its length survive a power failure. name: its path."""
    at("data-sync:before", name)
    _SYNC(descriptor)
    at("data-sync:after", name)


def unlink(path: Path) -> bool:
    """Deletes a file; False if it did not exist. Until its folder is synced, a power failure may restore it."""
    try:
        _step("unlink", path, lambda: os.unlink(path))
    except FileNotFoundError:
        return False
    return True


def sync_folder(path: Path) -> None:
    """Makes the names in a folder, and deletions from it, survive a power failure."""
    _step("folder-sync", path, lambda: _sync_folder(path))


def make_folder(path: Path) -> None:
    """Creates a folder and its parents so that they survive a power failure; existing ones are unchanged."""
    if path.is_dir():
        return
    if path.parent != path:
        make_folder(path.parent)
    with suppress(FileExistsError):
        _step("make-folder", path, lambda: os.mkdir(path))
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    sync_folder(path.parent)


def read(path: Path) -> bytes | None:
    """A regular file's bytes; None if it does not exist. Raises OSError, also if it is larger than READ_BYTES."""
    at("read:before", str(path))
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if (size := os.fstat(descriptor).st_size) > READ_BYTES:
            raise OSError(errno.EOVERFLOW, f"{path.name} has {size} bytes", str(path))
        return file.read()


def open_regular(path: Path, flags: int) -> int:
    """Opens a regular file; refuses symbolic links, pipes and devices without blocking. Raises OSError."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():  # the system's text speaks of too many levels of links
            raise OSError(errno.ELOOP, f"{path.name} is a symbolic link", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{path.name} is not a regular file", str(path))
    return descriptor


def _write(path: Path, parts: Iterable[Any]) -> None:
    """Creates and syncs a new file, but not its name."""
    descriptor = _filled(path, parts)
    try:
        _step("sync", path, lambda: os.fsync(descriptor))
    except OSError:
        _forget(path)
        raise
    finally:
        os.close(descriptor)


def _filled(path: Path, parts: Iterable[Any]) -> int:
    """Creates a new file; returns its descriptor."""
    at("write:before", str(path))
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        _fill(descriptor, parts)
        at("write:after", str(path))
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError):
            _forget(path)
        raise
    return descriptor


def _fill_new(path: Path, parts: Iterable[Any]) -> None:
    os.close(_filled(path, parts))


def _sync_file(path: Path) -> None:
    descriptor = open_regular(path, os.O_RDONLY)
    try:
        _step("sync", path, lambda: os.fsync(descriptor))
    finally:
        os.close(descriptor)


def _overwrite(path: Path, content: bytes) -> None:
    descriptor = open_regular(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.pwrite(descriptor, content, 0)
    finally:
        os.close(descriptor)


def _fill(descriptor: int, parts: Iterable[Any]) -> None:
    remaining = [memoryview(part).cast("B") for part in parts if memoryview(part).nbytes]
    remaining.reverse()
    while remaining:
        written = os.writev(descriptor, remaining[: -_PARTS_AT_ONCE - 1 : -1])
        while remaining and written >= remaining[-1].nbytes:
            written -= remaining.pop().nbytes
        if written:
            remaining[-1] = remaining[-1][written:]


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _step(name: str, path: Path, act: Callable[[], None]) -> None:
    at(f"{name}:before", str(path))
    act()
    at(f"{name}:after", str(path))


def _forget(path: Path) -> None:
    """Removes what a failed operation left; its own errors are ignored in favour of the first one."""
    with suppress(OSError):
        os.unlink(path)
