"""Skip lists: partial sums over the sorted keys of partitions, so that the sum of any range is read in O(log n).

A key is a head of level l, and of all levels below, if its hash ends in l digits that are 0, of BITS bits each: of about RATIO keys of a
level one is a head of the next (Pugh 1990; with hashes in place of coins a list depends on its content alone, not on the order of changes).
A node of level l begins at a head of the level and ends before the next one; it has the sum of its children, the nodes of level l - 1 with
keys in between. Level 0 has the keys themselves. Keys before the first head of a level are in no node of it.

Level 0 is an arrangement (partition, key, more) → weights, the others are one of (partition, level, key, more) → weights. Each key has one
row whose weight 0 is positive, by which it is found: at level 0 the number of its rows, above it 1. `more` are words of entries with sums
of their own, such as digits; weight 0 of all other entries is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from deltic.trace.counters import Counters
from deltic.trace.probe import first, first_of_each, probe
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
BITS: Final = 3
RATIO: Final = 1 << BITS
LEAST: Final = int(np.iinfo(np.int64).min)
_SEEDS: Final = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def level_of(words: Sequence[np.ndarray]) -> np.ndarray:
    """The highest level of which each key is a head. words: of its partition, then its own."""
    mixed = np.zeros(len(words[0]), np.uint64)
    for word in words:
        mixed = (mixed ^ word.view(np.uint64)) + np.uint64(_SEEDS[0])
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_SEEDS[1])
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_SEEDS[2])
        mixed ^= mixed >> np.uint64(31)
    levels = np.zeros(len(mixed), np.int64)
    for level in range(1, 64 // BITS + 1):
        is_head = mixed & np.uint64((1 << BITS * level) - 1) == 0
        if not is_head.any():
            break
        levels[is_head] = level
    return levels


def is_after(words: Sequence[np.ndarray], bounds: Sequence[np.ndarray]) -> np.ndarray:
    """Which rows are after their bounds, word by word."""
    after, tied = np.zeros(len(words[0]), bool), np.ones(len(words[0]), bool)
    for word, bound in zip(words, bounds, strict=True):
        after |= tied & (word > bound)
        tied &= word == bound
    return after


def differs(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> np.ndarray:
    """Which rows differ in a word."""
    different = np.zeros(len(left[0]), bool)
    for a, b in zip(left, right, strict=True):
        different |= a != b
    return different


def scan(
    spine: Spine,
    prefixes: Sequence[np.ndarray],
    starts: Sequence[np.ndarray],
    stops: Callable[[np.ndarray, Words], np.ndarray],
    counters: Counters,
    limit: int = RATIO,
) -> tuple[np.ndarray, Words, np.ndarray]:
    """The rows under prefix i from start i on, up to the first that `stops`, with it: (i, ascending; columns after the prefix; stopped).

    stops: maps rows, as (i, columns after the prefix), to bool. O(n · log state + rows); up to `limit` rows, or eight times the rows, more.
    """
    runs, width = np.arange(len(starts[0])), spine.columns - len(prefixes)
    cursors = [np.array(word) for word in starts]
    cursors += [np.full(len(runs), LEAST) for _ in range(width - len(cursors))]
    parts: list[tuple[np.ndarray, Words, np.ndarray]] = []
    while True:
        source, columns, weights = first(spine, [w[runs] for w in prefixes], [w[runs] for w in cursors], limit, counters)
        run, rows = runs[source], columns[len(prefixes) :]
        if not len(run):
            parts.append((run, rows, np.zeros(0, bool)))
            break
        begins = first_of_each(source)
        read = np.add.reduceat(weights[0], begins)
        fresh = np.ones(len(run), bool)
        if parts:  # the first row of each run is the last one read before
            fresh[begins] = False
        stopped = stops(run, rows) & fresh
        passed: np.ndarray = np.cumsum(stopped) - stopped
        kept = fresh & (passed == np.repeat(passed[begins], np.diff(np.append(begins, len(run)))))
        parts.append((run[kept], tuple(word[kept] for word in rows), stopped[kept]))
        ends = np.append(begins[1:], len(run)) - 1
        going = (read >= limit) & (passed[ends] + stopped[ends] == passed[begins])
        if not going.any():
            break
        runs = run[ends[going]]
        for cursor, word in zip(cursors, rows, strict=True):
            cursor[runs] = word[ends[going]]
        limit *= 8
    if len(parts) == 1:
        return parts[0]
    run, stopped = (np.concatenate([part[i] for part in parts]) for i in (0, 2))
    order = np.argsort(run, kind="stable")
    return run[order], tuple(np.concatenate(words)[order] for words in zip(*(part[1] for part in parts), strict=True)), stopped[order]


@dataclass(frozen=True, slots=True)
class Nodes:
    """n nodes of one level: the number of the range that each is part of, and its key."""

    level: int
    range: np.ndarray
    keys: Words

    def take(self, rows: np.ndarray) -> Nodes:
        return Nodes(self.level, self.range[rows], tuple(word[rows] for word in self.keys))


@dataclass(frozen=True, slots=True)
class SkipList:
    """A version of a skip list: the spines of level 0 and of the levels above. key: the words of a partition; order: those of a key."""

    entries: Spine
    heads: Spine
    key: int
    order: int

    @property
    def more(self) -> int:
        """The number of words after the key."""
        return self.entries.columns - self.key - self.order

    def scan(
        self,
        level: int,
        partitions: Words,
        starts: Sequence[np.ndarray],
        stops: Callable[[np.ndarray, Words], np.ndarray],
        counters: Counters,
    ) -> tuple[np.ndarray, Words, np.ndarray]:
        """The keys of a level from each start on, up to the first that `stops`, with it: (start, ascending; key; stopped)."""
        spine, prefixes = self._spine(level, partitions)
        run, rows, stopped = scan(spine, prefixes, starts, lambda run, rows: stops(run, rows[: self.order]), counters)
        return run, rows[: self.order], stopped

    def values(self, level: int, partitions: Words, keys: Words, counters: Counters) -> tuple[np.ndarray, Words, Words]:
        """The entries of nodes: (the number of the node; the words after the key; weights)."""
        spine, prefixes = self._spine(level, partitions)
        sought = (*prefixes, *keys)
        return probe(spine, sought, range(len(sought), len(sought) + self.more), counters)

    def _spine(self, level: int, partitions: Words) -> tuple[Spine, Words]:
        """The spine with the nodes of a level, and the prefixes under which they are."""
        if not level:
            return self.entries, partitions
        return self.heads, (*partitions, np.full(len(partitions[0]), level))

    def cover(self, partitions: Words, lows: Words | None, highs: Words | None, counters: Counters) -> list[Nodes]:
        """Nodes that have each key from low i to high i once, O(log n) of them. None: from the first, or to the last, key of the partition.

        From the low key up, to where no head of the next level is in the range; from there down to the last key.
        """
        ranges = np.arange(len(partitions[0]))
        cursors = tuple(np.full(len(ranges), LEAST) for _ in range(self.order)) if lows is None else lows
        nodes: list[Nodes] = []
        down: list[Nodes] = []
        level = 0
        while ranges.size:
            inside, further = self._siblings(level, ranges, partitions, cursors, highs, True, counters)
            complete, last = _without_last(inside, further.range, highs)
            nodes.append(complete)
            down.append(last)
            ranges, cursors, level = further.range, further.keys, level + 1
        pending = Nodes(level, ranges, cursors)
        for last in reversed(down):
            own = Nodes(
                last.level,
                np.concatenate([pending.range, last.range]),
                tuple(np.concatenate(pair) for pair in zip(pending.keys, last.keys, strict=True)),
            )
            if not last.level:
                break
            inside, _ = self._siblings(last.level - 1, own.range, partitions, own.keys, highs, False, counters)
            complete, pending = _without_last(inside, own.range[:0], highs)
            nodes.append(complete)
        return [each for each in nodes if each.range.size]

    def _siblings(
        self, level: int, ranges: np.ndarray, partitions: Words, cursors: Words, highs: Words | None, up: bool, counters: Counters
    ) -> tuple[Nodes, Nodes]:
        """(the nodes of a level from each cursor on within the range, up to a head of the next level if `up`; these heads)."""
        own = tuple(word[ranges] for word in partitions)

        def is_past(run: np.ndarray, keys: Words) -> np.ndarray:
            return np.zeros(len(run), bool) if highs is None else is_after(keys, [word[ranges[run]] for word in highs])

        def stops(run: np.ndarray, keys: Words) -> np.ndarray:
            past = is_past(run, keys)
            return past | (level_of([*(word[run] for word in own), *keys]) > level) if up else past

        if not len(ranges):
            return Nodes(level, ranges, cursors), Nodes(level, ranges, cursors)
        run, keys, stopped = self.scan(level, own, cursors, stops, counters)
        read_nodes = Nodes(level, ranges[run], keys)
        further = stopped & ~is_past(run, keys)
        return read_nodes.take(np.flatnonzero(~stopped)), read_nodes.take(np.flatnonzero(further))


def _without_last(inside: Nodes, further: np.ndarray, highs: Words | None) -> tuple[Nodes, Nodes]:
    """(nodes that end within their ranges, the last node of each range, which may not). further: ranges that go on after a head.

    Nodes of level 0 have one key; those of ranges without an end may be the last ones of the partition.
    """
    none = np.zeros(0, np.int64)
    if not inside.level or highs is None or not inside.range.size:
        return inside, inside.take(none)
    order = np.argsort(inside.range, kind="stable")
    last = np.zeros(len(order), bool)
    last[order[np.append(first_of_each(inside.range[order])[1:], len(order)) - 1]] = True
    last &= ~np.isin(inside.range, further)
    return inside.take(np.flatnonzero(~last)), inside.take(np.flatnonzero(last))
