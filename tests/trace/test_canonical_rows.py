"""A few nested values have the same bytes, written and read in Python, as many have in Arrow."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from deltic import canonical, canonical_rows
from deltic.types import INTEGER_BITS, PLAIN, Field, Type, array_type, map_type, struct

SCALARS = ("INT", "BIGINT", "TINYINT", "SMALLINT", "BOOLEAN", "STRING", "BINARY")
TEXTS = ("a", "\0", "é", "😀", "\0\xff")
OCTETS = (0, 255, 1, 2)


def type_of(rng: Random, depth: int) -> Type:
    kind = rng.choice((*SCALARS, *("ARRAY", "MAP", "STRUCT") * 3)) if depth else rng.choice(SCALARS)
    match kind:
        case "ARRAY":
            return array_type(type_of(rng, depth - 1))
        case "MAP":
            return map_type(PLAIN[rng.choice(("INT", "STRING"))], type_of(rng, depth - 1))
        case "STRUCT":
            return struct(tuple(Field(f"f{i}", type_of(rng, depth - 1)) for i in range(rng.randint(1, 3))))
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
        case _:
            half = 1 << INTEGER_BITS[type.name] - 1
            return rng.choice((-half, half - 1, 0, -1, 5))


@pytest.mark.parametrize("seed", range(300))
def test_a_few_values_have_the_bytes_of_many(seed: int) -> None:
    rng = Random(seed)
    type = struct((Field("a", type_of(rng, 2)), Field("b", type_of(rng, 1)))) if seed % 2 else array_type(type_of(rng, 2))
    few = pa.array([value_of(rng, type) for _ in range(canonical_rows.FEW)], type.arrow)
    many = pa.concat_arrays([few, few])
    assert canonical_rows.is_plain(type)
    written = canonical.to_bytes(many, type)
    assert canonical.to_bytes(few, type).equals(written[: len(few)])
    assert canonical.from_bytes(written[: len(few)], type).equals(canonical.from_bytes(written, type)[: len(few)])


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x03\x00", b"\x02\x80\x00\x00\x05", b"\x00\x00"])
def test_damaged_bytes_are_refused(data: bytes) -> None:
    type = array_type(PLAIN["INT"])
    with pytest.raises(canonical.Damaged):
        canonical.from_bytes(pa.array([data], pa.binary()), type)
    with pytest.raises(canonical.Damaged):
        canonical.from_bytes(pa.array([data] * 40, pa.binary()), type)
