"""Words and bytes in memory: a kernel reaches columns by their addresses, so that one signature serves any number of columns.

An address is an int64. Whoever takes it keeps the array alive and has checked its type (see `table.py`). In the checked build an address
is a handle, and each access raises BadAddress unless it lies within its array (see `bounds.py`). No other module reads memory by address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from deltic.kernels import bounds, raw
from deltic.kernels.build import CHECKED
from deltic.kernels.compiler import part

Words = npt.NDArray[np.int64]

WORD_MIN = -(2**63)


def _product_overflows(typing: Any, left: Any, right: Any) -> Any:
    """Whether `left` * `right` leaves 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.extract_value(builder.smul_with_overflow(arguments[0], arguments[1]), 1)

    return types.boolean(types.int64, types.int64), generate


def _choose(typing: Any, condition: Any, one: Any, other: Any) -> Any:
    """`one` if `condition`, else `other`, without a branch: for conditions that no processor can predict.

    LLVM turns other selects back into branches where it takes them for predictable; merging random rows then takes 1.6 times as long.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        chosen = builder.select(*arguments)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return types.int64(types.boolean, types.int64, types.int64), generate


@part
def _at(address: int, size: int) -> int:
    """The machine address of `size` bytes. Raises BadAddress."""
    start = bounds.located(np.int64(address), np.int64(size))
    if start == 0:
        raise bounds.BadAddress(address, size)
    return start


@part
def _word_at(address: int, index: int) -> int:
    """The machine address of a word. Raises BadAddress, also where it lies between two words."""
    place = np.int64(address) + 8 * np.int64(index)
    if place & 7:
        raise bounds.BadAddress(place, 8)
    return _at(place, 8)


@part
def _load(address: int, index: int) -> int:
    return raw.load(_word_at(address, index), 0)


@part
def _store(address: int, index: int, word: int) -> None:
    raw.store(_word_at(address, index), 0, word)


@part
def _load_byte(address: int) -> int:
    return raw.load_byte(_at(address, 1))


@part
def _load_int32(address: int) -> int:
    return raw.load_int32(_at(address, 4))


@part
def _load_unaligned(address: int) -> int:
    return raw.load_unaligned(_at(address, 8))


@part
def _store_byte(address: int, word: int) -> None:
    raw.store_byte(_at(address, 1), word)


@part
def _store_int32(address: int, word: int) -> None:
    raw.store_int32(_at(address, 4), word)


@part
def _copy_bytes(target: int, source: int, length: int) -> None:
    if length != 0:
        raw.copy_bytes(_at(target, length), _at(source, length), length)


@part
def _prefetch(address: int, index: int) -> None:
    """Nothing: what is requested ahead may lie outside of every array."""


@part
def _address_of(array: Any) -> int:
    return bounds.enter_local(raw.address_of(array), array.nbytes)


product_overflows = cast(Callable[[int, int], bool], intrinsic(_product_overflows))
choose = cast(Callable[[bool, int, int], int], intrinsic(_choose))
load: Callable[[int, int], int] = _load if CHECKED else raw.load
store: Callable[[int, int, int], None] = _store if CHECKED else raw.store
load_byte: Callable[[int], int] = _load_byte if CHECKED else raw.load_byte
load_int32: Callable[[int], int] = _load_int32 if CHECKED else raw.load_int32
load_unaligned: Callable[[int], int] = _load_unaligned if CHECKED else raw.load_unaligned
store_byte: Callable[[int, int], None] = _store_byte if CHECKED else raw.store_byte
"""Writes the lowest byte of a word at an address."""
store_int32: Callable[[int, int], None] = _store_int32 if CHECKED else raw.store_int32
copy_bytes: Callable[[int, int, int], None] = _copy_bytes if CHECKED else raw.copy_bytes
prefetch: Callable[[int, int], None] = _prefetch if CHECKED else raw.prefetch
address_of: Callable[[Any], int] = _address_of if CHECKED else raw.address_of
HANDLES: bounds.Handles | None = bounds.install() if CHECKED else None
"""Who gives addresses to arrays in the checked build."""
