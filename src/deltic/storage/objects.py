"""A state folder in an object store, where a put is atomic and durable, and a conditional put creates a name at most once.

Credentials, region and endpoint come from the environment variables that the store's own tools read (AWS_…, GOOGLE_…, AZURE_…). There is
no lock: only generations keep two writers apart. Data files are read from local copies, whose size `copies` bounds. Every put and delete
is reported to `disk.at`, like operations on files.
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
from deltic.errors import StateError
from deltic.storage.copies import Copies
from deltic.storage.names import DATA, checked
from deltic.storage.parsing import missing_file

_RETRY: Final[Any] = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}
_CHUNK_BYTES: Final = 1 << 20
_ONE_PUT_BYTES: Final = 8 << 20
"""A larger file is uploaded in parts; the store must expire incomplete uploads of killed writers."""


class ObjectFolder:
    """The objects under a URL such as s3://bucket/prefix; see StateFolder."""

    local: Final = False

    def __init__(self, url: str) -> None:
        self.root: Final = url
        self._copies = Copies(url)
        with _failing(url, "opened"):
            self._store = from_url(url, retry_config=_RETRY)

    def make(self) -> None:
        """No effect: a store has no folders."""

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
        """No effect: other objects under the prefix are not looked for."""

    def sweep(self, prefix: str, *, older_s: float = 0.0) -> None:
        """No effect: nothing is staged."""

    def lock(self) -> None:
        """No effect: a store has no lock."""

    def unlock(self) -> None:
        """No effect: a store has no lock."""

    def write_data(self, name: str, parts: Sequence[Any]) -> None:
        path = f"{DATA}/{name}"
        views = [memoryview(part).cast("B") for part in parts if memoryview(part).nbytes]
        with _failing(self.root, "written"):
            if sum(view.nbytes for view in views) <= _ONE_PUT_BYTES:
                self._put(path, b"".join(views), use_multipart=False)
            else:
                self._put(path, iter(views))
        self._copies.place(name, views)

    @contextmanager
    def fill_data(self, name: str) -> Iterator[disk.NewFile]:
        with self._copies.filling(name) as file:
            yield file
            with _failing(self.root, "written"):
                if file.size <= _ONE_PUT_BYTES:
                    self._put(f"{DATA}/{name}", b"".join(file.pieces(_CHUNK_BYTES)), use_multipart=False)
                else:
                    self._put(f"{DATA}/{name}", file.pieces(_CHUNK_BYTES))

    def map_data(self, name: str, size_bytes: int) -> mmap.mmap:
        if (copy := self._copies.find(checked(name), size_bytes)) is not None:
            return copy
        with _failing(self.root, "read"):
            try:
                response = self._store.get(f"{DATA}/{name}")
            except FileNotFoundError:
                raise missing_file(name) from None
            self._copies.place(name, response.stream(min_chunk_size=_CHUNK_BYTES))
        return self._copies.open(name, size_bytes)

    def _put(self, name: str, content: bytes | Iterator[memoryview] | Iterator[bytes], **options: Any) -> None:
        disk.at("put:before", f"{self.root}/{name}")
        self._store.put(checked(name), content, **options)
        disk.at("put:after", f"{self.root}/{name}")

    def forget_data(self, name: str) -> None:
        self._copies.forget(name)


@contextmanager
def _failing(url: str, done: str) -> Iterator[None]:
    """Turns an error of the store into a StateError."""
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise _error(url, done, error, "credentials with permission to list, read, write and delete") from None
    except (BaseError, OSError, ValueError) as error:
        raise _error(url, done, error, "an existing, reachable bucket") from None


def _error(url: str, done: str, error: Exception, expected: str) -> StateError:
    reason = str(error).partition("\n")[0]
    remedy = "check the URL, the network, and the endpoint and credentials in the environment"
    return StateError(f"the state at {url} cannot be {done}: {reason}", expected=expected, remedy=remedy)
