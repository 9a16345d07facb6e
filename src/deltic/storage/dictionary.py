"""Dictionary: string ids and their bytes as they stand in a data file, or travel between tasks.

Always: ids strictly ascend and have no NULL marker; `text[offsets[i]:offsets[i + 1]]` are the bytes of ids[i]. Nothing is mutated.
A mapped dictionary is verified as it is read: `find` needs the pages around the ids sought, everything else needs all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import CorruptState
from deltic.trace.guard import PAGE_BYTES, PAGE_WORDS, Pages, pages_of
from deltic.trace.rows import Rows

Words = npt.NDArray[np.int64]
NULL_ID = np.iinfo(np.int64).min


class TextGuard:
    """The pages of a mapped dictionary: of its ids, its offsets and its text. Whatever is verified is also checked to be in order.

    arrays: these three. broken: makes the error for words that no dictionary has.
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
        """Whether all is verified."""

    def entries(self, sought: Words, at: Words) -> None:
        """Before it is believed that sought[i] belongs at ids[at[i]].

        The search read pages that are not verified. But if the two ids beside each place are as they were written, and the one sought
        lies between them, then the place is right, however it was found.
        """
        ids = self._arrays[0]
        with self._lock:
            self._id_pages.need(pages_of(np.maximum(at - 1, 0), np.minimum(at + 1, len(ids)), PAGE_WORDS))
            after_left = (at == 0) | (ids[at - 1] < sought)
            before_right = (at == len(ids)) | (sought <= ids[np.minimum(at, len(ids) - 1)])
            if not (after_left & before_right).all():
                self._id_pages.need_all()  # one of the others is damaged

    def texts(self, at: Words) -> None:
        """Before the strings of these entries are read."""
        _, offsets, text = self._arrays
        with self._lock:
            if self.done:
                return
            self._offset_pages.need(pages_of(at, at + 2, PAGE_WORDS))
            starts, ends = offsets[at], offsets[at + 1]
            if not ((starts >= 0) & (starts <= ends) & (ends <= len(text))).all():
                raise self._broken("the dictionary's offsets are not within its text")
            self._text_pages.need(pages_of(starts, ends, PAGE_BYTES))
            self._check_text(_values(offsets, text).take(pa.array(at)))

    def everything(self) -> None:
        """Before all of it is read."""
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
            self._check_text(_values(offsets, text))
            self.done = True

    def _check_text(self, values: pa.LargeBinaryArray) -> None:
        try:
            values.cast(pa.large_string())
        except pa.ArrowInvalid:
            raise self._broken("the dictionary's text is not UTF-8") from None


def _values(offsets: Words, text: npt.NDArray[np.uint8]) -> pa.LargeBinaryArray:
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


class Dictionary:
    """n strings: ids int64[n], offsets int64[n + 1], text uint8[offsets[n]]. guard: of a mapped one."""

    __slots__ = ("guard", "ids", "offsets", "text")

    def __init__(self, ids: Words, offsets: Words, text: npt.NDArray[np.uint8], guard: TextGuard | None = None) -> None:
        self.ids, self.offsets, self.text, self.guard = ids, offsets, text, guard

    def __len__(self) -> int:
        return len(self.ids)

    @staticmethod
    def empty() -> Dictionary:
        return Dictionary(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.uint8))

    @staticmethod
    def of(exported: pa.RecordBatch) -> Dictionary:
        """From what a StringTable exports: columns id and bytes, in any order."""
        ids = np.asarray(exported.column(0))
        return _sorted(ids, exported.column(1).cast(pa.large_binary())) if len(ids) else Dictionary.empty()

    def verified(self) -> Dictionary:
        """The dictionary, all of it verified if it is a mapped one."""
        if self.guard is not None:
            self.guard.everything()
        return self

    @property
    def values(self) -> pa.LargeBinaryArray:
        """The bytes, in the order of the ids; shares the memory. Of a mapped one only what `find` found may be read."""
        return _values(self.offsets, self.text)

    def export(self) -> pa.RecordBatch:
        """As a StringTable absorbs it: id int64, bytes binary."""
        self.verified()
        return pa.record_batch([pa.array(self.ids), self.values.cast(pa.binary())], ["id", "bytes"])

    def find(self, ids: Words) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """(bool[n] whether id i is here, its position or 0). O(n log size)."""
        if not len(self.ids):
            return np.zeros(len(ids), bool), np.zeros(len(ids), np.intp)
        found = np.searchsorted(self.ids, ids)
        if self.guard is not None:
            self.guard.entries(ids, found)
        at = np.minimum(found, len(self.ids) - 1)
        here = self.ids[at] == ids
        if self.guard is not None:
            self.guard.texts(at[here])
        return here, np.where(here, at, 0)

    def restrict(self, ids: Words) -> Dictionary:
        """The strings of `ids` that are here."""
        here, at = self.verified().find(ids)
        at = np.unique(at[here])
        return self if len(at) == len(self.ids) else _sorted(self.ids[at], self.values.take(pa.array(at)))

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
    """Takes ids in any order without duplicates, and copies their bytes together."""
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
    """The distinct string ids in these columns of the rows, without the NULL marker; in no order."""
    found = [pc.unique(pa.array(rows.columns[column])) for column in strings]
    if not found or not len(rows):
        return np.empty(0, np.int64)
    ids: Words = np.asarray(found[0]) if len(found) == 1 else np.asarray(pc.unique(pa.concat_arrays(found)))
    kept: Words = ids[ids != NULL_ID]
    return kept
