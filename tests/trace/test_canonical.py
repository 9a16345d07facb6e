"""A field that is read alone is the field of the whole value; ARRAYs of numbers, with and without NULLs; parts of columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from deltic import canonical, canonical_rows
from deltic.types import BIGINT, DOUBLE, INT, NULL, STRING, Field, Type, array_type, decimal, map_type, struct

INNER = struct((Field("d", array_type(INT)), Field("e", STRING), Field("f", BIGINT)))
ROW = struct((Field("a", INT), Field("b", STRING), Field("c", INNER), Field("g", map_type(STRING, INT)), Field("h", INT)))
INNERS = [None, {"d": None, "e": "x", "f": 1}, {"d": [1, None], "e": "\0", "f": None}, {"d": [], "e": None, "f": -1}]
ROWS = [
    None,
    *({"a": a, "b": b, "c": c, "g": g, "h": 7} for a in (None, 5) for b in (None, "", "\0é") for c in INNERS for g in (None, [("k", 0)])),
]


def paths(type: Type) -> Iterator[tuple[int, ...]]:
    for i, part in enumerate(type.parts):
        yield (i,)
        if part.type.name == "STRUCT":
            yield from ((i, *path) for path in paths(part.type))


def field_of(array: pa.Array, path: tuple[int, ...]) -> pa.Array:
    for position in path:
        array = array.flatten()[position]
    return array


@pytest.mark.parametrize("rows", [ROWS, ROWS[: canonical_rows.FEW], [], [None], [None] * 40], ids=["many", "few", "none", "null", "nulls"])
@pytest.mark.parametrize("fractions", [False, True], ids=["plain", "with fractions"])
def test_a_field_alone_is_that_of_the_whole(rows: list[object], fractions: bool) -> None:
    type = struct((*ROW.parts, Field("x", DOUBLE))) if fractions else ROW
    given = [row | {"x": (0.0, -0.0, 1.5)[i % 3]} if isinstance(row, dict) and fractions else row for i, row in enumerate(rows)]
    whole = pa.array(given, type.arrow)
    written = canonical.to_bytes(whole, type)
    for path in paths(type):
        assert canonical.field_from_bytes(written, type, path).equals(field_of(whole, path)), path


@pytest.mark.parametrize("data", [b"", b"\x02\x80", b"\x03\x80\x00\x00\x00", b"\x01\x02a"])
@pytest.mark.parametrize("times", [1, 40])
def test_damaged_fields_are_refused(data: bytes, times: int) -> None:
    with pytest.raises(canonical.Damaged):
        canonical.field_from_bytes(pa.array([data] * times, pa.binary()), struct((Field("a", INT), Field("b", STRING))), (1,))


@pytest.mark.parametrize("element", [INT, DOUBLE, decimal(38, 2)], ids=str)
@pytest.mark.parametrize("null", [(), (None,)], ids=["values", "with a NULL"])
def test_arrays_of_numbers(element: Type, null: tuple[None, ...]) -> None:
    type = array_type(element)
    rows: list[object] = [[], [1], [2, -3, 4], None, [0, *null, 257], [*null], [2**20] * 6] * 5
    whole = pa.array(rows, type.arrow)
    for part in (whole, whole[3:-2], whole[7:8]):
        assert canonical.from_bytes(canonical.to_bytes(part, type), type).equals(part)


def test_a_part_of_a_column_of_maps() -> None:
    """Its values are STRUCTs with a VOID, of which Arrow has the entries outside of the part too."""
    type = struct((Field("m", map_type(STRING, struct((Field("v", NULL), Field("n", INT))))),))
    whole = pa.array([{"m": [(f"k{i}", {"v": None, "n": i})] * (i % 2)} for i in range(60)], type.arrow)
    assert canonical.to_bytes(whole[2:-1], type).equals(canonical.to_bytes(whole, type)[2:-1])
