"""Values from text: what the grammar takes, and that the way for whole columns takes nothing else and means the same."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deltic.connectors.files.portions import Fault
from deltic.connectors.files.text import from_text, parse
from deltic.schema import BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, TINYINT, Type, decimal
from file_data import TYPES

MIDNIGHT = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("+007", INT, 7),
        ("-128", TINYINT, -128),
        ("-0", INT, 0),
        ("TRUE", BOOLEAN, True),
        ("False", BOOLEAN, False),
        ("1e3", DOUBLE, 1000.0),
        (".5", DOUBLE, 0.5),
        ("5.", DOUBLE, 5.0),
        ("-inf", DOUBLE, -math.inf),
        ("+Infinity", DOUBLE, math.inf),
        ("1e-400", DOUBLE, 0.0),
        ("0.1", FLOAT, pa.scalar(0.1, pa.float32()).as_py()),
        ("1.0000000596046448", FLOAT, 1.0000001192092896),  # rounded to a double first it would be 1.0
        ("1.50", decimal(2, 1), Decimal("1.5")),
        ("1e2", decimal(3, 0), Decimal(100)),
        ("0e999", decimal(3, 0), Decimal(0)),
        ("-0.0e-99999999", decimal(3, 0), Decimal(0)),
        ("1e-0000000000001", decimal(3, 1), Decimal("0.1")),
        ("1" + "0" * 200 + "e-200", decimal(3, 0), Decimal(1)),
        ("9" * 38, decimal(38, 0), Decimal("9" * 38)),
        ("2024-02-29", DATE, MIDNIGHT.date()),
        ("2024-3-1", DATE, dt.date(2024, 3, 1)),
        ("0001-01-01", DATE, dt.date(1, 1, 1)),
        ("2024-02-29", TIMESTAMP, MIDNIGHT),
        ("2024-02-29 00", TIMESTAMP, MIDNIGHT),
        ("2024-02-29T01:02", TIMESTAMP, MIDNIGHT.replace(hour=1, minute=2)),
        ("2024-02-29T00:00:00.5", TIMESTAMP, MIDNIGHT.replace(microsecond=500_000)),
        ("2024-02-29T00:00:00.123456000Z", TIMESTAMP, MIDNIGHT.replace(microsecond=123_456)),
        ("2024-02-29 05:30:00+05:30", TIMESTAMP, MIDNIGHT),
        ("2024-02-28 16:00:00-0800", TIMESTAMP, MIDNIGHT),
        ("2024-02-29T02:00+02", TIMESTAMP, MIDNIGHT),
        ("2024-2-29 0:0:0 UTC", TIMESTAMP, MIDNIGHT),
        ("2024-02-29 02:00:00 +0200", TIMESTAMP, MIDNIGHT),
        ("", STRING, ""),
        (" x ", STRING, " x "),
    ],
)
def test_accepted_text(text: str, type_: Type, value: Any) -> None:
    assert parse(text, type_) == value
    column = from_text(type_).column(pa.array([text]))
    assert column.array.type == type_.arrow
    assert column.array.to_pylist() == [value] and not column.faults


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        *((text, INT) for text in ("", " 1", "1 ", "1.0", "1e2", "0x1F", "1_000", "1,000", "٣", "--1", "+", "nan")),
        *((text, BOOLEAN) for text in ("", "1", "0", "t", "yes", " true")),
        *((text, DOUBLE) for text in ("", ".", "1e", "1,5", "nan(1)", "infinit", "nan\n", "0x1p3", "1f", "1_0")),
        *((text, decimal(5, 2)) for text in ("", "nan", "inf", "1,5", "1_0", "$1", "1e", "0x1")),
        *((text, DATE) for text in ("", "2023-02-29", "2024-001-01", "2024-1", "20240101", "0000-01-01", "2024-01-01T00:00")),
        *((text, TIMESTAMP) for text in ("2024-01-01T24:00", "2024-01-01T10:00:60", "2024-01-01T100:00", "2024-01-01Z", "1704067200")),
        *(
            (text, TIMESTAMP)
            for text in (
                "2024-01-01T10:00+25:00",
                "2024-01-01T10:00+10:99",
                "2024-01-01T10:00  UTC",
                "2024-01-01T10:00 CET",
                "2023-02-29T10:00",
            )
        ),
    ],
)
def test_a_text_that_does_not_parse(text: str, type_: Type) -> None:
    check_refused(text, type_, out=False)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("128", TINYINT),
        ("-129", TINYINT),
        ("9" * 5000, INT),
        ("1e999", DOUBLE),
        ("3.5e38", FLOAT),
        ("1.55", decimal(3, 1)),
        ("100", decimal(3, 1)),
        ("1e99999999999", decimal(3, 1)),
        ("9999-12-31T23:59-10:00", TIMESTAMP),
        ("0001-01-01T00:00+00:01", TIMESTAMP),
    ],
)
def test_text_out_of_range(text: str, type_: Type) -> None:
    check_refused(text, type_, out=True)


def test_digits_beyond_microseconds_are_not_truncated() -> None:
    check_refused("2024-01-01T10:00:00.1234567Z", TIMESTAMP, out=False)


def check_refused(text: str, type_: Type, *, out: bool) -> None:
    fault = parse(text, type_)
    assert isinstance(fault, Fault) and fault.out == out
    column = from_text(type_).column(pa.array([text]))
    assert column.faults == {0: fault} and column.array.to_pylist() == [None]


PIECES = st.sampled_from([*"0123456789+-.eETZ: x", "2024-02-29", "T10:00", ":00", "+02:00", "inf", "nan", "true", "false", "0" * 20])
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@pytest.mark.parametrize("type_", TYPES, ids=str)
@settings(deadline=None)
@given(texts=st.lists(st.none() | TEXTS, max_size=5))
@example(texts=["2024-01-01T10:00Z", "2024-01-01T10:00"])
def test_a_column_equals_its_texts_parsed_one_by_one(type_: Type, texts: list[str | None]) -> None:
    column = from_text(type_).column(pa.array(texts, pa.string()))
    assert column.array.type == type_.arrow and len(column.array) == len(texts)
    column.array.validate(full=True)
    for i, (text, value) in enumerate(zip(texts, column.array.to_pylist(), strict=True)):
        said = None if text is None else parse(text, type_)
        assert column.faults.get(i) == (said if isinstance(said, Fault) else None)
        assert repr(value) == repr(None if isinstance(said, Fault) else pa.scalar(said, type_.arrow).as_py())


@pytest.mark.parametrize("type_", TYPES, ids=str)
@settings(deadline=None)
@given(text=TEXTS)
@example(text="0e00000000000000000000")
def test_columns_converted_as_a_whole_equal_values_converted_alone(type_: Type, text: str) -> None:
    """The fast way may leave a value to the slow one, and never takes what that refuses."""
    conversion = from_text(type_)
    try:
        fast = conversion.fast(pa.array([text]))
    except pa.ArrowException:
        return
    said = parse(text, type_)
    assert not isinstance(said, Fault)
    assert repr(fast.to_pylist()) == repr(pa.array([said], type_.arrow).to_pylist())


def test_few_invalid_values_among_many_are_located_exactly() -> None:
    texts = [str(i) for i in range(50_000)]
    for i in (0, 777, 778, 49_999):
        texts[i] = f"x{i}"
    column = from_text(INT).column(pa.array(texts))
    assert list(column.faults) == [0, 777, 778, 49_999]
    assert column.array.null_count == 4 and column.array[49_998].as_py() == 49_998
