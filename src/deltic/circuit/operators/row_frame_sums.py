"""row_frame_sums: for each row of a partition the sums over a frame of rows around it, or the first row, as of MIN, under deletions:
O(frame + log n) for a changed row.

Each row occurs once. A change alters the frames of the rows from which it is in reach: as many before it as a frame goes forward, and after
it as many as it goes back. These are added up before and after the tick, from the rows that they reach.

The words of strings of 24 bytes and more may tie (circuit/ties.py): partitions in which rows near a change are tied are added up whole, as
are all where many rows change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from typing import Literal as OneOf

import numpy as np

from deltic.circuit.framed import among, dense_ranks, exact_ranks, frame_entries, frame_leasts, frame_sums
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.operators.linear import negated
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.skip_list import differs
from deltic.circuit.ties import order_of_ties, tied, tied_with_previous
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import first, first_of_each, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
FrameKind = OneOf["sums", "firsts", "entries"]
ALL: Final = int(np.iinfo(np.int64).max)
MANY: Final = 1
"""How many rows are read at once for the price of one near a change."""


class RowRun(NamedTuple):
    """Consecutive rows: the number of the run, their words, and whether their frames are to be added up."""

    run: np.ndarray
    rows: Words
    affected: np.ndarray

    def take(self, rows: np.ndarray) -> RowRun:
        return RowRun(self.run[rows], tuple(word[rows] for word in self.rows), self.affected[rows])


class Version(NamedTuple):
    """The spines before or after a tick: the sums of rows, the rows in order, and the rows in reverse order."""

    entries: Spine
    rows: Spine
    reverse: Spine


@dataclass(frozen=True, slots=True)
class RowFrameSums:
    """(row, more) → sums over the frame from `start` to `end` rows after the row.

    entries: the arrangement (row, more) → weights, of `weights` weights. rows: the arrangement of all rows, (partition, order) → 1 and
    more weights; reverse: the same rows with the words of the order inverted. key: the words of a partition; width: those of a row; more:
    those of entries with sums of their own. counted: weight 0 of each row is 1. kind: whether a frame has sums, the first of its entries,
    or all of them. entry_texts, texts: (position of a string id, whether it sorts descending) in entries that are compared, and in rows.
    Inputs: the changes of entries, rows and reverse.
    """

    entries: str
    rows: str
    reverse: str
    key: int
    width: int
    more: int
    weights: int
    row_weights: int
    start: int
    end: int
    counted: bool
    kind: FrameKind
    entry_texts: tuple[tuple[int, bool], ...]
    texts: tuple[tuple[int, bool], ...] = ()

    @property
    def name(self) -> str:
        return "row_frame_sums"

    @property
    def eager(self) -> bool:
        return False

    @property
    def back(self) -> int:
        return max(0, -self.start, -self.end)

    @property
    def ahead(self) -> int:
        return max(0, self.start, self.end)

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        entries, rows, reverse = map(as_batch, inputs)
        if not len(rows):
            return Rows.empty(self.width + self.more, self.weights)
        old = Version(
            context.old(self.entries, self.width + self.more, self.weights),
            context.old(self.rows, self.width, self.row_weights),
            context.old(self.reverse, self.width, 1),
        )
        new = Version(old.entries.with_batch(entries), old.rows.with_batch(rows), old.reverse.with_batch(reverse))
        around = 2 * (self.back + self.ahead) + 1
        partitions = distinct_rows([Rows(rows.columns[: self.key], rows.weights)], self.key)
        if len(rows) * around * MANY >= new.rows.rows:
            return self._changed(new, self._whole(partitions, new, context), old, self._whole(partitions, old, context), context)
        runs = [self._near(rows, version, context) for version in (new, old)]
        whole = self._doubtful(rows, runs, (new, old), context)
        if len(whole[0]):
            rest = [run.take(np.flatnonzero(~among(run.rows[: self.key], whole))) for run in runs]
            runs = [_joined(own, self._whole(whole, version, context)) for own, version in zip(rest, (new, old), strict=True)]
        return self._changed(new, runs[0], old, runs[1], context)

    def _changed(self, new: Version, after: RowRun, old: Version, before: RowRun, context: Context) -> Batch:
        added, removed = self._summed(after, new, context), self._summed(before, old, context)
        return consolidate(Rows.concat([added, negated(removed)]))

    def _near(self, delta: Batch, version: Version, context: Context) -> RowRun:
        """For each change the rows whose frames it alters, and those that these reach."""
        keys, reach = delta.columns[: self.width], self.back + self.ahead
        partitions = keys[: self.key]
        inverted = [~word for word in keys[self.key :]]
        source, columns, _ = first(version.reverse, partitions, inverted, reach + 1, context.counters)
        rows = (*columns[: self.key], *(~word for word in columns[self.key :]))
        kept = np.flatnonzero(differs(rows, [key[source] for key in keys]))
        distance = _numbered(source[kept])  # from the change back
        earlier = RowRun(source[kept], tuple(word[kept] for word in rows), distance < self.ahead)
        earlier = earlier.take(np.flatnonzero(distance < reach))
        source, columns, _ = first(version.rows, partitions, keys[self.key :], reach + 1, context.counters)
        begins = np.zeros(len(delta), bool)
        begins[source[~differs(columns, [key[source] for key in keys])]] = True
        distance = _numbered(source) - begins[source]  # of the rows after the change, from 0; -1 is its own row
        later = RowRun(source, tuple(columns), distance < self.back)
        later = later.take(np.flatnonzero(distance < reach))
        both = _joined(earlier, later, renumbered=False)
        return both.take(np.lexsort((*reversed(both.rows), both.run)))

    def _whole(self, partitions: Words, version: Version, context: Context) -> RowRun:
        """All rows of the partitions, in exact order."""
        source, columns, _ = first(version.rows, partitions, None, ALL, context.counters)
        run = RowRun(source, tuple(columns), np.ones(len(source), bool))
        return run.take(order_of_ties(source, run.rows, self.texts, context.strings))

    def _doubtful(self, delta: Batch, runs: Sequence[RowRun], versions: Sequence[Version], context: Context) -> Words:
        """The partitions in which rows near a change are tied."""
        parts = [Rows.empty(self.key, 1)]
        for run, version in zip(runs, versions, strict=True) if self.texts else ():
            begins = first_of_each(run.run)
            ends = np.concatenate([begins, np.append(begins[1:], len(run.run))[: len(begins)] - 1])
            outer = [np.append(word[ends], own) for word, own in zip(run.rows, delta.columns, strict=False)]
            for rows, is_tied in (
                (run.rows, tied_with_previous(run.run, run.rows, self.texts, context.strings)),
                (outer, tied(version.rows, outer, self.texts, context.strings, context.counters)),
            ):
                parts.append(Rows([word[is_tied] for word in rows[: self.key]], (np.ones(int(is_tied.sum()), np.int64),)))
        return distinct_rows(parts, self.key)

    def _summed(self, run: RowRun, version: Version, context: Context) -> Rows:
        """The sums of the affected rows, each once, with a row for each if they are counted."""
        n = len(run.run)
        begins = first_of_each(run.run)
        lengths = np.diff(np.append(begins, n))
        low, high = np.repeat(begins, lengths), np.repeat(begins + lengths, lengths) - 1
        places = self._once(run)
        lows, highs = np.maximum(places + self.start, low[places]), np.minimum(places + self.end, high[places])
        row, more, weights = probe(version.entries, run.rows, range(self.width, self.width + self.more), context.counters)
        if self.kind == "firsts":
            held = self._least(Rows((row, *more), weights), lows, highs, context)
        else:
            held = (frame_sums if self.kind == "sums" else frame_entries)(row, more, weights, lows, highs)
        frame, *kinds = held.columns
        columns = (*(word[places[frame]] for word in run.rows), *kinds)
        if not self.counted:
            return Rows(columns, held.weights)
        rows = Rows(columns, [np.zeros(len(frame), np.int64), *held.weights[1:]])
        ones = [np.ones(len(places), np.int64), *[np.zeros(len(places), np.int64)] * (self.weights - 1)]
        return Rows.concat([rows, Rows([word[places] for word in run.rows], ones)])

    def _least(self, entries: Rows, lows: np.ndarray, highs: np.ndarray, context: Context) -> Rows:
        """The first row of each frame that has one. entries: (place, row) → copies."""
        row, *words = consolidate(entries).columns
        (ranks,) = exact_ranks([tuple(words)], dict(self.entry_texts), context.strings)
        least = frame_leasts(row, ranks, lows, highs)
        places = np.zeros(int(ranks.max(initial=-1)) + 1, np.int64)
        places[ranks] = np.arange(len(ranks))
        frames = np.flatnonzero(least >= 0)
        return Rows((frames, *(word[places[least[frames]]] for word in words)), (np.ones(len(frames), np.int64),))

    def _once(self, run: RowRun) -> np.ndarray:
        """The positions of the affected rows, without those that an earlier run has too."""
        rows = np.flatnonzero(run.affected)
        (ranks,) = dense_ranks([tuple(word[rows] for word in run.rows)])
        return np.sort(rows[np.unique(ranks, return_index=True)[1]])


def _numbered(source: np.ndarray) -> np.ndarray:
    """The number of each row in its run of equal sources, from 0."""
    begins = first_of_each(source)
    return np.arange(len(source)) - np.repeat(begins, np.diff(np.append(begins, len(source))))


def _joined(left: RowRun, right: RowRun, *, renumbered: bool = True) -> RowRun:
    """The runs of both; those of `right` have other numbers if `renumbered`."""
    offset = int(left.run.max()) + 1 if renumbered and len(left.run) else 0
    rows = tuple(np.concatenate(words) for words in zip(left.rows, right.rows, strict=True))
    return RowRun(np.concatenate([left.run, right.run + offset]), rows, np.concatenate([left.affected, right.affected]))
