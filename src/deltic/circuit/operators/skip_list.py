"""skip_list: the levels of a skip list above its keys, under changes of the keys' sums.

A change of a key's sums is added to the node above it, level by level. Where heads come or go, about one key in 8, the nodes around them
are added up again from their children. O(log n) for a changed key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.operators.linear import negated
from deltic.circuit.preceding import preceding
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.skip_list import LEAST, SkipList, differs, level_of
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import lookup
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
_AT_ONCE: Final = 8
"""Levels that are sought together: 16 million keys have about so many."""


@dataclass(frozen=True, slots=True)
class SkipListOperator:
    """The levels above those of `entries`, (partition, key, more) → weights, as (partition, level, key, more) → weights.

    key: the number of words of the partition. order: those of a key. more: the words by which a key is found among its entries; () if it
    has one entry. memory: the arrangement of the levels.
    """

    entries: str
    memory: str
    key: int
    order: int
    more: tuple[int, ...]
    weights: int

    @property
    def name(self) -> str:
        return "skip_list"

    @property
    def eager(self) -> bool:
        return False

    @property
    def _width(self) -> int:
        """The number of words of an entry."""
        return self.key + self.order + len(self.more)

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        below = context.old(self.entries, self._width, self.weights)
        heads = context.old(self.memory, self._width + 1, self.weights)
        if not (level_of(delta.columns[: self.key + self.order]) > 0).any():
            whole = self._above(delta, heads, context)
            context.append(self.memory, whole)
            return whole
        old, new = SkipList(below, heads, self.key, self.order), SkipList(below.with_batch(delta), heads, self.key, self.order)
        changes: list[Rows] = [Rows.empty(self._width + 1, self.weights)]
        level, change = 1, delta
        while len(change):
            change = self._raised(level, change, old, new, context)
            changes.append(_at_level(change, self.key, level))
            new = SkipList(new.entries, heads.with_batch(consolidate(changes[-1])), self.key, self.order)
            level += 1
        whole = consolidate(Rows.concat(changes))
        context.append(self.memory, whole)
        return whole

    def _above(self, change: Batch, heads: Spine, context: Context) -> Batch:
        """The change of the nodes of all levels from that of keys that are no heads: no node comes or goes, so no level needs another."""
        parts, rows, least = [Rows.empty(self._width + 1, self.weights)], np.arange(len(change)), 1
        while rows.size:
            each, levels = np.tile(rows, _AT_ONCE), np.repeat(np.arange(least, least + _AT_ONCE), len(rows))
            words = [word[each] for word in change.columns]
            free = (np.full(len(each), LEAST) for _ in self.more)
            partitions, keys = words[: self.key], words[self.key : self.key + self.order]
            has, before, _ = preceding(heads, (*partitions, levels), (*keys, *free), context.counters)
            columns = (*(word[has] for word in partitions), levels[has], *before[: self.order])
            more = (word[has] for word in words[self.key + self.order :])
            weights = [np.zeros(len(has), np.int64), *(weight[each[has]] for weight in change.weights[1:])]
            parts.append(Rows((*columns, *more), weights))
            least += _AT_ONCE
            rows = each[has][levels[has] == least - 1]
        return consolidate(Rows.concat(parts))

    def _raised(self, level: int, change: Batch, old: SkipList, new: SkipList, context: Context) -> Batch:
        """The change of the nodes of a level, as (partition, key, more) → weights, from that of their children."""
        words = self.key + self.order
        keys = distinct_rows([Rows(change.columns[:words], change.weights)], words)
        partitions, own = keys[: self.key], keys[self.key :]
        reaches = np.flatnonzero(level_of(keys) >= level)
        existed, exists = np.zeros(len(own[0]), bool), np.zeros(len(own[0]), bool)
        if reaches.size:
            sought = tuple(word[reaches] for word in keys)
            existed[reaches] = lookup(old.entries, sought, context.counters)[0] > 0
            exists[reaches] = lookup(new.entries, sought, context.counters)[0] > 0
        prefixes = (*partitions, np.full(len(own[0]), level))
        starts = (*own, *(np.full(len(own[0]), LEAST) for _ in self.more))
        after, before, _ = preceding(old.heads, prefixes, starts, context.counters)
        head = tuple(np.zeros(len(own[0]), np.int64) for _ in own)
        for word, value, key in zip(head, before, own, strict=False):
            word[after] = value
            word[exists] = key[exists]
        if (existed == exists).all():
            under = exists.copy()
            under[after] = True
            return self._added(change, keys, under, head)
        covered = tuple(np.concatenate([word[after], word[existed | exists]]) for word in (*partitions,))
        above = tuple(np.concatenate([value, key[existed | exists]]) for value, key in zip(before, own, strict=False))
        ones = (np.ones(len(covered[0]), np.int64),)
        return self._summed(level, distinct_rows([Rows((*covered, *above), ones)], words), old, new, context)

    def _added(self, change: Batch, keys: Words, under: np.ndarray, head: Words) -> Batch:
        """The change of existing nodes: that of their children. under: which of the changed keys are in a node; head: the node's key."""
        words = self.key + self.order
        starts = np.ones(len(change), bool)
        starts[1:] = False
        for column in change.columns[:words]:
            starts[1:] |= column[1:] != column[:-1]
        place = np.cumsum(starts) - 1
        rows = np.flatnonzero(under[place])
        columns = [column[rows] for column in change.columns]
        columns[self.key : words] = [word[place[rows]] for word in head]
        weights = [np.zeros(len(rows), np.int64), *(weight[rows] for weight in change.weights[1:])]
        return consolidate(Rows(columns, weights))

    def _summed(self, level: int, heads: Words, old: SkipList, new: SkipList, context: Context) -> Batch:
        """The change of nodes, which may be new or gone, from all of their children. heads: of partitions and keys."""
        counters = context.counters
        partitions, keys = heads[: self.key], heads[self.key :]
        node, more, weights = old.values(level, partitions, keys, counters)
        parts = [negated(Rows((*(word[node] for word in heads), *more), weights))]
        present = lookup(new.entries, heads, counters)[0] > 0
        partitions, keys = (tuple(word[present] for word in words) for words in (partitions, keys))
        run, children, stopped = new.scan(
            level - 1,
            partitions,
            keys,
            lambda run, rows: (level_of([*(word[run] for word in partitions), *rows]) >= level) & differs(rows, [w[run] for w in keys]),
            counters,
        )
        run, children = run[~stopped], tuple(word[~stopped] for word in children)
        child, more, weights = new.values(level - 1, tuple(word[run] for word in partitions), children, counters)
        of = run[child]
        columns = (*(word[of] for word in (*partitions, *keys)), *more)
        parts.append(Rows(columns, [np.zeros(len(of), np.int64), *weights[1:]]))
        ones, zeros = np.ones(len(keys[0]), np.int64), np.zeros(len(keys[0]), np.int64)
        found_by = (np.full(len(keys[0]), word) for word in self.more)
        parts.append(Rows((*partitions, *keys, *found_by), [ones, *[zeros] * (self.weights - 1)]))
        return consolidate(Rows.concat(parts))


def _at_level(change: Batch, key: int, level: int) -> Rows:
    """The nodes with their level after the words of the partition."""
    return Rows((*change.columns[:key], np.full(len(change), level), *change.columns[key:]), change.weights)
