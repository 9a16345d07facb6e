"""A data file with one batch that arrives part by part: nothing but a part is in memory, and the file is as if it had been written at once.

Every block has room for the most that it may hold. In the end those that hold less move up (a merge in which no rows cancel moves none),
and the directory is written before them. Past the last block the ids of strings that the rows name wait until the dictionary is written.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from deltic.disk import NewFile
from deltic.storage.dictionary import Dictionary, named
from deltic.storage.files import INDEXED_ROWS, FileRef, segment_entry
from deltic.storage.layout import HEADER_BYTES, Words, aligned, checksum, directory_json, header_of, read_header, stored_bytes, sums_of
from deltic.trace.batch import Batch
from deltic.trace.guard import PAGE_BYTES
from deltic.trace.page_sums import Sums
from deltic.trace.streamed_index import StreamedIndex

_MOST_CHECKSUM: Final = 2**32 - 1
_MOST_OFFSET: Final = 2**63


@dataclass(frozen=True, slots=True)
class FileShape:
    """What a file will hold. strings: the columns that hold ids of strings. most_text_bytes: of all strings together."""

    arrangement: str
    columns: int
    weights: int
    strings: tuple[int, ...]
    most_rows: int
    most_strings: int
    most_text_bytes: int


class StreamedFile:
    """index: of the rows to come. The caller appends the rows, then their strings, and then calls `end`."""

    def __init__(self, file: NewFile, shape: FileShape, index: StreamedIndex) -> None:
        self._file, self._shape, self._index = file, shape, index
        self._rows = self._count = self._text_bytes = 0
        words = [8 * shape.most_rows] * (shape.columns + shape.weights)
        rooms = [*words, 8 * index.words, 8 * shape.most_strings, 8 * (shape.most_strings + 1), shape.most_text_bytes]
        most = {"count": shape.most_strings, "bytes": shape.most_text_bytes, "offset": _MOST_OFFSET}
        self._directory_bytes = len(self._directory(shape.most_rows, index.words, most, [_MOST_CHECKSUM] * len(rooms)))
        offset, blocks = HEADER_BYTES + self._directory_bytes, []
        for room in rooms:
            blocks.append(_Block(file, offset))
            offset += stored_bytes(room)
        self._words, self._index_block, self._dictionary = blocks[: len(words)], blocks[len(words)], blocks[len(words) + 1 :]
        self._scratch = -(-offset // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        self._runs: list[int] = []
        """The lengths of the runs of ids there."""
        self._dictionary[1].append(np.zeros(1, np.int64))

    def append(self, batch: Batch) -> None:
        """The next rows."""
        for block, words in zip(self._words, (*batch.columns, *batch.weights), strict=True):
            block.append(words)
        if self._indexable:
            for words in self._index.add(batch.columns):
                self._index_block.append(words)
        self._rows += len(batch)
        if len(ids := np.sort(named(batch, self._shape.strings))):
            self._file.put(ids, self._scratch + 8 * sum(self._runs))
            self._runs.append(len(ids))

    def named(self) -> list[Words]:
        """The ids that the rows name, as ascending runs."""
        if not self._runs:
            return []
        ids = np.frombuffer(self._file.map(self._scratch, 8 * sum(self._runs)), np.int64)
        return np.split(ids, np.cumsum(self._runs[:-1]))

    def append_strings(self, part: Dictionary) -> None:
        """The next strings, in the order of their ids."""
        for block, words in zip(self._dictionary, (part.ids, part.offsets[1:] + self._text_bytes, part.text), strict=True):
            block.append(words)
        self._count += len(part)
        self._text_bytes += part.text.nbytes

    def end(self, name: str) -> FileRef:
        """Completes the file, whose name this is."""
        indexed = self._indexable and self._rows >= INDEXED_ROWS
        for words in self._index.end() if indexed else ():
            self._index_block.append(words)
        start = offset = HEADER_BYTES + self._directory_bytes
        batch, checksums = [*self._words, *([self._index_block] if indexed else [])], []
        dictionary_offset = 0
        for block in (*batch, *self._dictionary):
            if block is self._dictionary[0]:
                dictionary_offset = offset - start
            checksums.append(block.end())
            self._file.move(block.offset, offset, block.stored)
            offset += block.stored
        dictionary = {"count": self._count, "bytes": self._text_bytes, "offset": dictionary_offset}
        directory = self._directory(self._rows, self._index.words if indexed else 0, dictionary, checksums).ljust(self._directory_bytes)
        header = header_of(directory, offset)
        self._file.put(header + directory, 0)
        self._file.end(offset)
        return FileRef(name, offset, read_header(header, name)[0])

    @property
    def _indexable(self) -> bool:
        return bool(self._shape.columns) and self._shape.most_rows >= INDEXED_ROWS

    def _directory(self, rows: int, index: int, dictionary: dict[str, Any], checksums: Sequence[int]) -> bytes:
        """checksums: of the rows' blocks, then the three of the dictionary."""
        shape = self._shape
        segment = segment_entry(shape.arrangement, "batch", rows, (shape.columns, shape.weights), index, shape.strings, 0, checksums[:-3])
        return directory_json([segment], {**dictionary, "checksums": checksums[-3:]})


class _Block:
    """A block of a file that is appended to. offset: where it begins. stored: the bytes that it takes, once `end` is called."""

    __slots__ = ("_crc", "_file", "_partial_page", "_size", "_sums", "offset", "stored")

    def __init__(self, file: NewFile, offset: int) -> None:
        self._file, self.offset = file, offset
        self._size = self.stored = 0
        self._crc = 0
        """Of the bytes, as long as they are one page."""
        self._partial_page = bytearray()
        """The bytes after those of whole pages."""
        self._sums = list[Sums]()
        """The checksums of whole pages."""

    def append(self, words: Any) -> None:
        """The next bytes."""
        if not words.nbytes:
            return
        data = np.ascontiguousarray(words).data.cast("B")
        self._file.put(data, self.offset + self._size)
        self._size += len(data)
        if self._size <= PAGE_BYTES:
            self._crc = zlib.crc32(data, self._crc)
        first = min(-len(self._partial_page) % PAGE_BYTES, len(data))
        self._partial_page += data[:first]
        if len(self._partial_page) == PAGE_BYTES:
            self._sums.append(sums_of(self._partial_page))
            self._partial_page = bytearray()
        end = first + (len(data) - first) // PAGE_BYTES * PAGE_BYTES
        self._sums.append(sums_of(data[first:end]))
        self._partial_page += data[end:]

    def end(self) -> int:
        """Completes the block; returns its checksum."""
        if padding := aligned(self._size) - self._size:
            self.append(np.zeros(padding, np.uint8))
        self.stored = stored_bytes(self._size)
        if self._size <= PAGE_BYTES:
            return self._crc
        table = np.concatenate([*self._sums, sums_of(self._partial_page)])
        self._file.put(table.tobytes().ljust(aligned(table.nbytes), b"\0"), self.offset + self._size)
        return checksum(table)
