"""Cells of points and intervals: a shared cell if and only if they may meet, and the same on columns as on rows."""

from __future__ import annotations

import datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from deltic.expr.arrays.elements import elements_of
from deltic.expr.rows.cells import cells_of_interval, cells_of_point
from deltic.schema import BIGINT, DATE, TIMESTAMP, TIMESTAMP_NTZ, Type

LEAST, GREATEST = -(2**63), 2**63 - 1


def number(rng: Random) -> int:
    size = rng.choice((3, 10, 40, 62, 63))
    return rng.choice((LEAST, GREATEST, 0, -1, rng.randrange(-(2**size), 2**size), rng.randrange(-(2**size), 2**size)))


def test_a_point_in_an_interval_shares_exactly_one_cell_with_it() -> None:
    rng = Random(1)
    inside = 0
    for _ in range(2_000):
        low = number(rng)
        high = min(GREATEST, low + rng.choice((-1, 0, 1, 3, 60, 2**20, 2**63, 2**64)))
        point = min(GREATEST, max(LEAST, low + rng.randrange(-2, max(3, high - low + 2)))) if rng.random() < 0.8 else number(rng)
        cells = cells_of_interval(low, high)
        shared = set(cells) & set(cells_of_point(point))
        assert len(cells) == len(set(cells)) <= 4 and all(LEAST <= cell <= GREATEST for cell in (*cells, *cells_of_point(point)))
        assert len(shared) <= 1
        if low <= point <= high:
            inside += 1
            assert len(shared) == 1
        elif shared and high - low < 2**60:
            assert low - 8 * (high - low + 1) < point < high + 8 * (high - low + 1)
    assert inside > 500


def values(type: Type, rng: Random) -> list[Any]:
    match type.name:
        case "DATE":
            return [datetime.date.fromordinal(rng.randrange(1, 3_652_059)) for _ in range(50)]
        case "TIMESTAMP" | "TIMESTAMP_NTZ":
            zone = datetime.UTC if type == TIMESTAMP else None
            return [datetime.datetime.fromordinal(rng.randrange(1, 3_652_059)).replace(tzinfo=zone, microsecond=7) for _ in range(50)]
        case _:
            return [number(rng) for _ in range(200)]


@pytest.mark.parametrize("type", [BIGINT, DATE, TIMESTAMP, TIMESTAMP_NTZ], ids=lambda type: type.name)
def test_columns_have_the_cells_of_their_rows(type: Type) -> None:
    rng = Random(2)
    first, last = (values(type, rng) for _ in range(2))
    arrays = [pa.array(column, type.arrow) for column in (first, last)]
    for arguments, cells in ((arrays[:1], map(cells_of_point, first)), (arrays, map(cells_of_interval, first, last))):
        expected = list(cells)
        counts, elements = elements_of("cells", arguments, BIGINT, len(first))
        assert counts.tolist() == [len(one) for one in expected]
        assert elements.to_pylist() == [cell for one in expected for cell in one]
