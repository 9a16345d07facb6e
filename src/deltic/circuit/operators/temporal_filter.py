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
"""The word of each bound and the microseconds to add to it."""


@dataclass(frozen=True, slots=True)
class TemporalFilterOperator:
    """Rows of `source` without its last fields, which are the bounds, a word each. width: the words of the others.

    queue: rows (due, words of the row), with what happens to their weights then; `due` in microseconds.
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
        """The words of the bounds that are satisfied where they are NULL."""
        return ()

    @property
    def needs_clock(self) -> bool:
        """Whether it has no meaning without a time, whatever the rows are."""
        return any(word not in self.optional for word, _ in (*self.lower, *self.upper))

    @property
    def eager(self) -> bool:
        return True

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        context.counters.touched += len(inputs[0])
        return self.filtered([SelectionVector.of(inputs[0], self.source, Layout.of(self.source))], context)

    def filtered(self, parts: Sequence[SelectionVector], context: Context) -> Rows:
        """The rows behind this operator, as the end of a pass; of several parts of one change."""
        scheduled = [self._scheduled(part, context.tick.now_us) for part in parts]
        current, later = (Rows.concat([pair[i] for pair in scheduled]) for i in (0, 1))
        due = self._due(context)
        if len(due) or len(later):
            batch = consolidate(Rows.concat([later, negated(due)]))
            check_sums(batch, self.queue, context)
            context.append(self.queue, batch)
        return Rows.concat([current, Rows(due.columns[1:], due.weights)])

    def _due(self, context: Context) -> Batch:
        """What has come due since the last tick; in a backfill, which has the time of the last tick, nothing has."""
        before, now = context.tick.before_us, context.tick.now_us
        if now is None or before is None or now == before:
            return Batch.empty(self.width + 1, 1)
        return between(context.old(self.queue, self.width + 1, 1), before, now, context.counters)

    def _given(self, word: int, bound: np.ndarray, there: np.ndarray) -> np.ndarray:
        """On which rows the bound is not NULL. Where one that must not be is, the row leaves `there`."""
        given: np.ndarray = bound != MARKER
        if word not in self.optional:
            there &= given
        return given

    def _scheduled(self, rows: SelectionVector, now: int | None) -> tuple[Rows, Rows]:
        """The rows that count now, and entries for the queue."""
        there = np.ones(rows.length, bool)
        low, high = np.full(rows.length, ALWAYS), np.full(rows.length, NEVER)
        fields = {at.start: i for i, at in enumerate(Layout.of(self.source).slices)}
        for word, offset in self.lower:
            (bound,) = rows.words(fields[word])
            given = self._given(word, bound, there)
            low = np.where(given, np.maximum(low, bound + offset), low)
        for word, offset in self.upper:
            (bound,) = rows.words(fields[word])
            given = self._given(word, bound, there)
            high = np.where(given, np.minimum(high, bound + offset), high)
        if now is None:
            _check_timeless(low, high)
            now = int(ALWAYS)
        there &= (low < high) & (high > now)
        now_there, comes, goes = (np.flatnonzero(there & mask) for mask in (low <= now, low > now, high != NEVER))
        kept = Schema(self.source.fields[: len(self.source) - len(self.lower) - len(self.upper)])
        whole = rows.with_fields(kept, rows.fields[: len(kept)])
        return whole.taken(now_there).rows(), Rows.concat([_at(low, whole, comes), negated(_at(high, whole, goes))])


@dataclass(frozen=True, slots=True)
class OptionalTemporalFilter(TemporalFilterOperator):
    """One of whose bounds some are satisfied where they are NULL. If all are, it needs no clock until a row has a bound."""

    optional: tuple[int, ...] = ()


def _check_timeless(low: np.ndarray, high: np.ndarray) -> None:
    """Raises EvaluationError, with the row, if one counts from or until some time."""
    bounded = np.flatnonzero((low != ALWAYS) | (high != NEVER))
    if len(bounded):
        first = int(bounded[0])
        raise at_row(no_clock([int(low[first] if low[first] != ALWAYS else high[first])]), first)


def _at(moments: np.ndarray, rows: SelectionVector, positions: np.ndarray) -> Rows:
    """These rows behind their moments."""
    found = rows.taken(positions).rows()
    return Rows((moments[positions], *found.columns), found.weights)
