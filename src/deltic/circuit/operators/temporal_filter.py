"""temporal_filter: rows while lower ≤ now < upper, as changes at these instants. Linear, with a queue.

A change (row, weight) is (row, weight) from lower on and (row, -weight) from upper on. What is due later waits in an arrangement whose
leading word is when; a tick reads of it what has come due since the tick before, and takes it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.arrange import check_sums
from deltic.trace.batch import Batch
from deltic.trace.between import between
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import MARKER
from deltic.trace.rows import Rows
from deltic.trace.weights import multiply

ALWAYS = np.int64(np.iinfo(np.int64).min)
NEVER = np.int64(np.iinfo(np.int64).max)

Bounds = tuple[tuple[int, int], ...]
"""The word of each bound and the microseconds to add to it."""


@dataclass(frozen=True, slots=True)
class TemporalFilter:
    """Rows of `width` words, behind which the input has a word for each bound.

    queue: rows (due, words of the row), with what happens to their weights then; `due` in microseconds.
    """

    queue: str
    width: int
    lower: Bounds
    upper: Bounds

    @property
    def name(self) -> str:
        return "temporal_filter"

    @property
    def eager(self) -> bool:
        return True

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = inputs[0]
        context.counters.touched += len(rows)
        current, later = self._scheduled(rows, context.tick.now_us)
        due = self._due(context)
        if len(due) or len(later):
            batch = consolidate(Rows.concat([later, _negated(due)]))
            check_sums(batch, self.queue, context)
            context.append(self.queue, batch)
        return Rows.concat([current, Rows(due.columns[1:], due.weights)])

    def _due(self, context: Context) -> Batch:
        """What has come due since the last tick; in a backfill, which has the time of the last tick, nothing has."""
        before, now = context.tick.before_us, context.tick.now_us
        if now == before:
            return Batch.empty(self.width + 1, 1)
        return between(context.old(self.queue, self.width + 1, 1), before, now, context.counters)

    def _scheduled(self, rows: Delta, now: int) -> tuple[Rows, Rows]:
        """The rows that count now, and entries for the queue."""
        there = np.ones(len(rows), bool)
        low, high = np.full(len(rows), ALWAYS), np.full(len(rows), NEVER)
        for word, offset in self.lower:
            there &= rows.columns[word] != MARKER
            low = np.maximum(low, rows.columns[word] + offset)
        for word, offset in self.upper:
            there &= rows.columns[word] != MARKER
            high = np.minimum(high, rows.columns[word] + offset)
        there &= (low < high) & (high > now)
        words, (weights,) = rows.columns[: self.width], rows.weights
        now_there, comes, goes = (np.flatnonzero(there & mask) for mask in (low <= now, low > now, high != NEVER))
        current = Rows([c[now_there] for c in words], [weights[now_there]])
        coming = Rows([low[comes], *(c[comes] for c in words)], [weights[comes]])
        going = _negated(Rows([high[goes], *(c[goes] for c in words)], [weights[goes]]))
        return current, Rows.concat([coming, going])


def _negated(rows: Rows) -> Rows:
    return Rows(rows.columns, [multiply(weight, np.full(len(rows), -1, np.int64)) for weight in rows.weights])
