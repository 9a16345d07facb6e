"""Kernels over strings: hashing, the table id → bytes, gathering bytes, and the words that strings sort by.

A string is a run of bytes: `data` is the address of the first, offsets (int64[n + 1]) say where each begins and ends.
The table is open addressing over ids: `slots` holds entry numbers + 1 (0: free), entry e has ids[e] and the bytes
arena[starts[e]:starts[e + 1]]. The hash is the project's own mixing, the same on every machine; it is not the exchange's.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import WORD_MIN, load, store

COLLISION = -1
FULL = -2


def _byte(typing: Any, address: Any, index: Any) -> Any:
    """The byte at `address` + `index`, as a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        found = builder.load(builder.gep(pointer, [arguments[1]]))
        return builder.zext(found, ir.IntType(64))

    return types.int64(types.int64, types.int64), generate


def _store_byte(typing: Any, address: Any, index: Any, byte: Any) -> Any:
    """Writes the low byte of a word at `address` + `index`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        builder.store(builder.trunc(arguments[2], ir.IntType(8)), builder.gep(pointer, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


load_byte = cast(Any, intrinsic(_byte))
store_byte = cast(Any, intrinsic(_store_byte))


@part
def _mix(h: np.uint64) -> np.uint64:
    h ^= h >> np.uint64(29)
    h *= np.uint64(0xA24BAED4963EE407)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0x9FB21C651E98DF25)
    return h ^ (h >> np.uint64(28))


@part
def hash_bytes(data: int, start: int, end: int, seed: int) -> int:
    """The id of a string: its hash, never the NULL marker."""
    h = _mix(np.uint64(seed) ^ (np.uint64(end - start) * np.uint64(0x9E3779B97F4A7C15)))
    at = start
    while at < end:
        chunk = np.uint64(0)
        for i in range(min(8, end - at)):
            chunk |= np.uint64(load_byte(data, at + i)) << np.uint64(8 * i)
        h = _mix(h ^ chunk) + np.uint64(0xD1B54A32D192ED03)
        at += 8
    word = np.int64(_mix(h))
    return np.int64(0) if word == WORD_MIN else word


@part
def _slot(id_: int, mask: int) -> int:
    return np.int64(np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask


@part
def _find(slots: int, mask: int, ids: int, id_: int) -> int:
    """The slot of `id_`, or the free one where it belongs."""
    at = _slot(id_, mask)
    while True:
        entry = load(slots, at)
        if entry == 0 or load(ids, entry - 1) == id_:
            return at
        at = (at + 1) & mask


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64, int64, int64, int64[::1], int64)")
def intern(
    data: int,
    offsets: int,
    begin: int,
    n: int,
    seed: int,
    bits: int,
    slots: int,
    mask: int,
    ids: int,
    starts: int,
    arena: int,
    arena_size: int,
    used: Any,
    out: int,
) -> int:
    """Ids of strings begin … n into out; new ones enter the table (used: entries, room for entries, 1 if a NUL byte was met).

    Returns n; where the table is full, FULL - i with i the string to go on with; where two strings share an id, the entry of the
    one in the table in used[3] and COLLISION with used[4] the number of the other.
    """
    for i in range(begin, n):
        start, end = load(offsets, i), load(offsets, i + 1)
        id_ = hash_bytes(data, start, end, seed)
        if bits < 64:
            id_ &= (np.int64(1) << bits) - 1
        at = _find(slots, mask, ids, id_)
        entry = load(slots, at)
        if entry == 0:
            if used[0] >= used[1] or load(starts, used[0]) + end - start > arena_size:
                return FULL - i
            first = load(starts, used[0])
            for j in range(end - start):
                byte = load_byte(data, start + j)
                store_byte(arena, first + j, byte)
                if byte == 0:
                    used[2] = 1
            store(starts, used[0] + 1, first + end - start)
            store(ids, used[0], id_)
            used[0] += 1
            store(slots, at, used[0])
        else:
            first = load(starts, entry - 1)
            same = load(starts, entry) - first == end - start
            if same:
                for j in range(end - start):
                    if load_byte(arena, first + j) != load_byte(data, start + j):
                        same = False
                        break
            if not same:
                used[3], used[4] = entry - 1, i
                return COLLISION
        store(out, i, id_)
    return n


@kernel("void(int64, int64, int64, int64)")
def rehash(slots: int, mask: int, ids: int, entries: int) -> None:
    """Fills empty slots with all entries."""
    for entry in range(entries):
        at = _find(slots, mask, ids, load(ids, entry))
        store(slots, at, entry + 1)


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def locate(wanted: int, n: int, slots: int, mask: int, ids: int, entries: int) -> int:
    """The entry of each wanted id into entries, -1 where it is not there. Returns how many are not (the NULL marker never is)."""
    missing = 0
    for i in range(n):
        id_ = load(wanted, i)
        entry = np.int64(0) if id_ == WORD_MIN else load(slots, _find(slots, mask, ids, id_))
        store(entries, i, entry - 1)
        if entry == 0:
            missing += 1
    return missing


@kernel("int64(int64, int64, int64, int64, int64)")
def measure(entries: int, n: int, starts: int, offsets: int, first: int) -> int:
    """Offsets (int64[n + 1], from `first`) of the entries' bytes laid end to end; entry -1 is empty. Returns the end."""
    at = first
    store(offsets, 0, at)
    for i in range(n):
        entry = load(entries, i)
        if entry >= 0:
            at += load(starts, entry + 1) - load(starts, entry)
        store(offsets, i + 1, at)
    return at


@kernel("void(int64, int64, int64, int64, int64, int64)")
def gather(entries: int, n: int, starts: int, arena: int, offsets: int, out: int) -> None:
    """The entries' bytes at their offsets."""
    for i in range(n):
        entry = load(entries, i)
        if entry >= 0:
            first, at = load(starts, entry), load(offsets, i)
            for j in range(load(offsets, i + 1) - at):
                store_byte(out, at + j, load_byte(arena, first + j))


@kernel("void(int64, int64, int64, int64, int64, int64)")
def prefixes(entries: int, n: int, starts: int, arena: int, words: int, out: int) -> None:
    """The first 8 · words bytes of each entry as `words` columns of n signed words each, in the order of bytes; -1 gives WORD_MIN."""
    for i in range(n):
        entry = load(entries, i)
        for w in range(words):
            word = np.uint64(0)
            if entry >= 0:
                first = load(starts, entry) + 8 * w
                room = min(max(load(starts, entry + 1) - first, 0), 8)
                for j in range(room):
                    word |= np.uint64(load_byte(arena, first + j)) << np.uint64(56 - 8 * j)
            store(out, w * n + i, np.int64(word) ^ WORD_MIN)
