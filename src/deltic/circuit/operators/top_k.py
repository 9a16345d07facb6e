"""top_k: the first rows of each group in an order, under deletions.

All rows are sorted in an arrangement whose words are those of the group, or a constant, then the order words, then those of the row. A
group is searched from the lesser of the first row of its old result and the first row inserted now, since no row before it is present. A
change after the end of a full result costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.terms import exact_order, is_long
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import MARKER
from deltic.trace.probe import first, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class TopKOperator:
    """The first `limit` rows of each group of `arrangement`.

    width: the number of its words. output: the words to pass on. memory: the arrangement of the current result.
    texts: (position of a string id, whether it sorts descending), in order; the string's order words precede its id.
    key: how many words of a row are its group's; where there is one group, a constant is.
    """

    arrangement: str
    memory: str
    width: int
    limit: int
    output: tuple[int, ...]
    texts: tuple[tuple[int, bool], ...] = ()
    key: int = 1

    @property
    def name(self) -> str:
        return "top_k"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        if not self.limit or not len(delta):
            return Rows.empty(len(self.output), 1)
        groups = distinct_rows([delta], self.key)
        source, columns, weights = first(context.old(self.memory, self.width, 1), groups, None, self.limit, context.counters)
        old = _Grouped(Rows(columns, (weights[0],)), np.searchsorted(source, np.arange(len(groups[0]) + 1)))
        changed = _Grouped(delta, _heads(delta, groups))
        active = ~(self._full(old) & self._after_the_end(changed, old))
        has_start, starts = self._starts(changed, old)
        searched = np.flatnonzero(active & has_start)
        if len(searched):
            now = context.old(self.arrangement, self.width, 1).with_batch(delta)
            new = self.first_of(now, tuple(g[searched] for g in groups), tuple(s[searched] for s in starts), context)
        else:
            new = Rows.empty(self.width, 1)
        old_rows = old.rows.take(np.flatnonzero(active[source]))
        change = consolidate(Rows.concat([new, Rows(old_rows.columns, (-old_rows.weights[0],))]))
        context.append(self.memory, change)
        return Rows(tuple(change.columns[i] for i in self.output), change.weights)

    def first_of(self, now: Spine, groups: Words, starts: Words | None, context: Context) -> Rows:
        """The first `limit` copies of each group. starts: see `first`."""
        if not self.limit:
            return Rows.empty(self.width, 1)
        source, columns, weights = first(now, groups, starts, self.limit, context.counters)
        heads = np.searchsorted(source, np.arange(len(groups[0]) + 1))
        before = np.cumsum(weights[0]) - weights[0]
        room = self.limit - (before - before[heads[source]])
        rows = _Grouped(Rows(tuple(columns), (np.clip(room, 0, weights[0]),)), heads)
        if not self.texts or not len(rows.rows):
            return rows.rows
        uncertain = self._tied(now, rows, context)
        resolved = [self._by_bytes(now, rows.rows.take(np.arange(heads[g], heads[g + 1])), context) for g in uncertain.tolist()]
        return Rows.concat([rows.rows.take(np.flatnonzero(~np.isin(source, uncertain))), *resolved])

    def _full(self, old: _Grouped) -> np.ndarray:
        """Whether each group has `limit` rows."""
        copies = np.concatenate(([0], np.cumsum(old.rows.weights[0])))
        full: np.ndarray = np.diff(copies[old.heads]) == self.limit
        return full

    def _after_the_end(self, changed: _Grouped, old: _Grouped) -> np.ndarray:
        """Whether all rows of a group's change sort after the last one of its result, whatever the bytes of long strings are."""
        last = np.maximum(old.heads[1:] - 1, 0)
        sure, place = self._sure(old.rows, last), changed.heads[:-1]
        after, decided = np.zeros(len(last), bool), ~old.filled
        for c in range(self.key, self.width):
            one, other = changed.rows.columns[c][place], old.word(c, last)
            decided |= sure <= c
            after |= ~decided & (one > other)
            decided |= one != other
        return after

    def _starts(self, changed: _Grouped, old: _Grouped) -> tuple[np.ndarray, Words]:
        """(which groups can have rows, the least words that sort like the lesser of the first row before and the first inserted)."""
        inserted = np.flatnonzero(changed.rows.weights[0] > 0)
        heads = np.searchsorted(inserted, changed.heads)
        arrives = heads[1:] > heads[:-1]
        place = inserted[np.minimum(heads[:-1], len(inserted) - 1)] if len(inserted) else heads[:-1] * 0
        sure = self._sure(changed.rows, place), self._sure(old.rows, old.heads[:-1])
        words = range(self.key, self.width)
        new = [np.where(c < sure[0], changed.rows.columns[c][place], MARKER) for c in words]
        kept = [np.where(c < sure[1], old.word(c, old.heads[:-1]), MARKER) for c in words]
        less, decided = arrives & ~old.filled, arrives != old.filled
        for one, other in zip(new, kept, strict=True):
            less |= ~decided & (one < other)
            decided |= one != other
        return arrives | old.filled, tuple(np.where(less, one, other) for one, other in zip(new, kept, strict=True))

    def _sure(self, rows: Rows, places: np.ndarray) -> np.ndarray:
        """For each place how many words of the row determine its order: all, or those before the id of the first long string."""
        sure = np.full(len(places), self.width)
        if len(rows):
            places = np.minimum(places, len(rows) - 1)
            for position, descending in reversed(self.texts):
                sure[is_long(rows.columns[position - 1][places], descending)] = position
        return sure

    def _tied(self, now: Spine, rows: _Grouped, context: Context) -> np.ndarray:
        """The groups with `limit` rows whose last one has a long string, and equals others up to the first such string."""
        last = rows.heads[1:] - 1
        cuts = self._sure(rows.rows, last)
        groups = np.flatnonzero(rows.filled & self._full(rows) & (cuts < self.width))
        several = np.zeros(len(groups), bool)
        for cut in np.unique(cuts[groups]).tolist():
            chosen = np.flatnonzero(cuts[groups] == cut)
            prefix = [word[last[groups[chosen]]] for word in rows.rows.columns[:cut]]
            source, columns, weights = probe(now, prefix, range(cut, self.width), context.counters)
            equal = consolidate(Rows((source, *columns), (weights[0],)))
            several[chosen] = np.bincount(equal.columns[0][equal.weights[0] > 0], minlength=len(chosen)) > 1
        return groups[several]

    def _by_bytes(self, now: Spine, rows: Rows, context: Context) -> Rows:
        """Corrects the end of a result by the bytes of long strings, which decide among rows with equal first bytes."""
        cut = int(self._sure(rows, np.array([len(rows) - 1]))[0])
        prefix = [c[-1:] for c in rows.columns[:cut]]
        _, columns, weights = probe(now, prefix, range(self.width), context.counters)
        tied = consolidate(Rows(tuple(columns), (weights[0],)))
        keep = np.logical_or.reduce([c != p for c, p in zip(rows.columns[:cut], prefix, strict=True)])
        order = exact_order(tied.columns, dict(self.texts), context.strings)
        order = order[tied.weights[0][order] > 0]
        sure = Rows(tuple(c[keep] for c in rows.columns), (rows.weights[0][keep],))
        copies = tied.weights[0][order]
        room = self.limit - int(sure.weights[0].sum()) - (np.cumsum(copies) - copies)
        chosen = Rows(tuple(c[order] for c in tied.columns), (np.clip(room, 0, copies),))
        return Rows.concat([sure, chosen])


@dataclass(frozen=True, slots=True)
class _Grouped:
    """Rows by group. heads: where each begins, then the number of rows."""

    rows: Rows
    heads: np.ndarray

    @property
    def filled(self) -> np.ndarray:
        """Whether each group has rows."""
        filled: np.ndarray = self.heads[1:] > self.heads[:-1]
        return filled

    def word(self, column: int, places: np.ndarray) -> np.ndarray:
        """The words of a column at these places; 0 if there are no rows at all."""
        words = self.rows.columns[column]
        return words[np.minimum(places, len(words) - 1)] if len(words) else np.zeros(len(places), np.int64)


def _heads(delta: Batch, groups: Words) -> np.ndarray:
    """Where the rows of each group begin, then the number of rows."""
    begins = np.ones(len(delta), bool)
    begins[1:] = False
    for column in delta.columns[: len(groups)]:
        begins[1:] |= column[1:] != column[:-1]
    return np.append(np.flatnonzero(begins), len(delta))
