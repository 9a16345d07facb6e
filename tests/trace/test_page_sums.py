"""The checksums of pages are XXH64, of which Spark's function is another implementation, and every changed bit changes them."""

from __future__ import annotations

import numpy as np
import pytest

from deltic.expr.rows.hashes import xxhash64
from deltic.schema import BINARY
from deltic.trace.guard import PAGE_WORDS
from deltic.trace.page_sums import PageSums, page_sums


def words(count: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**63), 2**63, count, endpoint=False)


@pytest.mark.parametrize("count", [4, 8, 64, PAGE_WORDS - 8, PAGE_WORDS, PAGE_WORDS + 8, 5 * PAGE_WORDS + 40])
def test_they_are_the_low_half_of_xxh64(count: int) -> None:
    block = words(count)
    pages = [block[start : start + PAGE_WORDS] for start in range(0, count, PAGE_WORDS)]
    assert page_sums(block).tolist() == [xxhash64(page.tobytes(), BINARY, 0) & 0xFFFFFFFF for page in pages]


def test_nothing_has_no_pages() -> None:
    assert page_sums(words(0)).tolist() == []


def test_the_first_damaged_page_is_found_and_no_other_is_read() -> None:
    block = words(6 * PAGE_WORDS + 8)
    sums = page_sums(block)
    block[2 * PAGE_WORDS + 5] ^= 1
    block[6 * PAGE_WORDS + 7] += 1
    expected = PageSums(block, sums, by_crc=False)
    assert expected.first_damaged(np.array([0, 1, 3, 4, 5])) is None
    assert expected.first_damaged(np.array([1, 2, 6])) == 2
    assert expected.first_damaged(np.array([6])) == 6
    assert expected.first_damaged(np.array([], np.int64)) is None


def test_every_changed_bit_of_a_page_is_found() -> None:
    block = words(64)
    expected = PageSums(block, page_sums(block), by_crc=False)
    for word in range(len(block)):
        for bit in range(64):
            block[word : word + 1].view(np.uint64)[0] ^= np.uint64(1 << bit)
            assert expected.first_damaged(np.array([0])) == 0
            block[word : word + 1].view(np.uint64)[0] ^= np.uint64(1 << bit)
    assert expected.first_damaged(np.array([0])) is None
