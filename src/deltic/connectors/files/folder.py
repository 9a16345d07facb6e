"""A local folder of source files: lists it, and verifies that a file does not change while it is read.

`Folder.open` only opens files directly in the folder. Nothing is cached between calls.
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
    """A file of a listing: its name within the folder, its size, and the time of its last modification."""

    name: str
    size_bytes: int
    mtime_ns: int


class Folder:
    """The folder at `path`, a local path or a file:// URL; it need not exist yet. Raises SourceError for another scheme."""

    def __init__(self, path: str, table: str) -> None:
        self.path = local_path(path, SourceError)
        self._table = table

    def listing(self) -> list[Entry]:
        """The files, by name; skips names that start with '.' or '_' or end in .tmp or .staged, and subfolders.

        Raises SourceError if the folder does not exist or cannot be read.
        """
        try:
            with os.scandir(self.path) as directory:
                entries = [entry for each in directory if _is_source(each) and (entry := _entry(each)) is not None]
        except FileNotFoundError:
            is_pattern = any(mark in str(self.path) for mark in "*?[")
            remedy = "name the folder: patterns are not read as such" if is_pattern else "make it, or correct the path"
            raise self._error(f"there is no folder {self.path}", "a folder, which may be empty", remedy) from None
        except NotADirectoryError:
            raise self._error(f"{self.path} is not a folder", "a folder of files", "name the folder that the file is in") from None
        except OSError as error:
            raise self._error(f"the folder {self.path} cannot be read: {error.strerror}", None, None) from None
        return sorted(entries)

    @contextmanager
    def open(self, entry: Entry) -> Iterator[tuple[IO[bytes], Callable[[], None]]]:
        """A file that is unchanged since it was listed, and a check that it still is, to be called after each read.

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
        """The file's path. Raises SourceError for a name that leads out of the folder."""
        if entry.name != os.path.basename(entry.name) or entry.name in ("", ".", ".."):
            raise self._error(f"{entry.name!r} is not the name of a file in {self.path}", "a name without a folder", None)
        return self.path / entry.name

    def _compare(self, entry: Entry, status: os.stat_result) -> None:
        if (status.st_size, status.st_mtime_ns) != (entry.size_bytes, entry.mtime_ns):
            resized = status.st_size != entry.size_bytes
            how = f"{entry.size_bytes:,} bytes then, {status.st_size:,} now" if resized else "it was written again"
            raise self._error(
                f"the file {self.path / entry.name} has changed since it was listed: {how}",
                "files that are complete when they appear, and stay as they are",
                "write a file under a name that starts with '.' and rename it when it is complete; give new rows in new files",
            )

    def _error(self, message: str, expected: str | None, remedy: str | None) -> SourceError:
        return SourceError(f"table {self._table}: {message}", expected=expected, remedy=remedy)


def local_path(path: str, error: Callable[..., Exception]) -> Path:
    """The local path of a path or file:// URL. Raises `error(message, expected=…)` for any other scheme."""
    url = urlsplit(path)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        return Path(unquote(url.path)).absolute()
    if "://" in path:
        raise error(f"{path!r} is not a local folder", expected="a path, or file:// and a path")
    return Path(path).expanduser().absolute()


def _is_source(file: os.DirEntry[str]) -> bool:
    return not file.name.startswith((".", "_")) and not file.name.endswith(_PASSED_OVER)


def _entry(file: os.DirEntry[str]) -> Entry | None:
    """The entry; None if it is not a file or no longer exists."""
    try:
        if not file.is_file():
            return None
        state = file.stat()
    except FileNotFoundError:
        return None
    return Entry(file.name, state.st_size, state.st_mtime_ns)


def under(base: Path, path: str) -> str:
    """A script's path or URL, with relative paths resolved against `base`."""
    return path if "://" in path else str(base / Path(path).expanduser())
