"""Checksums of pages: the low 32 bits of XXH64 from seed 0. Two multiplications for 8 bytes, and threads compute them side by side.

Source: Yann Collet, "xxHash fast digest algorithm", version 0.1.1, section XXH64.
"""

from __future__ import annotations

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import load, store

STRIPE = 4
"""Words that are mixed side by side: a page is of a multiple of them."""

_P1, _P2 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
_P3, _P4 = np.uint64(0x165667B19E3779F9), np.uint64(0x85EBCA77C2B2AE63)


@part
def _rotated(word: np.uint64, by: int) -> np.uint64:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@part
def _mixed(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotated(lane + word * _P2, 31) * _P1


@part
def _merged(state: np.uint64, lane: np.uint64) -> np.uint64:
    return (state ^ _mixed(np.uint64(0), lane)) * _P1 + _P4


@part
def page_sum(words: int, first: int, count: int) -> int:
    """The checksum of `count` words from the first, a multiple of STRIPE."""
    one, two, three, four = _P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1
    for i in range(first, first + count, STRIPE):
        one = _mixed(one, np.uint64(load(words, i)))
        two = _mixed(two, np.uint64(load(words, i + 1)))
        three = _mixed(three, np.uint64(load(words, i + 2)))
        four = _mixed(four, np.uint64(load(words, i + 3)))
    state = _rotated(one, 1) + _rotated(two, 7) + _rotated(three, 12) + _rotated(four, 18)
    state = _merged(_merged(_merged(_merged(state, one), two), three), four)
    state += np.uint64(8 * count)
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    return np.int64((state ^ (state >> np.uint64(32))) & np.uint64(0xFFFFFFFF))


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def page_sums(words: int, n: int, size: int, pages: int, count: int, sums: int) -> int:
    """sums[i] = the checksum of page pages[i] of n words, of which each page has `size` and the last may have fewer; returns `count`."""
    for i in range(count):
        first = load(pages, i) * size
        store(sums, i, page_sum(words, first, min(size, n - first)))
    return count
