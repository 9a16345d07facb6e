"""Bounds of the checked build (DELTIC_CHECKED=1): an address there is a handle of one array, and each access is translated and checked.

A handle has bit 62 set, then 26 bits of the array's id, then 36 bits that stand for an offset in bytes, 2^35 for the first byte. Kernels
add to it as to an address, and no offset leads into another array. Arrays of NumPy and Arrow have a handle until their memory is released,
and accesses through it afterwards are caught; those that a kernel allocates have one from each `enter_local` until SLOTS later ones.

Not caught: a kernel that reads an array of its own after it has replaced it, and negative indexes of arrays, which count from the end;
numba checks the other indexes.

Compiled kernels reach the table of handles through two functions that each process compiles for itself, so kernels are kept on disk
without addresses of one process.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, TypeVar, cast

import llvmlite.binding
import numba
import numpy as np
from numba import types
from numba.extending import register_jitable

from deltic.kernels import raw
from deltic.kernels.build import CHECKED

OFFSET_BITS: Final = 36
ID_BITS: Final = 26
SLOT_BITS: Final = 20
SLOTS: Final = 1 << SLOT_BITS
LOCAL: Final = 1 << (ID_BITS - 1)
"""The bit of an id that a kernel gave; others are given by `Handles`."""
HANDLE: Final = 1 << (OFFSET_BITS + ID_BITS)
FIRST: Final = 1 << (OFFSET_BITS - 1)
"""The offset bits of an array's first byte."""

TAG, START, SIZE, ENTRY = range(4)
"""Words of an entry of the table: the id, 0 if none has the slot; the machine address; bytes. And how many words that are."""

_TABLE: Final = np.zeros((2 * SLOTS if CHECKED else 0, ENTRY), np.int64)
"""By slot: those of `Handles`, then those of kernels. A slot is the low bits of an id; its pages exist once they are used."""
_LAST: Final = np.zeros(1, np.int64)
"""How many handles kernels have given."""
_TABLE_ADDRESS: Final = _TABLE.ctypes.data
_LAST_ADDRESS: Final = _LAST.ctypes.data


F = TypeVar("F", bound=Callable[..., Any])


def _jitable(function: F) -> F:
    """Compiled into what calls it, and plain Python elsewhere."""
    return register_jitable(function)  # type: ignore[no-any-return]


class BadAddress(IndexError):
    """Raised in a kernel that accesses `size` bytes at `address`, which no array has there."""

    def __init__(self, address: int, size: int) -> None:
        super().__init__(f"{size} bytes {_described(address)}")


class OutOfBounds(AssertionError):
    """A defect of a kernel or of its caller, found by the checked build: it accesses memory outside of its arrays."""


@_jitable
def _handle(id_: int) -> int:
    return HANDLE | id_ << OFFSET_BITS | FIRST


def _described(address: int) -> str:
    id_, offset = _parts(address)
    if not HANDLE <= address < 2 * HANDLE:
        return f"at address {address:#x}, which no array has"
    entry = _TABLE[_slot(id_)]
    whose = "allocated by the kernel" if id_ & LOCAL else "passed to the kernel"
    if entry[TAG] != id_:
        return f"at offset {offset} of an array {whose} that has been released (address {address:#x})"
    return f"at offset {offset} of an array of {entry[SIZE]} bytes {whose} (address {address:#x})"


@_jitable
def _parts(address: int) -> tuple[int, int]:
    """The id of a handle, and the offset."""
    return (address >> OFFSET_BITS) & ((1 << ID_BITS) - 1), (address & ((1 << OFFSET_BITS) - 1)) - FIRST


@_jitable
def _slot(id_: int) -> int:
    """The row of the table for an id."""
    return (SLOTS if id_ & LOCAL else 0) + (id_ & (SLOTS - 1))


class _Owned:
    """The handles of what one object owns, cleared when it is released."""

    def __init__(self, owner: object, released: deque[int]) -> None:
        self.handles: dict[tuple[int, int], int] = {}
        """By start and size."""
        slots: list[int] = []
        table, number = _TABLE, id(owner)

        def release(_: object) -> None:
            # The garbage collector may call this at any point of any thread, so it takes no lock.
            for slot in slots:
                table[slot] = 0
            released.append(number)

        self.slots = slots
        self._reference = weakref.ref(owner, release)


class Handles:
    """Gives handles to memory that Python objects own. Safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owned: dict[int, _Owned] = {}
        """By id() of the owner."""
        self._released: deque[int] = deque()
        self._next = 1

    def enter(self, owner: object, start: int, size: int) -> int:
        """The handle of `size` bytes at `start`, valid until `owner` is released."""
        assert 0 <= size < FIRST
        with self._lock:
            while self._released:
                self._owned.pop(self._released.popleft(), None)
            owned = self._owned.get(id(owner))
            if owned is None:
                owned = self._owned[id(owner)] = _Owned(owner, self._released)
            handle = owned.handles.get((start, size))
            if handle is None:
                id_ = self._free_id()
                _TABLE[_slot(id_)] = id_, start, size
                owned.slots.append(_slot(id_))
                handle = owned.handles[start, size] = _handle(id_)
            return handle

    def _free_id(self) -> int:
        for _ in range(SLOTS):
            id_, self._next = self._next, self._next % (LOCAL - 1) + 1
            if _TABLE[_slot(id_), TAG] == 0:
                return id_
        raise MemoryError(f"more than {SLOTS} arrays are in use, too many for the checked build of the kernels")


def owner_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array whose release releases the memory of `array`, or its reference to memory that is not NumPy's."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _located(address: int, size: int) -> int:
    """The machine address of `size` bytes at `address`; 0 if no array has all of them."""
    id_, offset = _parts(address)
    entry = _TABLE_ADDRESS + 8 * ENTRY * _slot(id_)
    if address >> (OFFSET_BITS + ID_BITS) != 1 or raw.load(entry, TAG) != id_:
        return 0
    if offset < 0 or size < 0 or offset + size > raw.load(entry, SIZE):
        return 0
    return raw.load(entry, START) + offset


def _entered(start: int, size: int) -> int:
    """A handle of an array that a kernel has allocated."""
    id_ = LOCAL | (raw.increment(_LAST_ADDRESS) & (LOCAL - 1))
    entry = _TABLE_ADDRESS + 8 * ENTRY * _slot(id_)
    raw.store(entry, TAG, 0)
    raw.store(entry, START, start)
    raw.store(entry, SIZE, size)
    raw.store(entry, TAG, id_)
    return _handle(id_)


_SIGNATURE: Final = types.int64(types.int64, types.int64)
located = cast(Callable[[int, int], int], types.ExternalFunction("deltic_located", _SIGNATURE))
enter_local = cast(Callable[[int, int], int], types.ExternalFunction("deltic_entered", _SIGNATURE))
_COMPILED: Final[list[Any]] = []
"""What the symbols refer to, kept for the life of the process."""


def install() -> Handles:
    """Defines the functions that checked kernels are linked with, before the first kernel is loaded."""
    for name, function in (("deltic_located", _located), ("deltic_entered", _entered)):
        compiled = numba.cfunc(_SIGNATURE)(function)
        llvmlite.binding.add_symbol(name, compiled.address)
        _COMPILED.append(compiled)
    return Handles()
