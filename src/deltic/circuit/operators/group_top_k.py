"""top_k of each group: the first rows, in an order, of every group that changed. O(first rows of these groups), under deletions too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.operators.top_k import TopKOperator
from deltic.circuit.scopes import distinct_rows
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import first, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import PREFIX_BYTES

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class GroupTopK(TopKOperator):
    """As TopKOperator, but the words of the arrangement begin with the `key` words of the group."""

    key: int = 1

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        groups = distinct_rows([delta], self.key)
        _, columns, weights = probe(context.old(self.memory, self.width, 1), groups, range(self.width), context.counters)
        new = self.first_of(context.old(self.arrangement, self.width, 1).with_batch(delta), groups, context)
        change = consolidate(Rows.concat([new, Rows(columns, (-weights[0],))]))
        context.append(self.memory, change)
        return Rows(tuple(change.columns[i] for i in self.output), change.weights)

    def first_of(self, now: Spine, groups: Words, context: Context) -> Rows:
        """The first `limit` copies of each group."""
        if not self.limit:
            return Rows.empty(self.width, 1)
        source, columns, weights = first(now, groups, None, self.limit, context.counters)
        heads = np.searchsorted(source, np.arange(len(groups[0]) + 1))
        before = np.cumsum(weights[0]) - weights[0]
        room = self.limit - (before - before[heads[source]])
        rows = Rows(tuple(columns), (np.clip(room, 0, weights[0]),))
        if not self.texts or not len(rows):
            return rows
        uncertain = self._tied(now, rows, heads, self._uncertain(rows, heads, context), context)
        resolved = [self._by_bytes(now, rows.take(np.arange(heads[g], heads[g + 1])), context) for g in uncertain.tolist()]
        return Rows.concat([rows.take(np.flatnonzero(~np.isin(source, uncertain))), *resolved])

    def _uncertain(self, rows: Rows, heads: np.ndarray, context: Context) -> np.ndarray:
        """The groups with `limit` rows whose last one has a long string, and may tie with rows after it."""
        nonempty = np.flatnonzero(heads[1:] > heads[:-1])
        last = heads[nonempty + 1] - 1
        long = np.zeros(len(last), bool)
        for position, _ in self.texts:
            long |= context.strings.exceeds(rows.columns[position][last], PREFIX_BYTES)
        return nonempty[long & (np.add.reduceat(rows.weights[0], heads[nonempty]) >= self.limit)]

    def _tied(self, now: Spine, rows: Rows, heads: np.ndarray, groups: np.ndarray, context: Context) -> np.ndarray:
        """Of these groups those with other rows that equal the last one up to its first long string."""
        last, several = heads[groups + 1] - 1, np.zeros(len(groups), bool)
        cuts = np.full(len(groups), self.width)
        for position, _ in reversed(self.texts):
            cuts[context.strings.exceeds(rows.columns[position][last], PREFIX_BYTES)] = position
        for cut in np.unique(cuts).tolist():
            chosen = np.flatnonzero(cuts == cut)
            prefix = [word[last[chosen]] for word in rows.columns[:cut]]
            source, columns, weights = probe(now, prefix, range(cut, self.width), context.counters)
            equal = consolidate(Rows((source, *columns), (weights[0],)))
            several[chosen] = np.bincount(equal.columns[0][equal.weights[0] > 0], minlength=len(chosen)) > 1
        return groups[several]
