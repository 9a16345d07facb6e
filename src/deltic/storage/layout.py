"""The bytes of a data file: a header of 64 bytes, a JSON directory, then blocks; each of them starts at a multiple of 64 bytes.

Header, little-endian: magic, format version, CRC-32 of the directory, bytes of the directory, bytes of the file, 28 zeros, CRC-32 of
all before it. A block is raw little-endian int64 words (or bytes, for strings) with zeros up to the next multiple of 64; its CRC-32
covers the zeros too, so that no byte of the file is outside a checksum. A block of more than a page (4 KiB) is followed by a table: the
CRC-32 of each of its pages, as uint32, padded likewise; its own checksum is then that of the table, so that a page can be verified
without reading the others. The directory says where the blocks are:

    {"segments": [{"arrangement", "role", "rows", "columns", "weights", "index", "strings", "offset", "checksums"}…],
     "dictionary": {"count", "bytes", "offset", "checksums"}}

A segment is one sorted batch: its columns, its weights, and its radix index of `index` words (0: to be built when it is read), one
after another from `offset`. `strings` are the columns that hold string ids. The dictionary has all the strings that the segments
name: ascending ids, offsets (count + 1 of them) and the bytes. So a file needs no other file to be understood.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from deltic.errors import CorruptState, StateError
from deltic.trace.guard import PAGE_BYTES

Words = npt.NDArray[np.int64]
Role = Literal["batch", "change"]

MAGIC: Final = b"DELTIC\r\n"
FORMAT_VERSION: Final = 2
ALIGNMENT: Final = 64
HEADER_BYTES: Final = 64
_HEADER: Final = struct.Struct("<8sIIQQ28sI")
_ZEROS: Final = bytes(ALIGNMENT)


def aligned(size_bytes: int) -> int:
    """The least multiple of 64 that is not below."""
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT


def stored_bytes(size_bytes: int) -> int:
    """What a block takes in a file: padding and the table of its pages included."""
    size = aligned(size_bytes)
    return size + aligned(4 * -(-size // PAGE_BYTES)) if size > PAGE_BYTES else size


@dataclass(frozen=True, slots=True)
class Block:
    """Where bytes stand in a file, and their checksum. name: for messages."""

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
    """One stored batch. role: "batch" is part of the arrangement, "change" is what the file's epoch did to a view."""

    arrangement: str
    role: Role
    rows: int
    strings: tuple[int, ...]
    columns: tuple[Block, ...]
    weights: tuple[Block, ...]
    index: Block | None


@dataclass(frozen=True, slots=True)
class DictionaryPlace:
    """The strings that a file's segments name."""

    count: int
    ids: Block
    offsets: Block
    text: Block


@dataclass(frozen=True, slots=True)
class Directory:
    segments: tuple[SegmentPlace, ...]
    dictionary: DictionaryPlace


def checksum(data: Any) -> int:
    """CRC-32 of a buffer and of the zeros that pad it to a multiple of 64."""
    view = memoryview(data).cast("B") if len(data) else memoryview(b"")
    return zlib.crc32(_ZEROS[: aligned(len(view)) - len(view)], zlib.crc32(view))


def sealed(data: Any) -> tuple[list[Any], int]:
    """(what is stored of a block: its bytes and, of more than a page, the table of its pages, each to be padded; its checksum)."""
    view = memoryview(data).cast("B") if len(data) else memoryview(b"")
    if aligned(len(view)) <= PAGE_BYTES:
        return [data], checksum(data)
    table = np.array([checksum(view[start : start + PAGE_BYTES]) for start in range(0, len(view), PAGE_BYTES)], "<u4")
    return [data, table], checksum(table)


def header_of(directory: bytes, file_bytes: int) -> bytes:
    """The 64 bytes before `directory` in a file of `file_bytes`."""
    head = _HEADER.pack(MAGIC, FORMAT_VERSION, zlib.crc32(directory), len(directory), file_bytes, bytes(28), 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(head))


def read_header(head: bytes, name: str) -> tuple[int, int, int]:
    """(CRC-32 of the directory, its bytes, bytes of the file). Raises CorruptState, or StateError for a newer format."""
    if len(head) < HEADER_BYTES or head[: len(MAGIC)] != MAGIC:
        raise CorruptState(f"{name}: this is no data file of Deltic (or one cut off in its header)", remedy=REMEDY)
    _, version, directory_crc, directory_bytes, file_bytes, _, crc = _HEADER.unpack(head)
    if zlib.crc32(head[:-4]) != crc:
        raise CorruptState(f"{name}: the header is damaged", remedy=REMEDY)
    if version != FORMAT_VERSION:
        remedy = (
            "use a newer Deltic" if version > FORMAT_VERSION else "use the Deltic that wrote it, or build the state again from its sources"
        )
        raise StateError(f"{name}: format version {version}", expected=f"version {FORMAT_VERSION}", remedy=remedy)
    return directory_crc, directory_bytes, file_bytes


REMEDY: Final = "restore the state folder from a copy, or build it again from the sources"


def directory_json(segments: Iterable[dict[str, Any]], dictionary: dict[str, Any]) -> bytes:
    """The directory, padded with spaces to a multiple of 64 bytes."""
    text = json.dumps({"segments": list(segments), "dictionary": dictionary}, separators=(",", ":")).encode()
    return text.ljust(aligned(len(text)))


def parse_directory(text: bytes, start: int) -> Directory:
    """The directory of a file whose blocks begin at `start`; offsets in it count from there."""
    found = json.loads(text)
    return Directory(tuple(_segment(s, start) for s in found["segments"]), _dictionary(found["dictionary"], start))


def _segment(entry: dict[str, Any], start: int) -> SegmentPlace:
    columns, weights, rows = entry["columns"], entry["weights"], entry["rows"]
    names = [*(f"column {i}" for i in range(columns)), *(f"weight {i}" for i in range(weights)), *(["index"] if entry["index"] else [])]
    sizes = [8 * rows] * (columns + weights) + [8 * entry["index"]]
    where = f"{entry['role']} of {entry['arrangement']}"
    blocks = list(_blocks([f"{where}, {name}" for name in names], sizes, entry["offset"] + start, entry["checksums"]))
    index = blocks[columns + weights] if entry["index"] else None
    strings = tuple(entry["strings"])
    values, sums = tuple(blocks[:columns]), tuple(blocks[columns : columns + weights])
    return SegmentPlace(entry["arrangement"], entry["role"], rows, strings, values, sums, index)


def _dictionary(entry: dict[str, Any], start: int) -> DictionaryPlace:
    count = entry["count"]
    names = ["dictionary ids", "dictionary offsets", "dictionary text"]
    sizes = [8 * count, 8 * (count + 1), entry["bytes"]]
    return DictionaryPlace(count, *_blocks(names, sizes, entry["offset"] + start, entry["checksums"]))


def _blocks(names: Sequence[str], sizes: Sequence[int], offset: int, checksums: Sequence[int]) -> Iterator[Block]:
    for name, size, crc in zip(names, sizes, checksums, strict=False):
        yield Block(name, offset, size, crc)
        offset += stored_bytes(size)
