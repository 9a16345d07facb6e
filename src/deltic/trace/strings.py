"""Strings as ids: seeded 64-bit hashes, the same on every shard, with a table id → bytes that every use is verified against.

Always: an id that was given out can be decoded, and stands for one string; two strings with one id are an error that names both.
NULL is the marker INT64_MIN, which is no id. Ids have no order: `order_words` gives words that have.
"""

from __future__ import annotations

from threading import RLock
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import StringCollision
from deltic.kernels import text
from deltic.kernels.vector import address

Words = npt.NDArray[np.int64]
MARKER = np.int64(np.iinfo(np.int64).min)
PREFIX_WORDS = 3
PREFIX_BYTES = 8 * PREFIX_WORDS
"""Strings shorter than this, and without NUL bytes, are told apart by their order words."""


class StringSource(Protocol):
    """Strings that are kept elsewhere (Spark: in the files of a shard)."""

    def find(self, ids: Words) -> tuple[npt.NDArray[np.bool_], pa.BinaryArray]:
        """(bool[n] whether id i is there, the bytes of those that are, in order)."""
        ...


class StringTable:
    """Grows by interning. One thread may intern while others decode.

    seed: of the hash; all that share state share it. parent: where ids that are not here are looked for. hash_bits: fewer than 64 only
    to provoke collisions.
    """

    def __init__(self, seed: int, parent: StringSource | None = None, hash_bits: int = 64) -> None:
        self.seed, self.parent, self.hash_bits = seed, parent, hash_bits
        self._lock = RLock()
        self._slots = np.zeros(1 << 10, np.int64)
        self._ids = np.empty(1 << 9, np.int64)
        self._starts = np.zeros((1 << 9) + 1, np.int64)
        self._arena = np.empty(1 << 13, np.uint8)
        self._used = np.array([0, 1 << 9, 0, 0, 0], np.int64)
        self._inherited: set[int] = set()

    def __len__(self) -> int:
        return int(self._used[0])

    def intern(self, array: pa.Array) -> Words:
        """The ids of strings (string, large_string, dictionary of them), int64[n]; NULL gives the marker. O(bytes)."""
        if pa.types.is_dictionary(array.type):
            ids = self.intern(array.dictionary)
            if not len(ids):
                return np.full(len(array), MARKER)
            found = ids[pc.fill_null(array.indices, 0).to_numpy(zero_copy_only=False)]
            return np.where(array.is_null().to_numpy(zero_copy_only=False), MARKER, found) if array.null_count else found
        array = array.cast(pa.large_binary())
        out = np.empty(len(array), np.int64)
        with self._lock:
            before = len(self)
            self._intern(array, out)
            if self.parent is not None and len(self) > before:
                self._verify_parent(before)
        return np.where(array.is_null().to_numpy(zero_copy_only=False), MARKER, out) if array.null_count else out

    def _intern(self, array: pa.LargeBinaryArray, out: Words) -> None:
        _, offset_buffer, data = array.buffers()
        n, done = len(array), 0
        if not n:
            return
        offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + n + 1]
        base = data.address if data is not None and data.size else address(self._starts)
        while done < n:
            done = text.intern(
                base,
                address(offsets),
                done,
                n,
                self.seed,
                self.hash_bits,
                address(self._slots),
                len(self._slots) - 1,
                address(self._ids),
                address(self._starts),
                _start(self._arena),
                len(self._arena),
                self._used,
                address(out),
            )
            if done == text.COLLISION:
                raise self._collision(self._text(int(self._used[3])), array[int(self._used[4])].as_py())
            if done < 0:
                done = text.FULL - done
                self._grow(int(offsets[done + 1] - offsets[done]), int(offsets[n] - offsets[done]))

    def _grow(self, needed: int, wanted: int) -> None:
        """Room for more. Replaces arrays, never changes those that a reader may hold."""
        entries, size = len(self), int(self._starts[len(self)])
        if entries >= self._used[1]:
            room = 4 * entries
            self._ids = np.resize(self._ids, room)
            self._starts = np.resize(self._starts, room + 1)
            self._used[1] = room
            slots = np.zeros(2 * room, np.int64)
            text.rehash(address(slots), len(slots) - 1, address(self._ids), entries)
            self._slots = slots
        if size + needed > len(self._arena):
            self._arena = np.resize(self._arena, max(2 * len(self._arena), size + needed, size + min(wanted, 1 << 26)))

    def _verify_parent(self, before: int) -> None:
        """New ids that the parent has must stand for the same bytes there; they are not fresh."""
        assert self.parent is not None
        ids = self._ids[before : len(self)].copy()
        here, values = self.parent.find(ids)
        for entry, value in zip((before + np.flatnonzero(here)).tolist(), values.to_pylist(), strict=True):
            if self._text(entry) != value:
                raise self._collision(value, self._text(entry))
        self._inherited.update(ids[here].tolist())

    def _text(self, entry: int) -> bytes:
        return self._arena[self._starts[entry] : self._starts[entry + 1]].tobytes()

    def _collision(self, known: bytes, new: bytes) -> StringCollision:
        return StringCollision(
            f"the strings {known.decode(errors='replace')!r} and {new.decode(errors='replace')!r} have the same hash",
            remedy=f"start with another seed than {self.seed} and load the data again",
        )

    def _locate(self, ids: Words) -> Words:
        """Entries of ids, int64[n], -1 for NULL; what only the parent has is taken over first."""
        with self._lock:
            ids = np.ascontiguousarray(ids)
            entries = np.empty(len(ids), np.int64)
            missing = self._find(ids, entries)
            if missing and missing > (unknown := (entries < 0) & (ids == MARKER)).sum():
                self._inherit(np.unique(ids[(entries < 0) & ~unknown]))
                self._find(ids, entries)
            assert ((entries >= 0) | (ids == MARKER)).all(), "an id that was never given out"
            return entries

    def _find(self, ids: Words, entries: Words) -> int:
        return int(text.locate(address(ids), len(ids), address(self._slots), len(self._slots) - 1, address(self._ids), address(entries)))

    def _inherit(self, ids: Words) -> None:
        assert self.parent is not None, "an id that was never given out"
        here, values = self.parent.find(ids)
        assert here.all(), "an id that was never given out"
        self._intern(values.cast(pa.large_binary()), np.empty(len(ids), np.int64))
        self._inherited.update(ids.tolist())

    def decode(self, ids: Words) -> pa.StringArray:
        """The strings of ids, int64[n]."""
        with self._lock:
            entries = self._locate(ids)
            offsets, data = self._gathered(entries)
        null = entries < 0
        valid = pa.array(~null).buffers()[1] if null.any() else None
        if offsets[-1] > np.iinfo(np.int32).max:
            whole = pa.LargeStringArray.from_buffers(len(entries), pa.py_buffer(offsets), pa.py_buffer(data), valid)
            return whole.cast(pa.string())
        return pa.StringArray.from_buffers(len(entries), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data), valid)

    def _gathered(self, entries: Words) -> tuple[Words, npt.NDArray[np.uint8]]:
        """(int64[n + 1] offsets, bytes) of entries laid end to end."""
        n = len(entries)
        offsets = np.empty(n + 1, np.int64)
        size = text.measure(address(entries), n, address(self._starts), address(offsets), 0)
        data = np.empty(max(size, 1), np.uint8)
        text.gather(address(entries), n, address(self._starts), _start(self._arena), address(offsets), _start(data))
        return offsets, data[:size]

    def order_words(self, ids: Words) -> tuple[Words, ...]:
        """The first 24 bytes as words that sort as they do; the marker in each for NULL."""
        with self._lock:
            entries = self._locate(ids)
            out = np.empty((PREFIX_WORDS, len(ids)), np.int64)
            text.prefixes(address(entries), len(ids), address(self._starts), _start(self._arena), PREFIX_WORDS, address(out.reshape(-1)))
        return tuple(out)

    def exceeds(self, ids: Words, length: int) -> npt.NDArray[np.bool_]:
        """Whether another string may share the first `length` bytes (zero-padded): it is that long, or there are strings with NUL bytes."""
        with self._lock:
            entries = self._locate(ids)
            sizes = self._starts[entries + 1] - self._starts[entries]
            return (entries >= 0) & ((sizes >= length) | bool(self._used[2]))

    def export(self, ids: Words) -> pa.RecordBatch:
        """The distinct ids (NULL left out) and their bytes: columns id, bytes."""
        distinct = np.unique(ids)
        distinct = distinct[distinct != MARKER]
        return pa.record_batch([pa.array(distinct), self._binary(distinct)], ["id", "bytes"])

    def absorb(self, exported: pa.RecordBatch) -> None:
        """Takes over what another table exported; raises StringCollision where an id stands for other bytes here."""
        ids = np.asarray(exported.column(0))
        found = self.intern(exported.column(1).cast(pa.large_binary()))
        assert (ids == found).all(), "ids made with another seed"

    def fresh(self) -> pa.RecordBatch:
        """What was interned here and is not in the parent."""
        ids = self._ids[: len(self)]
        mine = np.array([i for i in ids.tolist() if i not in self._inherited], np.int64) if self._inherited else ids.copy()
        return self.export(mine)

    def retain(self, ids: Words) -> None:
        """Drops all strings but these."""
        kept = self.export(ids)
        with self._lock:
            self.__init__(self.seed, self.parent, self.hash_bits)  # type: ignore[misc]
            self.absorb(kept)

    def _binary(self, ids: Words) -> pa.BinaryArray:
        with self._lock:
            offsets, data = self._gathered(self._locate(ids))
        whole = pa.Array.from_buffers(pa.large_binary(), len(ids), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
        return whole.cast(pa.binary())


def _start(array: npt.NDArray[np.uint8]) -> int:
    return int(array.ctypes.data)
