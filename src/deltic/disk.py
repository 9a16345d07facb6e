"""Durable operations on local files: the one place where a file is made, replaced, renamed or deleted so that a power failure keeps it.

Always: a file's bytes are synced before its name is, and a name is synced before anybody is told. What fails with an OSError leaves
nothing behind, as far as the disk lets it; what is killed may leave a file that `is_staged` knows, which its folder's owner sweeps.
Errors stay OSErrors here: the callers know what the file was for.

Every operation says where it is through `at(step, path)`: "write:before", "write:after", and the same for sync, link, rename, unlink,
overwrite, folder-sync, make-folder and read. It does nothing; tests put something in its place, to stop there or to fail there.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_STAGED: Final = ".staged"
_PARTS_AT_ONCE: Final = 512
READ_BYTES: Final = 1 << 30
"""The most that `read` takes into memory."""


def _go_on(step: str, path: str) -> None:
    """No test is watching."""


at: Callable[[str, str], None] = _go_on


def is_staged(name: str) -> bool:
    """Whether a file is one that an operation had not finished; if its writer is dead, it is garbage."""
    return name.endswith(_STAGED)


def staged_name(path: Path) -> Path:
    """A name beside `path` that no other writer takes; hidden, so that those who read the folder as a data set pass over it."""
    hidden = "" if path.name.startswith(".") else "."
    return path.with_name(f"{hidden}{path.name}.{secrets.token_hex(8)}{_STAGED}")


def create(path: Path, parts: Iterable[Any]) -> None:
    """Makes a file of these bytes-like parts under a name that nobody else has; it survives a power failure. O(bytes).

    Not atomic: a kill leaves a torn file under its own name. Raises FileExistsError.
    """
    _write(path, parts)
    try:
        sync_folder(path.parent)
    except OSError:
        _forget(path)
        raise


def create_if_absent(path: Path, parts: Iterable[Any]) -> bool:
    """Makes a file that survives a power failure, of which others see all or nothing; False, and nothing done, if the name is taken."""
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
    """Gives a file new content: after a power failure it has the old one or the new one, and the new one once this has returned."""
    staged = staged_name(path)
    _write(staged, parts)
    try:
        rename(staged, path)
    except OSError:
        _forget(staged)
        raise


def rename(source: Path, target: Path) -> None:
    """Moves a synced file within its folder, over what is there, and syncs the folder. If the sync fails, it is moved all the same."""
    assert source.parent == target.parent
    _step("rename", target, lambda: os.replace(source, target))
    sync_folder(target.parent)


def overwrite(path: Path, content: bytes) -> None:
    """Writes these bytes at the start of a file, which is made if it is not there, and syncs nothing: a power failure may undo it."""
    _step("overwrite", path, lambda: _overwrite(path, content))


def unlink(path: Path) -> bool:
    """Deletes a file; False if there was none. After a power failure it may be there again, until its folder is synced."""
    try:
        _step("unlink", path, lambda: os.unlink(path))
    except FileNotFoundError:
        return False
    return True


def sync_folder(path: Path) -> None:
    """Makes the names in a folder, and what is gone from it, survive a power failure."""
    _step("folder-sync", path, lambda: _sync_folder(path))


def make_folder(path: Path) -> None:
    """Makes a folder and those above it that survive a power failure; one that is there is left alone."""
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
    """A regular file's bytes; None if there is none. Raises OSError, also for one of more than READ_BYTES."""
    at("read:before", str(path))
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if (size := os.fstat(descriptor).st_size) > READ_BYTES:
            raise OSError(errno.EFBIG, f"{path.name} has {size} bytes", str(path))
        return file.read()


def open_regular(path: Path, flags: int) -> int:
    """Opens a regular file, and nothing else: no symbolic link is followed, and no pipe or device waited for. Raises OSError."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{path.name} is not a regular file", str(path))
    return descriptor


def _write(path: Path, parts: Iterable[Any]) -> None:
    """Makes and syncs a new file; its name is not synced."""
    at("write:before", str(path))
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        _fill(descriptor, parts)
        at("write:after", str(path))
        _step("sync", path, lambda: os.fsync(descriptor))
    except OSError:
        _forget(path)
        raise
    finally:
        os.close(descriptor)


def _overwrite(path: Path, content: bytes) -> None:
    descriptor = open_regular(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.pwrite(descriptor, content, 0)
    finally:
        os.close(descriptor)


def _fill(descriptor: int, parts: Iterable[Any]) -> None:
    left = [memoryview(part).cast("B") for part in parts if memoryview(part).nbytes]
    left.reverse()
    while left:
        written = os.writev(descriptor, left[: -_PARTS_AT_ONCE - 1 : -1])
        while left and written >= left[-1].nbytes:
            written -= left.pop().nbytes
        if written:
            left[-1] = left[-1][written:]


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
    """Takes away what a failed operation left; the first error is the one to be told."""
    with suppress(OSError):
        os.unlink(path)
