"""The readers of a spine by ranges: the rows under a key whose next words, a value, lie between two cuts, or come first, up to a cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from deltic.kernels import ranges, read
from deltic.kernels.memory import Words
from deltic.kernels.ranges import AFTER, BEFORE, FIRST, LAST
from deltic.kernels.table import addresses, block
from deltic.trace.consolidate import overflow
from deltic.trace.counters import Counters
from deltic.trace.spine import Spine

__all__ = ["AFTER", "BEFORE", "LAST", "Cuts", "first_before", "probe_few", "probe_range"]
ROOM: Final = 512
"""For how many rows `first_before` has room at first: another call costs more than the room."""

Found = tuple[Words, tuple[Words, ...], tuple[Words, ...]]
"""The number of the key of each row, the columns, all weights."""


class Cuts(NamedTuple):
    """n places between values. words: int64[n] for each word of a value. kinds: int64[n], each FIRST, BEFORE, AFTER or LAST."""

    words: tuple[Words, ...]
    kinds: Words

    @staticmethod
    def before(words: Sequence[Words]) -> Cuts:
        """Before each value."""
        return Cuts(tuple(words), np.full(len(words[0]), BEFORE))

    @staticmethod
    def after(words: Sequence[Words]) -> Cuts:
        """After each value."""
        return Cuts(tuple(words), np.full(len(words[0]), AFTER))

    @staticmethod
    def first(words: int, n: int) -> Cuts:
        """Before all values of so many words."""
        return Cuts(tuple(np.zeros(n, np.int64) for _ in range(words)), np.full(n, FIRST))

    @staticmethod
    def last(words: int, n: int) -> Cuts:
        """After all values of so many words."""
        return Cuts(tuple(np.zeros(n, np.int64) for _ in range(words)), np.full(n, LAST))

    def take(self, rows: Words) -> Cuts:
        return Cuts(tuple(word[rows] for word in self.words), self.kinds[rows])


def probe_range(spine: Spine, keys: Sequence[Words], starts: Cuts, ends: Cuts, columns: Sequence[int], counters: Counters) -> Found:
    """Every stored row that begins with key i and lies between start i and end i: as `probe` (trace/probe.py), in no order.

    The value that starts and ends cut follows the key. O(n · log state + rows returned).
    """
    found = probe_few(spine, keys, starts, ends, columns, counters, None)
    assert found is not None
    return found


def probe_few(
    spine: Spine, keys: Sequence[Words], starts: Cuts, ends: Cuts, columns: Sequence[int], counters: Counters, most: int | None
) -> Found | None:
    """As `probe_range`, if there are at most so many rows; otherwise None, in O(n · log state)."""
    n = len(starts.kinds)
    spine.expect(keys)
    batches, directory = spine.view
    width = spine.columns + spine.weights
    hit_words, hits = block(read.HIT, n * len(batches))
    report = np.zeros(read.REPORT, np.int64)
    first, last = (addresses((*cuts.words, cuts.kinds), n) for cuts in (starts, ends))
    sought = addresses(keys, n)
    words, cut = len(starts.words), np.full(2, len(keys), np.int64)
    shape = len(batches), spine.columns, spine.weights
    count = ranges.seek_range(directory, *shape, sought, len(keys), words, cut, first, last, n, hits, report)
    matches = int(report[read.MATCHES])
    if most is not None and matches > most:
        counters.touched += int(report[read.TOUCHED]) - matches
        return None
    needed = np.array([*columns, *range(spine.columns, width)], np.int64)
    found, target = block(1 + len(needed), matches)
    read.expand(directory, 2 + width, hits, count, needed, len(needed), target)
    counters.touched += int(report[read.TOUCHED])
    counters.batches += len(batches)
    spine.count_sought(n)
    del hit_words
    out = tuple(found)
    return out[0], out[1 : 1 + len(columns)], out[1 + len(columns) :]


def first_before(
    spine: Spine, prefixes: Sequence[Words], starts: Sequence[Words], ends: Sequence[tuple[int, Cuts]], counters: Counters
) -> Found:
    """The rows of each prefix i from start i on, up to the first that is not before each of its cuts: as `first` (trace/probe.py).

    starts: the least values of the columns after the prefix, of one at least. ends: the column at which a value begins, and a cut for each
    prefix, of values of the same number of words. O(n · log state + rows, also cancelled ones).
    """
    n = len(starts[0])
    spine.expect(prefixes)
    batches, directory = spine.view
    keys, begins = addresses(prefixes, n), addresses(starts, n)
    cuts = addresses([word for _, cut in ends for word in (*cut.words, cut.kinds)], n)
    places, words = np.array([place for place, _ in ends], np.int64), len(ends[0][1].words) if ends else 0
    shape = len(batches), spine.columns, spine.weights, keys, len(prefixes), begins, len(starts)
    parts: list[Words] = []
    done, room = 0, 4 * n + ROOM
    while done < n or not parts:
        out, target = block(1 + spine.columns + spine.weights, room)
        report = np.zeros(read.REPORT, np.int64)
        done = ranges.first_before(directory, *shape, places, words, cuts, done, n, target, room, report)
        if report[read.OVERFLOW]:
            raise overflow("adding the weights of a row")
        parts.append(out[:, : report[read.MATCHES]])
        counters.touched += int(report[read.TOUCHED])
        room *= 4
    counters.batches += len(batches)
    spine.count_sought(n)
    rows = tuple(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))
    return rows[0], rows[1 : 1 + spine.columns], rows[1 + spine.columns :]
