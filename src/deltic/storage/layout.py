"""The bytes of a data file: a header of 64 bytes, a JSON directory, then blocks; each of them starts at a multiple of 64 bytes.

Header, little-endian: magic, format version, CRC-32 of the directory, bytes of the directory, bytes of the file, 28 zeros, CRC-32 of
all preceding bytes. A block is raw little-endian int64 words (or bytes, for strings) with zeros up to the next multiple of 64; its CRC-32
covers the zeros too, so every byte of the file is covered by a checksum. A block of more than a page (4 KiB) is followed by a table: the
low 32 bits of the XXH64 of each of its pages, as uint32, padded likewise; its own checksum is then the CRC-32 of the table, so a page can
be verified without reading the others. The directory locates the blocks:

    {"segments": [{"arrangement", "role", "rows", "columns", "weights", "index", "strings", "offset", "checksums"}…],
     "dictionary": {"count", "bytes", "offset", "checksums"}}

A segment is one sorted batch: its columns, its weights, and its radix index of `index` words (0: built when it is read), one after
another from `offset`. `strings` lists the columns that hold string ids. The dictionary has all strings that the segments name: ascending
ids, count + 1 offsets, and the bytes. So a file is self-contained.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from deltic.errors import CorruptState, StateError
from deltic.storage.parsing import REMEDY, Json, Malformed, count, counts, items, member, parsed, reading, string
from deltic.trace.guard import PAGE_BYTES
from deltic.trace.page_sums import Sums, page_sums

Words = npt.NDArray[np.int64]
Role = Literal["batch", "change"]

MAGIC: Final = b"DELTIC\r\n"
FORMAT_VERSION: Final = 4
OLDEST_VERSION: Final = 2
"""In files of version 2 no index is of the second column."""
LAST_WITH_CRC: Final = 3
"""In files of versions up to this one, tables have the CRC-32 of pages."""
ALIGNMENT: Final = 64
HEADER_BYTES: Final = 64
MOST_COLUMNS: Final = 1 << 16
"""The limit on the columns of a batch, and on its weights."""
_HEADER: Final = struct.Struct("<8sIIQQ28sI")
_ZEROS: Final = bytes(ALIGNMENT)
_AT_ONCE: Final = 256 * PAGE_BYTES
"""Bytes that are copied where a block does not lie at a multiple of 8."""
assert PAGE_BYTES % ALIGNMENT == 0


def aligned(size_bytes: int) -> int:
    """The size rounded up to a multiple of 64."""
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT


def stored_bytes(size_bytes: int) -> int:
    """The bytes that a block takes in a file, with padding and the table of its pages."""
    size = aligned(size_bytes)
    return size + aligned(4 * -(-size // PAGE_BYTES)) if size > PAGE_BYTES else size


@dataclass(frozen=True, slots=True)
class FileBlock:
    """The location of bytes in a file, and their checksum. name: for error messages."""

    name: str
    offset: int
    size_bytes: int
    checksum: int

    @property
    def paged(self) -> bool:
        """Whether a table of its pages' checksums follows it."""
        return aligned(self.size_bytes) > PAGE_BYTES


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """The location of one batch. role: "batch" is part of the arrangement, "change" is the epoch's change of a view."""

    arrangement: str
    role: Role
    rows: int
    strings: tuple[int, ...]
    columns: tuple[FileBlock, ...]
    weights: tuple[FileBlock, ...]
    index: FileBlock | None


@dataclass(frozen=True, slots=True)
class DictionaryPlace:
    """The location of the strings that a file's segments name."""

    count: int
    ids: FileBlock
    offsets: FileBlock
    text: FileBlock


@dataclass(frozen=True, slots=True)
class Directory:
    segments: tuple[SegmentPlace, ...]
    dictionary: DictionaryPlace


def checksum(data: Any) -> int:
    """CRC-32 of a buffer padded with zeros to a multiple of 64."""
    view = memoryview(data).cast("B") if len(data) else memoryview(b"")
    return zlib.crc32(_ZEROS[: aligned(len(view)) - len(view)], zlib.crc32(view))


def sealed(data: Any) -> tuple[list[Any], int]:
    """(the pieces to store, each to be padded: the block, and its page table if it exceeds a page; the block's checksum)."""
    view = memoryview(data).cast("B") if len(data) else memoryview(b"")
    if aligned(len(view)) <= PAGE_BYTES:
        return [data], checksum(data)
    table = sums_of(view)
    return [data, table], checksum(table)


def sums_of(data: Any) -> Sums:
    """The checksums of a buffer's pages, padded with zeros to a multiple of 64."""
    whole = len(data) // PAGE_BYTES * PAGE_BYTES
    parts = [data[start : min(start + _AT_ONCE, whole)] for start in range(0, whole, _AT_ONCE)]
    parts.append(bytes(data[whole:]).ljust(aligned(len(data)) - whole, b"\0"))
    return np.concatenate([page_sums(np.require(np.frombuffer(part, np.int64), requirements="A")) for part in parts])


def header_of(directory: bytes, file_bytes: int, version: int = FORMAT_VERSION) -> bytes:
    """The 64 bytes before `directory` in a file of `file_bytes`."""
    head = _HEADER.pack(MAGIC, version, zlib.crc32(directory), len(directory), file_bytes, bytes(28), 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(head))


def version_of(head: bytes) -> int:
    """The format version in a header that `read_header` takes."""
    return int(_HEADER.unpack(head)[1])


def read_header(head: bytes, name: str) -> tuple[int, int, int]:
    """(CRC-32 of the directory, its bytes, bytes of the file). Raises CorruptState, or StateError for a newer format."""
    if len(head) < HEADER_BYTES or head[: len(MAGIC)] != MAGIC:
        raise CorruptState(f"{name}: not a Deltic data file, or truncated in its header", remedy=REMEDY)
    _, version, directory_crc, directory_bytes, file_bytes, _, crc = _HEADER.unpack(head)
    if zlib.crc32(head[:-4]) != crc:
        raise CorruptState(f"{name}: the header is damaged", remedy=REMEDY)
    if not OLDEST_VERSION <= version <= FORMAT_VERSION:
        remedy = (
            "use a newer Deltic" if version > FORMAT_VERSION else "use the Deltic that wrote it, or build the state again from its sources"
        )
        raise StateError(f"{name}: format version {version}", expected=f"version {FORMAT_VERSION}", remedy=remedy)
    return directory_crc, directory_bytes, file_bytes


def directory_json(segments: Iterable[dict[str, Any]], dictionary: dict[str, Any]) -> bytes:
    """The directory, padded with spaces to a multiple of 64 bytes."""
    text = json.dumps({"segments": list(segments), "dictionary": dictionary}, separators=(",", ":")).encode()
    return text.ljust(aligned(len(text)))


def parse_directory(text: bytes, start: int, end: int, name: str) -> Directory:
    """The directory of a file whose blocks lie between `start` and `end`; its offsets are relative to `start`. Raises CorruptState."""
    with reading(f"{name}: the directory"):
        body = parsed(text)
        segments = tuple(_segment(entry, start, end) for entry in items(member(body, "segments"), "segments"))
        return Directory(segments, _dictionary(member(body, "dictionary"), start, end))


def _segment(entry: Json, start: int, end: int) -> SegmentPlace:
    arrangement, role = string(member(entry, "arrangement"), "arrangement"), _role(member(entry, "role"))
    columns, weights = (count(member(entry, kind), kind, MOST_COLUMNS) for kind in ("columns", "weights"))
    rows, index = (count(member(entry, kind), kind, end // 8) for kind in ("rows", "index"))
    if not weights:
        raise Malformed("a segment has no weights")
    names = [*(f"column {i}" for i in range(columns)), *(f"weight {i}" for i in range(weights)), *(["index"] if index else [])]
    sizes = [8 * rows] * (columns + weights) + [8 * index] * bool(index)
    blocks = _blocks([f"{role} of {arrangement}, {name}" for name in names], sizes, entry, start, end)
    strings = counts(member(entry, "strings"), "strings", columns - 1)
    values, sums = tuple(blocks[:columns]), tuple(blocks[columns : columns + weights])
    return SegmentPlace(arrangement, role, rows, strings, values, sums, blocks[-1] if index else None)


def _role(value: Json) -> Role:
    if value not in ("batch", "change"):
        raise Malformed(f"role: expected batch or change, not {value!r}")
    return "batch" if value == "batch" else "change"


def _dictionary(entry: Json, start: int, end: int) -> DictionaryPlace:
    strings = count(member(entry, "count"), "count", end // 8)
    names = ["dictionary ids", "dictionary offsets", "dictionary text"]
    sizes = [8 * strings, 8 * (strings + 1), count(member(entry, "bytes"), "bytes", end)]
    return DictionaryPlace(strings, *_blocks(names, sizes, entry, start, end))


def _blocks(names: Sequence[str], sizes: Sequence[int], entry: Json, start: int, end: int) -> list[FileBlock]:
    """The blocks of an entry, consecutive from its offset. Raises Malformed if one exceeds the file."""
    offset = start + count(member(entry, "offset"), "offset", end)
    checksums = counts(member(entry, "checksums"), "checksums", 2**32 - 1)
    if len(checksums) != len(names) or offset % ALIGNMENT:
        raise Malformed(f"{len(checksums)} checksums for {len(names)} blocks at {offset}")
    blocks = []
    for name, size, crc in zip(names, sizes, checksums, strict=True):
        blocks.append(FileBlock(name, offset, size, crc))
        offset += stored_bytes(size)
    if offset > end:
        raise Malformed(f"{names[-1]} ends at {offset}, past the end of the file at {end}")
    return blocks
