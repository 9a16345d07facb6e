"""Nested values as bytes: equal exactly where the values are, and in their order, so that a value is identified and sorted by its bytes.

An ARRAY, a MAP or a STRUCT is written value by value, most significant byte first:
- A part of a nested value begins with a tag: 01 for NULL, 02 before a value. 00 ends an ARRAY or a MAP; so a shorter one is less, and NULL
  is less than every value. A STRUCT is its fields. A MAP is its entries, keys and values, in the order that they have.
- Integers, dates, times: their bytes with the sign bit flipped; DECIMAL so, in 16 bytes. FLOAT and DOUBLE: their bits, all flipped if
  negative, else the sign; there is one NaN, and -0.0 is written as 0.0.
- STRING and BINARY: their bytes with 00 as 00 FF, then 00.
A value with a -0.0 in it is followed by 00 and the same once more, zeros with their signs: so it is another value, and sorts beside
the one with 0.0.

What always holds: `from_bytes(to_bytes(x)) = x`, with one NaN. Where the bytes are kept is defined elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic import canonical_rows
from deltic.types import Type

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]

_NULL: Final = b"\x01"
_VALUE: Final = b"\x02"
_END: Final = b"\x00"
_ESCAPED: Final = b"\x00\xff"
_BINARY: Final = pa.binary()


class Damaged(ValueError):
    """Bytes that are no value of the type."""


def to_bytes(array: pa.Array, type: Type) -> pa.BinaryArray:
    """The bytes of each value of a nested type, NULL where it is NULL. array: of `type.arrow`. O(bytes)."""
    if len(array) <= canonical_rows.FEW and array.type == type.arrow and canonical_rows.is_plain(type):
        return canonical_rows.to_bytes(array, type)
    plain = key_bytes(array, type)
    if not type.has_zeros:
        return plain
    exact = _value_bytes(array, type, signed=True)
    return pc.if_else(pc.equal(plain, exact), plain, pc.binary_join_element_wise(plain, exact, _END))


def key_bytes(array: pa.Array, type: Type) -> pa.BinaryArray:
    """As `to_bytes`, the same for 0.0 and -0.0: the bytes by which values of a nested type are compared in SQL."""
    return _value_bytes(array, type, signed=False)


def from_bytes(values: pa.Array, type: Type) -> pa.Array:
    """The values, of `type.arrow`. Raises Damaged. O(bytes · log bytes), and a pass for each element of the longest ARRAY or MAP."""
    if len(values) <= canonical_rows.FEW and canonical_rows.is_plain(type):
        try:
            return canonical_rows.from_bytes(values, type)
        except (IndexError, ValueError, AttributeError) as error:
            raise Damaged(f"the bytes of a {type.sql} are not one: {error}") from None
    return _read(values, type, last=True)


def normalized(array: pa.Array, type: Type) -> pa.Array:
    """0.0 for each -0.0, and one NaN."""
    return _read(to_bytes(array, type), type, last=False) if type.has_zeros else array


def _value_bytes(array: pa.Array, type: Type, *, signed: bool) -> pa.BinaryArray:
    """Of values without a tag; NULL where one is NULL."""
    match type.kind.stored:
        case "bytes" if type.held.name == "STRUCT":
            parts = [_tagged(part, f.type, signed) for part, f in zip(array.flatten(), type.held.parts, strict=True)]
            joined = pc.binary_join_element_wise(*parts, b"") if parts else pa.repeat(pa.scalar(b"", _BINARY), len(array))
        case "bytes" if type.is_nested:
            joined = _list_bytes(array, type, signed)
        case "bytes":
            text = pc.replace_substring(array.cast(_BINARY), _END, _ESCAPED)
            return pc.binary_join_element_wise(text, _END, b"")
        case "none":
            return pa.nulls(len(array), _BINARY)
        case _:
            joined = _fixed(_words(array, type, signed))
    return pc.if_else(array.is_valid(), joined, pa.scalar(None, _BINARY)) if array.null_count else joined


def _tagged(array: pa.Array, type: Type, signed: bool) -> pa.BinaryArray:
    values = pc.binary_join_element_wise(_VALUE, _value_bytes(array, type, signed=signed), b"")
    return pc.fill_null(values, _NULL) if values.null_count else values


def _list_bytes(array: pa.Array, type: Type, signed: bool) -> pa.BinaryArray:
    lists = array.cast(type.entries.arrow) if type.name == "MAP" else array
    elements = _tagged(lists.flatten(), type.entries.parts[0].type, signed)
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    return pc.binary_join_element_wise(pc.binary_join(pa.ListArray.from_arrays(offsets, elements), b""), _END, b"")


def _words(array: pa.Array, type: Type, signed: bool) -> npt.NDArray[Any]:
    """uint8[n, width]: each value's bytes, which sort like the values."""
    stored = type.kind.stored
    if stored == "bits":
        bits: npt.NDArray[Any] = array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint8)
        return bits.reshape(-1, 1)
    if stored == "decimal":
        low_high = _buffer(array, np.dtype((np.void, 16))).view(np.uint64).reshape(-1, 2)
        return _big_endian(np.stack([low_high[:, 1] ^ np.uint64(1 << 63), low_high[:, 0]], axis=1))
    width = np.dtype(stored).itemsize
    unsigned, sign = np.dtype(f"u{width}"), _sign(width)
    if not type.is_float:
        return _big_endian((_buffer(array, np.dtype(stored)).view(unsigned) ^ sign).reshape(-1, 1))
    values = _buffer(array, np.dtype(stored)) + np.dtype(stored).type(0)  # a copy, with 0.0 for -0.0
    if signed:
        values = _buffer(array, np.dtype(stored)).copy()
    values[values != values] = np.nan
    bits = values.view(unsigned)
    return _big_endian(np.where(bits & sign, ~bits, bits | sign).reshape(-1, 1))


def _sign(width: int) -> Any:
    return np.dtype(f"u{width}").type(1 << (8 * width - 1))


def _buffer(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def _big_endian(words: npt.NDArray[Any]) -> Bytes:
    return words.astype(words.dtype.newbyteorder(">")).view(np.uint8).reshape(len(words), words.itemsize * words.shape[1])


def _fixed(rows: npt.NDArray[Any]) -> pa.BinaryArray:
    rows = np.ascontiguousarray(rows)
    whole = pa.Array.from_buffers(pa.binary(rows.shape[1]), len(rows), [None, pa.py_buffer(rows)])
    return whole.cast(_BINARY)


def _read(values: pa.Array, type: Type, *, last: bool) -> pa.Array:
    """The values; of one that is written twice the second writing if `last`, else the first."""
    present = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    given = values.drop_null() if values.null_count else values
    try:
        decoded = _Reader.of(given).whole(type, last)
    except (IndexError, pa.ArrowInvalid):
        raise Damaged(f"the bytes of a {type.sql} end within it") from None
    if len(given) == len(values):
        return decoded
    places = np.full(len(values), -1, np.int64)
    places[present] = np.arange(len(present))
    return decoded.take(pa.array(places, mask=places < 0))


@dataclass(frozen=True, slots=True)
class _Reader:
    """n values end to end. data: with a 00 after the last. starts, ends: int64[n]. terminators: where a 00 is that no FF follows."""

    data: Bytes
    starts: Positions
    ends: Positions
    terminators: Positions

    @staticmethod
    def of(values: pa.Array) -> _Reader:
        if not len(values):
            return _Reader(np.zeros(1, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64))
        offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset).astype(np.int64)
        data = np.zeros(offsets[-1] - offsets[0] + 1, np.uint8)
        if len(data) > 1:
            data[:-1] = np.frombuffer(values.buffers()[2], np.uint8, len(data) - 1, offsets[0])
        offsets -= offsets[0]
        terminators = np.flatnonzero((data == 0) & (np.append(data[1:], 0) != 0xFF))
        return _Reader(data, offsets[:-1], offsets[1:], terminators)

    def whole(self, type: Type, last: bool) -> pa.Array:
        values, ends = self.values(type, self.starts)
        twice = np.flatnonzero(ends != self.ends)
        if not len(twice):
            return values
        again, finished = self.values(type, ends[twice] + 1)
        if (ends > self.ends).any() or (finished != self.ends[twice]).any():
            raise Damaged(f"bytes after a {type.sql}")
        if not last:
            return values
        order = np.arange(len(values))
        order[twice] = len(values) + np.arange(len(twice))
        return pa.concat_arrays([values, again]).take(pa.array(order))

    def values(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        """The values that begin at these positions, and where they end."""
        match type.kind.stored:
            case "bytes" if type.held.name == "STRUCT":
                return self._structs(type, positions)
            case "bytes" if type.is_nested:
                return self._lists(type, positions)
            case "bytes":
                return self._texts(type, positions)
            case "none":
                raise Damaged("a value of type VOID")
            case _:
                return self._numbers(type, positions)

    def tagged(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        """Values after their tags, NULL where that says so."""
        tags = self.data[positions]
        rows = np.flatnonzero(tags == _VALUE[0])
        if (tags[tags != _VALUE[0]] != _NULL[0]).any():
            raise Damaged(f"an invalid tag in the bytes of a {type.sql}")
        if not len(rows):
            return pa.nulls(len(positions), type.arrow), positions + 1
        values, after = self.values(type, positions[rows] + 1)
        if len(rows) == len(positions):
            return values, after
        ends, places = positions + 1, np.full(len(positions), -1, np.int64)
        ends[rows], places[rows] = after, np.arange(len(rows))
        return values.take(pa.array(places, mask=places < 0)), ends

    def _structs(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        columns = []
        for part in type.held.parts:
            column, positions = self.tagged(part.type, positions)
            columns.append(column)
        if not columns:
            return pa.array([()] * len(positions), type.arrow), positions
        return pa.StructArray.from_arrays(columns, fields=list(type.arrow)), positions

    def _lists(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        """Element by element, of all values that have one more."""
        element = type.entries.parts[0].type
        positions, active = positions.copy(), np.arange(len(positions))
        pieces: list[pa.Array] = [pa.array([], element.arrow)]
        owners: list[Positions] = [np.empty(0, np.int64)]
        while len(active):
            ended = self.data[positions[active]] == _END[0]
            positions[active[ended]] += 1
            active = active[~ended]
            if len(active):
                piece, positions[active] = self.tagged(element, positions[active])
                pieces.append(piece)
                owners.append(active)
        owner = np.concatenate(owners)
        elements = pa.concat_arrays(pieces).take(pa.array(np.argsort(owner, kind="stable")))
        offsets = pa.array(np.append(0, np.cumsum(np.bincount(owner, minlength=len(positions)))).astype(np.int32))
        if type.name == "MAP":
            keys, values = elements.flatten()
            return pa.MapArray.from_arrays(offsets, keys, values, type=type.arrow), positions
        return pa.ListArray.from_arrays(offsets, elements, type=type.arrow), positions

    def _texts(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        ends = self.terminators[np.searchsorted(self.terminators, positions)]
        offsets = np.append(0, np.cumsum(ends - positions))
        bytes_ = self.data[np.arange(offsets[-1]) + np.repeat(positions - offsets[:-1], ends - positions)]
        texts = pa.Array.from_buffers(_BINARY, len(positions), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(bytes_)])
        if (bytes_ == 0).any():
            texts = pc.replace_substring(texts, _ESCAPED, _END)
        return texts.cast(type.arrow), ends + 1

    def _numbers(self, type: Type, positions: Positions) -> tuple[pa.Array, Positions]:
        stored = type.kind.stored
        width = {"bits": 1, "decimal": 16}.get(stored) or np.dtype(stored).itemsize
        rows = np.ascontiguousarray(self.data[positions[:, None] + np.arange(width)])
        if stored == "bits":
            return pa.array(rows[:, 0] != 0), positions + width
        if stored == "decimal":
            high_low = rows.view(">u8").astype(np.uint64).reshape(-1, 2)
            values: npt.NDArray[Any] = np.stack([high_low[:, 1], high_low[:, 0] ^ np.uint64(1 << 63)], axis=1)
        else:
            bits, sign = rows.view(f">u{width}").astype(f"u{width}").reshape(-1), _sign(width)
            values = np.where(bits & sign, bits ^ sign, ~bits) if type.is_float else bits ^ sign
        return pa.Array.from_buffers(type.arrow, len(positions), [None, pa.py_buffer(np.ascontiguousarray(values))]), positions + width
