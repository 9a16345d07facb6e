"""Nested values have the same bytes wherever they are written: in Python, on arrays, and by the kernel, which reads them too."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deltic import canonical, canonical_rows
from deltic.errors import DataError
from deltic.trace import nested
from deltic.trace.entries import Located
from deltic.trace.identity import Identity
from deltic.trace.strings import StringTable
from deltic.types import INTEGER_BITS, PLAIN, Field, Type, array_type, decimal, map_type, struct

SCALARS = ("INT", "BIGINT", "TINYINT", "SMALLINT", "BOOLEAN", "STRING", "BINARY")
RARER = ("FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "DECIMAL", "INTERVAL DAY TO SECOND")
TEXTS = ("a", "\0", "é", "😀", "\0\xff")
OCTETS = (0, 255, 1, 2)
FLOATS = (0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan"))
DECIMAL = decimal(20, 2)


def type_of(rng: Random, depth: int, scalars: tuple[str, ...] = SCALARS) -> Type:
    kind = rng.choice((*scalars, *("ARRAY", "MAP", "STRUCT") * 3)) if depth else rng.choice(scalars)
    match kind:
        case "ARRAY":
            return array_type(type_of(rng, depth - 1, scalars))
        case "MAP":
            return map_type(PLAIN[rng.choice(("INT", "STRING"))], type_of(rng, depth - 1, scalars))
        case "STRUCT":
            return struct(tuple(Field(f"f{i}", type_of(rng, depth - 1, scalars)) for i in range(rng.randint(1, 3))))
        case "DECIMAL":
            return DECIMAL
        case _:
            return PLAIN[kind]


def value_of(rng: Random, type: Type, nullable: bool = True) -> Any:
    if nullable and rng.random() < 0.2:
        return None
    match type.name:
        case "ARRAY":
            return [value_of(rng, type.parts[0].type) for _ in range(rng.randint(0, 4))]
        case "MAP":
            return [(value_of(rng, type.parts[0].type, False), value_of(rng, type.parts[1].type)) for _ in range(rng.randint(0, 3))]
        case "STRUCT":
            return {part.name: value_of(rng, part.type) for part in type.parts}
        case "STRING":
            return "".join(rng.choices(TEXTS, k=rng.randint(0, 5)))
        case "BINARY":
            return bytes(rng.choices(OCTETS, k=rng.randint(0, 5)))
        case "BOOLEAN":
            return rng.random() < 0.5
        case "FLOAT" | "DOUBLE":
            return rng.choice(FLOATS)
        case "DECIMAL":
            return Decimal(rng.choice((0, 1, -1, 10**19, -(10**19)))).scaleb(-2)
        case "DATE":
            return date(1970, 1, 1) + timedelta(days=rng.choice((0, 1, -1, 10**6, -(7 * 10**5))))
        case "TIMESTAMP":
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.choice((0, 1, -1, 10**15)))
        case "INTERVAL DAY TO SECOND":
            return timedelta(microseconds=rng.choice((0, 1, -1, 10**15)))
        case _:
            half = 1 << INTEGER_BITS[type.name] - 1
            return rng.choice((-half, half - 1, 0, -1, 5))


def nested_of(rng: Random, scalars: tuple[str, ...]) -> Type:
    if rng.random() < 0.5:
        return array_type(type_of(rng, 2, scalars))
    return struct((Field("a", type_of(rng, 2, scalars)), Field("b", type_of(rng, 1, scalars)), Field("c", type_of(rng, 0, scalars))))


def located(array: pa.Array) -> Located:
    """The bytes among the strings of a table."""
    strings = StringTable(Identity.drawn())
    return strings.located(strings.intern(array))


def shown(array: pa.Array) -> str:
    """In Arrow NaN equals no NaN, and 0.0 equals -0.0."""
    return repr(array.to_pylist())


@pytest.mark.parametrize("seed", range(150))
def test_a_few_values_have_the_bytes_of_many(seed: int) -> None:
    rng = Random(seed)
    type = nested_of(rng, SCALARS)
    few = pa.array([value_of(rng, type) for _ in range(canonical_rows.FEW)], type.arrow)
    many = pa.concat_arrays([few, few])
    assert canonical_rows.is_plain(type)
    assert canonical.to_bytes(few, type).equals(canonical.to_bytes(many, type)[: len(few)])


@pytest.mark.parametrize("seed", range(150))
def test_the_kernel_writes_the_bytes_and_reads_the_values(seed: int) -> None:
    rng = Random(seed)
    type = nested_of(rng, SCALARS + RARER)
    values = pa.array([value_of(rng, type) for _ in range(40)], type.arrow)
    for array in (values, values[3:31], values[:0]):
        written = nested.to_bytes(array, type).cast(pa.binary())
        assert written.equals(canonical.to_bytes(array, type))
        again = nested.from_bytes(located(written), type)
        again.validate(full=True)
        assert again.type == type.arrow
        assert shown(again) == shown(array)
        assert nested.to_bytes(again, type).cast(pa.binary()).equals(written)


@pytest.mark.parametrize("seed", range(100))
def test_a_field_is_read_without_those_after_it(seed: int) -> None:
    rng = Random(seed)
    scalars = SCALARS + RARER if seed % 2 else SCALARS
    inner = struct((Field("c", type_of(rng, 1, scalars)), Field("d", type_of(rng, 1, scalars))))
    type = struct((Field("a", type_of(rng, 2, scalars)), Field("b", inner), Field("e", type_of(rng, 1, scalars))))
    values = pa.array([value_of(rng, type) for _ in range(40)], type.arrow)
    written = nested.to_bytes(values, type).cast(pa.binary())
    for path in ((0,), (1,), (2,), (1, 0), (1, 1)):
        expected = values
        for position in path:
            expected = expected.flatten()[position]
        assert shown(nested.field_from_bytes(located(written), type, path)) == shown(expected)


def test_many_bytes_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    type = array_type(PLAIN["STRING"])
    values = pa.array([[str(i)] * (i % 5) for i in range(500)], type.arrow)
    written = nested.to_bytes(values, type).cast(pa.binary())
    monkeypatch.setattr(nested, "CHUNK", 100)
    assert nested.from_bytes(located(written), type).equals(values)


@pytest.mark.parametrize("seed", range(50))
def test_normalized_values_have_no_other_zero_and_one_nan(seed: int) -> None:
    rng = Random(seed)
    type = nested_of(rng, ("DOUBLE", "FLOAT", "INT"))
    values = pa.array([value_of(rng, type) for _ in range(40)], type.arrow)[2:]
    plain = canonical.normalized(values, type)
    assert plain.type == type.arrow
    assert shown(plain) == shown(values).replace("-0.0", "0.0")
    assert canonical.to_bytes(plain, type).equals(canonical.key_bytes(values, type))


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x03\x00", b"\x02\x80\x00\x00\x05", b"\x00\x00", b"\x00\x00\x02"])
def test_damaged_bytes_are_refused(data: bytes) -> None:
    for count in (1, 40):
        with pytest.raises(nested.Damaged):
            nested.from_bytes(located(pa.array([data] * count, pa.binary())), array_type(PLAIN["INT"]))


@pytest.mark.parametrize("data", [b"\x02\xff\x00", b"\x02ab", b"\x02a\x00\xff"])
def test_damaged_texts_are_refused(data: bytes) -> None:
    with pytest.raises(nested.Damaged):
        nested.from_bytes(located(pa.array([data], pa.binary())), struct((Field("a", PLAIN["STRING"]),)))


def test_more_bytes_than_a_column_holds_are_refused() -> None:
    type = array_type(PLAIN["INT"])
    values = located(nested.to_bytes(pa.array([[1]], type.arrow), type))._replace(offsets=np.array([0, 1 << 31]))
    for read in (lambda: nested.from_bytes(values, type), lambda: values.texts(pa.binary())):
        with pytest.raises(DataError, match="2147483648 bytes of strings in one column"):
            read()
