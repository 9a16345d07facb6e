"""extreme_levels: a skip list of the first rows of keys, as of MIN, under changes: the least of any range of keys is read in O(log n).

Level 0 has the first row of each key, a node of level l the least of its children. Where the first row of a key changes, the nodes above it
are computed again from their children, level by level, until one stays as it is: O(log n) for a changed key, and mostly less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.extremes import Extreme, settled
from deltic.circuit.framed import least_of_each
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.preceding import preceding
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.skip_list import LEAST, SkipList, differs, level_of, scan
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.probe import first, lookup
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class ExtremeList(SkipList):
    """A skip list whose nodes, those of level 0 too, are rows (partition, level, key, first row) of `heads`."""

    @property
    def more(self) -> int:
        return self.heads.columns - self.key - self.order - 1

    def _spine(self, level: int, partitions: Words) -> tuple[Spine, Words]:
        return self.heads, (*partitions, np.full(len(partitions[0]), level))

    def least(self, level: int, partitions: Words, keys: Words, counters: Counters) -> tuple[np.ndarray, Words]:
        """(the number of each node that there is, its first row)."""
        spine, prefixes = self._spine(level, partitions)
        node, columns, _ = first(spine, (*prefixes, *keys), None, 1, counters)
        return node, columns[len(prefixes) + self.order :]


@dataclass(frozen=True, slots=True)
class ExtremeLevels:
    """(partition, level, key, first row) for the keys of the arrangement of `extreme`, (partition, key, order words) → copies.

    key: the number of words of a partition; order: those of a key. memory: the arrangement of the levels.
    """

    extreme: Extreme
    memory: str
    key: int
    order: int

    @property
    def name(self) -> str:
        return "extreme_levels"

    @property
    def eager(self) -> bool:
        return False

    @property
    def width(self) -> int:
        """The number of words of a node."""
        return self.key + 1 + self.order + self.extreme.width

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        if not len(delta):
            return Rows.empty(self.width, 1)
        memory = context.old(self.memory, self.width, 1)
        old = ExtremeList(memory, memory, self.key, self.order)
        keys = distinct_rows([Rows(delta.columns[: self.key + self.order], delta.weights)], self.key + self.order)
        level, changes = 0, [self._replaced(0, keys, old, self._firsts(keys, delta, context), context)]
        while len(changes[-1]):
            now = memory.with_batch(consolidate(Rows.concat(changes)))
            level, change = level + 1, changes[-1]
            words = (*change.columns[: self.key], *change.columns[self.key + 1 :])
            keys = distinct_rows([Rows(words, change.weights)], self.key + self.order)
            changes.append(self._raised(level, keys, old, ExtremeList(now, now, self.key, self.order), context))
        whole = consolidate(Rows.concat(changes))
        context.append(self.memory, whole)
        return whole

    def _firsts(self, keys: Words, delta: Batch, context: Context) -> tuple[np.ndarray, Words]:
        """(the number of each key that has rows, its first row)."""
        now = context.old(self.extreme.arrangement, self.extreme.key + self.extreme.width, 1).with_batch(delta)
        key, columns, _ = first(now, keys, None, 1, context.counters)
        return key, settled(self.extreme, now, [word[key] for word in keys], columns[self.extreme.key :], context)

    def _raised(self, level: int, keys: Words, old: ExtremeList, new: ExtremeList, context: Context) -> Batch:
        """The change of the nodes of a level from the keys whose nodes of the level below changed."""
        partitions, own = keys[: self.key], keys[self.key :]
        levels = np.full(len(own[0]), level)
        free = (np.full(len(own[0]), LEAST) for _ in range(self.extreme.width))
        after, before, _ = preceding(old.heads, (*partitions, levels), (*own, *free), context.counters)
        above = Rows((*(word[after] for word in partitions), *before[: self.order]), (np.ones(len(after), np.int64),))
        is_head = np.flatnonzero(level_of(keys) >= level)
        heads = distinct_rows([above, Rows([word[is_head] for word in keys], (np.ones(len(is_head), np.int64),))], len(keys))
        return self._replaced(level, heads, old, self._leasts(level, heads, new, context), context)

    def _leasts(self, level: int, heads: Words, new: ExtremeList, context: Context) -> tuple[np.ndarray, Words]:
        """(the number of each head that there is, the least of its children)."""
        counters, below = context.counters, np.full(len(heads[0]), level - 1)
        is_there = lookup(new.heads, (*heads[: self.key], below, *heads[self.key :]), counters)[0] > 0
        present = np.flatnonzero(is_there)
        partitions, keys = (tuple(word[present] for word in words) for words in (heads[: self.key], heads[self.key :]))

        def stops(run: np.ndarray, rows: Words) -> np.ndarray:
            child = rows[: self.order]
            is_head = level_of([*(word[run] for word in partitions), *child]) >= level
            is_next: np.ndarray = is_head & differs(child, [word[run] for word in keys])
            return is_next

        run, children, stopped = scan(new.heads, (*partitions, below[present]), keys, stops, counters)
        run, values = run[~stopped], tuple(word[~stopped] for word in children[self.order :])
        least = least_of_each(run, values, self.extreme.texts, context.strings)
        return present[run[least]], tuple(word[least] for word in values)

    def _replaced(self, level: int, keys: Words, old: ExtremeList, new: tuple[np.ndarray, Words], context: Context) -> Batch:
        """The change of the nodes of these keys, from what they are now."""
        parts = []
        before = old.least(level, keys[: self.key], keys[self.key :], context.counters)
        for (node, values), sign in ((before, -1), (new, 1)):
            words = [word[node] for word in keys]
            columns = (*words[: self.key], np.full(len(node), level), *words[self.key :], *values)
            parts.append(Rows(columns, (np.full(len(node), sign),)))
        return consolidate(Rows.concat(parts))
