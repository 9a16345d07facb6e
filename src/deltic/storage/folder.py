"""A state folder on a file system: durable create-if-absent, listing, deleting, and the lock that keeps a second writer out.

Objects go through obstore, so that a folder on an object store differs in `create` alone, where its own conditional put is already
durable. On a file system an object is written and synced under another name first, and then linked to its own: whoever sees it
sees all of it, also after a power failure.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore

from deltic.errors import StateError, StateInUse
from deltic.storage.files import DATA, sync_folder

_LOCK: Final = "lock"
_STAGED: Final = ".staged"


class Folder:
    """The folder `root`, which is made if it is not there."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).expanduser().absolute()
        try:
            (self.root / DATA).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(
                f"the state folder {self.root} cannot be made: {error.strerror}", remedy="name a folder that can be written"
            ) from None
        self._store = LocalStore(self.root)
        self._lock: int | None = None

    def create(self, name: str, content: bytes) -> bool:
        """Makes an object that survives a power failure; False, and nothing changed, if there is one of this name."""
        staged = f"{name}.{secrets.token_hex(8)}{_STAGED}"
        self._store.put(staged, content)
        try:
            with open(self.root / staged, "rb") as file:
                os.fsync(file.fileno())
            self._store.rename(staged, name, overwrite=False)
        except AlreadyExistsError:
            self._store.delete(staged)
            return False
        sync_folder((self.root / name).parent)
        return True

    def read(self, name: str) -> bytes | None:
        """The object's bytes; None if there is none."""
        try:
            return bytes(self._store.get(name).bytes())
        except FileNotFoundError:
            return None

    def names(self, prefix: str) -> list[str]:
        """The names of the objects in a subfolder, ascending, without the subfolder's; staged ones are left out."""
        found = (entry["path"] for page in self._store.list(prefix) for entry in page)
        return sorted(path.rsplit("/", 1)[1] for path in found if not path.endswith(_STAGED))

    def delete(self, names: Iterable[str]) -> None:
        """Deletes objects; those that are gone already are passed over."""
        for name in names:
            try:
                self._store.delete(name)
            except FileNotFoundError:
                continue

    def sweep(self, prefix: str) -> None:
        """Deletes what writers that died had staged in a subfolder; only the holder of the lock may."""
        self.delete([entry["path"] for page in self._store.list(prefix) for entry in page if entry["path"].endswith(_STAGED)])

    def lock(self) -> None:
        """Takes the folder for this process until `unlock`, or until the process ends. Raises StateInUse."""
        descriptor = os.open(self.root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 4096).decode(errors="replace").strip()
            os.close(descriptor)
            raise StateInUse(
                f"the state folder {self.root} is in use by {_holder(holder)}",
                expected="one writer at a time",
                remedy="end that process, or use another folder",
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        self._lock = descriptor

    def unlock(self) -> None:
        """Gives the folder back; harmless if it is not held."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _holder(text: str) -> str:
    try:
        found = json.loads(text)
        return f"process {int(found['pid'])} on {found['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
