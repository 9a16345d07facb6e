"""Words: every value survives the round trip, words sort like values, and a value that does not fit is refused by row."""

from __future__ import annotations

import math
import pickle
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import deltic
from deltic.errors import ConstraintViolation
from deltic.kernels import warm_up
from deltic.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGER_BITS,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Field,
    Schema,
    Type,
    decimal,
)
from deltic.trace.encoding import Layout, decode, decode_table, encode, encode_rows, encode_table, words_of
from deltic.types import type_of
from tests.support.strings import string_table

MARKER = -(2**63)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
warm_up()  # from here on a kernel refuses arrays that it was not declared for


def whole(low: int, high: int) -> st.SearchStrategy[int]:
    """Integers of a range, its ends and zero often."""
    return st.sampled_from([low, low + 1, -1, 0, 1, high - 1, high]) | st.integers(low, high)


def decimals_of(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return whole(-limit, limit).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


VALUES: dict[Type, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    **{t: whole(-(2 ** (INTEGER_BITS[t.name] - 1)), 2 ** (INTEGER_BITS[t.name] - 1) - 1) for t in (TINYINT, SMALLINT, INT, BIGINT)},
    FLOAT: st.floats(width=32) | st.sampled_from([-0.0, 0.0, math.nan, math.inf, -math.inf, 2.0**-149]),
    DOUBLE: st.floats() | st.sampled_from([-0.0, 0.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324, 1.7976931348623157e308]),
    STRING: st.text(max_size=12),
    DATE: st.dates(),
    TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
    decimal(1, 0): decimals_of(1, 0),
    decimal(10, 2): decimals_of(10, 2),
    decimal(18, 18): decimals_of(18, 18),
    decimal(19, 0): decimals_of(19, 0),
    decimal(38, 10): decimals_of(38, 10),
}


@st.composite
def columns(draw: st.DrawFn, types: tuple[Type, ...] = tuple(VALUES)) -> tuple[Field, list[Any]]:
    type_, nullable = draw(st.sampled_from(types)), draw(st.booleans())
    values = VALUES[type_]
    return Field("x", type_, nullable), draw(st.lists(st.none() | values if nullable else values, max_size=20))


def same(a: Any, b: Any) -> bool:
    """Equal, with NaN equal to NaN and -0.0 different from 0.0."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or struct.pack("d", a) == struct.pack("d", b)
    return type(a) is type(b) and bool(a == b)


@settings(deadline=None)
@given(columns())
@example((Field("x", BIGINT, True), [None, 0, MARKER, -1]))
@example((Field("x", DOUBLE, False), [struct.unpack("d", b"\x01\x00\x00\x00\x00\x00\xf8\xff")[0]]))
def test_values_survive_the_round_trip(column: tuple[Field, list[Any]]) -> None:
    field, values = column
    strings = string_table(1)
    words = encode(pa.array(values, field.type.arrow), field, strings)
    assert len(words) == words_of(field.type, field.nullable)
    assert all(w.dtype == np.int64 and w.flags.c_contiguous and len(w) == len(values) for w in words)
    back = decode(words, field, strings)
    assert back.type == field.type.arrow
    back.validate(full=True)
    assert back.null_count == values.count(None)
    assert all(map(same, back.to_pylist(), values))


@settings(deadline=None)
@given(columns(), st.integers(0, 20), st.integers(0, 20))
def test_a_slice_of_an_array_is_read_from_its_offset(column: tuple[Field, list[Any]], start: int, length: int) -> None:
    field, values = column
    strings = string_table(1)
    part = pa.array(values, field.type.arrow).slice(start, length)
    back = decode(encode(part, field, strings), field, strings)
    assert all(map(same, back.to_pylist(), values[start : start + length]))
    assert len(back) == len(values[start : start + length])


@settings(deadline=None)
@given(columns(), st.integers(0, 20))
def test_chunks_are_one_column(column: tuple[Field, list[Any]], cut: int) -> None:
    field, values = column
    chunks = pa.chunked_array([pa.array(part, field.type.arrow) for part in (values[:cut], values[cut:])])
    strings = string_table(1)
    apart, together = encode(chunks, field, strings), encode(pa.array(values, field.type.arrow), field, strings)
    assert all(map(np.array_equal, apart, together))


def rank(value: Any) -> tuple[Any, ...]:
    """Sorts as Spark does: NULL first, NaN last, -0.0 before 0.0 (keys are made equal before they are encoded)."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, 0.0 if math.isnan(value) else value))
    return (1, value)


@settings(deadline=None)
@given(columns(tuple(t for t in VALUES if t != STRING)))
def test_words_sort_like_values(column: tuple[Field, list[Any]]) -> None:
    field, values = column
    words = encode(pa.array(values, field.type.arrow), field, string_table(1))
    keys = list(zip(*(w.tolist() for w in words), strict=True))
    for key, value in zip(keys, values, strict=True):
        for other, another in zip(keys, values, strict=True):
            assert (key < other) == (rank(value) < rank(another))
            assert (key == other) == (rank(value) == rank(another))


def test_words_follow_the_contract() -> None:
    strings = string_table(1)

    def words(field: Field, values: list[Any]) -> list[list[int]]:
        return [w.tolist() for w in encode(pa.array(values, field.type.arrow), field, strings)]

    assert words(Field("x", BIGINT, True), [None, MARKER, 5]) == [[0, 1, 1], [0, MARKER, 5]]
    assert words(Field("x", BIGINT, False), [MARKER]) == [[MARKER]]
    assert words(Field("x", INT), [None, -7]) == [[MARKER, -7]]
    assert words(Field("x", BOOLEAN), [None, False, True]) == [[MARKER, 0, 1]]
    assert words(Field("x", DOUBLE), [None, -0.0, 0.0, math.nan]) == [[MARKER, -1, 0, 0x7FF8000000000000]]
    assert words(Field("x", FLOAT), [0.5]) == words(Field("x", DOUBLE), [0.5])
    assert words(Field("x", DATE), [date(1969, 12, 31)]) == [[-1]]
    assert words(Field("x", TIMESTAMP), [EPOCH - timedelta(microseconds=1)]) == [[-1]]
    assert words(Field("x", decimal(18, 2)), [None, Decimal("-1.25")]) == [[MARKER, -125]]
    assert words(Field("x", decimal(19, 2)), [None, Decimal("-0.01"), Decimal("0.01")]) == [[MARKER, -1, 0], [0, 2**63 - 1, MARKER + 1]]
    assert words(Field("x", STRING), [None]) == [[MARKER]]


def test_void_is_always_null() -> None:
    field = Field("x", NULL)
    words = encode(pa.nulls(3), field, string_table(1))
    assert [w.tolist() for w in words] == [[MARKER] * 3]
    assert decode(words, field, string_table(1)).equals(pa.nulls(3))


def test_not_null_bigint_is_not_copied() -> None:
    field, strings = Field("x", BIGINT, False), string_table(1)
    array = pa.array(np.arange(10))
    (word,) = encode(pa.chunked_array([array]), field, strings)
    assert word.ctypes.data == array.buffers()[1].address
    assert decode((word,), field, strings).buffers()[1].address == word.ctypes.data


def test_unaligned_buffers_are_copied() -> None:
    data = pa.py_buffer(b"x" + np.arange(4).tobytes())
    array = pa.Array.from_buffers(pa.int64(), 4, [None, data.slice(1)])
    (word,) = encode(array, Field("x", BIGINT, False), string_table(1))
    assert word.tolist() == [0, 1, 2, 3] and word.flags.aligned


@pytest.mark.parametrize("type_", list(VALUES), ids=str)
def test_null_in_a_not_null_column_is_refused_by_row(type_: Type) -> None:
    array = pa.concat_arrays([pa.array([None, *([_any(type_)] * 3)], type_.arrow), pa.array([None], type_.arrow)]).slice(1)
    with pytest.raises(ConstraintViolation, match="column spent is NOT NULL, and row 3 has NULL") as caught:
        encode(array, Field("spent", type_, False), string_table(1))
    assert caught.value.row == 3


def _any(type_: Type) -> Any:
    return {"STRING": "a", "DATE": date(2000, 1, 1), "TIMESTAMP": EPOCH, "BOOLEAN": True, "DECIMAL": Decimal(0)}.get(type_.name, 1)


@pytest.mark.parametrize(
    ("array", "type_", "row"),
    [
        (pa.array([1, None, 127, 128]), TINYINT, 3),
        (pa.array([-32769, 0], pa.int32()), SMALLINT, 0),
        (pa.array([2**31 - 1, -(2**31), -(2**31) - 1]), INT, 2),
        (pa.array([2**63 - 1, 2**63], pa.uint64()), BIGINT, 1),
        (pa.array([Decimal("9.9"), Decimal("10.0")]), decimal(2, 1), 1),
        (pa.array([0, MARKER], pa.int64()).view(pa.timestamp("us", "UTC")), TIMESTAMP, 1),
    ],
)
def test_values_out_of_range_are_refused_by_row(array: pa.Array, type_: Type, row: int) -> None:
    with pytest.raises(ConstraintViolation, match=f"column x, row {row}: ") as caught:
        encode(array, Field("x", type_), string_table(1))
    assert caught.value.row == row


@pytest.mark.parametrize("precision", [2, 18, 19, 37, 38])
@pytest.mark.parametrize("sign", [1, -1])
def test_decimals_with_more_digits_than_their_type_are_refused(precision: int, sign: int) -> None:
    field = Field("x", decimal(precision, 0))
    kept = decimal_array([0, sign * (10**precision - 1), None], precision)
    back = decode(encode(kept, field, string_table(1)), field, string_table(1))
    assert back.equals(kept)
    bad = decimal_array([None, 0, *([1] * 9), sign * 10**precision], precision)
    with pytest.raises(ConstraintViolation, match="column x, row 10: ") as caught:
        encode(bad.slice(1), field, string_table(1))
    assert caught.value.row == 10


def decimal_array(numbers: list[int | None], precision: int) -> pa.Array:
    """Unscaled numbers as they are, whether they fit or not."""
    data = b"".join((n or 0).to_bytes(16, "little", signed=True) for n in numbers)
    valid = np.packbits([n is not None for n in numbers], bitorder="little")
    return pa.Array.from_buffers(pa.decimal128(precision, 0), len(numbers), [pa.py_buffer(valid), pa.py_buffer(data)])


def test_bytes_under_null_are_ignored() -> None:
    hidden = pa.Array.from_buffers(pa.decimal128(2, 0), 1, [pa.py_buffer(b"\x00"), decimal_array([10**30], 2).buffers()[1]])
    assert encode(hidden, Field("x", decimal(2, 0)), string_table(1))[0].tolist() == [MARKER]
    moment = pa.Array.from_buffers(pa.timestamp("us", "UTC"), 1, [pa.py_buffer(b"\x00"), pa.py_buffer(np.array([MARKER]))])
    assert encode(moment, Field("x", TIMESTAMP), string_table(1))[0].tolist() == [MARKER]


def test_kinds_that_never_fit_assert() -> None:
    with pytest.raises(AssertionError, match="Arrow string for INT"):
        encode(pa.array(["1"]), Field("x", INT), string_table(1))


SCHEMA = Schema(
    (
        Field("id", BIGINT, False),
        Field("name", STRING),
        Field("total", decimal(38, 2)),
        Field("seen", BIGINT),
        Field("tag", STRING, False),
    )
)
ROWS = [(1, "ä", Decimal("1.50"), None, ""), (2, None, None, 7, "x"), (3, "", Decimal(-1), 0, "x")]


def test_layout() -> None:
    layout = Layout.of(SCHEMA)
    assert layout.width == 7
    assert layout.slices == (slice(0, 1), slice(1, 2), slice(2, 4), slice(4, 6), slice(6, 7))
    assert layout.strings == (1, 6)
    assert layout is Layout.of(Schema(SCHEMA.fields))


def test_tables_and_rows_have_the_same_words() -> None:
    strings = string_table(1)
    columns_ = [pa.array(values, f.type.arrow) for values, f in zip(zip(*ROWS, strict=True), SCHEMA, strict=True)]
    table = pa.Table.from_arrays(columns_, schema=SCHEMA.arrow)
    words = encode_table(table, SCHEMA, strings)
    assert all(map(np.array_equal, words, encode_rows(ROWS, SCHEMA, strings)))
    assert decode_table(words, SCHEMA, strings).equals(table)


def test_no_rows() -> None:
    words = encode_rows([], SCHEMA, string_table(1))
    assert [len(w) for w in words] == [0] * Layout.of(SCHEMA).width
    assert decode_table(words, SCHEMA, string_table(1)).num_rows == 0


@pytest.mark.parametrize(
    ("value", "type_"), [(128, TINYINT), (2**63, BIGINT), (2**80, BIGINT), (Decimal("1.005"), decimal(10, 2)), ("a", INT)]
)
def test_python_values_that_do_not_fit_are_refused_by_row(value: Any, type_: Type) -> None:
    with pytest.raises(ConstraintViolation, match="column x, row 1: ") as caught:
        encode_rows([(1,), (value,)], Schema((Field("x", type_),)), string_table(1))
    assert caught.value.row == 1


def test_types_without_parameters_are_one_object_each_however_they_are_named() -> None:
    """The encoding of a small tick tells BIGINT by identity."""
    session = deltic.Session()
    session.sql("CREATE TABLE t (a BIGINT, b LONG NOT NULL, c STRING)")
    assert [field.type for field in session.table("t").schema] == [BIGINT, BIGINT, STRING]
    assert all(field.type is (STRING if field.name == "c" else BIGINT) for field in session.table("t").schema)
    assert Type.parse("BIGINT") is BIGINT
    assert type_of(pa.int64()) is BIGINT
    assert all(pickle.loads(pickle.dumps(one)) is one for one in (BIGINT, STRING))
