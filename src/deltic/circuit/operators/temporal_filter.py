"""temporal_filter: rows while lower ≤ now < upper, as changes at these instants. Linear, with a queue.

A change (row, weight) becomes (row, weight) at lower and (row, -weight) at upper. Changes that are due later wait in an arrangement whose
leading word is the time when they are due; a tick reads and removes those that have come due since the tick before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.arrange import check_sums
from deltic.circuit.operators.linear import negated
from deltic.circuit.operators.selection_vector import SelectionVector
from deltic.expr.failures import at_row, no_clock
from deltic.schema import Schema
from deltic.trace.batch import Batch
from deltic.trace.between import between
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import MARKER, Layout
from deltic.trace.rows import Rows

ALWAYS = np.int64(np.iinfo(np.int64).min)
NEVER = np.int64(np.iinfo(np.int64).max)

Bounds = tuple[tuple[int, int], ...]
"""(the word of each bound, the microseconds to add to it)."""


@dataclass(frozen=True, slots=True)
class TemporalFilterOperator:
    """Passes rows of `source` without its last fields, the bounds, one word each. width: the number of the other words.

    queue: the arrangement (due, words of the row) → the change of the row's weight then; `due` in microseconds since 1970 UTC.
    """

    source: Schema
    queue: str
    width: int
    lower: Bounds
    upper: Bounds

    @property
    def name(self) -> str:
        return "temporal_filter"

    @property
    def optional(self) -> tuple[int, ...]:
        """The words of the bounds that are satisfied if they are NULL."""
        return ()

    @property
    def needs_clock(self) -> bool:
        """Whether it requires a time for any rows."""
        return any(word not in self.optional for word, _ in (*self.lower, *self.upper))

    @property
    def eager(self) -> bool:
        return True

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        context.counters.touched += len(inputs[0])
        return self.filtered([SelectionVector.of(inputs[0], self.source, Layout.of(self.source))], context)

    def filtered(self, parts: Sequence[SelectionVector], context: Context) -> Rows:
        """The rows after this operator, as the end of a pass. parts: together one change."""
        scheduled = [self._scheduled(part, context.tick.now_us) for part in parts]
        current, later = (Rows.concat([pair[i] for pair in scheduled]) for i in (0, 1))
        due = self._due(context)
        if len(due) or len(later):
            batch = consolidate(Rows.concat([later, negated(due)]))
            check_sums(batch, self.queue, context)
            context.append(self.queue, batch)
        return Rows.concat([current, Rows(due.columns[1:], due.weights)])

    def _due(self, context: Context) -> Batch:
        """The queued changes that have come due since the last tick. None are in a backfill, which has the time of the last tick."""
        before, now = context.tick.before_us, context.tick.now_us
        if now is None or before is None or now == before:
            return Batch.empty(self.width + 1, 1)
        return between(context.old(self.queue, self.width + 1, 1), before, now, context.counters)

    def _not_null(self, word: int, bound: np.ndarray, passing: np.ndarray) -> np.ndarray:
        """bool[n]: whether the bound is not NULL. Clears `passing` for rows where a bound that is not optional is NULL."""
        not_null: np.ndarray = bound != MARKER
        if word not in self.optional:
            passing &= not_null
        return not_null

    def _scheduled(self, rows: SelectionVector, now: int | None) -> tuple[Rows, Rows]:
        """(the rows that pass now, entries for the queue)."""
        passing = np.ones(rows.length, bool)
        low, high = np.full(rows.length, ALWAYS), np.full(rows.length, NEVER)
        fields = {part.start: i for i, part in enumerate(Layout.of(self.source).slices)}
        for word, offset in self.lower:
            (bound,) = rows.words(fields[word])
            not_null = self._not_null(word, bound, passing)
            low = np.where(not_null, np.maximum(low, bound + offset), low)
        for word, offset in self.upper:
            (bound,) = rows.words(fields[word])
            not_null = self._not_null(word, bound, passing)
            high = np.where(not_null, np.minimum(high, bound + offset), high)
        if now is None:
            _check_timeless(low, high)
            now = int(ALWAYS)
        passing &= (low < high) & (high > now)
        current, starting, ending = (np.flatnonzero(passing & mask) for mask in (low <= now, low > now, high != NEVER))
        kept = Schema(self.source.fields[: len(self.source) - len(self.lower) - len(self.upper)])
        whole = rows.with_fields(kept, rows.fields[: len(kept)])
        return whole.take(current).rows(), Rows.concat([_at(low, whole, starting), negated(_at(high, whole, ending))])


@dataclass(frozen=True, slots=True)
class OptionalTemporalFilter(TemporalFilterOperator):
    """A temporal filter with bounds that are satisfied if they are NULL. If all are, it requires no clock until a row has a bound."""

    optional: tuple[int, ...] = ()


def _check_timeless(low: np.ndarray, high: np.ndarray) -> None:
    """Raises EvaluationError for the first row that has a bound."""
    bounded = np.flatnonzero((low != ALWAYS) | (high != NEVER))
    if len(bounded):
        first = int(bounded[0])
        raise at_row(no_clock([int(low[first] if low[first] != ALWAYS else high[first])]), first)


def _at(moments: np.ndarray, rows: SelectionVector, positions: np.ndarray) -> Rows:
    """The rows at `positions`, preceded by their moments."""
    chosen = rows.take(positions).rows()
    return Rows((moments[positions], *chosen.columns), chosen.weights)
