"""Nested values as bytes: equal exactly where the values are, and in their order, so that a value is identified and sorted by its bytes.

An ARRAY, a MAP or a STRUCT is written value by value, most significant byte first:
- A part of a nested value begins with a tag: 01 for NULL, 02 before a value. 00 ends an ARRAY or a MAP; so a shorter one is less, and NULL
  is less than every value. A STRUCT is its fields. A MAP is its entries, keys and values, in the order that they have.
- Integers, dates, times: their bytes with the sign bit flipped; DECIMAL so, in 16 bytes. FLOAT and DOUBLE: their bits, all flipped if
  negative, else the sign; there is one NaN, and -0.0 is written as 0.0.
- STRING and BINARY: their bytes with 00 as 00 FF, then 00.
A value with a -0.0 in it is followed by 00 and the same once more, zeros with their signs: so it is another value, and sorts beside
the one with 0.0.

What always holds: different values have different bytes. `trace/nested.py` writes the same bytes and reads them; where they are kept is
defined elsewhere.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic import canonical_rows
from deltic.types import Type

Bytes = npt.NDArray[np.uint8]

_NULL: Final = b"\x01"
_VALUE: Final = b"\x02"
_END: Final = b"\x00"
_ESCAPED: Final = b"\x00\xff"
_BINARY: Final = pa.binary()


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


def normalized(array: pa.Array, type: Type) -> pa.Array:
    """0.0 for each -0.0, and one NaN."""
    if not type.has_zeros:
        return array
    if type.is_float:
        return pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), array.type), pc.add(array, pa.scalar(0.0, array.type)))
    mask = array.is_null() if array.null_count else None
    if type.name == "STRUCT":
        fields = [normalized(part, f.type) for part, f in zip(array.flatten(), type.parts, strict=True)]
        return pa.StructArray.from_arrays(fields, fields=list(type.arrow), mask=mask)
    lists = array.cast(type.entries.arrow) if type.name == "MAP" else array
    elements, offsets = normalized(lists.flatten(), type.entries.parts[0].type), _offsets(lists)
    if type.name == "MAP":
        return pa.MapArray.from_arrays(offsets, *elements.flatten(), type=type.arrow, mask=mask)
    return pa.ListArray.from_arrays(offsets, elements, type=type.arrow, mask=mask)


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
    return pc.binary_join_element_wise(pc.binary_join(pa.ListArray.from_arrays(_offsets(lists), elements), b""), _END, b"")


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Of the flattened elements."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))


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
