"""A local folder of source files: what is in it, and the certainty that a file stays what it was while it is read.

Always: a name that `Folder.open` takes is that of a file directly in the folder. Nothing is remembered between calls.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote, urlsplit

from deltic.errors import SourceError

_PASSED_OVER: Final = (".staged", ".tmp")
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A file as a listing found it: `name` within the folder, `size_bytes`, `mtime_ns` of its last change."""

    name: str
    size_bytes: int
    mtime_ns: int


class Folder:
    """The folder at `path`, a local path or a file:// URL. Raises SourceError for another scheme; it need not be there yet."""

    def __init__(self, path: str, table: str) -> None:
        self.path = local_path(path, SourceError)
        self._table = table

    def listing(self) -> list[Entry]:
        """The files, by name; names that start with '.' or '_' or end in .tmp or .staged, and subfolders, are passed over.

        Raises SourceError if the folder is not there or cannot be read.
        """
        try:
            with os.scandir(self.path) as found:
                entries = [entry for each in found if _is_source(each) and (entry := _entry(each)) is not None]
        except FileNotFoundError:
            raise self._error(f"there is no folder {self.path}", "a folder, which may be empty", "make it, or correct the path") from None
        except NotADirectoryError:
            raise self._error(f"{self.path} is not a folder", "a folder of files", "name the folder that the file is in") from None
        except OSError as error:
            raise self._error(f"the folder {self.path} cannot be read: {error.strerror}", None, None) from None
        return sorted(entries)

    @contextmanager
    def open(self, entry: Entry) -> Iterator[tuple[IO[bytes], Callable[[], None]]]:
        """The bytes of a file that is still as it was listed, and a check, to be called after what was read, that it still is.

        Raises SourceError if the file has vanished or changed, or cannot be read.
        """
        path = self.file(entry)
        try:
            with open(path, "rb", buffering=0) as file:
                self._compare(entry, os.fstat(file.fileno()))
                yield file, lambda: self._compare(entry, os.stat(path))
        except FileNotFoundError:
            raise self._error(
                f"the file {path} has vanished since it was listed", "files that stay until they are read", "put it back, or run again"
            ) from None
        except OSError as error:
            raise self._error(f"the file {path} cannot be read: {error.strerror or error}", None, None) from None

    def checksum(self, entry: Entry) -> int:
        """CRC-32 of the file's bytes. Raises as `open`."""
        with self.open(entry) as (file, check):
            crc = 0
            while block := file.read(_BLOCK):
                crc = zlib.crc32(block, crc)
            check()
        return crc

    def file(self, entry: Entry) -> Path:
        """Where the file is. Raises SourceError for a name that leads out of the folder."""
        if entry.name != os.path.basename(entry.name) or entry.name in ("", ".", ".."):
            raise self._error(f"{entry.name!r} is not the name of a file in {self.path}", "a name without a folder", None)
        return self.path / entry.name

    def _compare(self, entry: Entry, found: os.stat_result) -> None:
        if (found.st_size, found.st_mtime_ns) != (entry.size_bytes, entry.mtime_ns):
            resized = found.st_size != entry.size_bytes
            how = f"{entry.size_bytes:,} bytes then, {found.st_size:,} now" if resized else "it was written again"
            raise self._error(
                f"the file {self.path / entry.name} has changed since it was listed: {how}",
                "files that are complete when they appear, and stay as they are",
                "write a file under a name that starts with '.' and rename it when it is complete; give new rows in new files",
            )

    def _error(self, message: str, expected: str | None, remedy: str | None) -> SourceError:
        return SourceError(f"table {self._table}: {message}", expected=expected, remedy=remedy)


def local_path(path: str, error: Callable[..., Exception]) -> Path:
    """The local path that `path`, or a file:// URL, means. Raises `error(message, expected=…)` for any other scheme."""
    url = urlsplit(path)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        return Path(unquote(url.path)).absolute()
    if "://" in path:
        raise error(f"{path!r} is not a local folder", expected="a path, or file:// and a path")
    return Path(path).expanduser().absolute()


def _is_source(found: os.DirEntry[str]) -> bool:
    return not found.name.startswith((".", "_")) and not found.name.endswith(_PASSED_OVER)


def _entry(found: os.DirEntry[str]) -> Entry | None:
    """None if it is not a file, or no longer there."""
    try:
        if not found.is_file():
            return None
        state = found.stat()
    except FileNotFoundError:
        return None
    return Entry(found.name, state.st_size, state.st_mtime_ns)


def under(base: Path, path: str) -> str:
    """A path or URL as a script writes it: a relative path counts from `base`."""
    return path if "://" in path else str(base / Path(path).expanduser())
