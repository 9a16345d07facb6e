"""Kernels over plain columns: checked arithmetic, neighbours that cancel, hash partitioning."""

from __future__ import annotations

from typing import Final

import numpy as np

from deltic.kernels.compiler import kernel, part
from deltic.kernels.memory import WORD_MIN, Words, load, product_overflows, store

SCATTERED: Final = 1 << 12
"""Rows whose places are computed at once, which the cache holds."""


@kernel("int64(int64[::1], int64[::1], int64, int64[::1])")
def multiply(left: Words, right: Words, n: int, target: Words) -> int:
    """target[c][i] = left[c][i] * right[c][i] for tables of columns; returns the first c * n + i that leaves 64 bits, else -1."""
    for c in range(len(target)):
        for i in range(n):
            x, y = load(left[c], i), load(right[c], i)
            if product_overflows(x, y):
                return c * n + i
            store(target[c], i, x * y)
    return -1


@kernel("int64(int64[::1], int64[::1], int64, int64[::1])")
def add(left: Words, right: Words, n: int, target: Words) -> int:
    """target[c][i] = left[c][i] + right[c][i] for tables of columns; returns the first c * n + i that leaves 64 bits, else -1."""
    for c in range(len(target)):
        for i in range(n):
            x, y = load(left[c], i), load(right[c], i)
            total = x + y
            if ((total ^ x) & (total ^ y)) < 0:
                return c * n + i
            store(target[c], i, total)
    return -1


@kernel("int64(int64[::1], int64, int64, int64)")
def heaviest(table: Words, start: int, end: int, n: int) -> int:
    """The greatest magnitude in columns start … end of n words (that of -2^63 counts as 2^63 - 1); 0 without any."""
    most = np.int64(0)
    for c in range(start, end):
        for i in range(n):
            word = load(table[c], i)
            most = max(most, word if word >= 0 else ~word)
    return most


@part
def are_opposite(weights: Words, i: int) -> bool:
    """Whether the weights of rows i and i + 1 are each other's negatives."""
    opposite = True
    for w in range(len(weights)):
        x, y = load(weights[w], i), load(weights[w], i + 1)
        opposite &= (x ^ y) < 0 and x + y == 0
    return opposite


@part
def are_equal(words: Words, i: int) -> bool:
    """Whether rows i and i + 1 have the same words."""
    equal = True
    for c in range(len(words)):
        equal &= load(words[c], i) == load(words[c], i + 1)
    return equal


@part
def uncancelled(words: Words, weights: Words, n: int, kept: int) -> int:
    """Writes to `kept` the positions of n rows but for neighbours that cancel, with the same words and opposite weights; how many they are.

    words, weights: tables of columns. kept: the address of int64[n].
    """
    rows = i = 0
    while i < n:
        if i + 1 < n and are_opposite(weights, i) and are_equal(words, i):
            i += 2
        else:
            store(kept, rows, i)
            rows += 1
            i += 1
    return rows


@kernel("int64(int64[::1], int64[::1], int64, int64)")
def uncancelled_rows(words: Words, weights: Words, n: int, kept: int) -> int:
    """See `uncancelled`."""
    return uncancelled(words, weights, n, kept)


@part
def mix(word: int) -> int:
    """A bijective mixing of 64 bits, independent of the hash of strings and of the radix index."""
    word ^= word >> np.uint64(32)
    word *= np.uint64(0xD6E8FEB86659FD93)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0xA0761D6478BD642F)
    return word ^ (word >> np.uint64(32))


@part
def shard_of(keys: Words, width: int, i: int, shards: int) -> int:
    """The shard of key i, by a hash of its words; the NULL marker hashes as 0."""
    state = np.uint64(width)
    for c in range(width):
        word = load(keys[c], i)
        state = mix(state ^ np.uint64(0 if word == WORD_MIN else word)) + np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mix(state) % np.uint64(shards))


@kernel("int64(int64[::1], int64, int64, int64, int64[::1])")
def count_shards(keys: Words, width: int, n: int, shards: int, counts: Words) -> int:
    """counts[s] += the rows of shard s."""
    for i in range(n):
        counts[shard_of(keys, width, i, shards)] += 1
    return n


@kernel("int64(int64[::1], int64, int64[::1], int64, int64, int64[::1], int64[::1])")
def scatter(keys: Words, width: int, table: Words, n: int, shards: int, begins: Words, target: Words) -> int:
    """Copies the rows of each shard to consecutive rows of its columns, from begins[shard] on, in their order. The begins move on.

    target: the columns of the first shard, then those of the next. Shards are computed twice, by `count_shards` and here, and not kept.
    """
    room = min(n, SCATTERED)
    places, columns = np.empty(room, np.int64), np.empty(room, np.int64)
    for first in range(0, n, SCATTERED):
        count = min(SCATTERED, n - first)
        for i in range(count):
            shard = shard_of(keys, width, first + i, shards)
            places[i], columns[i] = begins[shard], shard * len(table)
            begins[shard] += 1
        for c in range(len(table)):
            for i in range(count):
                store(target[columns[i] + c], places[i], load(table[c], first + i))
    return n
