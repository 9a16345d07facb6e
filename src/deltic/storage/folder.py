"""The storage of a state: a folder on a file system, or a prefix in an object store. Other modules see no difference between them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from deltic.disk import NewFile
from deltic.errors import StateError
from deltic.purity import shown
from deltic.storage.local import LocalFolder
from deltic.storage.objects import ObjectFolder

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
LOCATION: Final = "the path of a folder, or a URL with file://, s3://, gs:// or az://"
_OBJECT_STORES: Final = ("s3", "gs", "az")


class StateFolder(Protocol):
    """A state folder. Every method raises StateError if the disk or the store fails; then nothing has changed.

    root: a path or URL that `open_folder` accepts. local: whether it is on a file system, where a lock keeps a second writer out.
    """

    @property
    def root(self) -> str: ...
    @property
    def local(self) -> bool: ...

    def check(self) -> None:
        """Raises StateError if it is a local folder with other content."""

    def make(self) -> None:
        """Creates the folder if it does not exist. Raises as `check`."""

    def create(self, name: str, content: bytes) -> bool:
        """Creates an object that survives a power failure; returns False and changes nothing if the name exists."""

    def put(self, name: str, content: bytes) -> None:
        """Creates or replaces an object atomically."""

    def overwrite(self, name: str, content: bytes) -> None:
        """Replaces an object's bytes by as many others; a power failure may undo it."""

    def read(self, name: str) -> bytes | None:
        """The object's bytes; None if it does not exist."""

    def names(self, prefix: str) -> list[str]:
        """The names of the objects in a subfolder, relative to it, ascending, without staged ones."""

    def sizes(self, prefix: str) -> dict[str, int]:
        """The size in bytes of each object in a subfolder, by its name relative to it."""

    def delete(self, names: Iterable[str]) -> None:
        """Deletes objects; those that do not exist are skipped."""

    def sweep(self, prefix: str, *, older_s: float = 0.0) -> None:
        """Deletes what dead processes staged in a subfolder, at least so long ago. Only the holder of the lock may call it."""

    def lock(self) -> None:
        """Locks the folder for this process until `unlock` or the end of the process. No effect on an object store. Raises StateInUse."""

    def unlock(self) -> None:
        """Releases the lock; no effect if it is not held."""

    def write_data(self, name: str, parts: Sequence[Any]) -> None:
        """Writes a data file of these bytes-like parts that survives a power failure. Its name must be new."""

    def fill_data(self, name: str) -> AbstractContextManager[NewFile]:
        """As `write_data`, of a file that the body fills; if the body raises, there is none."""

    def map_data(self, name: str, size_bytes: int) -> Any:
        """A data file's bytes, mapped. Raises CorruptState if it is missing or has another length."""

    def forget_data(self, name: str) -> None:
        """Drops a damaged local copy; the file itself is unchanged."""


def location(place: object) -> str | None:
    """The path or URL as text; None if it is neither, or no file system can have it: without text, with a NUL or a lone surrogate."""
    path = os.fspath(place) if isinstance(place, os.PathLike) else place
    if not isinstance(path, str) or not path or "\0" in path:
        return None
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return None
    return path


def open_folder(root: str | os.PathLike[str]) -> StateFolder:
    """The folder at a path, or at a URL: file://, s3://, gs:// or az://. It need not exist. Raises StateError."""
    place = location(root)
    if place is None:
        raise StateError(f"invalid state location {shown(root)}", expected=LOCATION)
    if not _URL.match(place):
        return LocalFolder(Path(place))
    url = urlsplit(place)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        return LocalFolder(Path(unquote(url.path)))
    if url.scheme in _OBJECT_STORES:
        return ObjectFolder(place.rstrip("/"))
    raise StateError(f"unsupported state location {place}", expected=LOCATION)


@lru_cache(maxsize=64)
def folder_at(root: str) -> StateFolder:
    """A cached folder, so that a process connects to an object store once. Never lock it."""
    return open_folder(root)
