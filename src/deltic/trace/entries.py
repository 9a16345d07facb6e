"""The arrays of a string table: strings as entries, numbered in order of arrival, with their bytes concatenated in one arena.

Always: entries are only added, so a thread may read the arrays while another adds. Their layout is in kernels/text.py.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deltic.errors import DataError
from deltic.kernels import text
from deltic.kernels.room import fresh, zeros
from deltic.kernels.table import address, buffer_address

Words = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
MARKER: Final = np.int64(np.iinfo(np.int64).min)
INT32_MAX: Final = np.iinfo(np.int32).max
FEW: Final = 256
"""So many ids are sorted by Python: NumPy's calls would take longer."""


class Entries(NamedTuple):
    """Replaced together when they have to grow. used: counters that kernels keep, among them the number of entries."""

    slots: Words
    ids: Words
    starts: Words
    arena: Bytes
    used: Words

    @staticmethod
    def with_room(entries: int, size: int) -> Entries:
        """No entries, with room for some, which takes memory once it is used."""
        return Entries(
            zeros(2 * entries),
            zeros(entries),
            zeros(entries + 1),
            fresh((size + 7) >> 3).view(np.uint8)[:size],
            np.zeros(4, np.int64),
        )

    @property
    def located(self) -> tuple[int, int, int, int, int]:
        """The addresses of slots, ids, starts and arena, after the first the number of slots less one."""
        slots, ids, starts, arena, _ = self
        return address(slots), len(slots) - 1, address(ids), address(starts), buffer_address(pa.py_buffer(arena), arena)


class Located(NamedTuple):
    """Ids in a table. places: int64[n] their entries, -1 for NULL, -2 if absent (`missing` of them). offsets: of their bytes, joined."""

    entries: Entries
    places: Words
    offsets: Words
    missing: int

    def texts(self, kind: pa.DataType) -> pa.Array:
        """The bytes as an array of `kind` (string, binary or large_binary), NULL for NULL and absent ids."""
        wide = pa.types.is_large_binary(kind)
        if not wide:
            self.check_size()
        data, validity = self.joined()
        buffers = [pa.py_buffer(part) for part in (validity, self.offsets if wide else self.offsets.astype(np.int32), data)]
        return pa.Array.from_buffers(kind, len(self.places), buffers)

    def joined(self) -> tuple[Bytes, Bytes]:
        """(the bytes, joined; a bit for each id, 0 for NULL and absent ones)."""
        data, validity = np.empty(self.offsets[-1], np.uint8), np.zeros((len(self.places) + 7) >> 3, np.uint8)
        text.gather(self.places, self.entries.starts, self.entries.arena, self.offsets, data, validity)
        return data, validity

    def check_size(self) -> None:
        """Raises DataError for more bytes than a column has of which Arrow's offsets are int32."""
        size = int(self.offsets[-1])
        if size > INT32_MAX:
            raise DataError(f"{size} bytes of strings in one column", expected="at most 2 GiB", remedy="read it in parts")

    def halves(self) -> tuple[Located, Located]:
        """The first half of the ids, and the second."""
        half = len(self.places) // 2
        first, second = self.places[:half], self.places[half:]
        missing = int((first < -1).sum())
        return (
            Located(self.entries, first, self.offsets[: half + 1], missing),
            Located(self.entries, second, self.offsets[half:], self.missing - missing),
        )


class ExportedStrings(NamedTuple):
    """Strings by id, as dictionaries keep them and tables exchange them: ids int64[n], ascending, without NULL; offsets int64[n + 1]; text
    uint8[offsets[n]]."""

    ids: Words
    offsets: Words
    text: Bytes

    @property
    def values(self) -> pa.LargeBinaryArray:
        """The bytes, in the order of the ids; shares the memory."""
        return large_binary(self.offsets, self.text)


def large_binary(offsets: Words, text: Bytes) -> pa.LargeBinaryArray:
    """The texts between these offsets; shares the memory."""
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def distinct_ids(ids: Words) -> Words:
    """The ids in order, each once, without NULL. O(n log n).

    >>> distinct_ids(np.array([7, 3, MARKER, 7]))
    array([3, 7])
    """
    if len(ids) <= FEW:
        return np.array(sorted({*ids.tolist()} - {int(MARKER)}), np.int64)
    distinct: Words = np.unique(ids)
    return distinct[int(distinct[0] == MARKER) :]
