"""Dictionary: string ids and their bytes, as a data file stores them or tasks exchange them.

Always: ids strictly ascend without the NULL marker; `text[offsets[i]:offsets[i + 1]]` are the bytes of ids[i]. Nothing is mutated.
A mapped dictionary is verified as it is read: `find` verifies the pages around the requested ids, everything else verifies all pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import CorruptState
from deltic.trace.entries import FEW, ExportedStrings, large_binary
from deltic.trace.guard import PAGE_BYTES, PAGE_WORDS, Pages
from deltic.trace.paging import pages_of
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable

Words = npt.NDArray[np.int64]
NULL_ID = np.iinfo(np.int64).min


class TextGuard:
    """The pages of a mapped dictionary: its ids, offsets and text. Verification also checks their order.

    arrays: these three. broken: creates the error for words that no valid dictionary has.
    """

    __slots__ = ("_arrays", "_broken", "_id_pages", "_lock", "_offset_pages", "_text_pages", "done")

    def __init__(
        self,
        arrays: tuple[Words, Words, npt.NDArray[np.uint8]],
        ids: Pages,
        offsets: Pages,
        text: Pages,
        *,
        broken: Callable[[str], CorruptState],
    ) -> None:
        self._arrays, self._broken = arrays, broken
        self._id_pages, self._offset_pages, self._text_pages = ids, offsets, text
        self._lock = Lock()
        self.done = False
        """Whether all pages are verified."""

    def entries(self, sought: Words, positions: Words) -> None:
        """Verifies that sought[i] belongs at ids[positions[i]].

        The search may have read unverified pages. But if the ids on both sides of a position are verified and the sought id lies between
        them, the position is correct.
        """
        ids = self._arrays[0]
        with self._lock:
            self._id_pages.need(pages_of(np.maximum(positions - 1, 0), np.minimum(positions + 1, len(ids)), PAGE_WORDS))
            after_left = (positions == 0) | (ids[positions - 1] < sought)
            before_right = (positions == len(ids)) | (sought <= ids[np.minimum(positions, len(ids) - 1)])
            if not (after_left & before_right).all():
                self._id_pages.need_all()  # another page is damaged

    def texts(self, positions: Words) -> None:
        """Verifies the strings of these entries before they are read."""
        _, offsets, text = self._arrays
        with self._lock:
            if self.done:
                return
            self._offset_pages.need(pages_of(positions, positions + 2, PAGE_WORDS))
            starts, ends = offsets[positions], offsets[positions + 1]
            if not ((starts >= 0) & (starts <= ends) & (ends <= len(text))).all():
                raise self._broken("the dictionary's offsets are not within its text")
            self._text_pages.need(pages_of(starts, ends, PAGE_BYTES))

    def bounds(self, start: int, end: int) -> None:
        """Verifies the offsets of entries start … end, and the id of the next one."""
        with self._lock:
            if not self.done:
                self._offset_pages.need(np.arange(start // PAGE_WORDS, end // PAGE_WORDS + 1))
                self._id_pages.need(np.arange(start // PAGE_WORDS, -(-min(end + 1, len(self._arrays[0])) // PAGE_WORDS)))

    def strings(self, start: int, end: int) -> None:
        """Verifies entries start … end, their order, and that of the one before them."""
        ids, offsets, text = self._arrays
        with self._lock:
            if self.done or start == end:
                return
            first = max(start - 1, 0)
            self._id_pages.need(np.arange(first // PAGE_WORDS, -(-end // PAGE_WORDS)))
            self._offset_pages.need(np.arange(start // PAGE_WORDS, end // PAGE_WORDS + 1))
            if not (ids[first + 1 : end] > ids[first : end - 1]).all() or ids[first] == NULL_ID:
                raise self._broken("the dictionary's ids are out of order")
            bounds = offsets[start : end + 1]
            if bounds[0] < 0 or bounds[-1] > len(text) or not (bounds[1:] >= bounds[:-1]).all():
                raise self._broken("the dictionary's offsets are not within its text")
            self._text_pages.need(np.arange(bounds[0] // PAGE_BYTES, -(-bounds[-1] // PAGE_BYTES)))

    def everything(self) -> None:
        """Verifies all of it."""
        ids, offsets, text = self._arrays
        with self._lock:
            if self.done:
                return
            for pages in (self._id_pages, self._offset_pages, self._text_pages):
                pages.need_all()
            if (len(ids) and ids[0] == NULL_ID) or not (ids[1:] > ids[:-1]).all():
                raise self._broken("the dictionary's ids are out of order")
            if offsets[0] != 0 or offsets[-1] != len(text) or not (offsets[1:] >= offsets[:-1]).all():
                raise self._broken("the dictionary's offsets are not within its text")
            self.done = True


class Dictionary:
    """n strings: ids int64[n], offsets int64[n + 1], text uint8[offsets[n]]. guard: set for a mapped dictionary."""

    __slots__ = ("guard", "ids", "offsets", "text")

    def __init__(self, ids: Words, offsets: Words, text: npt.NDArray[np.uint8], guard: TextGuard | None = None) -> None:
        self.ids, self.offsets, self.text, self.guard = ids, offsets, text, guard

    def __len__(self) -> int:
        return len(self.ids)

    @staticmethod
    @cache
    def empty() -> Dictionary:
        return Dictionary(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.uint8))

    @staticmethod
    def of(exported: ExportedStrings) -> Dictionary:
        """From the export of a StringTable."""
        return Dictionary(*exported)

    @staticmethod
    def naming(parts: Iterable[tuple[Rows, Sequence[int]]], strings: StringTable) -> Dictionary:
        """All strings whose ids are in these columns of rows. Raises UnknownString."""
        with_strings = [(rows, columns) for rows, columns in parts if columns and rows.length]
        if not with_strings:
            return Dictionary.empty()
        if sum([rows.length * len(columns) for rows, columns in with_strings]) <= FEW:
            ids = [rows.columns[column] for rows, columns in with_strings for column in columns]
        else:
            ids = [named(rows, columns) for rows, columns in with_strings]
        return Dictionary.of(strings.export(np.concatenate(ids)))

    def verified(self) -> Dictionary:
        """The dictionary itself; a mapped one is verified completely first."""
        if self.guard is not None:
            self.guard.everything()
        return self

    @property
    def values(self) -> pa.LargeBinaryArray:
        """The bytes, in the order of the ids; shares the memory. In a mapped dictionary only entries that `find` returned may be read."""
        return large_binary(self.offsets, self.text)

    def export(self) -> ExportedStrings:
        """All of it, as StringTable.absorb reads it."""
        self.verified()
        return ExportedStrings(self.ids, self.offsets, self.text)

    def slice(self, start: int, end: int) -> Dictionary:
        """Entries start … end."""
        if self.guard is not None:
            self.guard.strings(start, end)
        offsets = self.offsets[start : end + 1]
        return Dictionary(self.ids[start:end], offsets - offsets[0], self.text[offsets[0] : offsets[-1]])

    def reach(self, start: int, count: int, size_bytes: int) -> int:
        """The end of a slice from `start` of at most so many entries and bytes of text; of at least one entry, if there is one."""
        end = min(start + count, len(self.ids))
        if self.guard is not None:
            self.guard.bounds(start, end)
        offsets = self.offsets[start : end + 1]
        return start + max(int(np.searchsorted(offsets, offsets[0] + size_bytes, "right")) - 1, min(1, end - start))

    def find(self, ids: Words) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """(bool[n] whether the dictionary has id i, its position or 0). O(n log size)."""
        if not len(self.ids):
            return np.zeros(len(ids), bool), np.zeros(len(ids), np.intp)
        insertion = np.searchsorted(self.ids, ids)
        if self.guard is not None:
            self.guard.entries(ids, insertion)
        positions = np.minimum(insertion, len(self.ids) - 1)
        present = self.ids[positions] == ids
        if self.guard is not None:
            self.guard.texts(positions[present])
        return present, np.where(present, positions, 0)

    def restrict(self, ids: Words) -> Dictionary:
        """The entries whose ids are in `ids`."""
        present, positions = self.verified().find(ids)
        kept = np.unique(positions[present])
        return self if len(kept) == len(self.ids) else _sorted(self.ids[kept], self.values.take(pa.array(kept)))

    @staticmethod
    def union(parts: Sequence[Dictionary]) -> Dictionary:
        """All strings of the parts."""
        full = [part.verified() for part in parts if len(part)]
        if len(full) <= 1:
            return full[0] if full else Dictionary.empty()
        ids, first = np.unique(np.concatenate([part.ids for part in full]), return_index=True)
        values = pa.chunked_array([part.values for part in full]).take(pa.array(first))
        return _sorted(ids, pa.concat_arrays(values.chunks))


def _sorted(ids: Words, values: Any) -> Dictionary:
    """The dictionary of distinct ids in any order; copies their bytes."""
    if len(ids) > 1 and not (ids[1:] > ids[:-1]).all():
        order = np.argsort(ids)
        ids, values = ids[order], values.take(pa.array(order))
    if values.offset:
        values = pa.concat_arrays([values])
    _, offset_buffer, text_buffer = values.buffers()
    offsets = np.frombuffer(offset_buffer, "<i8", len(ids) + 1)
    text = np.frombuffer(text_buffer, np.uint8, int(offsets[-1])) if text_buffer is not None else np.empty(0, np.uint8)
    if offsets[0]:
        offsets, text = offsets - offsets[0], text[offsets[0] :]
    return Dictionary(np.ascontiguousarray(ids), offsets, text)


def named(rows: Rows, strings: Iterable[int]) -> Words:
    """The distinct string ids in these columns of the rows, without the NULL marker, unordered."""
    distinct = [pc.unique(pa.array(rows.columns[column])) for column in strings]
    if not distinct or not len(rows):
        return np.empty(0, np.int64)
    ids: Words = np.asarray(distinct[0]) if len(distinct) == 1 else np.asarray(pc.unique(pa.concat_arrays(distinct)))
    kept: Words = ids[ids != NULL_ID]
    return kept
