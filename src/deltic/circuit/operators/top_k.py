"""top_k: the first rows in an order, under deletions.

All rows are sorted in an arrangement whose words are a constant, the order words, and the row. The search starts at the lesser of the first
row of the old result and the first row inserted now, since no row before it is present. A change after the end of a full result costs
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.circuit.terms import exact_order, is_long
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import first, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
NO_WORD = int(np.iinfo(np.int64).min)
"""The least word."""


@dataclass(frozen=True, slots=True)
class TopKOperator:
    """The first `limit` rows of `arrangement`.

    width: the number of its words. output: the words to pass on. memory: the arrangement of the current result.
    texts: (position of a string id, whether it sorts descending), in order; the string's order words precede its id.
    """

    arrangement: str
    memory: str
    width: int
    limit: int
    output: tuple[int, ...]
    texts: tuple[tuple[int, bool], ...] = ()

    @property
    def name(self) -> str:
        return "top_k"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = inputs[0]
        assert isinstance(delta, Batch)
        old = self._remembered(context)
        if self.limit == 0 or (self._full(old) and self._after_the_end(delta, old)):
            return Rows.empty(len(self.output), 1)
        new = self._first_rows(delta, old, context)
        change = consolidate(
            Rows(
                tuple(np.concatenate([a, b]) for a, b in zip(new.columns, old.columns, strict=True)),
                (np.concatenate([new.weights[0], -old.weights[0]]),),
            )
        )
        context.append(self.memory, change)
        return Rows(tuple(change.columns[i] for i in self.output), change.weights)

    def _remembered(self, context: Context) -> Rows:
        """The old result."""
        _, columns, weights = first(context.old(self.memory, self.width, 1), (), None, self.limit, context.counters)
        return Rows(columns, weights)

    def _full(self, old: Rows) -> bool:
        return int(old.weights[0].sum()) == self.limit

    def _after_the_end(self, delta: Batch, old: Rows) -> bool:
        """Whether all rows of the change sort after the last row of the result, whatever the bytes of long strings are."""
        sure = self._sure([c[-1] for c in old.columns])
        return [int(c[0]) for c in delta.columns[:sure]] > [int(c[-1]) for c in old.columns[:sure]]

    def _sure(self, row: Sequence[np.int64]) -> int:
        """The number of words of a row that determine its order: all, or those before the id of the first long string."""
        return next((position for position, descending in self.texts if is_long(int(row[position - 1]), descending)), self.width)

    def _first_rows(self, delta: Batch, old: Rows, context: Context) -> Rows:
        spine = context.old(self.arrangement, self.width, 1)
        now = spine.with_batch(delta)
        heads = [self._start([c[0] for c in old.columns])] if len(old) else []
        inserted = np.flatnonzero(delta.weights[0] > 0)
        if len(inserted):
            heads.append(self._start([c[inserted[0]] for c in delta.columns]))
        if not heads:
            return Rows.empty(self.width, 1)
        start = [np.array([word], np.int64) for word in min(heads)]
        _, columns, weights = first(now, start[:1], start[1:], self.limit, context.counters)
        rows = Rows(tuple(columns), (self._cut(weights[0], self.limit),))
        return self._by_bytes(now, rows, context) if self.texts and len(rows) else rows

    def _start(self, row: Sequence[np.int64]) -> tuple[int, ...]:
        """The least words of rows that sort like this one or later."""
        sure = self._sure(row)
        return tuple(int(word) if i < sure else NO_WORD for i, word in enumerate(row))

    @staticmethod
    def _cut(weights: np.ndarray, limit: int) -> np.ndarray:
        """The weights, cut to `limit` copies in total."""
        before = np.cumsum(weights) - weights
        cut: np.ndarray = np.clip(limit - before, 0, weights)
        return cut

    def _by_bytes(self, now: Spine, rows: Rows, context: Context) -> Rows:
        """Corrects the end of the result by the bytes of long strings, which decide among rows with equal first bytes."""
        cut = self._sure([c[-1] for c in rows.columns])
        if cut == self.width or not self._full_rows(rows):
            return rows
        prefix = [c[-1:] for c in rows.columns[:cut]]
        _, columns, weights = probe(now, prefix, range(self.width), context.counters)
        tied = consolidate(Rows(tuple(columns), (weights[0],)))
        keep = np.logical_or.reduce([c != p for c, p in zip(rows.columns[:cut], prefix, strict=True)])
        order = exact_order(tied.columns, dict(self.texts), context.strings)
        order = order[tied.weights[0][order] > 0]
        sure = Rows(tuple(c[keep] for c in rows.columns), (rows.weights[0][keep],))
        room = self.limit - int(sure.weights[0].sum())
        chosen = Rows(tuple(c[order] for c in tied.columns), (self._cut(tied.weights[0][order], room),))
        return Rows.concat([sure, chosen])

    def _full_rows(self, rows: Rows) -> bool:
        return int(rows.weights[0].sum()) >= self.limit
