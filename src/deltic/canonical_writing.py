"""Writes the bytes of `canonical.py` for whole columns: the sizes of all values are computed, then their parts are written to their places.

So every byte is written once, in one buffer, and no part of a value is ever an array of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic.canonical_rows import END, ESCAPED, NULL, VALUE
from deltic.errors import DataError
from deltic.types import Type

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]

BINARY: Final = pa.binary()
_INT32_MAX: Final = np.iinfo(np.int32).max
_TEXTS_AT_ONCE: Final = 1 << 16
"""Texts that are copied together: it takes three words of memory for each of their bytes."""


class Sized(NamedTuple):
    """n values. sizes: int64[n], their bytes. write: (out, int64[n]: where each begins) writes them; `out` is zeros there."""

    sizes: Positions
    write: Callable[[Bytes, Positions], None]


def value_bytes(array: pa.Array, type: Type, *, signed: bool) -> pa.BinaryArray:
    """Of values without a tag; NULL where one is NULL. signed: -0.0 is not written as 0.0."""
    sizes, validity = np.zeros(len(array), np.int64), None
    if array.null_count:
        rows: Any = _valid(array)
        validity = pa.py_buffer(np.packbits(rows, bitorder="little"))
        array = array.drop_null()
    else:
        rows = slice(None)
    sized = _sized(array, type, signed)
    sizes[rows] = sized.sizes
    offsets = np.append(0, np.cumsum(sizes))
    if offsets[-1] > _INT32_MAX:
        message = f"{offsets[-1]} bytes of {type.name} values in one column"
        raise DataError(message, expected="at most 2 GiB", remedy="give the rows in parts")
    out = np.zeros(offsets[-1], np.uint8)
    sized.write(out, offsets[:-1][rows])
    return pa.Array.from_buffers(BINARY, len(sizes), [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)])


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _sized(array: pa.Array, type: Type, signed: bool) -> Sized:
    """Of values none of which is NULL."""
    match type.kind.stored:
        case "bytes" if type.held.name == "STRUCT":
            return _structs(array, type.held, signed)
        case "bytes" if type.is_nested:
            return _lists(array, type, signed)
        case "bytes":
            return _texts(array)
        case "none":
            return Sized(np.zeros(len(array), np.int64), lambda out, positions: None)
        case _:
            return _numbers(array, type, signed)


def _tagged(array: pa.Array, type: Type, signed: bool) -> Sized:
    """Of parts: each a tag, and its value unless it is NULL."""
    if not array.null_count:
        whole = _sized(array, type, signed)

        def write(out: Bytes, positions: Positions) -> None:
            out[positions] = VALUE[0]
            whole.write(out, positions + 1)

        return Sized(whole.sizes + 1, write)
    valid = _valid(array)
    present = _sized(array.drop_null(), type, signed)
    sizes = np.ones(len(array), np.int64)
    sizes[valid] += present.sizes

    def write_present(out: Bytes, positions: Positions) -> None:
        out[positions] = np.where(valid, VALUE[0], NULL[0])
        present.write(out, positions[valid] + 1)

    return Sized(sizes, write_present)


def _structs(array: pa.Array, type: Type, signed: bool) -> Sized:
    parts = [_tagged(column, part.type, signed) for column, part in zip(array.flatten(), type.parts, strict=True)]

    def write(out: Bytes, positions: Positions) -> None:
        for part in parts:
            part.write(out, positions)
            positions = positions + part.sizes

    return Sized(sum((part.sizes for part in parts), np.zeros(len(array), np.int64)), write)


def _lists(array: pa.Array, type: Type, signed: bool) -> Sized:
    """The 00 after the elements is there already."""
    lists = array.cast(type.entries.arrow) if type.name == "MAP" else array
    elements = _tagged(lists.flatten(), type.entries.parts[0].type, signed)
    counts = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    ends, bounds = np.cumsum(counts), np.append(0, np.cumsum(elements.sizes))
    starts = bounds[ends - counts]

    def write(out: Bytes, positions: Positions) -> None:
        elements.write(out, np.repeat(positions - starts, counts) + bounds[:-1])

    return Sized(bounds[ends] - starts + 1, write)


def _texts(array: pa.Array) -> Sized:
    """The 00 after a text is there already."""
    offsets, data = text_buffers(array.cast(BINARY))
    if (data == 0).any():
        offsets, data = text_buffers(pc.replace_substring(array.cast(BINARY), END, ESCAPED))
    lengths = np.diff(offsets)

    def write(out: Bytes, positions: Positions) -> None:
        for start in range(0, len(lengths), _TEXTS_AT_ONCE):
            part = slice(start, start + _TEXTS_AT_ONCE)
            first, last = offsets[part][0], offsets[1:][part][-1]
            out[np.repeat(positions[part] - offsets[:-1][part], lengths[part]) + np.arange(first, last)] = data[first:last]

    return Sized(lengths + 1, write)


def text_buffers(texts: pa.BinaryArray) -> tuple[Positions, Bytes]:
    """(int64[n + 1]: where each of n values begins and ends, their bytes)."""
    if not len(texts):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    _, bounds, data = texts.buffers()
    offsets = np.frombuffer(bounds, np.int32, len(texts) + 1, 4 * texts.offset).astype(np.int64)
    first, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    return offsets - first, np.frombuffer(data, np.uint8, size, first) if size else np.empty(0, np.uint8)


def _numbers(array: pa.Array, type: Type, signed: bool) -> Sized:
    words = _words(array, type, signed)

    def write(out: Bytes, positions: Positions) -> None:
        for word in words:
            windows(out, word.dtype)[positions] = word
            positions = positions + word.itemsize

    return Sized(np.full(len(array), sum(word.itemsize for word in words)), write)


def _words(array: pa.Array, type: Type, signed: bool) -> tuple[npt.NDArray[Any], ...]:
    """Unsigned words that sort like the values, the most significant first, each with its most significant byte first."""
    stored = type.kind.stored
    if stored == "bits":
        return (array.to_numpy(zero_copy_only=False).astype(np.uint8),)
    if stored == "decimal":
        low_high = _buffer(array, np.dtype((np.void, 16))).view(np.uint64).reshape(-1, 2)
        return _big_endian(low_high[:, 1] ^ np.uint64(1 << 63)), _big_endian(low_high[:, 0])
    width = np.dtype(stored).itemsize
    unsigned, negative = np.dtype(f"u{width}"), sign(width)
    if not type.is_float:
        return (_big_endian(_buffer(array, np.dtype(stored)).view(unsigned) ^ negative),)
    values = _buffer(array, np.dtype(stored)) + np.dtype(stored).type(0)  # a copy, with 0.0 for -0.0
    if signed:
        values = _buffer(array, np.dtype(stored)).copy()
    values[values != values] = np.nan
    bits = values.view(unsigned)
    return (_big_endian(np.where(bits & negative, ~bits, bits | negative)),)


def sign(width: int) -> Any:
    """The most significant bit of a word of so many bytes."""
    return np.dtype(f"u{width}").type(1 << (8 * width - 1))


def _buffer(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def _big_endian(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return words.astype(words.dtype.newbyteorder(">"))


def windows(data: Bytes, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The word that begins at each byte, as a view: to read or write words at any positions. data: contiguous."""
    return np.ndarray((max(len(data) - dtype.itemsize + 1, 0),), dtype, data, strides=(1,))
