"""The file of a commit log: records in a preallocated file, each durable after one sync of its data.

A header of 512 bytes, then records. A record begins at a multiple of 512, so that writing one never touches a sector of another: 64 bytes
(magic, CRC-32 of all that follows, bytes of its content, epoch, base, synced, CRC-32 of the record before, a random token), then its
content. `base` is the epoch of the manifest that the log continues: the records of a round have the epochs base + 1, base + 2, …, from the
beginning of the file. After the round is folded into manifests, the next one overwrites it; what is left of the old one has another
base. `synced` is how much of the file was durable when the record was written. A writer has two files: while the round in one is folded,
the next round is in the other.

A log ends at the first record that is torn, or does not follow the one before. If a later record says that this one was durable, it
is not torn but damaged.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deltic import disk
from deltic.errors import CorruptState, StateError
from deltic.storage.parsing import REMEDY

MAGIC: Final = b"DLTCLOG\n"
VERSION: Final = 1
SECTOR: Final = 512
FIRST_BYTES: Final = 1 << 18
"""The length of a new file; it doubles when it is full."""
MOST_BYTES: Final = 1 << 26
"""The length at which a log is folded."""
_RECORD_MAGIC: Final = b"DLTR"
_HEADER: Final = struct.Struct("<8sII")
_RECORD: Final = struct.Struct("<4sIQQQQIIQ8x")
_CRC_FROM: Final = 8
_NAME: Final = re.compile(r"([0-9a-f]{8})(?:-2)?\.log")


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record as read. offset, end: its place in the file."""

    epoch: int
    base: int
    content: memoryview
    offset: int
    end: int
    synced: int
    previous: int
    crc: int


Mark = tuple[int, int]
"""A place between two records: the offset of the next one, and the CRC-32 of the one before."""
BEGIN: Final[Mark] = (SECTOR, 0)


class LogWriter:
    """Writes a new log. Not thread-safe, except that one thread may call `sync` while another writes. Every method may raise OSError.

    path: this writer's own name; what a call that failed has left there, and could not remove, is replaced.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._name = path, str(path)
        disk.unlink(path)
        head = _HEADER.pack(MAGIC, VERSION, 0)
        head = head[:-4] + struct.pack("<I", zlib.crc32(head[:-4]))
        disk.create(path, [head, bytes(FIRST_BYTES - len(head))])
        self._descriptor = disk.open_regular(path, os.O_WRONLY)
        self._size = FIRST_BYTES
        self._durable = SECTOR
        self._used = SECTOR
        """Where the furthest record ends that was ever begun."""
        self.end: Mark = BEGIN
        """Where the next record begins."""

    def write(self, base: int, epochs: Iterable[tuple[int, bytes]]) -> list[Mark]:
        """Writes a record for each epoch with its content, all at once, which `sync` makes durable; returns where each begins.

        The log must have room.
        """
        (start, previous), marks, parts = self.end, list[Mark](), list[bytes]()
        end = start
        for epoch, content in epochs:
            marks.append((end, previous))
            size, random = len(content), int.from_bytes(os.urandom(8))
            body = _RECORD.pack(_RECORD_MAGIC, 0, size, epoch, base, self._durable, previous, 0, random)[_CRC_FROM:]
            previous = zlib.crc32(content, zlib.crc32(body))
            unpadded, end = end + _RECORD.size + size, _aligned(end + _RECORD.size + size)
            parts += (_RECORD_MAGIC, previous.to_bytes(4, "little"), body, content, bytes(end - unpadded))
        if end > self._size:
            self._grow(end)
        self._used = max(self._used, end)
        disk.append(self._descriptor, self._name, parts, start)
        self.end = end, previous
        return marks

    def sync(self) -> None:
        """Makes all records durable that were written before the call."""
        end = self.end[0]
        disk.sync_data(self._descriptor, self._name)
        self._durable = end

    def cut(self, mark: Mark) -> None:
        """Removes what was written after a mark: it cannot reappear, nor be taken for durable records of a later round."""
        for offset in range(mark[0], self._used, FIRST_BYTES):
            disk.append(self._descriptor, self._name, [bytes(min(FIRST_BYTES, self._used - offset))], offset)
        disk.sync_data(self._descriptor, self._name)
        self.end, self._durable, self._used = mark, mark[0], mark[0]

    def restart(self) -> None:
        """The next record begins a new round, and overwrites the old ones, which must have been folded."""
        self.end, self._durable = BEGIN, SECTOR

    def close(self, *, delete: bool) -> None:
        """delete: the log has been folded. It may reappear after a power failure, and says nothing then that manifests do not say."""
        descriptor, self._descriptor = self._descriptor, -1  # first: it is closed once, also if this is interrupted and called again
        if descriptor >= 0:
            os.close(descriptor)
        if delete:
            disk.unlink(self._path)

    def _grow(self, end: int) -> None:
        """Writes zeros, so that later syncs need not record an allocation."""
        size = self._size
        while size < end:
            size *= 2
        disk.append(self._descriptor, self._name, [bytes(size - self._size)], self._size)
        disk.sync_data(self._descriptor, self._name)
        self._size = size


def has_room(end: Mark, sizes: Iterable[int]) -> bool:
    """Whether records with so many bytes of content each fit after a mark, before the log must be folded."""
    return end[0] + sum([_aligned(_RECORD.size + size) for size in sizes]) <= MOST_BYTES


def log_name(generation: int, number: int) -> str:
    """The name of one of a writer's two files.

    >>> log_name(31, 0), log_name(31, 1), owner_of(log_name(31, 1)), owner_of("lost+found")
    ('0000001f.log', '0000001f-2.log', 31, None)
    """
    return f"{generation:08x}{'-2' if number else ''}.log"


def owner_of(name: str) -> int | None:
    """The generation of the writer of a log; None if the name is not that of a log."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1], 16)


def records(content: bytes, name: str, folded: int) -> list[LogRecord]:
    """The durable records of a log, and those after them that were written whole.

    folded: the epoch of the newest manifest. Raises CorruptState if a record after that epoch was durable and is damaged; StateError for a
    newer format.
    """
    if not _checked_header(content, name):
        return []
    view = memoryview(content)
    result: list[LogRecord] = []
    offset = SECTOR
    while (record := _record_at(view, offset)) is not None and _follows(record, result[-1] if result else None):
        result.append(record)
        offset = record.end
    for record in _later(content, view, offset):
        if record.epoch > folded and record.synced > offset:
            raise CorruptState(f"{name}: the record at byte {offset} is damaged", remedy=REMEDY)
    return result


def base_of(content: bytes) -> int:
    """The epoch that a log continues; -1 without a whole record."""
    record = _record_at(memoryview(content), SECTOR)
    return -1 if record is None else record.base


def _checked_header(content: bytes, name: str) -> bool:
    """Whether the log has a header; one whose writer died while it was created has none, and no records."""
    head = content[: _HEADER.size]
    if len(head) < _HEADER.size or not any(head):
        return False
    magic, version, crc = _HEADER.unpack(head)
    if magic != MAGIC or zlib.crc32(head[:-4]) != crc:
        if len(content) < FIRST_BYTES:  # torn when it was created
            return False
        raise CorruptState(f"{name}: not a commit log, or damaged in its header", remedy=REMEDY)
    if version != VERSION:
        raise StateError(f"{name}: format version {version}", expected=f"version {VERSION}", remedy="use a newer Deltic")
    if len(content) < FIRST_BYTES and any(content[_HEADER.size :]):  # as an incomplete copy: it had its length before its first record
        raise CorruptState(f"{name}: the file has {len(content)} bytes", expected=f"at least {FIRST_BYTES} bytes", remedy=REMEDY)
    return True


def _follows(record: LogRecord, before: LogRecord | None) -> bool:
    if before is None:
        return record.epoch == record.base + 1 and record.previous == 0
    return (record.epoch, record.base, record.previous) == (before.epoch + 1, before.base, before.crc)


def _record_at(view: memoryview, offset: int) -> LogRecord | None:
    """The record that begins there; None if none does, or it is torn."""
    if offset + _RECORD.size > len(view):
        return None
    magic, crc, size, epoch, base, synced, previous, _, _ = _RECORD.unpack_from(view, offset)
    start = offset + _RECORD.size
    if magic != _RECORD_MAGIC or size > len(view) - start or zlib.crc32(view[offset + _CRC_FROM : start + size]) != crc:
        return None
    return LogRecord(epoch, base, view[start : start + size], offset, _aligned(start + size), synced, previous, crc)


def _later(content: bytes, view: memoryview, offset: int) -> Iterator[LogRecord]:
    """The whole records after `offset`, wherever they begin."""
    while (offset := content.find(_RECORD_MAGIC, offset + 1)) >= 0:
        if offset % SECTOR == 0 and (record := _record_at(view, offset)) is not None:
            yield record


def _aligned(offset: int) -> int:
    return -(-offset // SECTOR) * SECTOR
