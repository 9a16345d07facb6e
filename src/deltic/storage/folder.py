"""Where a state is kept: a folder on a file system, or a prefix in an object store. What differs between them ends here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from deltic.errors import StateError
from deltic.storage.local import LocalFolder
from deltic.storage.objects import ObjectFolder

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_OBJECT_STORES: Final = ("s3", "gs", "az")


class StateFolder(Protocol):
    """A state folder. Every method raises StateError if the disk or the store fails; then nothing has changed.

    root: a path or URL that `open_folder` takes. local: whether it is on a file system, so that a lock keeps a second writer out.
    """

    @property
    def root(self) -> str: ...
    @property
    def local(self) -> bool: ...

    def check(self) -> None:
        """Raises StateError if it is a local folder of something else."""

    def make(self) -> None:
        """Makes the folder if it is not there. Raises as `check`."""

    def create(self, name: str, content: bytes) -> bool:
        """Makes an object that survives a power failure; False, and nothing changed, if there is one of this name."""

    def put(self, name: str, content: bytes) -> None:
        """Makes an object or replaces it; others see the old one or the new one."""

    def overwrite(self, name: str, content: bytes) -> None:
        """Gives an object other bytes of the same length; a power failure may undo that."""

    def read(self, name: str) -> bytes | None:
        """The object's bytes; None if there is none."""

    def names(self, prefix: str) -> list[str]:
        """The names of the objects in a subfolder, ascending, without the subfolder's; staged ones are left out."""

    def sizes(self, prefix: str) -> dict[str, int]:
        """The bytes of each object in a subfolder, by its name there."""

    def delete(self, names: Iterable[str]) -> None:
        """Deletes objects; those that are gone already are passed over."""

    def sweep(self, prefix: str) -> None:
        """Deletes what writers that died had staged in a subfolder; only the holder of the lock may."""

    def lock(self) -> None:
        """Takes the folder for this process until `unlock`, or until the process ends. Raises StateInUse. Nothing on an object store."""

    def unlock(self) -> None:
        """Gives the folder back; harmless if it is not held."""

    def write_data(self, name: str, parts: Sequence[Any]) -> None:
        """Writes a data file of these bytes-like parts, so that it survives a power failure. Its name must be new."""

    def map_data(self, name: str, size_bytes: int) -> Any:
        """A data file's bytes, mapped. Raises CorruptState if it is missing or has another length."""

    def forget_data(self, name: str) -> None:
        """Drops a local copy that turned out to be damaged; the file itself is left as it is."""


def open_folder(root: str | os.PathLike[str]) -> StateFolder:
    """The folder at a path, or at a URL: file://, s3://, gs:// or az://. It need not be there yet. Raises StateError."""
    place = os.fspath(root)
    if not _URL.match(place):
        return LocalFolder(Path(place))
    url = urlsplit(place)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        return LocalFolder(Path(unquote(url.path)))
    if url.scheme in _OBJECT_STORES:
        return ObjectFolder(place.rstrip("/"))
    raise StateError(f"no state can be kept at {place}", expected="a folder, or a URL with file://, s3://, gs:// or az://")


@lru_cache(maxsize=64)
def folder_at(root: str) -> StateFolder:
    """The same folder each time, so that a process connects to an object store once. Not to be locked."""
    return open_folder(root)
