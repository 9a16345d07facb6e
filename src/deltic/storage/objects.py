"""A state folder in an object store. A put is all or nothing and durable there, and a conditional one makes a name once.

Credentials, region and endpoint come from the environment, as the store's own tools read them (AWS_…, GOOGLE_…, AZURE_…). There is no
lock: two writers are kept apart by generations alone. Data files are read from local copies, which `copies` bounds. Every put and
delete is a step of `disk.at`, as operations on files are.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import from_url

from deltic import disk
from deltic.errors import CorruptState, StateError
from deltic.storage.copies import Copies
from deltic.storage.names import DATA, checked
from deltic.storage.parsing import REMEDY

_RETRY: Final[Any] = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}
_CHUNK_BYTES: Final = 1 << 20
_ONE_PUT_BYTES: Final = 8 << 20
"""A larger file is uploaded in parts; what a killed writer had uploaded of one is the store's to expire."""


class ObjectFolder:
    """All that is below a URL such as s3://bucket/prefix; see StateFolder."""

    local: Final = False

    def __init__(self, url: str) -> None:
        self.root: Final = url
        self._copies = Copies(url)
        with _failing(url, "opened"):
            self._store = from_url(url, retry_config=_RETRY)

    def make(self) -> None:
        """There is nothing to make: a store has no folders."""

    def create(self, name: str, content: bytes) -> bool:
        with _failing(self.root, "written"):
            try:
                self._put(name, content, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def put(self, name: str, content: bytes) -> None:
        with _failing(self.root, "written"):
            self._put(name, content, use_multipart=False)

    def overwrite(self, name: str, content: bytes) -> None:
        self.put(name, content)

    def read(self, name: str) -> bytes | None:
        with _failing(self.root, "read"):
            try:
                return bytes(self._store.get(checked(name)).bytes())
            except FileNotFoundError:
                return None

    def names(self, prefix: str) -> list[str]:
        with _failing(self.root, "read"):
            return sorted(entry["path"].rsplit("/", 1)[1] for page in self._store.list(checked(prefix)) for entry in page)

    def sizes(self, prefix: str) -> dict[str, int]:
        with _failing(self.root, "read"):
            return {entry["path"].rsplit("/", 1)[1]: entry["size"] for page in self._store.list(checked(prefix)) for entry in page}

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with _failing(self.root, "written"):
                try:
                    disk.at("delete:before", f"{self.root}/{name}")
                    self._store.delete(checked(name))
                    disk.at("delete:after", f"{self.root}/{name}")
                except FileNotFoundError:
                    continue

    def check(self) -> None:
        """What else has the prefix is not asked."""

    def sweep(self, prefix: str) -> None:
        """Nothing is ever staged."""

    def lock(self) -> None:
        """There is no lock."""

    def unlock(self) -> None:
        """There is no lock."""

    def write_data(self, name: str, parts: Sequence[Any]) -> None:
        path = f"{DATA}/{name}"
        views = [memoryview(part).cast("B") for part in parts if memoryview(part).nbytes]
        with _failing(self.root, "written"):
            if sum(view.nbytes for view in views) <= _ONE_PUT_BYTES:
                self._put(path, b"".join(views), use_multipart=False)
            else:
                self._put(path, iter(views))
        self._copies.place(name, views)

    def map_data(self, name: str, size_bytes: int) -> mmap.mmap:
        if (found := self._copies.find(checked(name), size_bytes)) is not None:
            return found
        with _failing(self.root, "read"):
            try:
                got = self._store.get(f"{DATA}/{name}")
            except FileNotFoundError:
                raise CorruptState(f"{name}: the file is missing, though the manifest names it", remedy=REMEDY) from None
            self._copies.place(name, got.stream(min_chunk_size=_CHUNK_BYTES))
        return self._copies.open(name, size_bytes)

    def _put(self, name: str, content: bytes | Iterator[memoryview], **how: Any) -> None:
        disk.at("put:before", f"{self.root}/{name}")
        self._store.put(checked(name), content, **how)
        disk.at("put:after", f"{self.root}/{name}")

    def forget_data(self, name: str) -> None:
        self._copies.forget(name)


@contextmanager
def _failing(url: str, done: str) -> Iterator[None]:
    """Tells what the store refuses as a StateError."""
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise _error(url, done, error, "credentials that allow to list, read, write and delete there") from None
    except (BaseError, OSError, ValueError) as error:
        raise _error(url, done, error, "a bucket that is there and can be reached") from None


def _error(url: str, done: str, error: Exception, expected: str) -> StateError:
    found = str(error).partition("\n")[0]
    remedy = "look at the URL, the network, and what the environment says about endpoint and credentials"
    return StateError(f"the state at {url} cannot be {done}: {found}", expected=expected, remedy=remedy)
