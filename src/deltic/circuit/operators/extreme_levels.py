"""extreme_levels: a skip list of the first rows of keys, as of MIN, under changes: the least of any range of keys is read in O(log n).

Level 0 has the first row of each key, a node of level l the least of its children.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deltic.circuit.extremes import Extreme, settled
from deltic.circuit.framed import least_of_each
from deltic.circuit.operator import Context
from deltic.circuit.operators.value_levels import ValueLevels
from deltic.circuit.scopes import distinct_rows
from deltic.trace.batch import Batch
from deltic.trace.probe import first
from deltic.trace.rows import Rows

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class ExtremeLevels(ValueLevels):
    """(partition, level, key, first row) for the keys of the arrangement of `extreme`, (partition, key, order words) → copies."""

    extreme: Extreme
    memory: str
    key: int
    order: int

    @property
    def name(self) -> str:
        return "extreme_levels"

    @property
    def value_width(self) -> int:
        return self.extreme.width

    def keys_of(self, delta: Batch, context: Context) -> Words:
        words = self.key + self.order
        return distinct_rows([Rows(delta.columns[:words], delta.weights)], words)

    def lowest(self, keys: Words, delta: Batch, context: Context) -> tuple[np.ndarray, Words]:
        now = context.old(self.extreme.arrangement, self.extreme.key + self.extreme.width, 1).with_batch(delta)
        key, columns, _ = first(now, keys, None, 1, context.counters)
        return key, settled(self.extreme, now, [word[key] for word in keys], columns[self.extreme.key :], context)

    def together(self, run: np.ndarray, values: Words, context: Context) -> tuple[np.ndarray, Words]:
        least = least_of_each(run, values, self.extreme.texts, context.strings)
        return run[least], tuple(word[least] for word in values)
