"""neighbours: values of rows near each row in the order of its partition, under deletions: lag, lead, and the first, last or nth row of a
frame of rows.

The rows are sorted in an arrangement (partition, order, row). A change alters the values of the rows that reach it: as many copies before
it as a frame goes forward, and after it as many as a frame goes back. These are computed again from the rows that they reach, and what was
emitted for them is retracted. O(frame + log n) rows for a changed row; where changes are close to each other, O(rows near them).

The words of strings of 24 bytes and more may tie (circuit/ties.py); a partition in which rows near a change are tied is read whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from deltic.circuit.extremes import null_words
from deltic.circuit.key_frames import followed
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.preceding import preceding
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.skip_list import is_after
from deltic.circuit.ties import order_of_ties, tied, tied_with_previous
from deltic.schema import Field
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import first, first_of_each, lookup, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
LEAST: Final = int(np.iinfo(np.int64).min)
ALL: Final = int(np.iinfo(np.int64).max)
AT_ONCE: Final = 512
"""How many rows after all changes are read in the first call: another call costs more."""


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


class Part(NamedTuple):
    """Rows beside changes: the number of the change, their words, copies."""

    change: np.ndarray
    columns: Words
    copies: np.ndarray

    @staticmethod
    def empty(columns: int) -> Part:
        nothing = np.zeros(0, np.int64)
        return Part(nothing, (nothing,) * columns, nothing)

    @staticmethod
    def concat(parts: Sequence[Part]) -> Part:
        columns = tuple(np.concatenate(words) for words in zip(*(part.columns for part in parts), strict=True))
        return Part(np.concatenate([part.change for part in parts]), columns, np.concatenate([part.copies for part in parts]))


class NearbyRows(NamedTuple):
    """Rows near changes, each once, in runs in order and without gaps: the run, their words, copies, whether their values may change."""

    run: np.ndarray
    columns: Words
    copies: np.ndarray
    affected: np.ndarray

    def take(self, rows: np.ndarray) -> NearbyRows:
        return NearbyRows(self.run[rows], tuple(column[rows] for column in self.columns), self.copies[rows], self.affected[rows])

    @staticmethod
    def concat(parts: Sequence[NearbyRows]) -> NearbyRows:
        columns = tuple(np.concatenate(words) for words in zip(*(part.columns for part in parts), strict=True))
        run, copies, affected = (np.concatenate([part[i] for part in parts]) for i in (0, 2, 3))
        return NearbyRows(run, columns, copies, affected)


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

    def _near(self, delta: Batch, now: Spine, context: Context) -> NearbyRows:
        """The rows whose values changes may alter, and those that they reach, each once. Rows between changes are read from both."""
        n, follows = len(delta), followed(delta.columns[: self.key])
        copies = np.maximum(lookup(now, delta.columns[: self.width], context.counters)[0], 0)
        after, meets, last = self._after(delta, follows, copies + self.back, now, context)
        joined = np.append(False, meets[:-1])
        before, joined = self._before(delta, np.append(False, follows[:-1]), joined, last, now, context)
        side, columns, weights = Part.concat([before._replace(change=2 * before.change), after._replace(change=2 * after.change + 1)])
        order = np.lexsort((*reversed(columns[: self.width]), side))
        side, columns, weights = side[order], tuple(column[order] for column in columns), weights[order]

        ends = np.cumsum(weights)
        places = np.append(0, ends)[np.searchsorted(side, 2 * np.arange(n) + 1)]
        following = (side + 1) >> 1  # the change after each row
        both = np.append(joined, False)[following]  # whether it is in one run with the change before it
        is_later = side & 1 == 1
        preceding = np.maximum(following - 1, 0)
        affected = (is_later | both) & (ends - weights - places[preceding] < copies[preceding] + self.back)
        affected |= (~is_later | both) & (np.append(places, 0)[following] - ends < self.ahead)
        return NearbyRows(np.cumsum(~joined)[side >> 1] - 1, columns, weights, affected)

    def _after(self, delta: Batch, follows: np.ndarray, own: np.ndarray, now: Spine, context: Context) -> tuple[Part, np.ndarray, Words]:
        """The rows from each change on, before the next one in its partition: those that begin less than `own` copies after it, and those
        that they go ahead to. Also whether they are all rows before the next one, and the last of them, or else the place of the change.

        More and more rows are read until they are enough: O(rows), however many changes are how close to each other.
        """
        keys, n = delta.columns[: self.width], len(delta)
        free = [np.full(n, LEAST) for _ in range(self.columns - self.width)]
        meets, needed, parts = np.zeros(n, bool), own + self.ahead, [Part.empty(self.columns)]
        changes, size = np.flatnonzero(needed > 0), max(2, AT_ONCE // n)
        while changes.size:
            size = min(size, int(needed[changes].max()))
            sought = [word[changes] for word in (*keys, *free)]
            source, columns, (copies, *_) = first(now, sought[: self.key], sought[self.key :], size, context.counters)
            heads, tails = (np.searchsorted(source, np.arange(len(changes)), side) for side in ("left", "right"))
            total = np.append(0, np.cumsum(copies))
            change, before = changes[source], total[:-1] - total[heads][source]
            begins_affected = np.bincount(source[before < own[change]], minlength=len(changes))
            needed[changes] = np.maximum(needed[changes], total[heads + begins_affected] - total[heads] + self.ahead)
            following = [word[np.minimum(change + 1, n - 1)] for word in keys]
            inside = ~follows[change] | is_after(following, columns[: self.width])
            meets[change[~inside]] = True
            done = meets[changes] | (needed[changes] <= size) | (total[tails] - total[heads] < size)
            kept = np.flatnonzero(done[source] & inside & (meets[change] | (before < needed[change])))
            parts.append(Part(change[kept], tuple(column[kept] for column in columns), copies[kept]))
            changes, size = changes[~done], 4 * size
        after = Part.concat(parts)
        last = tuple(word.copy() for word in keys)
        ends = np.flatnonzero(np.append(after.change[1:] != after.change[:-1], True)[: len(after.change)])
        for end, column in zip(last, after.columns, strict=False):
            end[after.change[ends]] = column[ends]
        return after, meets, last

    def _before(
        self, delta: Batch, follows: np.ndarray, joined: np.ndarray, last: Words, now: Spine, context: Context
    ) -> tuple[Part, np.ndarray]:
        """The rows before each change that is not `joined` to the one before it: affected ones, as far as a value goes ahead, then those
        that these go back to, up to the last of the rows after the change before it. Also which changes are joined by these rows.

        follows: whether there is a change before it in its partition.
        """
        prefixes, starts = delta.columns[: self.key], [word.copy() for word in delta.columns[self.key : self.width]]
        starts += [np.full(len(delta), LEAST) for _ in range(self.columns - self.width)]
        passed, needed, joined = np.zeros(len(delta), np.int64), np.full(len(delta), self.back), joined.copy()
        changes, parts = np.flatnonzero(~joined), [Part.empty(self.columns)]
        while True:
            changes = changes[(passed[changes] < self.ahead) | (passed[changes] < needed[changes])]
            if not changes.size:
                return Part.concat(parts), joined
            has, row, copies = preceding(now, tuple(w[changes] for w in prefixes), tuple(w[changes] for w in starts), context.counters)
            changes = changes[has]
            columns = (*(word[changes] for word in prefixes), *row)
            is_met = follows[changes] & ~is_after(columns[: self.width], [word[changes - 1] for word in last])
            joined[changes[is_met]] = True
            kept = np.flatnonzero(~is_met)
            changes, columns, copies = changes[kept], tuple(column[kept] for column in columns), copies[kept]
            parts.append(Part(changes, columns, copies))
            affected = passed[changes] < self.ahead
            passed[changes] += copies
            needed[changes[affected]] = passed[changes[affected]] + self.back
            for start, word in zip(starts, columns[self.key :], strict=True):
                start[changes] = word

    def _by_bytes(self, near: NearbyRows, delta: Batch, now: Spine, context: Context) -> tuple[NearbyRows, Words | None]:
        """(the rows, whole partitions in exact order where rows near a change are tied; the words of these partitions)."""
        if not self.texts:
            return near, None
        rows, removed = near.columns[: self.width], delta.take(delta.weights[0] < 0).columns[: self.width]
        begins = first_of_each(near.run)
        ends = np.concatenate([begins, np.append(begins[1:], len(near.run))[: len(begins)] - 1])
        is_tied = tied_with_previous(near.run, rows, self.texts, context.strings)
        is_tied[ends] |= tied(now, [word[ends] for word in rows], self.texts, context.strings, context.counters)
        is_tied = np.append(is_tied, tied(now, removed, self.texts, context.strings, context.counters))
        if not is_tied.any():
            return near, None
        prefixes = [np.append(word, other)[is_tied] for word, other in zip(rows[: self.key], removed, strict=False)]
        partitions = distinct_rows([Rows(prefixes, (np.ones(len(prefixes[0]), np.int64),))], self.key)
        run, columns, weights = first(now, partitions, None, ALL, context.counters)
        order = order_of_ties(run, columns[: self.width], self.texts, context.strings)
        whole = NearbyRows(run + len(delta), columns, weights[0], np.ones(len(run), bool)).take(order)
        inside = _are_in(near.columns[: self.key], partitions)
        rest = near.take(np.flatnonzero(~inside))
        return NearbyRows.concat([rest, whole]), partitions

    def _valued(self, near: NearbyRows) -> Rows:
        """The affected rows, copy by copy with their values."""
        copies = np.repeat(np.arange(len(near.run)), near.copies)
        columns = tuple(column[copies] for column in near.columns)
        run = near.run[copies]
        begins = first_of_each(run)
        lengths = np.diff(np.append(begins, len(run)))
        low, high = np.repeat(begins, lengths), np.repeat(begins + lengths, lengths)
        places = np.flatnonzero(near.affected[copies])
        words = [column[places] for column in columns[: self.width]]
        for pick in self.picks:
            words += _picked(pick, places, low[places], high[places], columns)
        return Rows(tuple(words), (np.ones(len(places), np.int64),))

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
    nulls = null_words(pick.target)
    begins, ends = np.maximum(places + pick.start, low), np.minimum(places + pick.end, high - 1)
    if pick.ignore_nulls:
        present = np.flatnonzero(columns[pick.value[0]] != nulls[0])
        before, upto = np.searchsorted(present, begins, "left"), np.searchsorted(present, ends, "right")
        nth = before + pick.number - 1 if pick.number > 0 else upto + pick.number
        is_there = (nth >= before) & (nth < upto)
        target = np.full(len(places), -1)
        target[is_there] = present[nth[is_there]]
    else:
        nth = begins + pick.number - 1 if pick.number > 0 else ends + pick.number + 1
        target = np.where((nth >= begins) & (nth <= ends), nth, -1)
    is_there = target >= 0
    otherwise = [columns[word][places] for word in pick.default] or [np.full(len(places), word) for word in nulls]
    return [np.where(is_there, columns[word][target], own) for word, own in zip(pick.value, otherwise, strict=True)]
