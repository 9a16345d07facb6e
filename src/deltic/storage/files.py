"""Data files: written once, synced before their name is published, mapped and verified when read.

A file belongs to one shard and one level of the circuit in one epoch. Its name contains the writer's generation, the epoch, the shard, the
level and 64 random bits, since Spark may run a task twice. A file is part of the state only if a manifest names it.
"""

from __future__ import annotations

import mmap
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from deltic.errors import CorruptState
from deltic.storage.dictionary import Dictionary, TextGuard, named
from deltic.storage.folder import folder_at
from deltic.storage.layout import (
    HEADER_BYTES,
    LAST_WITH_CRC,
    Directory,
    FileBlock,
    Role,
    SegmentPlace,
    Words,
    aligned,
    checksum,
    directory_json,
    header_of,
    parse_directory,
    read_header,
    sealed,
    stored_bytes,
    version_of,
)
from deltic.storage.local import LocalFolder
from deltic.storage.parsing import REMEDY
from deltic.trace.batch import Batch
from deltic.trace.guard import PAGE_BYTES, PAGE_WORDS, Fetch, Guard, Pages, Verify
from deltic.trace.page_sums import PageSums
from deltic.trace.paging import paging, prefetch
from deltic.trace.soundness import RowOrder, index_is_right, index_is_safe

INDEXED_ROWS: Final = 4096
"""The index of a batch of at least so many rows is stored; a smaller one is built in microseconds when the batch is read."""
GUARDED_ROWS: Final = 1 << 14
"""Batches and dictionaries of at least so many rows or strings are verified page by page as they are read, smaller ones at once."""
_NAME: Final = re.compile(r"([0-9a-f]{8})-(\d{12})-(\d{5})-(\d{3})-([0-9a-f]{16})\.deltic")


@dataclass(frozen=True, slots=True)
class FileRef:
    """A data file as a manifest names it. checksum: CRC-32 of its directory, which contains those of its blocks."""

    name: str
    size_bytes: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Origin:
    """The task that wrote a file, encoded in its name."""

    generation: int
    epoch: int
    shard: int
    level: int

    def new_name(self) -> str:
        """A name unique to this attempt of the task."""
        return f"{self.generation:08x}-{self.epoch:012d}-{self.shard:05d}-{self.level:03d}-{secrets.token_hex(8)}.deltic"


def origin_of(name: str) -> Origin | None:
    """The origin encoded in a data file's name; None for any other name."""
    match = _NAME.fullmatch(name)
    return None if match is None else Origin(int(match[1], 16), *(int(match[i]) for i in (2, 3, 4)))


@dataclass(frozen=True, slots=True)
class Content:
    """One batch to be written. strings: its columns that hold string ids."""

    arrangement: str
    batch: Batch
    strings: tuple[int, ...] = ()
    role: Role = "batch"


def write_file(root: str, origin: Origin, contents: Sequence[Content], dictionary: Dictionary, *, synced: bool = True) -> FileRef:
    """Writes one file to the state folder at a path or URL; once this returns, the file survives a power failure. O(bytes).

    synced: False leaves that to `LocalFolder.sync_data`. Raises StateError.
    """
    blocks: list[Any] = []
    offset = 0
    segments = []
    for content in contents:
        words = _words(content.batch)
        stored, checksums = _sealed(words)
        segments.append(_segment_entry(content, words, offset, checksums))
        blocks += stored
        offset += sum(stored_bytes(word.nbytes) for word in words)
    parts: list[Any] = [dictionary.ids, dictionary.offsets, dictionary.text]
    stored, checksums = _sealed(parts)
    blocks += stored
    size = offset + sum(stored_bytes(part.nbytes) for part in parts)
    entry = {"count": len(dictionary), "bytes": dictionary.text.nbytes, "offset": offset, "checksums": checksums}
    directory = directory_json(segments, entry)
    header = header_of(directory, HEADER_BYTES + len(directory) + size)
    name = origin.new_name()
    folder = folder_at(root)
    write = folder.write_unsynced if not synced and isinstance(folder, LocalFolder) else folder.write_data
    write(name, _padded([header, directory, *blocks]))
    return FileRef(name, HEADER_BYTES + len(directory) + size, read_header(header, name)[0])


def _words(batch: Batch) -> list[Words]:
    index = [batch.index] if batch.columns and len(batch) >= INDEXED_ROWS else []
    return [np.ascontiguousarray(words, "<i8") for words in (*batch.columns, *batch.weights, *index)]


def _sealed(parts: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """(the pieces to store of these blocks, the blocks' checksums)."""
    blocks = [sealed(part) for part in parts]
    return [piece for pieces, _ in blocks for piece in pieces], [crc for _, crc in blocks]


def segment_entry(
    arrangement: str,
    role: Role,
    rows: int,
    widths: tuple[int, int],
    index: int,
    strings: Sequence[int],
    offset: int,
    checksums: Sequence[int],
) -> dict[str, Any]:
    """A segment in the directory. widths: columns and weights. index: the words of the index."""
    return {
        "arrangement": arrangement,
        "role": role,
        "rows": rows,
        "columns": widths[0],
        "weights": widths[1],
        "index": index,
        "strings": list(strings),
        "offset": offset,
        "checksums": list(checksums),
    }


def _segment_entry(content: Content, words: Sequence[Words], offset: int, checksums: Sequence[int]) -> dict[str, Any]:
    batch = content.batch
    widths = len(batch.columns), len(batch.weights)
    index = len(words[-1]) if len(words) > sum(widths) else 0
    return segment_entry(content.arrangement, content.role, len(batch), widths, index, content.strings, offset, checksums)


def _padded(parts: Iterable[Any]) -> list[Any]:
    """The parts, with zeros between them up to multiples of 64."""
    sized = [(part, len(part) if isinstance(part, bytes) else part.nbytes) for part in parts]
    return [piece for part, size in sized for piece in (part, bytes(aligned(size) - size)) if len(piece)]


class DataFile:
    """One mapped file. Opening it checks length, header and directory; each page is verified when it is first read.

    The arrays of its batches are views of the map and keep it alive; deleting the file meanwhile does no harm.
    """

    __slots__ = ("_batches", "_by_crc", "_dictionary", "_folder", "_map", "_segments", "directory", "name", "verified_bytes")

    def __init__(self, root: str, ref: FileRef) -> None:
        self.name = ref.name
        self.verified_bytes = 0
        """Bytes of its blocks that have been verified."""
        self._folder = folder_at(root)
        self._map = self._folder.map_data(ref.name, ref.size_bytes)
        self.directory = self._checked_directory(ref)
        self._segments = {(segment.arrangement, segment.role): segment for segment in self.directory.segments}
        self._batches: dict[tuple[str, Role], Batch] = {}
        self._dictionary: Dictionary | None = None

    def _checked_directory(self, ref: FileRef) -> Directory:
        head = self._map[:HEADER_BYTES]
        try:
            crc, size, _ = read_header(head, ref.name)
            text = self._map[HEADER_BYTES : HEADER_BYTES + size]
            version = version_of(head)
            self._by_crc = version <= LAST_WITH_CRC
            if crc != ref.checksum or header_of(text, ref.size_bytes, version) != head:
                raise CorruptState(f"{ref.name}: the directory is damaged", remedy=REMEDY)
        except CorruptState:
            self._folder.forget_data(ref.name)
            raise
        return parse_directory(text, HEADER_BYTES + size, ref.size_bytes, ref.name)

    def place(self, arrangement: str, role: Role = "batch") -> SegmentPlace:
        """The location of a batch. Raises CorruptState if the file has none, though a manifest names it."""
        if (place := self._segments.get((arrangement, role))) is None:
            raise CorruptState(f"{self.name} has no {role} of {arrangement}", remedy=REMEDY)
        return place

    def batch(self, arrangement: str, role: Role = "batch") -> Batch:
        """A stored batch. Zero-copy; a large one is verified as spines and merges read it, a small one at once."""
        if (arrangement, role) not in self._batches:
            self._batches[arrangement, role] = self._opened(self.place(arrangement, role))
        return self._batches[arrangement, role]

    def release(self, arrangement: str, start: int, end: int) -> None:
        """Takes rows of a batch out of this process's memory; they are read from the file again, unverified, when they are needed."""
        place = self.place(arrangement)
        for block in (*place.columns, *place.weights) if hasattr(self._map, "madvise") else ():
            first = -(-(block.offset + 8 * start) // mmap.PAGESIZE) * mmap.PAGESIZE
            last = (block.offset + 8 * end) // mmap.PAGESIZE * mmap.PAGESIZE
            if last > first:
                self._map.madvise(mmap.MADV_DONTNEED, first, last - first)

    def change(self, arrangement: str) -> Batch:
        """The epoch's change of a view, verified; stored separately only where its batch was merged with older ones."""
        return self.batch(arrangement, "change" if (arrangement, "change") in self._segments else "batch").verified()

    def dictionary(self) -> Dictionary:
        """All strings that the file's batches name; a large dictionary is verified as it is read."""
        if self._dictionary is None:
            place = self.directory.dictionary
            blocks = (place.ids, place.offsets, place.text)
            arrays = self._array(place.ids), self._array(place.offsets), self._array(place.text, np.uint8)
            guard = TextGuard(arrays, *(self._pages(block) for block in blocks), broken=self._unsound)
            if place.count < GUARDED_ROWS:
                guard.everything()
            self._dictionary = Dictionary(*arrays, guard if place.count >= GUARDED_ROWS else None)
        return self._dictionary

    def remember(self, contents: Iterable[Content], dictionary: Dictionary) -> None:
        """Keeps small batches that this process has just written, so they need not be read back and verified."""
        for content in contents:
            if len(content.batch) < GUARDED_ROWS:
                self._batches[content.arrangement, content.role] = content.batch
        if len(dictionary) < GUARDED_ROWS:
            self._dictionary = dictionary

    def verify(self) -> None:
        """Verifies every block except those kept by `remember`. O(bytes)."""
        for segment in self.directory.segments:
            self.verify_batch(segment)
        self.dictionary().verified()
        for segment in self.directory.segments:
            self.verify_strings(segment)

    def verify_batch(self, place: SegmentPlace) -> None:
        """Verifies all of a batch, including the positions in its index."""
        batch = self.batch(place.arrangement, place.role).verified()
        if place.index is not None and not index_is_right(batch):
            raise self._unsound(f"{place.index.name} does not match the rows")

    def verify_strings(self, place: SegmentPlace) -> None:
        """Checks that the dictionary has the strings of a batch. Both must have been verified."""
        ids = named(self.batch(place.arrangement, place.role), place.strings)
        if len(ids) and not self.dictionary().find(ids)[0].all():
            raise self._unsound(f"{place.role} of {place.arrangement} has strings that the dictionary lacks")

    def _opened(self, place: SegmentPlace) -> Batch:
        words = (*place.columns, *place.weights)
        columns, weights = [self._array(block) for block in place.columns], [self._array(block) for block in place.weights]
        index = None if place.index is None else self._array(place.index)
        batch = Batch.trusted(columns, weights, index)
        order, verify_words = RowOrder(batch), self._verifier(*words)

        def verify_rows(pages: list[int]) -> None:
            verify_words(pages)
            if not order.check(pages):
                raise self._unsound(f"rows of {place.role} of {place.arrangement} are out of order, or without weight")

        verify_index = self._index_verifier(place.index, index, place.rows)
        if index is not None and place.rows >= GUARDED_ROWS:
            assert place.index is not None
            batch.guard = Guard(columns, index, place.rows, verify_index, verify_rows, self._fetcher(place.index), self._fetcher(*words))
            return batch
        Pages(-(-place.rows // PAGE_WORDS), verify_rows).need_all()
        if index is not None:
            Pages(-(-len(index) // PAGE_WORDS), verify_index).need_all()
        return batch

    def _index_verifier(self, block: FileBlock | None, index: Words | None, rows: int) -> Verify:
        verify_words = self._verifier(*([] if block is None else [block]))

        def verify(pages: list[int]) -> None:
            verify_words(pages)
            if block is not None and index is not None and not index_is_safe(index, rows, pages):
                raise self._unsound(f"{block.name} points outside the batch")

        return verify

    def _array(self, block: FileBlock, dtype: Any = "<i8") -> Any:
        return np.frombuffer(self._map, dtype, block.size_bytes // np.dtype(dtype).itemsize, block.offset)

    def _pages(self, block: FileBlock) -> Pages:
        return Pages(-(-aligned(block.size_bytes) // PAGE_BYTES), self._verifier(block))

    def _fetcher(self, *blocks: FileBlock) -> Fetch:
        """A function that asks for words of these blocks to be read from the disk."""

        def fetch(starts: Words, ends: Words) -> None:
            for block in blocks:
                prefetch(self._map, block.offset + 8 * starts, block.offset + 8 * ends, alone=True)

        return fetch

    def _verifier(self, *blocks: FileBlock) -> Verify:
        """A function that verifies pages by number in all of these blocks; its first call verifies their tables of page checksums."""
        sums: list[tuple[FileBlock, PageSums]] = []

        def verify(pages: list[int]) -> None:
            if not sums:
                sums.extend((block, self._sums(block)) for block in blocks)
            numbers = np.array(pages, np.int64)
            if paging.active:
                starts = PAGE_BYTES * numbers
                for block in blocks:
                    prefetch(self._map, block.offset + starts, block.offset + starts + PAGE_BYTES)
            for block, table in sums:
                self._verify(block, table, numbers)

        return verify

    def _sums(self, block: FileBlock) -> PageSums:
        """The checksums of a block's pages."""
        size = aligned(block.size_bytes)
        words = np.frombuffer(self._map, np.int64, size // 8, block.offset)
        if not block.paged:
            return PageSums(words, [block.checksum], by_crc=True)
        table = memoryview(self._map)[block.offset + size : block.offset + stored_bytes(block.size_bytes)]
        if checksum(table) != block.checksum:
            raise self._damaged(block, block.offset + size, len(table))
        return PageSums(words, np.frombuffer(table, "<u4", -(-size // PAGE_BYTES)), by_crc=self._by_crc)

    def _verify(self, block: FileBlock, sums: PageSums, pages: Words) -> None:
        sizes = np.minimum(aligned(block.size_bytes) - PAGE_BYTES * pages, PAGE_BYTES)
        if (page := sums.first_damaged(pages)) is not None:
            start = page * PAGE_BYTES
            raise self._damaged(block, block.offset + start, min(aligned(block.size_bytes) - start, PAGE_BYTES))
        self.verified_bytes += int(sizes.sum())

    def _unsound(self, what: str) -> CorruptState:
        return CorruptState(f"{self.name}: {what}, though the checksum is correct", remedy=REMEDY)

    def _damaged(self, block: FileBlock, offset: int, size: int) -> CorruptState:
        self._folder.forget_data(self.name)
        return CorruptState(f"{self.name}: {block.name} is damaged (bytes {offset} to {offset + size})", remedy=REMEDY)
