"""Strings as ids: keyed 64-bit hashes, the same on every shard, with a table id → bytes that every use is verified against.

Always: an id that was given out can be decoded, and stands for one string; two strings with one id are an error that names both.
NULL is the marker INT64_MIN, which is no id. Ids have no order: `order_words` gives words that have.
One thread at a time adds strings; others read beside it without waiting, in arrays that are only added to, or replaced as a whole.
"""

from __future__ import annotations

from threading import RLock
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import CorruptState, DataError, StringCollision
from deltic.kernels import text
from deltic.kernels.vector import address
from deltic.trace.identity import Identity

Words = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
MARKER = np.int64(np.iinfo(np.int64).min)
PREFIX_BYTES = 24
"""Strings shorter than this are told apart, and ordered, by their order words."""
INT32_MAX = np.iinfo(np.int32).max
SHOWN = 60


class StringSource(Protocol):
    """Strings that are kept elsewhere (Spark: in the files of a shard)."""

    def find(self, ids: Words) -> tuple[npt.NDArray[np.bool_], pa.BinaryArray]:
        """(bool[n] whether id i is there, the bytes of those that are, in order)."""
        ...


class _Entries(NamedTuple):
    """The arrays of a table: replaced together when they have to grow. Layout in kernels/text.py."""

    slots: Words
    ids: Words
    starts: Words
    arena: Bytes

    @staticmethod
    def with_room(entries: int, size: int) -> _Entries:
        """None yet. An id that is not there yet reads as the marker, which nothing looks for."""
        return _Entries(
            np.zeros(2 * entries, np.int64), np.full(entries, MARKER), np.zeros(entries + 1, np.int64), np.empty(size, np.uint8)
        )


class _Found(NamedTuple):
    """Where ids stand in a table: places int64[n], -1 for NULL, -2 if not there (`missing` of them); offsets of their bytes."""

    entries: _Entries
    places: Words
    offsets: Words
    missing: int

    def texts(self, kind: pa.DataType) -> pa.Array:
        """The bytes as an array of `kind` (string or binary), NULL where there is no entry."""
        n, size = len(self.places), self.offsets[-1]
        if size > INT32_MAX:
            raise DataError(f"{size} bytes of strings in one column", expected="at most 2 GiB", remedy="read it in parts")
        data, validity = np.empty(size, np.uint8), np.zeros((n + 7) >> 3, np.uint8)
        text.gather(self.places, self.entries.starts, self.entries.arena, self.offsets, data, validity)
        buffers = [pa.py_buffer(part) for part in (validity, self.offsets.astype(np.int32), data)]
        return pa.Array.from_buffers(kind, n, buffers)


class UnknownString(CorruptState):
    """An id that was never given out, or of a string that is gone meanwhile."""


class StringTable:
    """Grows by interning. One thread may intern while others decode.

    identity: how strings get ids; all that share state share it. None where strings are only decoded. parent: where ids that are not here
    are looked for; what is found is kept here too.
    """

    def __init__(self, identity: Identity | None, parent: StringSource | None = None) -> None:
        self._identity, self.parent = identity, parent
        self._lock = RLock()
        self._used = np.zeros(4, np.int64)
        self._entries = _Entries.with_room(1 << 9, 1 << 13)
        self._inherited: list[Words] = []

    @property
    def identity(self) -> Identity:
        """How strings get ids here."""
        assert self._identity is not None, "strings are only decoded here"
        return self._identity

    def __len__(self) -> int:
        """How many strings are here, the parent's that were used included."""
        return int(self._used[text.ENTRIES])

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(array.nbytes for array in self._entries)

    def intern(self, array: pa.Array) -> Words:
        """The ids of strings (string or binary, large or not, or a dictionary of them), int64[n]; NULL gives the marker. O(bytes).

        Raises StringCollision.
        """
        if pa.types.is_dictionary(array.type):
            return self._intern_dictionary(array)
        return self._intern(array)

    def _intern_dictionary(self, array: pa.DictionaryArray) -> Words:
        if len(array.dictionary) > len(array):
            return self._intern(array.dictionary.take(array.indices))
        ids = np.append(self._intern(array.dictionary), MARKER)
        found: Words = ids[pc.fill_null(array.indices.cast(pa.int64()), len(array.dictionary)).to_numpy()]
        return found

    def _intern(self, array: pa.Array) -> Words:
        run = _Run.of(array)
        ids = np.empty(run.n, np.int64)
        text.hash_strings(*run.place, run.n, run.validity, run.bit, *self.identity.words, self.identity.bits, ids)
        with self._lock:
            if self.parent is not None:
                self._inherit(ids)
            self._insert(run, ids)
        return ids

    def _insert(self, run: _Run, ids: Words) -> None:
        done = 0
        while done < run.n:
            entries = self._entries
            room = np.array([len(entries.ids), len(entries.arena)], np.int64)
            done = text.insert(*run.place, done, ids, *entries[:3], room, entries.arena, self._used)
            if done == text.COLLISION:
                known = int(self._used[text.KNOWN])
                stored = entries.arena[entries.starts[known] : entries.starts[known + 1]].tobytes()
                raise self._collision(stored, run.array[int(self._used[text.NEW])].as_py())
            if done < 0:
                done = text.FULL - done
                self._grow(run.size(done, done + 1), run.size(done, run.n))

    def _grow(self, needed: int, wanted: int) -> None:
        """Room for `needed` bytes more, of `wanted` to come. Readers keep what they hold."""
        old, n = self._entries, len(self)
        entries, size = len(old.ids), int(old.starts[n])
        if n >= entries:
            entries *= 4
        room = len(old.arena)
        if size + needed > room:
            room = max(2 * room, size + needed, size + min(wanted, 1 << 26))
        new = _Entries.with_room(entries, room)
        new.ids[:n], new.starts[: n + 1], new.arena[:size] = old.ids[:n], old.starts[: n + 1], old.arena[:size]
        text.rehash(new.slots, new.ids, n)
        self._entries = new

    def _inherit(self, ids: Words) -> None:
        """Takes over what the parent has of ids that are not here, so that strings are verified against it."""
        assert self.parent is not None
        known = self._look_up(ids)
        if not known.missing:
            return
        asked = np.unique(ids[known.places < -1])
        here, values = self.parent.find(asked)
        if len(found := asked[here]):
            self._insert(_Run.of(values), np.ascontiguousarray(found))
            self._inherited.append(found)

    def _collision(self, known: bytes, new: bytes) -> StringCollision:
        return StringCollision(
            f"the strings {_shown(known)} and {_shown(new)} have the same hash",
            expected="different hashes for different strings",
            remedy="start a new state, which draws another key, and load the data again",
        )

    def _look_up(self, ids: Words) -> _Found:
        entries = self._entries
        places, offsets = np.empty(len(ids), np.int64), np.empty(len(ids) + 1, np.int64)
        missing = text.locate(address(ids), entries.slots, entries.ids, entries.starts, places, offsets)
        return _Found(entries, places, offsets, missing)

    def _locate(self, ids: Words) -> _Found:
        """Where ids stand; what only the parent has is taken over first."""
        ids = np.ascontiguousarray(ids)
        found = self._look_up(ids)
        if found.missing and self.parent is not None:
            with self._lock:
                self._inherit(ids)
                found = self._look_up(ids)
        if found.missing:
            raise UnknownString(f"{found.missing} ids of strings that are not here, or no longer")
        return found

    def find(self, ids: Words) -> tuple[npt.NDArray[np.bool_], pa.BinaryArray]:
        """(bool[n] whether id i is here, the bytes of those that are, in order): a table can be another's parent."""
        found = self._look_up(np.ascontiguousarray(ids))
        return found.places >= 0, found.texts(pa.binary()).drop_null()

    def decode(self, ids: Words) -> pa.StringArray:
        """The strings of ids, int64[n]; NULL for the marker. O(bytes). Raises UnknownString for an id that is not here."""
        return self._locate(ids).texts(pa.string())

    def order_words(self, ids: Words) -> tuple[Words, Words, Words]:
        """Three words that sort, as signed, like the bytes: the first 23 zero-padded, then a byte for the length (24 and more are alike).

        The marker in each for NULL, which so comes before every string.
        """
        entries, places, _, _ = self._locate(ids)
        first, second, third = (np.empty(len(places), np.int64) for _ in range(3))
        text.prefixes(places, entries.starts, entries.arena, first, second, third)
        return first, second, third

    def exceeds(self, ids: Words, length: int) -> npt.NDArray[np.bool_]:
        """Whether a string has `length` bytes or more (length ≥ 1); False for NULL."""
        sizes = np.diff(self._locate(ids).offsets)
        long: npt.NDArray[np.bool_] = sizes >= length
        return long

    def export(self, ids: Words) -> pa.RecordBatch:
        """The distinct ids (NULL left out), ascending, and their bytes: columns id, bytes."""
        distinct = np.unique(ids)
        distinct = distinct[distinct != MARKER]
        return pa.record_batch([pa.array(distinct), self._locate(distinct).texts(pa.binary())], ["id", "bytes"])

    def absorb(self, exported: pa.RecordBatch) -> None:
        """Takes over what another table of the same identity exported; raises StringCollision where an id stands for other bytes here."""
        found = self._intern(exported.column(1))
        assert np.array_equal(found, exported.column(0)), "ids of another state"

    def fresh(self) -> pa.RecordBatch:
        """What was added here and is not in the parent, as `export` gives it."""
        ids = self._entries.ids[: len(self)]
        return self.export(ids[~np.isin(ids, np.concatenate(self._inherited))] if self._inherited else ids)

    def retain(self, ids: Words) -> None:
        """Drops all strings but these."""
        with self._lock:
            kept = StringTable(self._identity)
            exported = self.export(ids)
            left = np.array(exported.column(0), np.int64)
            kept._insert(_Run.of(exported.column(1)), left)
            self._inherited = [part[np.isin(part, left)] for part in self._inherited]
            self._used, self._entries = kept._used, kept._entries


class _Run(NamedTuple):
    """An Arrow array of strings as kernels read it. place: (address of the bytes, of the offsets, whether these are wide)."""

    array: pa.Array
    n: int
    place: tuple[int, int, int]
    validity: int
    bit: int

    @staticmethod
    def of(array: pa.Array) -> _Run:
        kind = array.type
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        if not (wide or pa.types.is_string(kind) or pa.types.is_binary(kind)):
            array, wide = array.cast(pa.large_string()), True
        validity, offsets, data = array.buffers()
        n = len(array)
        if not n:
            return _Run(array, 0, (0, 0, 0), 0, 0)
        start = offsets.address + array.offset * (8 if wide else 4)
        place = (data.address if data is not None else 0, start, int(wide))
        return _Run(array, n, place, validity.address if array.null_count else 0, array.offset)

    def size(self, start: int, end: int) -> int:
        """Bytes of the strings start … end."""
        offsets = np.frombuffer(self.array.buffers()[1], np.int64 if self.place[2] else np.int32)
        return int(offsets[self.array.offset + end] - offsets[self.array.offset + start])


def _shown(value: bytes | str) -> str:
    whole = value if isinstance(value, str) else value.decode(errors="replace")
    return repr(whole if len(whole) <= SHOWN else f"{whole[:SHOWN]}…")
