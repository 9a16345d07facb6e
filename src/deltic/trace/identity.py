"""Identity: which id a string has in a state.

An id is the string's SipHash-1-3 under a 128-bit key that was drawn for the state, so nobody who does not know the key can choose strings
whose ids collide, or whose rows go to one shard. If ids collide by accident, the later string has another id, which is listed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deltic.errors import CorruptState
from deltic.kernels import text
from deltic.kernels.table import buffer_address

Words = npt.NDArray[np.int64]
KEY_BYTES: Final = 16


class StringColumn(NamedTuple):
    """An Arrow array of n strings as kernels read it.

    place: (address of the bytes, of the offsets, whether these are int64). validity: the address of the bitmap, 0 without NULL. bit: the
    position of the first string in it.
    """

    array: pa.Array
    n: int
    place: tuple[int, int, int]
    validity: int
    bit: int

    @staticmethod
    def of(array: pa.Array) -> StringColumn:
        kind = array.type
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        if not (wide or pa.types.is_string(kind) or pa.types.is_binary(kind)):
            array, wide = array.cast(pa.large_string()), True
        validity, offsets, data = array.buffers()
        n = len(array)
        if not n:
            return StringColumn(array, 0, (0, 0, 0), 0, 0)
        start = buffer_address(offsets, array) + array.offset * (8 if wide else 4)
        place = (buffer_address(data, array) if data is not None else 0, start, int(wide))
        return StringColumn(array, n, place, buffer_address(validity, array) if array.null_count else 0, array.offset)

    def size(self, start: int, end: int) -> int:
        """Bytes of the strings start … end."""
        offsets = np.frombuffer(self.array.buffers()[1], np.int64 if self.place[2] else np.int32)
        return int(offsets[self.array.offset + end] - offsets[self.array.offset + start])

    def bytes_of(self, i: int) -> bytes:
        """String i."""
        value: bytes = self.array[i].as_buffer().to_pybytes()
        return value


@dataclass(frozen=True, slots=True)
class Identity:
    """The function string → id of a state.

    key: 16 bytes. bits: how many bits of the hash are used; fewer than 64 only to provoke collisions. overrides: the ids of strings whose
    hash collides with an earlier string's. contested: the hashes of these, int64.
    """

    key: bytes
    bits: int = 64
    overrides: Mapping[bytes, int] = field(default_factory=dict)
    contested: Words = field(default_factory=lambda: np.empty(0, np.int64), compare=False, repr=False)

    def __post_init__(self) -> None:
        assert len(self.key) == KEY_BYTES and 1 <= self.bits <= 64

    @staticmethod
    def drawn() -> Identity:
        """A new identity, its key from the system's entropy."""
        return Identity(secrets.token_bytes(KEY_BYTES))

    @property
    def halves(self) -> tuple[int, int]:
        """The low and the high half of the key."""
        return _halves(self.key)

    def ids(self, run: StringColumn) -> Words:
        """The ids of strings, int64[n]; NULL gives the marker. O(bytes)."""
        return self.ids_and_firsts(run)[0]

    def ids_and_firsts(self, run: StringColumn) -> tuple[Words, Words]:
        """(the ids, the same of the first m strings but the marker for those that are known to equal an earlier one).

        The strings after these m are known to equal earlier ones, too: who verifies the second verifies all.
        """
        ids, firsts = self._hashed(run, self.bits)
        if not self.overrides:
            return ids, firsts
        for i in np.flatnonzero(np.isin(ids, self.contested)).tolist():
            if run.array[i].is_valid:
                ids[i] = self.overrides.get(run.bytes_of(i), ids[i])
        return ids, ids

    def overridden(self, string: bytes, id_: int) -> Identity:
        """The identity with another id for a string. O(overrides)."""
        contested = np.append(self.contested, self._hashed(_alone(string), self.bits)[0])
        return replace(self, overrides={**self.overrides, string: id_}, contested=contested)

    def candidates(self, string: bytes) -> Iterator[int]:
        """Ids for a string whose hash collides, in order of preference; never ends."""
        for n in count(1):
            yield int(self._hashed(_alone(n.to_bytes(8, "little") + string), 64)[0][0])

    def _hashed(self, run: StringColumn, bits: int) -> tuple[Words, Words]:
        """As `ids_and_firsts`, without overrides."""
        low, high = self.halves
        ids, firsts = np.empty(run.n, np.int64), np.empty(run.n, np.int64)
        known = text.hash_strings(*run.place, run.n, run.validity, run.bit, low, high, bits, ids, firsts)
        return ids, firsts[:known]

    def note(self) -> dict[str, Any]:
        """As JSON, for a state's notes."""
        overrides = [[string.hex(), id_] for string, id_ in self.overrides.items()]
        return {"key": self.key.hex(), "bits": self.bits, "overrides": overrides}

    @staticmethod
    def of_note(note: Any) -> Identity:
        """The inverse of `note`. Raises CorruptState for an invalid note."""
        try:
            match note:
                case {"key": str(key), "bits": int(bits), "overrides": [*overrides]}:
                    return _parsed(bytes.fromhex(key), bits, overrides)
        except (ValueError, TypeError, AttributeError):
            pass
        raise CorruptState("the state's note `strings` is damaged: it does not say how strings get their ids", expected="a key of 16 bytes")


@lru_cache(maxsize=64)
def _halves(key: bytes) -> tuple[int, int]:
    low, high = np.frombuffer(key, "<i8").tolist()
    return low, high


def _parsed(key: bytes, bits: int, overrides: list[Any]) -> Identity:
    """Raises ValueError or TypeError."""
    if len(key) != KEY_BYTES or not 1 <= bits <= 64:
        raise ValueError
    ids = {bytes.fromhex(string): _id(id_) for string, id_ in overrides}
    if len(set(ids.values())) != len(overrides):
        raise ValueError
    plain = Identity(key, bits)
    return replace(plain, overrides=ids, contested=plain.ids(StringColumn.of(pa.array(list(ids), pa.large_binary()))))


def _id(value: Any) -> int:
    if type(value) is not int or not -(2**63) < value < 2**63:
        raise ValueError
    return value


def _alone(string: bytes) -> StringColumn:
    return StringColumn.of(pa.array([string], pa.large_binary()))
