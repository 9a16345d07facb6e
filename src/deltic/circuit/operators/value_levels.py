"""A skip list whose nodes have values: those of keys, and of each node above what its children's values make together.

Where the value of a key changes, the nodes above it are computed again from their children, level by level, until one stays as it is:
O(log n) for a changed key, and mostly less.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
class ValueList(SkipList):
    """A skip list whose nodes, those of level 0 too, are rows (partition, level, key, value) of `heads`."""

    @property
    def more(self) -> int:
        return self.heads.columns - self.key - self.order - 1

    def _spine(self, level: int, partitions: Words) -> tuple[Spine, Words]:
        return self.heads, (*partitions, np.full(len(partitions[0]), level))

    def read(self, level: int, partitions: Words, keys: Words, counters: Counters) -> tuple[np.ndarray, Words]:
        """(the number of each node that there is, the words of its value)."""
        spine, prefixes = self._spine(level, partitions)
        node, columns, _ = first(spine, (*prefixes, *keys), None, 1, counters)
        return node, columns[len(prefixes) + self.order :]


class ValueLevels(ABC):
    """(partition, level, key, value) for the keys of an arrangement.

    key: the number of words of a partition; order: those of a key. memory: the arrangement of the levels.
    """

    __slots__ = ()

    memory: str
    key: int
    order: int

    @property
    def eager(self) -> bool:
        return False

    @property
    @abstractmethod
    def value_width(self) -> int:
        """The number of words of a value."""

    @property
    def width(self) -> int:
        """The number of words of a node."""
        return self.key + 1 + self.order + self.value_width

    @abstractmethod
    def keys_of(self, delta: Batch, context: Context) -> Words:
        """The (partition, key) of the rows of a change of the arrangement, each once."""

    @abstractmethod
    def lowest(self, keys: Words, delta: Batch, context: Context) -> tuple[np.ndarray, Words]:
        """(the number of each key that has rows, ascending; the words of its value)."""

    @abstractmethod
    def together(self, run: np.ndarray, values: Words, context: Context) -> tuple[np.ndarray, Words]:
        """(each of `run`, which ascends, once; the words of what its values, in order, make together)."""

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        if not len(delta):
            return Rows.empty(self.width, 1)
        memory = context.old(self.memory, self.width, 1)
        old = ValueList(memory, memory, self.key, self.order)
        keys = self.keys_of(delta, context)
        level, changes = 0, [self._replaced(0, keys, old, self.lowest(keys, delta, context), context)]
        while len(changes[-1]):
            now = memory.with_batch(consolidate(Rows.concat(changes)))
            level, change = level + 1, changes[-1]
            words = (*change.columns[: self.key], *change.columns[self.key + 1 :])
            keys = distinct_rows([Rows(words, change.weights)], self.key + self.order)
            changes.append(self._raised(level, keys, old, ValueList(now, now, self.key, self.order), context))
        whole = consolidate(Rows.concat(changes))
        context.append(self.memory, whole)
        return whole

    def _raised(self, level: int, keys: Words, old: ValueList, new: ValueList, context: Context) -> Batch:
        """The change of the nodes of a level from the keys whose nodes of the level below changed."""
        partitions, own = keys[: self.key], keys[self.key :]
        levels = np.full(len(own[0]), level)
        free = (np.full(len(own[0]), LEAST) for _ in range(self.value_width))
        after, before, _ = preceding(old.heads, (*partitions, levels), (*own, *free), context.counters)
        above = Rows((*(word[after] for word in partitions), *before[: self.order]), (np.ones(len(after), np.int64),))
        is_head = np.flatnonzero(level_of(keys) >= level)
        heads = distinct_rows([above, Rows([word[is_head] for word in keys], (np.ones(len(is_head), np.int64),))], len(keys))
        return self._replaced(level, heads, old, self._above(level, heads, new, context), context)

    def _above(self, level: int, heads: Words, new: ValueList, context: Context) -> tuple[np.ndarray, Words]:
        """(the number of each head that there is, the value of its children together)."""
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
        heads_of, words = self.together(run, values, context)
        return present[heads_of], words

    def _replaced(self, level: int, keys: Words, old: ValueList, new: tuple[np.ndarray, Words], context: Context) -> Batch:
        """The change of the nodes of these keys, from what they are now."""
        parts = []
        before = old.read(level, keys[: self.key], keys[self.key :], context.counters)
        for (node, values), sign in ((before, -1), (new, 1)):
            words = [word[node] for word in keys]
            columns = (*words[: self.key], np.full(len(node), level), *words[self.key :], *values)
            parts.append(Rows(columns, (np.full(len(node), sign),)))
        return consolidate(Rows.concat(parts))
