"""neighbours: values of rows near each row in the order of its partition, under deletions: lag, lead, and the first, last or nth row of a
frame of rows.

The rows are sorted in an arrangement (partition, order, row). A change alters the values of the rows that reach it: as many copies before
it as a frame goes forward, and after it as many as a frame goes back. These are computed again from the rows that they reach, and what was
emitted for them is retracted. O(frame + log n) rows for a changed row.

The words of strings of 24 bytes and more do not sort them; a partition in which such a string is near a change is read whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from deltic.circuit.extremes import null_words
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.preceding import preceding
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.terms import exact_order
from deltic.schema import Field
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import first, first_of_each, lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import PREFIX_BYTES

Words = tuple[np.ndarray, ...]
LEAST: Final = int(np.iinfo(np.int64).min)
ALL: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Pick:
    """One value of each row: that of the nth row, from its start or its end, of a frame of rows.

    start, end: of the frame, as copies from the row itself. number: which row of the frame, from 1; from the end if it is negative.
    ignore_nulls: rows without a value are not counted. value, default: the positions of their words; the default is the row's own, where
    there is no such row. target: the field of the value, which is nullable.
    """

    start: int
    end: int
    number: int
    ignore_nulls: bool
    value: tuple[int, ...]
    default: tuple[int, ...]
    target: Field

    @property
    def back(self) -> int:
        return max(0, -self.start, -self.end)

    @property
    def ahead(self) -> int:
        return max(0, self.start, self.end)


class Near(NamedTuple):
    """Rows near changes, in order and without gaps for each change: its number, their words, copies, whether their values may change."""

    run: np.ndarray
    columns: Words
    copies: np.ndarray
    affected: np.ndarray

    def take(self, rows: np.ndarray) -> Near:
        return Near(self.run[rows], tuple(column[rows] for column in self.columns), self.copies[rows], self.affected[rows])

    @staticmethod
    def concat(parts: Sequence[Near]) -> Near:
        columns = tuple(np.concatenate(words) for words in zip(*(part.columns for part in parts), strict=True))
        run, copies, affected = (np.concatenate([part[i] for part in parts]) for i in (0, 2, 3))
        return Near(run, columns, copies, affected)


@dataclass(frozen=True, slots=True)
class NeighboursOperator:
    """Each copy of a row of `arrangement`, its first `width` words, with the words of its `picks`.

    columns: the number of words of the arrangement; those after `width` follow from the others. key: the number of words of the partition.
    memory: the arrangement of the emitted rows. texts: (position of a string id, whether it sorts descending), in order.
    """

    arrangement: str
    memory: str
    key: int
    width: int
    columns: int
    picks: tuple[Pick, ...]
    texts: tuple[tuple[int, bool], ...] = ()

    @property
    def name(self) -> str:
        return "neighbours"

    @property
    def eager(self) -> bool:
        return False

    @property
    def back(self) -> int:
        """How many copies before a row its values depend on."""
        return max(pick.back for pick in self.picks)

    @property
    def ahead(self) -> int:
        return max(pick.ahead for pick in self.picks)

    @property
    def emitted(self) -> int:
        """The number of words of an emitted row."""
        return self.width + sum(len(pick.value) for pick in self.picks)

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        if not len(delta):
            return Rows.empty(self.emitted, 1)
        now = context.old(self.arrangement, self.columns, 1).with_batch(delta)
        near, whole = self._by_bytes(self._near(delta, now, context), delta, now, context)
        new = self._valued(near)
        changed = Rows(delta.columns[: self.width], (np.ones(len(delta), np.int64),))
        old = self._emitted(distinct_rows([changed, Rows(new.columns[: self.width], new.weights)], self.width), whole, context)
        change = consolidate(Rows.concat([new, Rows(old.columns, (-old.weights[0],))]))
        context.append(self.memory, change)
        return change

    def _near(self, delta: Batch, now: Spine, context: Context) -> Near:
        """For each change the rows whose values it may alter, and those that they reach."""
        prefixes = delta.columns[: self.key]
        copies = lookup(now, delta.columns[: self.width], context.counters)[0]
        free = tuple(np.full(len(delta), LEAST) for _ in range(self.columns - self.width))
        starts = (*delta.columns[self.key : self.width], *free)
        parts = [self._before(prefixes, starts, now, context), *self._after(prefixes, starts, copies, now, context)]
        near = Near.concat(parts)
        return near.take(np.lexsort((*reversed(near.columns[: self.width]), near.run)))

    def _before(self, prefixes: Words, starts: Words, now: Spine, context: Context) -> Near:
        """The rows before each change: affected ones, as far as a value goes ahead, then those that these go back to."""
        runs = np.arange(len(starts[0]))
        passed, needed = np.zeros(len(runs), np.int64), np.full(len(runs), self.back)
        parts = [Near(np.zeros(0, np.int64), tuple(np.zeros(0, np.int64) for _ in range(self.columns)), runs[:0], np.zeros(0, bool))]
        while True:
            runs = runs[(passed[runs] < self.ahead) | (passed[runs] < needed[runs])]
            if not runs.size:
                break
            has, row, copies = preceding(now, tuple(w[runs] for w in prefixes), tuple(w[runs] for w in starts), context.counters)
            runs = runs[has]
            affected = passed[runs] < self.ahead
            parts.append(Near(runs, (*(w[runs] for w in prefixes), *row), copies, affected))
            passed[runs] += copies
            needed[runs[affected]] = passed[runs[affected]] + self.back
            starts = tuple(word.copy() for word in starts)
            for start, word in zip(starts, row, strict=True):
                start[runs] = word
        return Near.concat(parts)

    def _after(self, prefixes: Words, starts: Words, copies: np.ndarray, now: Spine, context: Context) -> list[Near]:
        """The changed rows and the rows after them: affected ones, as far as a value goes back, then those that these go ahead to."""
        limits = np.maximum(copies, 0) + self.back
        run, columns, weights = self._limited(prefixes, starts, limits, now, context)
        affected = Near(run, columns, weights, np.ones(len(run), bool))
        if not self.ahead:
            return [affected]
        begins = first_of_each(run)
        last = np.append(begins[1:], len(run))[: len(begins)] - 1
        ends = [word.copy() for word in (*prefixes, *starts)]  # of each change: its last affected row, or its own place
        passed = np.zeros(len(copies), np.int64)
        passed[run[last]] = weights[last]
        for end, column in zip(ends, columns, strict=True):
            end[run[last]] = column[last]
        more, columns, weights = self._limited(tuple(ends[: self.key]), tuple(ends[self.key :]), passed + self.ahead, now, context)
        own = np.zeros(len(more), bool)
        own[first_of_each(more)] = True
        own &= passed[more] > 0
        return [affected, Near(more, columns, weights, np.zeros(len(more), bool)).take(np.flatnonzero(~own))]

    @staticmethod
    def _limited(prefixes: Words, starts: Words, limits: np.ndarray, now: Spine, context: Context) -> tuple[np.ndarray, Words, np.ndarray]:
        """The rows from each start on that have the first `limits` copies: (the number of the start, words, copies)."""
        chosen = np.flatnonzero(limits > 0)
        if not chosen.size:
            return chosen, tuple(chosen for _ in (*prefixes, *starts)), chosen
        most = int(limits.max())
        run, columns, weights = first(now, [w[chosen] for w in prefixes], [w[chosen] for w in starts], most, context.counters)
        total = np.cumsum(weights[0]) - weights[0]
        heads = np.searchsorted(run, np.arange(len(chosen)))
        before = total - total[np.minimum(heads[run], max(len(total) - 1, 0))] if len(run) else total
        kept = before < limits[chosen][run]
        return chosen[run][kept], tuple(column[kept] for column in columns), weights[0][kept]

    def _by_bytes(self, near: Near, delta: Batch, now: Spine, context: Context) -> tuple[Near, Words | None]:
        """(the rows, whole partitions in exact order where long strings are near a change; the words of these partitions)."""
        long, changed = np.zeros(len(near.run), bool), np.zeros(len(delta), bool)
        for text, _ in self.texts:
            long |= context.strings.exceeds(near.columns[text], PREFIX_BYTES)
            changed |= context.strings.exceeds(delta.columns[text], PREFIX_BYTES)
        if not long.any() and not changed.any():
            return near, None
        changed[near.run[long]] = True
        partitions = distinct_rows([Rows(delta.take(changed).columns[: self.key], (np.ones(int(changed.sum()), np.int64),))], self.key)
        run, columns, weights = first(now, partitions, None, ALL, context.counters)
        order = np.arange(len(run))
        bounds = np.searchsorted(run, np.arange(len(partitions[0]) + 1))
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            rows = tuple(column[begin:end] for column in columns[: self.width])
            order[begin:end] = begin + exact_order(rows, dict(self.texts), context.strings)
        whole = Near(run + len(delta), columns, weights[0], np.ones(len(run), bool)).take(order)
        inside = _are_in(near.columns[: self.key], partitions)
        rest = near.take(np.flatnonzero(~inside))
        return Near.concat([rest, whole]), partitions

    def _valued(self, near: Near) -> Rows:
        """The affected rows, each once, copy by copy with their values."""
        copies = np.repeat(np.arange(len(near.run)), near.copies)
        columns = tuple(column[copies] for column in near.columns)
        run = near.run[copies]
        begins = first_of_each(run)
        lengths = np.diff(np.append(begins, len(run)))
        low, high = np.repeat(begins, lengths), np.repeat(begins + lengths, lengths)
        places = np.flatnonzero(self._each_once(near)[copies])
        words = [column[places] for column in columns[: self.width]]
        for pick in self.picks:
            words += _picked(pick, places, low[places], high[places], columns)
        return Rows(tuple(words), (np.ones(len(places), np.int64),))

    def _each_once(self, near: Near) -> np.ndarray:
        """The affected rows, without those that an earlier run has too."""
        rows = np.flatnonzero(near.affected)
        order = rows[np.lexsort((near.run[rows], *(column[rows] for column in reversed(near.columns[: self.width]))))]
        repeated = np.ones(len(order), bool)
        repeated[:1] = False
        for column in near.columns[: self.width]:
            repeated[1:] &= column[order][1:] == column[order][:-1]
        once = np.zeros(len(near.run), bool)
        once[order[~repeated]] = True
        return once

    def _emitted(self, rows: Words, whole: Words | None, context: Context) -> Rows:
        """What was emitted for these rows, and for whole partitions."""
        memory = context.old(self.memory, self.emitted, 1)
        if whole is not None:
            rest = np.flatnonzero(~_are_in(rows[: self.key], whole))
            rows = tuple(word[rest] for word in rows)
        parts = []
        for keys in (rows, *([] if whole is None else [whole])):
            source, columns, weights = probe(memory, keys, range(len(keys), self.emitted), context.counters)
            parts.append(Rows((*(word[source] for word in keys), *columns), weights))
        return Rows.concat(parts)


def _are_in(rows: Words, keys: Words) -> np.ndarray:
    """Which rows are among the keys."""
    among = set(zip(*(word.tolist() for word in keys), strict=True))
    return np.array([row in among for row in zip(*(word.tolist() for word in rows), strict=True)], bool)


def _picked(pick: Pick, places: np.ndarray, low: np.ndarray, high: np.ndarray, columns: Words) -> list[np.ndarray]:
    """The words of the value for the rows at these places. low, high: the places of the run that each is in."""
    present = np.ones(len(columns[0]), bool)
    nulls = null_words(pick.target)
    if pick.ignore_nulls:
        present = columns[pick.value[0]] != nulls[0]
    target, left = np.full(len(places), -1), np.full(len(places), abs(pick.number))
    if pick.ignore_nulls:
        offsets = range(pick.start, pick.end + 1) if pick.number > 0 else range(pick.end, pick.start - 1, -1)
        for offset in offsets:
            reached = places + offset
            counts = (reached >= low) & (reached < high)
            counts[counts] = present[reached[counts]]
            left = left - counts
            target = np.where(counts & (left == 0), reached, target)
    else:
        begins, ends = np.maximum(places + pick.start, low), np.minimum(places + pick.end, high - 1)
        nth = begins + pick.number - 1 if pick.number > 0 else ends + pick.number + 1
        target = np.where((nth >= begins) & (nth <= ends), nth, -1)
    is_there = target >= 0
    otherwise = [columns[word][places] for word in pick.default] or [np.full(len(places), word) for word in nulls]
    return [np.where(is_there, columns[word][target], own) for word, own in zip(pick.value, otherwise, strict=True)]
