"""VARIANT as bytes: those of PySpark's builder, read back, and refused where they are damaged; JSON is read as Jackson reads it."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from deltic import Variant
from deltic.errors import DelticError, MalformedVariant
from deltic.variant_bytes import DEEPEST, fault

EMPTY = b"\x01\x00\x00"
"""Metadata without names."""


def drawn(random: Random, depth: int) -> Any:
    """A value that JSON has, often with names that come twice or sort by UTF-16, and arrays of more than 255 elements."""
    kind = random.randrange(9 if depth else 7)
    if kind == 8:
        names = [random.choice(("a", "b", "", "é", "ﬀ", "𝒳", "n" * 300)) + str(random.randrange(3)) for _ in range(random.randrange(5))]
        return {name: drawn(random, depth - 1) for name in names}
    if kind == 7:
        return [drawn(random, depth - 1) for _ in range(300 if random.random() < 0.02 else random.randrange(4))]
    wide = random.randrange(-(2 ** random.randrange(1, 64)), 2 ** random.randrange(1, 64))
    values = (
        None,
        True,
        False,
        max(-(2**63), min(wide, 2**63 - 1)),
        "x" * random.randrange(100),
        random.random() * 10.0 ** random.randrange(200),
    )
    return (*values, 10 ** random.randrange(1, 27) + 7)[kind]


def test_bytes_are_those_of_pyspark_and_are_read_back() -> None:
    utils = pytest.importorskip("pyspark.sql.variant_utils").VariantUtils
    random = Random(1)
    for _ in range(200):
        text = json.dumps(drawn(random, 4))
        found = Variant.parse_json(text)
        if not any(character in text for character in ("\\ud835", "\\ufb00")):  # PySpark sorts names by code point, Spark by UTF-16
            assert tuple(found) == utils.parse_json(text), text
        assert fault(*found) is None, text
        assert found.to_python() == utils.to_python(*found)
        assert Variant.parse_json(found.to_json()).to_json() == found.to_json()


def test_names_are_in_the_order_of_utf_16() -> None:
    """As Spark's bytes of this text."""
    expected = (b"\x02\x03\x02\x00\x01\x04\x00\x02\x06\x0c\x01\x0c\x02\x0c\x03", b"\x01\x03\x00\x04\x07\x08\xf0\x9d\x92\xb3\xef\xac\x80a")
    assert Variant.parse_json('{"𝒳":1,"ﬀ":2,"a":3}') == expected


def test_a_damaged_value_is_named_and_nothing_else_happens() -> None:
    random = Random(2)
    accepted = 0
    for _ in range(400):
        value, metadata = map(bytearray, Variant.parse_json(json.dumps(drawn(random, 3))))
        for _ in range(random.randrange(1, 4)):
            part = random.choice((value, metadata))
            part[random.randrange(len(part))] = random.randrange(256)
        damaged = bytes(value[: random.randrange(len(value) + 1)] if random.random() < 0.3 else value), bytes(metadata)
        if fault(*damaged) is None:
            accepted += 1
            Variant(*damaged).to_json()
            Variant(*damaged).to_python()
        else:
            with pytest.raises(ValueError, match="the bytes are no VARIANT"):
                Variant(*damaged).to_python()
    assert 0 < accepted < 400


def nested(levels: int, copies: int) -> bytes:
    """An array in an array …, each of which refers to the one in it several times."""
    value = b"\x0c\x01"
    for _ in range(levels):
        value = b"\x0f" + bytes((copies,)) + bytes(4 * copies) + len(value).to_bytes(4, "little") + value
    return value


@pytest.mark.parametrize(
    ("value", "metadata", "words"),
    [
        (b"", EMPTY, "end too early"),
        (b"\x0c\x01", b"", "not of version 1"),
        (b"\x0c\x01", b"\x02\x00\x00", "not of version 1"),
        (b"\x0c\x01\x00", EMPTY, "bytes after them"),
        (b"\x13\xff\xff\xff\x7f", EMPTY, "end too early"),
        (b"\x40\xff\xff\xff\xff", EMPTY, "longer than its place"),
        (b"\x02\x01\x05\x00\x02\x0c\x01", EMPTY, "no name for a field"),
        (b"\x02\x02\x01\x00\x00\x01\x02\x00\x00", b"\x01\x02\x00\x01\x02ab", "order of their names"),
        (b"\x05\xff", EMPTY, "STRING is not UTF-8"),
        (b"\x20\x0a\x01\x00\x00\x00", EMPTY, "too many places"),
        (b"\x20\x00\xff\xff\xff\x7f", EMPTY, "too many digits"),
        (b"\x2c\xff\xff\xff\x7f", EMPTY, "years 1 to 9999"),
        (b"\x50" + bytes(16), EMPTY, "a UUID, which is not supported"),
        (b"\xfc", EMPTY, "no type 63"),
        (nested(40, 2), EMPTY, "overlap"),
        (nested(DEEPEST + 1, 1), EMPTY, "deeper than 1000 levels"),
        (b"\x0c\x01", b"\x41\xff\xff", "end too early"),
        ("x", EMPTY, "are not bytes"),
    ],
)
def test_hostile_bytes(value: Any, metadata: bytes, words: str) -> None:
    assert words in str(fault(value, metadata))


def test_the_deepest_value_is_read_and_written() -> None:
    text = "[" * DEEPEST + "]" * DEEPEST
    value = Variant.parse_json(text)
    assert fault(*value) is None and value.to_json() == text and value.to_python() is not None
    with pytest.raises(ValueError, match="more than 1000 levels"):
        Variant.parse_json(f"[{text}]")


def test_values_of_python() -> None:
    moment = datetime.datetime(2024, 2, 29, 12, 30, 0, 5)
    value = {
        "d": datetime.date(1582, 10, 15),
        "t": moment,
        "z": moment.replace(tzinfo=datetime.UTC),
        "b": b"\x00",
        "n": Decimal("1.50"),
        "i": 2**70,
    }
    variant = Variant.of(value)
    assert variant.to_python() == value
    text = '{"b":"AA==","d":"1582-10-15","i":1180591620717411303424,"n":1.5,"t":"2024-02-29 12:30:00.000005",'
    assert str(variant) == text + '"z":"2024-02-29 12:30:00.000005+00:00"}'
    assert Variant.of({"a": [variant, ("x", None)]}).to_python() == {"a": [value, ["x", None]]}


@pytest.mark.parametrize("value", [{1: 2}, object(), 10**40, Decimal("NaN"), Decimal("1e9"), "\ud800", {"\ud800": 1}])
def test_values_that_no_variant_holds(value: Any) -> None:
    with pytest.raises(ValueError) as caught:
        Variant.of(value)
    assert isinstance(caught.value, DelticError)


def test_the_error_of_a_text_shows_it() -> None:
    with pytest.raises(MalformedVariant, match=r"^\[DELTIC-2005\] the text '\{' is not JSON: the text ends too early$"):
        Variant.parse_json("{")
    with pytest.raises(MalformedVariant, match="half of a surrogate pair"):
        Variant.parse_json('["\ud800"]')
