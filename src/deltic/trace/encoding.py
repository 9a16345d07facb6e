"""Values as words: one or two int64 for each, so that the order of words is the order of values, NULL first.

Integers, BOOLEAN (0, 1), DATE (days) and TIMESTAMP (microseconds UTC) are themselves. FLOAT and DOUBLE are the bits of the double b,
as they are if b ≥ 0, else with all but the sign flipped; there is one NaN, and -0.0 is the word -1. DECIMAL of up to 18 digits is
the unscaled integer, a wider one its high and low 64 bits, the low with its top bit flipped. A STRING is its id (trace/strings.py),
which has no order. NULL is the marker, INT64_MIN, in the first word; a nullable BIGINT has a flag word before it instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import ConstraintViolation
from deltic.schema import BIGINT, STRING, Field, Schema, Type
from deltic.trace.strings import StringTable

Words = tuple[np.ndarray, ...]
MARKER = np.int64(np.iinfo(np.int64).min)
MAGNITUDE = np.int64(np.iinfo(np.int64).max)
NAN_BITS = np.int64(0x7FF8000000000000)
WIDE = 18


def words_of(type_: Type, nullable: bool) -> int:
    """How many words a value takes."""
    if type_ == BIGINT:
        return 2 if nullable else 1
    return 2 if type_.is_decimal and type_.precision > WIDE else 1


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the words of each field stand in a row. strings: the words that are string ids."""

    width: int
    slices: tuple[slice, ...]
    strings: tuple[int, ...]

    @staticmethod
    def of(schema: Schema) -> Layout:
        return _layout(schema)


@lru_cache(maxsize=4096)
def _layout(schema: Schema) -> Layout:
    slices, at = [], 0
    for f in schema:
        slices.append(slice(at, at := at + words_of(f.type, f.nullable)))
    strings = tuple(s.start for s, f in zip(slices, schema, strict=True) if f.type == STRING)
    return Layout(at, tuple(slices), strings)


def encode(array: pa.Array | pa.ChunkedArray, field: Field, strings: StringTable) -> Words:
    """The words of a column of exactly `field.type.arrow`; nothing is copied for NOT NULL BIGINT.

    Raises ConstraintViolation, with the row in `.row`, for NULL in a NOT NULL column.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks)
    if array.null_count and not field.nullable:
        raise _null_found(array, field)
    if field.type == STRING:
        return (strings.intern(array),)
    return _encoded(array, field)


def encode_words(array: pa.Array, field: Field) -> Words:
    """The words of a column that holds no strings."""
    assert field.type != STRING
    return _encoded(array, field)


def _null_found(array: pa.Array, field: Field) -> ConstraintViolation:
    row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
    error = ConstraintViolation(f"column {field.name} is NOT NULL, and row {row} has NULL", expected=f"a {field.type.sql} in every row")
    error.row = row
    return error


def _encoded(array: pa.Array, field: Field) -> Words:
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    words = _words(array, field.type, missing)
    if words_of(field.type, field.nullable) > len(words):
        flag = np.ones(len(array), np.int64) if missing is None else (~missing).astype(np.int64)
        return (flag, words[0] if missing is None else np.where(missing, 0, words[0]))
    if missing is None:
        return words
    return (np.where(missing, MARKER, words[0]), *(np.where(missing, 0, w) for w in words[1:]))


def _words(array: pa.Array, type_: Type, missing: np.ndarray | None) -> Words:
    """Words of the values; anything where they are missing."""
    if type_.is_decimal:
        pairs = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
        if type_.precision <= WIDE:
            return (np.ascontiguousarray(pairs[:, 0]),)
        return (np.ascontiguousarray(pairs[:, 1]), pairs[:, 0] ^ MARKER)
    if type_.name in ("DATE", "TIMESTAMP"):
        array = array.view(pa.int32() if type_.name == "DATE" else pa.int64())
    if missing is not None:
        array = pc.fill_null(array, False if type_.name == "BOOLEAN" else 0)
    values = array.to_numpy(zero_copy_only=False)
    if not type_.is_float:
        return (values.astype(np.int64, copy=False),)
    return (_float_words(values.astype(np.float64, copy=False)),)


def _float_words(values: np.ndarray) -> np.ndarray:
    bits = np.where(np.isnan(values), NAN_BITS, np.ascontiguousarray(values).view(np.int64))
    return np.where(bits < 0, bits ^ MAGNITUDE, bits)


def decode(words: Sequence[np.ndarray], field: Field, strings: StringTable) -> pa.Array:
    """The column that the words stand for; nothing is copied for NOT NULL BIGINT."""
    if field.type == STRING:
        return strings.decode(words[0])
    split = len(words) > words_of(field.type, False)
    missing = None
    if field.nullable:
        missing = words[0] == (0 if split else MARKER)
        if not missing.any():
            missing = None
    values = words[1:] if split else words
    return _array(values, field.type, missing)


def _array(words: Sequence[np.ndarray], type_: Type, missing: np.ndarray | None) -> pa.Array:
    if type_.is_decimal:
        return _decimals(words, type_, missing)
    values = words[0]
    if type_.is_float:
        floats = np.where(values < 0, values ^ MAGNITUDE, values).view(np.float64)
        return pa.array(floats.astype(np.float32) if type_.name == "FLOAT" else floats, mask=missing)
    if missing is not None:
        values = np.where(missing, 0, values)
    if type_.name == "BOOLEAN":
        return pa.array(values != 0, mask=missing)
    if type_.name in ("DATE", "TIMESTAMP"):
        whole = pa.array(values.astype(np.int32) if type_.name == "DATE" else values, mask=missing)
        return whole.view(type_.arrow)
    return pa.array(values.astype(_NUMPY[type_.name], copy=False), mask=missing)


_NUMPY = {"TINYINT": np.int8, "SMALLINT": np.int16, "INT": np.int32, "BIGINT": np.int64}


def _decimals(words: Sequence[np.ndarray], type_: Type, missing: np.ndarray | None) -> pa.Array:
    pairs = np.empty((len(words[0]), 2), np.int64)
    if type_.precision <= WIDE:
        pairs[:, 0] = words[0]
        pairs[:, 1] = words[0] >> np.int64(63)
    else:
        pairs[:, 0] = words[1] ^ MARKER
        pairs[:, 1] = words[0]
    if missing is not None:
        pairs[missing] = 0
    valid = None if missing is None else pa.array(~missing).buffers()[1]
    return pa.Array.from_buffers(type_.arrow, len(pairs), [valid, pa.py_buffer(pairs)])


def encode_table(table: pa.Table, schema: Schema, strings: StringTable) -> Words:
    """The words of all columns, in order. The table has exactly the columns of the schema."""
    return tuple(word for i, f in enumerate(schema) for word in encode(table.column(i), f, strings))


def decode_table(words: Sequence[np.ndarray], schema: Schema, strings: StringTable) -> pa.Table:
    """The table that the words stand for."""
    arrays = [decode(words[s], f, strings) for s, f in zip(Layout.of(schema).slices, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def encode_rows(rows: Iterable[Sequence[Any]], schema: Schema, strings: StringTable) -> Words:
    """The words of a few rows of Python values."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return tuple(w for values, f in zip(columns, schema, strict=True) for w in encode(pa.array(values, f.type.arrow), f, strings))
