"""Where rows come to lie in the hash table of a recursion."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from deltic.kernels.memory import Words, address_of
from deltic.kernels.seen import LINE_BITS, NEXT_PLACE, hash_row

ROWS, PLACES = 1 << 14, 1 << 15


@numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]
def hashes(rows: Words) -> Words:
    found = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        found[i] = hash_row(address_of(rows[i]), rows.shape[1])
    return found


@numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]
def steps(hashed: Words, places: int) -> int:
    """Places that are tried when all these rows are entered."""
    taken = np.zeros(places, np.bool_)
    tried = 0
    for i in range(len(hashed)):
        place = hashed[i] & (places - 1)
        tried += 1
        while taken[place]:
            place = (place + NEXT_PLACE) & (places - 1)
            tried += 1
        taken[place] = True
    return tried


@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, 64, 1 << 20, 1 << 40, -1, -8])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_rows_spread_whatever_their_ids_have_in_common(step: int, width: int) -> None:
    """Half of the places taken: about as many tries as with random hashes, and fewer where the rows fill lines."""
    numbers = np.arange(ROWS) * step
    for rows in (
        np.column_stack([*[np.zeros(ROWS, np.int64)] * (width - 1), numbers]),
        np.column_stack([numbers, *[numbers] * (width - 1)]),
        np.column_stack([*[numbers // (128 * step) * step] * (width - 1), numbers % (128 * step) if width > 1 else numbers]),
    ):
        hashed = hashes(np.ascontiguousarray(rows))
        assert (hashed >= 0).all()
        assert len(np.unique(hashed)) == len(np.unique(rows, axis=0))
        assert steps(hashed, PLACES) <= 2 * ROWS


def test_rows_with_near_last_words_lie_in_one_line() -> None:
    rows = np.column_stack([np.repeat(np.arange(1000), 8), np.tile(np.arange(8), 1000)])
    lines = hashes(rows) >> LINE_BITS
    assert (lines.reshape(1000, 8) == lines[::8, None]).all()
    assert len(np.unique(lines)) == 1000
