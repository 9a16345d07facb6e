"""positions: where rows are in the order of their partition, under deletions: row_number, rank, and the number of rows up to the last peer.

The rows, or the groups of peers, are sorted in an arrangement (partition, order) → copies. A change moves all rows after it by as many
positions as it adds copies; where later changes cancel that, the rows after them stay. So a tick reads the rows from the first change of
each such stretch to its last one, or to the end of the partition: those whose position it changes, O(log n) beside. The position before a
stretch is remembered with the emitted rows.

The words of strings of 24 bytes and more may tie (circuit/ties.py). A stretch reorders the tied rows in it; partitions in which its ends,
or the row before it, are tied are read whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from typing import Literal as OneOf

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.preceding import preceding
from deltic.circuit.ties import order_of_ties, tied
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import first, lookup
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
PositionKind = OneOf["row_number", "rank", "last_peer"]
LEAST: Final = int(np.iinfo(np.int64).min)
ALL: Final = int(np.iinfo(np.int64).max)


class Stretch(NamedTuple):
    """Rows of n partitions between changes: their prefixes, the words at which they start, the position there, and their copies.

    copies: the same before and after the tick; ALL is to the end of the partition.
    """

    prefixes: Words
    starts: Words
    base: np.ndarray
    copies: np.ndarray

    def take(self, rows: np.ndarray) -> Stretch:
        return Stretch(tuple(w[rows] for w in self.prefixes), tuple(w[rows] for w in self.starts), self.base[rows], self.copies[rows])

    def plus(self, other: Stretch) -> Stretch:
        both = [tuple(np.concatenate(pair) for pair in zip(own, more, strict=True)) for own, more in zip(self[:2], other[:2], strict=True)]
        return Stretch(both[0], both[1], np.concatenate([self.base, other.base]), np.concatenate([self.copies, other.copies]))


@dataclass(frozen=True, slots=True)
class PositionsOperator:
    """Each row of `arrangement`, of `width` words, with its position; for row_number once for each copy.

    key: the number of words of the partition. memory: the arrangement of the emitted rows.
    texts: (position of a string id, whether it sorts descending), in order; the string's order words precede its id.
    """

    arrangement: str
    memory: str
    key: int
    width: int
    kind: PositionKind
    texts: tuple[tuple[int, bool], ...] = ()

    @property
    def name(self) -> str:
        return "positions"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        if not len(delta):
            return Rows.empty(self.width + 1, 1)
        old = context.old(self.arrangement, self.width, 1)
        stretches = self._stretches(delta, old, context)
        after = self._positioned(old.with_batch(delta), stretches, context)
        before = self._positioned(old, stretches, context)
        change = consolidate(Rows.concat([after, Rows(before.columns, (-before.weights[0],))]))
        context.append(self.memory, change)
        return change

    def _stretches(self, delta: Batch, old: Spine, context: Context) -> Stretch:
        """The stretches of the tick: each from a change to the one that restores the positions of the rows after it."""
        begins, ends, restored = _runs(delta, self.key)
        prefixes, heads = self._words(delta, begins)
        lasts = self._words(delta, ends)[1]
        base, unsure = self._bases(prefixes, heads, old, context)
        copies = np.full(len(begins), ALL)
        if (bounded := np.flatnonzero(restored)).size:
            keys = tuple(w[bounded] for w in prefixes)
            last, last_unsure = self._bases(keys, tuple(w[bounded] for w in lasts), old, context)
            held = lookup(old, (*keys, *(w[bounded] for w in lasts)), context.counters)[0]
            copies[bounded] = last - base[bounded] + held
            unsure[bounded] |= last_unsure
        stretches = Stretch(prefixes, heads, base, copies)
        if not self.texts:
            return stretches
        for spine in (old, old.with_batch(delta)):
            for places in (begins, ends):
                rows = [word[places] for word in delta.columns[: self.width]]
                unsure |= tied(spine, rows, self.texts, context.strings, context.counters)
        return self._with_whole(stretches, delta, begins[unsure], begins) if unsure.any() else stretches

    def _words(self, rows: Rows, places: np.ndarray) -> tuple[Words, Words]:
        """(the words of the partition, the others) of these rows."""
        words = tuple(column[places] for column in rows.columns)
        return words[: self.key], words[self.key : self.width]

    def _bases(self, prefixes: Words, starts: Words, old: Spine, context: Context) -> tuple[np.ndarray, np.ndarray]:
        """(the position of the first row that is not before each start, where it is unsure because the row before that is tied)."""
        memory = context.old(self.memory, self.width + 1, 1)
        base, unsure = np.ones(len(starts[0]), np.int64), np.zeros(len(starts[0]), bool)
        has, words, _ = preceding(memory, prefixes, (*starts, np.full(len(starts[0]), LEAST)), context.counters)
        if not has.size:
            return base, unsure
        *row, position = words
        if self.kind == "rank":
            base[has] = position + lookup(old, (*(w[has] for w in prefixes), *row), context.counters)[0]
        else:
            base[has] = position + 1
        unsure[has] = tied(old, [*(w[has] for w in prefixes), *row], self.texts, context.strings, context.counters)
        return base, unsure

    def _with_whole(self, stretches: Stretch, delta: Batch, unsure: np.ndarray, begins: np.ndarray) -> Stretch:
        """The stretches, with whole partitions in place of those with changes, or rows before these, that are tied."""
        partition = np.cumsum(_starts_partition(delta, self.key)) - 1
        doubtful = np.zeros(int(partition[-1]) + 1, bool)
        doubtful[partition[unsure]] = True
        of = partition[begins]
        kept = stretches.take(np.flatnonzero(~doubtful[of]))
        whole = stretches.take(np.unique(of, return_index=True)[1][doubtful])
        n = len(whole.base)
        starts = tuple(np.full(n, LEAST) for _ in whole.starts)
        whole = Stretch(whole.prefixes, starts, np.ones(n, np.int64), np.full(n, ALL))
        return kept.plus(whole)

    def _positioned(self, spine: Spine, stretches: Stretch, context: Context) -> Rows:
        """The rows of the stretches with their positions."""
        parts = [Rows.empty(self.width + 1, 1)]
        classes = np.frexp(stretches.copies.astype(np.float64))[1]
        for size in np.unique(classes[stretches.copies > 0]):
            chosen = stretches.take(np.flatnonzero((classes == size) & (stretches.copies > 0)))
            source, columns, weights = first(spine, chosen.prefixes, chosen.starts, int(chosen.copies.max()), context.counters)
            parts.append(self._numbered(chosen, source, columns, weights[0], context))
        return Rows.concat(parts)

    def _numbered(self, stretches: Stretch, source: np.ndarray, columns: Words, copies: np.ndarray, context: Context) -> Rows:
        """The rows with their positions. source: the stretch of each row, ascending."""
        if self.texts and len(source):
            order = order_of_ties(source, columns, self.texts, context.strings)
            columns, copies = tuple(column[order] for column in columns), copies[order]
        total = np.cumsum(copies) - copies
        heads = np.searchsorted(source, np.arange(len(stretches.base)))
        before = total - total[np.minimum(heads[source], len(total) - 1)] if len(source) else total
        kept = before < stretches.copies[source]
        source, copies, before = source[kept], copies[kept], before[kept]
        columns = tuple(column[kept] for column in columns)
        position = stretches.base[source] + before
        if self.kind == "row_number":
            each = np.repeat(np.arange(len(source)), copies)
            firsts = np.cumsum(copies) - copies
            position = position[each] + np.arange(len(each)) - firsts[each]
            columns = tuple(column[each] for column in columns)
        elif self.kind == "last_peer":
            position = position + copies - 1
        return Rows((*columns, position), (np.ones(len(position), np.int64),))


def _starts_partition(rows: Rows, key: int) -> np.ndarray:
    """Where a partition starts in sorted rows."""
    starts = np.zeros(len(rows), bool)
    starts[:1] = True
    for column in rows.columns[:key]:
        starts[1:] |= column[1:] != column[:-1]
    return starts


def _runs(delta: Batch, key: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(first change, last change, whether the rows after it keep their positions) of each run of changes."""
    shift = np.cumsum(delta.weights[0])
    starts = _starts_partition(delta, key)
    heads = np.maximum.accumulate(np.where(starts, np.arange(len(delta)), 0))
    shift = shift - (shift - delta.weights[0])[heads]
    ends = shift == 0
    last = np.append(starts[1:], True)
    closing = ends | last
    begins = np.append(True, closing[:-1])
    return np.flatnonzero(begins), np.flatnonzero(closing), ends[closing]
