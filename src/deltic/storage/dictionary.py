"""Dictionary: string ids and their bytes as they stand in a data file, or travel between tasks.

Always: ids strictly ascend and have no NULL marker; `text[offsets[i]:offsets[i + 1]]` are the bytes of ids[i]. Nothing is mutated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic.trace.rows import Rows

Words = npt.NDArray[np.int64]
NULL_ID = np.iinfo(np.int64).min


class Dictionary:
    """n strings: ids int64[n], offsets int64[n + 1], text uint8[offsets[n]]."""

    __slots__ = ("ids", "offsets", "text")

    def __init__(self, ids: Words, offsets: Words, text: npt.NDArray[np.uint8]) -> None:
        self.ids, self.offsets, self.text = ids, offsets, text

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

    @property
    def values(self) -> pa.LargeBinaryArray:
        """The bytes, in the order of the ids; shares the memory."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.text)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self.ids), buffers)

    def export(self) -> pa.RecordBatch:
        """As a StringTable absorbs it: id int64, bytes binary."""
        return pa.record_batch([pa.array(self.ids), self.values.cast(pa.binary())], ["id", "bytes"])

    def find(self, ids: Words) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """(bool[n] whether id i is here, its position or 0). O(n log size)."""
        if not len(self.ids):
            return np.zeros(len(ids), bool), np.zeros(len(ids), np.intp)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        here = self.ids[at] == ids
        return here, np.where(here, at, 0)

    def restrict(self, ids: Words) -> Dictionary:
        """The strings of `ids` that are here."""
        here, at = self.find(ids)
        at = np.unique(at[here])
        return self if len(at) == len(self.ids) else _sorted(self.ids[at], self.values.take(pa.array(at)))

    @staticmethod
    def union(parts: Sequence[Dictionary]) -> Dictionary:
        """All strings of the parts."""
        full = [part for part in parts if len(part)]
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
