"""Which slots rows get in the hash table of a recursion."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from deltic.kernels.memory import Words, address_of
from deltic.kernels.seen import LINE_BITS, PROBE_STEP, hash_row
from parts import slow

ROWS, SLOTS = 1 << 14, 1 << 15
KEYS = (0, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179, 1)


@numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]
def hashes(rows: Words, key: int) -> Words:
    hashed = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        hashed[i] = hash_row(address_of(rows[i]), rows.shape[1], key)
    return hashed


@numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]
def probes(hashed: Words, slots: int) -> int:
    """How many slots are tried when all these rows are entered into a table of `slots` slots."""
    used = np.zeros(slots, np.bool_)
    tried = 0
    for i in range(len(hashed)):
        slot = hashed[i] & (slots - 1)
        tried += 1
        while used[slot]:
            slot = (slot + PROBE_STEP) & (slots - 1)
            tried += 1
        used[slot] = True
    return tried


@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, 64, 1 << 20, 1 << 40, -1, -8])
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("key", [KEYS[0], *slow(KEYS[1])])
def test_rows_spread_whatever_their_ids_have_in_common(step: int, width: int, key: int) -> None:
    """In a table that is half full: about as many probes as with random hashes, and fewer where the rows fill cache lines."""
    numbers = np.arange(ROWS) * step
    for rows in (
        np.column_stack([*[np.zeros(ROWS, np.int64)] * (width - 1), numbers]),
        np.column_stack([numbers, *[numbers] * (width - 1)]),
        np.column_stack([*[numbers // (128 * step) * step] * (width - 1), numbers % (128 * step) if width > 1 else numbers]),
    ):
        hashed = hashes(np.ascontiguousarray(rows), key)
        assert (hashed >= 0).all()
        assert len(np.unique(hashed)) == len(np.unique(rows, axis=0))
        assert probes(hashed, SLOTS) <= 2 * ROWS


@pytest.mark.parametrize("key", KEYS)
def test_rows_with_near_last_words_are_in_one_line(key: int) -> None:
    rows = np.column_stack([np.repeat(np.arange(1000), 8), np.tile(np.arange(8), 1000)])
    lines = hashes(rows, key) >> LINE_BITS
    assert (lines.reshape(1000, 8) == lines[::8, None]).all()
    assert len(np.unique(lines)) == 1000


@pytest.mark.parametrize("width", [1, 2])
def test_rows_that_crowd_the_table_under_one_key_spread_under_another(width: int) -> None:
    """So nobody who does not know the key can choose such rows."""
    rows = np.random.default_rng(5).integers(-(2**63), 2**63, (1 << 21, width))
    crowd = rows[hashes(rows, KEYS[0]) & (SLOTS - 1) < SLOTS >> 9]
    assert len(crowd) > 3000
    assert probes(hashes(crowd, KEYS[0]), SLOTS) > 10 * len(crowd)
    for key in KEYS[1:]:
        assert probes(hashes(crowd, key), SLOTS) <= 1.2 * len(crowd)
