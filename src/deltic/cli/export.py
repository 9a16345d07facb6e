"""Exports: the content of views as files named after the views, and an index of these files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from deltic import disk
from deltic.connectors.files.writing import encoded
from deltic.errors import SinkError
from deltic.runtimes.stored_view import StoredView

INDEX: Final = "@views.json"
"""No view has a file of this name, since @ is written as %40 in those."""
LONGEST: Final = 200
"""Bytes of a file's name without its ending; file systems allow 255 in all."""
_HASH_DIGITS: Final = 16
_CUT_ESCAPE: Final = re.compile("%[0-9A-F]?$")


def file_name(view: str, format: str) -> str:
    """Different for different views, and valid on every file system.

    >>> file_name("spend", "csv"), file_name("a/b", "csv"), len(file_name("x" * 300, "parquet"))
    ('spend.csv', 'a%2Fb.csv', 208)
    """
    name = quote(view, safe=" ", errors="surrogatepass")
    if len(name) > LONGEST:
        digest = hashlib.sha256(view.encode(errors="surrogatepass")).hexdigest()[:_HASH_DIGITS]
        name = f"{_CUT_ESCAPE.sub('', name[: LONGEST - _HASH_DIGITS - 1])}@{digest}"
    return f"{name}.{format}"


def export_views(views: Sequence[StoredView], folder: Path, format: str) -> list[dict[str, Any]]:
    """Writes each view to a file of its own, and adds all to the folder's index. Raises SinkError; no file is overwritten."""
    paths = [folder / file_name(view.name, format) for view in views]
    for path in paths:
        if path.exists():
            raise _exists(path)
    written = []
    for view, path in zip(views, paths, strict=True):
        rows = view.to_arrow()
        with _writing(path):
            disk.make_folder(folder)
            if not disk.create_if_absent(path, encoded(rows, format, header=True)):
                raise _exists(path)
        written.append({"view": view.name, "rows": rows.num_rows, "file": str(path)})
    _add_to_index(folder, {path.name: {"view": view.name, "epoch": view.epoch} for view, path in zip(views, paths, strict=True)})
    return written


def _add_to_index(folder: Path, entries: dict[str, Any]) -> None:
    path = folder / INDEX
    with _writing(path):
        try:
            index = json.loads(disk.read(path) or b"{}")
        except (ValueError, RecursionError):
            index = None
        if not isinstance(index, dict):
            raise SinkError(
                f"{path} is not an index of exported views", expected="a JSON object", remedy="name another folder, or delete it"
            )
        disk.make_folder(folder)
        disk.replace(path, [json.dumps({**index, **entries}, indent=2).encode()])


def _exists(path: Path) -> SinkError:
    return SinkError(f"{path} already exists", expected="a name that is free", remedy="name another folder, or delete the file")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkError(
            f"{path} cannot be written: {error.strerror or error}",
            expected="a writable folder with free space",
            remedy="free space, or name another folder",
        ) from error
