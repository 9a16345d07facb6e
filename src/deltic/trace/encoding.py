"""Values as words: one or two int64 for each, so that the order of words is the order of values, NULL first.

Integers, BOOLEAN (0, 1), DATE (days), TIMESTAMP and TIME (microseconds) and INTERVAL (microseconds or months) are themselves.
FLOAT and DOUBLE are the bits of the double b, as they are if b ≥ 0, else with all but the sign flipped; there is one NaN, and -0.0
is the word -1. DECIMAL of up to 18 digits is the unscaled integer, a wider one its high and low 64 bits, the low with its top bit flipped.
A STRING is its id (trace/strings.py), which has no order; so is a BINARY, and an ARRAY, MAP, STRUCT or VARIANT that of its canonical bytes.
NULL is the marker, INT64_MIN, in the first word (0 in the second); a nullable BIGINT has a flag word before its
value instead: 0 for NULL, whose value is then 0, else 1. A VOID is always the marker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic.domains import outside
from deltic.errors import ConstraintViolation, CorruptState
from deltic.kernels import floats
from deltic.kernels.table import address
from deltic.schema import BIGINT, NULL, Field, Schema, Type
from deltic.trace import nested
from deltic.trace.strings import StringTable
from deltic.trace.sums import NARROW
from deltic.types import frozen_list

Words = tuple[npt.NDArray[np.int64], ...]
Mask = npt.NDArray[np.bool_]
Decoder = Callable[[Sequence[npt.NDArray[np.int64]], StringTable], pa.Array]
"""The column that words encode. strings: those of the words that are ids."""
MARKER = np.int64(np.iinfo(np.int64).min)
NEGATIVE_ZERO = np.int64(-1)
"""The word of -0.0."""

_INT64 = pa.int64().id
_LONG: np.dtype[Any] = np.dtype(np.int64)


def words_of(type_: Type, nullable: bool) -> int:
    """How many words a value takes."""
    if type_ == BIGINT:
        return 2 if nullable else 1
    return 2 if type_.is_decimal and type_.precision > NARROW else 1


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of each field's words in a row. strings: the positions of string ids."""

    width: int
    slices: tuple[slice, ...]
    strings: tuple[int, ...]

    @staticmethod
    def of(schema: Schema) -> Layout:
        return _layout(schema)

    def blank(self) -> npt.NDArray[np.int64]:
        """int64[width], the words of a row without values: strings are NULL, since every other id must be that of a string."""
        words = np.zeros(self.width, np.int64)
        words[list(self.strings)] = MARKER
        return words


@lru_cache(maxsize=4096)
def _layout(schema: Schema) -> Layout:
    slices, end = [], 0
    for f in schema:
        slices.append(slice(end, end := end + words_of(f.type, f.nullable)))
    strings = tuple(s.start for s, f in zip(slices, schema, strict=True) if f.type.has_bytes)
    return Layout(end, tuple(slices), strings)


def encode(array: pa.Array | pa.ChunkedArray, field: Field, strings: StringTable) -> Words:
    """The words of a column, int64[n] each; nothing is copied for NOT NULL BIGINT.

    array: of `field.type.arrow` (a STRING also large or as a dictionary), or of a type of its kind whose values fit.
    Raises ConstraintViolation, with the row in `.row`, for NULL in a NOT NULL column and for values that do not fit.
    """
    array = whole(array)
    if field.type is BIGINT and not field.nullable and array.type.id == _INT64 and not array.null_count:
        return (_values(array, _LONG),)  # what most columns of a small tick are
    if not field.type.has_bytes:
        return encode_words(array, field)
    if array.null_count and not field.nullable:
        raise _null_error(array, field)
    return (strings.intern(nested.to_bytes(array, field.type) if field.type.held.is_nested else array),)


def whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The chunks of a column as one."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    if array.num_chunks == 1:
        return array.chunk(0)
    combined = array.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def encode_words(array: pa.Array, field: Field) -> Words:
    """`encode` for a column whose values have no bytes."""
    assert not field.type.has_bytes
    if array.type != field.type.arrow:
        array = _fitted(array, field)
    nulls = array.null_count
    if nulls and not field.nullable:
        raise _null_error(array, field)
    if field.type == NULL:
        return (np.full(len(array), MARKER),)
    if field.type.is_decimal:
        return _decimal_words(array, field)
    words = _words(array, field)
    if nulls:
        valid = _bits(array, 0)
        if field.type == BIGINT:
            flag = valid.astype(np.int64)
            return flag, words * flag
        words = np.where(valid, words, MARKER)
    elif field.type == BIGINT and field.nullable:
        return np.ones(len(array), np.int64), words
    return (words,)


def _words(array: pa.Array, field: Field) -> npt.NDArray[np.int64]:
    """Words of the values; anything where they are NULL."""
    if field.type.kind.stored == "bits":
        return _bits(array, 1).astype(np.int64)
    values = _values(array, np.dtype(field.type.kind.stored))
    if field.type.is_float:
        doubles = values.astype(np.float64, copy=False).view(np.int64)
        out = np.empty(len(values), np.int64)
        floats.order_bits(address(doubles), len(values), 0, out)
        return out
    words: npt.NDArray[np.int64] = values.astype(np.int64, copy=False)
    if field.type.kind.stored == "i8" and field.type != BIGINT and (words == MARKER).any():
        _refuse_marker(array, words, field)
    return words


def _values(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The values in the Arrow buffer, not copied if they are aligned."""
    buffer = array.buffers()[1]
    if not len(array) or buffer is None:
        return np.zeros(len(array), dtype)
    values: npt.NDArray[Any] = np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)
    return values if values.flags.aligned else values.copy()


def _bits(array: pa.Array, buffer: int) -> npt.NDArray[np.uint8]:
    """uint8[n] 0 or 1: the bits of a bitmap buffer (0: which rows are not NULL, 1: BOOLEAN values)."""
    bitmap = array.buffers()[buffer]
    if not len(array) or bitmap is None:
        return np.zeros(len(array), np.uint8)
    start, skip = divmod(array.offset, 8)
    packed = np.frombuffer(bitmap, np.uint8, (skip + len(array) + 7) // 8, start)
    return np.unpackbits(packed, bitorder="little")[skip : skip + len(array)]


def _decimal_words(array: pa.Array, field: Field) -> Words:
    """Words of decimals, NULL included."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise _unfit(array, field, _first_failing(array, lambda part: part.validate(full=True))) from None
    words = _values(array, np.dtype((np.void, 16))).view(np.int64)
    low, high = words[0::2], words[1::2]
    if (high == MARKER).any() and (row := pc.index(pc.and_(pa.array(high == MARKER), array.is_valid()), True).as_py()) >= 0:
        raise _unfit(array, field, row)  # -2^127, which has no absolute value: Arrow takes it for a decimal of any precision
    encoded: Words = (np.ascontiguousarray(low),) if field.type.precision <= NARROW else (np.ascontiguousarray(high), low ^ MARKER)
    if not array.null_count:
        return encoded
    valid = _bits(array, 0)
    return (np.where(valid, encoded[0], MARKER), *(word * valid for word in encoded[1:]))


def _null_error(array: pa.Array, field: Field) -> ConstraintViolation:
    row = array.is_null().index(True).as_py()
    return _violation(f"column {field.name} is NOT NULL, and row {row} has NULL", field, row)


def _refuse_marker(array: pa.Array, words: npt.NDArray[np.int64], field: Field) -> None:
    for row in np.flatnonzero(words == MARKER).tolist():
        if array[row].is_valid:
            raise _violation(f"column {field.name}, row {row}: a {field.type.sql} of {MARKER} microseconds is out of range", field, row)


def _unfit(array: pa.Array, field: Field, row: int) -> ConstraintViolation:
    return _violation(f"column {field.name}, row {row}: {array[row]} does not fit {field.type.sql}", field, row)


def _violation(message: str, field: Field, row: int) -> ConstraintViolation:
    error = ConstraintViolation(message, expected=f"a {field.type.sql}{'' if field.nullable else ' in every row'}")
    error.row = row
    return error


def _fitted(array: pa.Array, field: Field) -> pa.Array:
    """The same values as a column of the field's type."""
    kind, t = array.type, pa.types
    number = t.is_integer(kind) or t.is_decimal(kind)
    assert (
        t.is_null(kind)
        or (number and (field.type.is_integer or field.type.is_decimal))
        or (t.is_floating(kind) and field.type.is_float)
        or (t.is_timestamp(kind) and t.is_timestamp(field.type.arrow))
        or (t.is_time(kind) and field.type.is_time)
    ), f"Arrow {kind} for {field.type.sql}"
    try:
        return array.cast(field.type.arrow)
    except pa.ArrowInvalid:
        raise _unfit(array, field, _first_failing(array, lambda part: part.cast(field.type.arrow))) from None


def _first_failing(array: pa.Array, check: Callable[[pa.Array], object]) -> int:
    """The first row on which the check fails, given that it fails on one. O(n) by halving."""
    start, length = 0, len(array)
    while length > 1:
        half = length // 2
        try:
            check(array.slice(start, half))
        except pa.ArrowInvalid:
            length = half
        else:
            start, length = start + half, length - half
    return start


def decode(words: Sequence[npt.NDArray[np.int64]], field: Field, strings: StringTable) -> pa.Array:
    """The column that the words encode, of `field.type.arrow`; nothing is copied for NOT NULL BIGINT."""
    return decoder(field)(words, strings)


def decoder(field: Field) -> Decoder:
    """A function that returns `decode` of words, for columns that are decoded again and again."""
    type_ = field.type
    if type_.has_bytes:
        return lambda words, strings: _from_bytes(words[0], type_, strings)
    if type_ == NULL:
        return lambda words, _: pa.nulls(len(words[0]))
    values = _value_decoder(field)
    if not field.nullable:
        return lambda words, _: values(words, None)
    none = 0 if type_ == BIGINT else MARKER

    def decoded(words: Sequence[npt.NDArray[np.int64]], _: StringTable) -> pa.Array:
        missing = words[0] == none
        return values(words, missing if missing.any() else None)

    return decoded


def _value_decoder(field: Field) -> Callable[[Sequence[npt.NDArray[np.int64]], Mask | None], pa.Array]:
    """A function of words and a mask of those that are NULL."""
    type_, arrow = field.type, field.type.arrow
    if type_.is_decimal:
        return lambda words, missing: _decimals(words, type_, missing)
    if type_.kind.ends is None:
        if type_.kind.stored == "i8":
            return lambda words, missing: _as_they_are(words[-1], arrow, missing)
        return lambda words, missing: _array(words[-1], type_, missing)

    def checked(words: Sequence[npt.NDArray[np.int64]], missing: Mask | None) -> pa.Array:
        array = _array(words[-1], type_, missing)
        if (wrong := outside(type_, array)) is not None:
            raise CorruptState(f"a value of the state is damaged: {wrong.what} in column {field.name}", expected="words that Deltic wrote")
        return array

    return checked


def decode_field(ids: npt.NDArray[np.int64], type_: Type, path: tuple[int, ...], strings: StringTable) -> pa.Array:
    """A field of STRUCTs, of which only it is decoded. ids: their words. path: the position of the field, or of one in it, and so on."""
    try:
        return nested.field_from_bytes(strings.located(ids), type_, path)
    except nested.Damaged as error:
        raise _damaged(error) from None


def _damaged(error: nested.Damaged) -> CorruptState:
    return CorruptState(f"a value of the state is damaged: {error}", expected="a dictionary that Deltic wrote")


def _from_bytes(ids: npt.NDArray[np.int64], type_: Type, strings: StringTable) -> pa.Array:
    if type_.is_text:
        return strings.decode(ids)
    if not type_.held.is_nested:
        return strings.bytes_of(ids)
    try:
        return nested.from_bytes(strings.located(ids), type_)
    except nested.Damaged as error:
        raise _damaged(error) from None


def _array(words: npt.NDArray[np.int64], type_: Type, missing: Mask | None) -> pa.Array:
    if type_.kind.stored == "i8":
        return _as_they_are(words, type_.arrow, missing)
    if type_.kind.stored == "bits":
        return pa.array(words > 0, mask=missing)
    stored = np.dtype(type_.kind.stored)
    if type_.is_float:
        bits = np.empty(len(words), np.int64)
        floats.order_bits(address(np.ascontiguousarray(words)), len(words), 1, bits)
        return pa.array(bits.view(np.float64).astype(stored, copy=False), mask=missing)
    whole = pa.array(words.astype(stored, copy=False), mask=missing)
    return whole if type_.is_integer else whole.view(type_.arrow)


def _as_they_are(words: npt.NDArray[np.int64], arrow: pa.DataType, missing: Mask | None) -> pa.Array:
    """Words as values of 64 bits; nothing is copied."""
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(arrow, len(words), [valid, pa.py_buffer(np.ascontiguousarray(words))])


def _decimals(words: Sequence[npt.NDArray[np.int64]], type_: Type, missing: Mask | None) -> pa.Array:
    pairs = np.empty((len(words[0]), 2), np.int64)
    if type_.precision <= NARROW:
        pairs[:, 0] = words[0]
        pairs[:, 1] = words[0] >> np.int64(63)
    else:
        pairs[:, 0] = words[1] ^ MARKER
        pairs[:, 1] = words[0]
    valid = None
    if missing is not None:
        pairs[missing] = 0
        valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(type_.arrow, len(pairs), [valid, pa.py_buffer(pairs)])


def encode_table(table: pa.Table | pa.RecordBatch, schema: Schema, strings: StringTable) -> Words:
    """The words of all columns, in order. The first columns of the table must be those of the schema. Raises as `encode`."""
    return tuple(word for i, f in enumerate(schema) for word in encode(table.column(i), f, strings))


def decode_table(words: Sequence[npt.NDArray[np.int64]], schema: Schema, strings: StringTable) -> pa.Table:
    """The table that the words encode."""
    arrays = [decode(words[s], f, strings) for s, f in zip(Layout.of(schema).slices, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def decode_values(words: Sequence[npt.NDArray[np.int64]], field: Field, strings: StringTable) -> list[Any]:
    """The values that the words encode, as `decode_rows` returns them."""
    if field.type is BIGINT and not field.nullable:
        values: list[Any] = words[0].tolist()
        return values
    return frozen_list(decode(words, field, strings))


def decode_rows(words: Sequence[npt.NDArray[np.int64]], schema: Schema, strings: StringTable, rows: int) -> list[tuple[Any, ...]]:
    """`rows` rows as Python values (those of expr/nodes.py)."""
    columns = [decode_values(words[s], f, strings) for s, f in zip(Layout.of(schema).slices, schema, strict=True)]
    return list(zip(*columns, strict=True)) if columns else [()] * rows


def encode_rows(rows: Iterable[Sequence[Any]], schema: Schema, strings: StringTable) -> Words:
    """The words of a few rows of Python values (those of expr/nodes.py). Raises as `encode`."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return tuple(w for values, f in zip(columns, schema, strict=True) for w in encode(_arrow(values, f), f, strings))


def _arrow(values: Sequence[Any], field: Field) -> pa.Array:
    try:
        return pa.array(values, field.type.arrow)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        for row, value in enumerate(values):
            if not _is_fit(value, field.type.arrow):
                raise _violation(f"column {field.name}, row {row}: {value!r} does not fit {field.type.sql}", field, row) from None
        raise


def _is_fit(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return True
