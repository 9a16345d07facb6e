"""File sinks: a folder with one file per epoch's change, or with one file of the view's latest content.

Invariant: a folder belongs to one sink of one state, named by its marker; foreign files are never touched. File names depend only on the
epoch, and files appear completely and durably, so a repeated delivery changes nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from deltic import disk
from deltic.connectors.files.folder import local_path
from deltic.connectors.files.writing import encoded
from deltic.connectors.sink import Owner
from deltic.errors import SinkError

MARKER: Final = "_deltic.json"
CLAIM: Final = "claim"
"""In a marker, the id of the claim: no two folders have the same one, unless one is a copy."""
EPOCH: Final = "_epoch"
_CHANGES: Final = re.compile(r"changes-([0-9]{12,})\.")
_Result = TypeVar("_Result")


class _FileSink:
    """A folder owned by one sink. path: a local path or a file:// URL; SinkError for another scheme."""

    def __init__(self, path: str, format: str, owner: Owner, *, header: bool = False, sep: str = ",") -> None:
        self.folder = local_path(path, SinkError)
        self._format, self._header, self._sep = format, header, sep
        self._marker = {**asdict(owner), "format": format}
        self._name = f"sink {owner.sink}"

    @property
    def location(self) -> str:
        return str(self.folder)

    def check(self) -> None:
        check_claim(self.folder, self._marker)

    def claim(self) -> None:
        """Raises SinkError if the folder cannot be created, belongs to another sink, or contains foreign files."""
        claim(self.folder, self._marker)

    def claim_id(self) -> str | None:
        """That of the folder's marker; None if an earlier version wrote it."""
        content = self._written(lambda: disk.read(self.folder / MARKER))
        marker = None if content is None else _parsed(content)
        return None if marker is None else marker.get(CLAIM)

    def _encoded(self, rows: pa.Table) -> list[pa.Buffer]:
        assert self._format != "csv" or not any(pa.types.is_nested(field.type) for field in rows.schema), "refused at definition"
        return list(encoded(rows, self._format, header=self._header, sep=self._sep))

    def _written(self, act: Callable[[], _Result]) -> _Result:
        return written(act, self.folder, self._name)


class ChangesSink(_FileSink):
    """Each epoch's change as `changes-<epoch, 12 digits>.<format>`: the view's columns, `_weight` and `_epoch` (BIGINT)."""

    def epoch(self) -> int | None:
        if not (self.folder / MARKER).exists():
            return None
        return max((int(match[1]) for name in self._written(lambda: os.listdir(self.folder)) if (match := _CHANGES.match(name))), default=0)

    def deliver(self, epoch: int, rows: pa.Table) -> None:
        """Durable when it returns; without rows there is no file. Raises SinkError, also if the file exists with other rows."""
        if not rows.num_rows:
            return
        if EPOCH in rows.column_names:
            raise SinkError(f"{self._name}: its view has a column {EPOCH}", expected="another name: the sink adds this column")
        marked = rows.append_column(EPOCH, pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows))
        path = self.folder / f"changes-{epoch:012}.{self._format}"
        parts = self._encoded(marked)
        if not self._written(lambda: disk.create_if_absent(path, parts)):
            content = self._written(lambda: disk.read(path))
            if content is None or not self._same(content, marked, parts):
                raise SinkError(
                    f"{self._name}: {path} exists and does not contain the change of epoch {epoch}",
                    expected="what was delivered before, since a file is never altered",
                    remedy="if the state was set back, give the sink another folder, or empty this one",
                )

    def _same(self, content: bytes, rows: pa.Table, parts: list[pa.Buffer]) -> bool:
        """Whether the file contains these rows, in any order."""
        if self._format != "parquet":
            return _lines(content) == _lines(b"".join(parts))
        try:
            stored = pq.read_table(pa.BufferReader(content))
        except (pa.ArrowException, OSError):
            return False
        return _lines(b"".join(encoded(stored, "json"))) == _lines(b"".join(encoded(rows, "json")))


class SnapshotSink(_FileSink):
    """The view's content as `snapshot.<format>`, replaced atomically."""

    def epoch(self) -> int | None:
        return 0 if (self.folder / MARKER).exists() else None

    def deliver(self, epoch: int, rows: pa.Table) -> None:
        """Durable when it returns. Raises SinkError."""
        parts = self._encoded(rows)
        self._written(lambda: disk.replace(self.folder / f"snapshot.{self._format}", parts))


def claim(folder: Path, marker: Mapping[str, str]) -> None:
    """Claims the folder for the marker's sink, or verifies its claim. Removes a dead writer's unfinished files. Raises SinkError."""
    name = f"sink {marker['sink']}"
    content = json.dumps({**marker, CLAIM: token_hex(8)}, sort_keys=True).encode()
    written(lambda: disk.make_folder(folder), folder, name)
    if not check_claim(folder, marker) and not written(lambda: disk.create_if_absent(folder / MARKER, [content]), folder, name):
        check_claim(folder, marker)
    written(lambda: _sweep(folder), folder, name)


def check_claim(folder: Path, marker: Mapping[str, str]) -> bool:
    """Whether the folder has the marker; False if it can be claimed. Writes nothing. Raises SinkError if it contains foreign files."""
    name = f"sink {marker['sink']}"
    content = written(lambda: disk.read(folder / MARKER), folder, name)
    if content is not None:
        _compare(content, marker, folder, name)
        return True
    others = written(lambda: sorted(os.listdir(folder)) if folder.exists() else [], folder, name)
    other = next((entry for entry in others if not disk.is_staged(entry)), None)
    if other is not None:
        raise SinkError(
            f"{name}: the folder {folder} already holds something else: {other}",
            expected="an empty folder, or one that this sink has written before",
            remedy="name another folder, or empty this one",
        )
    return False


def _sweep(folder: Path) -> None:
    for entry in os.listdir(folder):
        if disk.is_staged(entry):
            disk.unlink(folder / entry)


def written(act: Callable[[], _Result], folder: Path, name: str) -> _Result:
    """act(); an OSError becomes a SinkError."""
    try:
        return act()
    except OSError as error:
        raise SinkError(
            f"{name}: the folder {folder} cannot be written: {error.strerror or error}",
            expected="a folder that can be written, with room",
            remedy="make room, or give the right to write; then run again: nothing is lost or doubled",
        ) from error


def _compare(content: bytes, marker: Mapping[str, str], folder: Path, name: str) -> None:
    """Raises SinkError unless the content is this marker."""
    stored = _parsed(content)
    if stored is None:
        raise SinkError(
            f"{name}: {folder / MARKER} is damaged", expected="the marker of a sink", remedy="empty the folder, or name another"
        )
    for key in ("state", "sink", "mode", "view", "format"):
        if stored.get(key) != marker.get(key):
            raise SinkError(
                f"{name}: the folder {folder} belongs to sink {stored.get('sink')}, with another {key}: {stored.get(key)}",
                expected=f"{key} {marker.get(key)}",
                remedy="name another folder, or empty this one: the sink then gets all that its view holds",
            )


def _parsed(content: bytes) -> dict[str, Any] | None:
    """A marker; None if it is damaged."""
    try:
        marker: Any = json.loads(content)
    except ValueError:
        return None
    return marker if isinstance(marker, dict) else None


def _lines(content: bytes) -> list[bytes]:
    return sorted(content.split(b"\n"))
