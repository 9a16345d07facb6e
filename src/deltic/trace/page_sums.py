"""Checksums of the pages of a block, and of pages that are read."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from deltic.kernels import checksums, table
from deltic.kernels.memory import Words
from deltic.trace.guard import PAGE_BYTES, PAGE_WORDS

Sums = npt.NDArray[np.uint32]


def page_sums(words: Words) -> Sums:
    """uint32[pages]: the checksums of the pages of contiguous words, of which the last has a multiple of checksums.STRIPE. O(words)."""
    return _sums(words, np.arange(-(-len(words) // PAGE_WORDS))).astype("<u4")


def _sums(words: Words, pages: Words) -> Words:
    sums = np.empty(len(pages), np.int64)
    checksums.page_sums(table.address(words), len(words), PAGE_WORDS, table.address(pages), len(pages), table.address(sums))
    return sums


class PageSums:
    """The checksums that the pages of these words must have. by_crc: they are CRC-32."""

    __slots__ = ("_by_crc", "_sums", "_words")

    def __init__(self, words: Words, sums: npt.ArrayLike, *, by_crc: bool) -> None:
        self._words, self._sums, self._by_crc = words, np.asarray(sums), by_crc

    def first_damaged(self, pages: Words) -> int | None:
        """The first of these pages, by number, whose checksum differs; None if there is none."""
        sums = np.array(self._crcs(pages)) if self._by_crc else _sums(self._words, pages)
        damaged = pages[sums != self._sums[pages]]
        return int(damaged[0]) if len(damaged) else None

    def _crcs(self, pages: Words) -> list[int]:
        data = self._words.data.cast("B")
        return [zlib.crc32(data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]) for page in pages.tolist()]
