"""Data files: written once, synced before their name is told, mapped and checked when read.

A file belongs to one shard and one level of the circuit in one epoch. Its name has the writer's generation, the epoch, the shard, the
level and 64 random bits, since Spark may run a task twice; only a manifest that names a file makes it real.
"""

from __future__ import annotations

import re
import secrets
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from deltic.errors import CorruptState
from deltic.storage.dictionary import Dictionary, TextGuard, named
from deltic.storage.folder import folder_at
from deltic.storage.layout import (
    HEADER_BYTES,
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
)
from deltic.storage.parsing import REMEDY
from deltic.trace.batch import Batch
from deltic.trace.guard import PAGE_BYTES, PAGE_WORDS, Guard, Pages, Verify
from deltic.trace.soundness import RowOrder, index_is_right, index_is_safe

INDEXED_ROWS: Final = 4096
"""From how many rows on a batch's index is stored; a smaller one is built in microseconds when the batch is read."""
GUARDED_ROWS: Final = 1 << 14
"""From how many rows, or strings, on only those pages are verified that are read."""
_NAME: Final = re.compile(r"([0-9a-f]{8})-(\d{12})-(\d{5})-(\d{3})-([0-9a-f]{16})\.deltic")


@dataclass(frozen=True, slots=True)
class FileRef:
    """A data file as a manifest names it. checksum: CRC-32 of its directory, which has those of its blocks."""

    name: str
    size_bytes: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Which task wrote a file, as its name says."""

    generation: int
    epoch: int
    shard: int
    level: int

    def new_name(self) -> str:
        """A name that no other attempt of the same task gets."""
        return f"{self.generation:08x}-{self.epoch:012d}-{self.shard:05d}-{self.level:03d}-{secrets.token_hex(8)}.deltic"


def origin_of(name: str) -> Origin | None:
    """What a name says; None for what is no data file's name."""
    found = _NAME.fullmatch(name)
    return None if found is None else Origin(int(found[1], 16), *(int(found[i]) for i in (2, 3, 4)))


@dataclass(frozen=True, slots=True)
class Content:
    """One batch to be written. strings: its columns that hold string ids."""

    arrangement: str
    batch: Batch
    strings: tuple[int, ...] = ()
    role: Role = "batch"


def write_file(root: str, origin: Origin, contents: Sequence[Content], dictionary: Dictionary) -> FileRef:
    """Writes one file to the state folder at a path or URL: what is returned survives a power failure. O(bytes).

    Raises StateError.
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
    folder_at(root).write_data(name, _padded([header, directory, *blocks]))
    return FileRef(name, HEADER_BYTES + len(directory) + size, read_header(header, name)[0])


def _words(batch: Batch) -> list[Words]:
    index = [batch.index] if batch.columns and len(batch) >= INDEXED_ROWS else []
    return [np.ascontiguousarray(words, "<i8") for words in (*batch.columns, *batch.weights, *index)]


def _sealed(parts: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """What is stored of blocks, and their checksums."""
    found = [sealed(part) for part in parts]
    return [piece for pieces, _ in found for piece in pieces], [crc for _, crc in found]


def _segment_entry(content: Content, words: Sequence[Words], offset: int, checksums: Sequence[int]) -> dict[str, Any]:
    batch = content.batch
    return {
        "arrangement": content.arrangement,
        "role": content.role,
        "rows": len(batch),
        "columns": len(batch.columns),
        "weights": len(batch.weights),
        "index": len(words[-1]) if len(words) > len(batch.columns) + len(batch.weights) else 0,
        "strings": list(content.strings),
        "offset": offset,
        "checksums": list(checksums),
    }


def _padded(parts: Iterable[Any]) -> list[Any]:
    """The parts, with zeros between them up to multiples of 64."""
    sized = [(part, len(part) if isinstance(part, bytes) else part.nbytes) for part in parts]
    return [piece for part, size in sized for piece in (part, bytes(aligned(size) - size)) if len(piece)]


class DataFile:
    """One file, mapped. Length, header and directory are checked when it is opened, a page when it is first read.

    The arrays of its batches are views of the map and keep it alive; deleting the file meanwhile does no harm.
    """

    __slots__ = ("_batches", "_dictionary", "_folder", "_map", "_segments", "directory", "name", "verified_bytes")

    def __init__(self, root: str, ref: FileRef) -> None:
        self.name = ref.name
        self.verified_bytes = 0
        """How much of its blocks has been verified."""
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
            if crc != ref.checksum or header_of(text, ref.size_bytes) != head:
                raise CorruptState(f"{ref.name}: the directory is damaged", remedy=REMEDY)
        except CorruptState:
            self._folder.forget_data(ref.name)
            raise
        return parse_directory(text, HEADER_BYTES + size, ref.size_bytes, ref.name)

    def place(self, arrangement: str, role: Role = "batch") -> SegmentPlace:
        """Where a batch stands. Raises CorruptState if the file has none, though a manifest says so."""
        if (found := self._segments.get((arrangement, role))) is None:
            raise CorruptState(f"{self.name}: there is no {role} of {arrangement} in it", remedy=REMEDY)
        return found

    def batch(self, arrangement: str, role: Role = "batch") -> Batch:
        """A stored batch. Zero-copy; a large one is verified as spines and merges read it, a small one now."""
        if (arrangement, role) not in self._batches:
            self._batches[arrangement, role] = self._opened(self.place(arrangement, role))
        return self._batches[arrangement, role]

    def change(self, arrangement: str) -> Batch:
        """What the file's epoch did to a view, verified: stored apart only where its batch has been merged with older ones."""
        return self.batch(arrangement, "change" if (arrangement, "change") in self._segments else "batch").verified()

    def dictionary(self) -> Dictionary:
        """All strings that the file's batches name; a large one is verified as it is read."""
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
        """Takes what this process has just written from its memory, unless it is large: so it need not be read back and verified."""
        for content in contents:
            if len(content.batch) < GUARDED_ROWS:
                self._batches[content.arrangement, content.role] = content.batch
        if len(dictionary) < GUARDED_ROWS:
            self._dictionary = dictionary

    def verify(self) -> None:
        """Checks every block that was not remembered. O(bytes)."""
        for segment in self.directory.segments:
            self.verify_batch(segment)
        self.dictionary().verified()
        for segment in self.directory.segments:
            self.verify_strings(segment)

    def verify_batch(self, place: SegmentPlace) -> None:
        """Checks all of a batch, also that each row is where the index says."""
        batch = self.batch(place.arrangement, place.role).verified()
        if place.index is not None and not index_is_right(batch):
            raise self._unsound(f"{place.index.name} does not go with the rows")

    def verify_strings(self, place: SegmentPlace) -> None:
        """Checks that the dictionary has the strings of a batch; both must be verified."""
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
            batch.guard = Guard(index, place.rows, verify_index, verify_rows)
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
                raise self._unsound(f"{block.name} names rows that are not there")

        return verify

    def _array(self, block: FileBlock, dtype: Any = "<i8") -> Any:
        return np.frombuffer(self._map, dtype, block.size_bytes // np.dtype(dtype).itemsize, block.offset)

    def _pages(self, block: FileBlock) -> Pages:
        return Pages(-(-aligned(block.size_bytes) // PAGE_BYTES), self._verifier(block))

    def _verifier(self, *blocks: FileBlock) -> Verify:
        """Verifies pages by number, in all of these blocks; the tables of their pages' checksums at the first call."""
        tables: list[tuple[FileBlock, Any]] = []

        def verify(pages: list[int]) -> None:
            if not tables:
                tables.extend((block, self._table(block)) for block in blocks)
            for block, table in tables:
                self._verify(block, table, pages)

        return verify

    def _table(self, block: FileBlock) -> list[int]:
        """The checksums of a block's pages."""
        size = aligned(block.size_bytes)
        if not block.paged:
            return [block.checksum]
        table = memoryview(self._map)[block.offset + size : block.offset + stored_bytes(block.size_bytes)]
        if checksum(table) != block.checksum:
            raise self._damaged(block, block.offset + size, len(table))
        found: list[int] = np.frombuffer(table, "<u4", -(-size // PAGE_BYTES)).tolist()
        return found

    def _verify(self, block: FileBlock, table: Sequence[int], pages: Iterable[int]) -> None:
        data = memoryview(self._map)[block.offset : block.offset + aligned(block.size_bytes)]
        for number in pages:
            page = data[number * PAGE_BYTES : (number + 1) * PAGE_BYTES]
            if zlib.crc32(page) != table[number]:
                raise self._damaged(block, block.offset + number * PAGE_BYTES, len(page))
            self.verified_bytes += len(page)

    def _unsound(self, what: str) -> CorruptState:
        return CorruptState(f"{self.name}: {what}, though the checksum is right", remedy=REMEDY)

    def _damaged(self, block: FileBlock, offset: int, size: int) -> CorruptState:
        self._folder.forget_data(self.name)
        return CorruptState(f"{self.name}: {block.name} is damaged (bytes {offset} to {offset + size})", remedy=REMEDY)
