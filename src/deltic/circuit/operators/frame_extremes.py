"""frame_extremes: for each frame, a range of keys in their order, the first row of those at its keys, as of MIN, under changes.

The first rows of ranges are read from a skip list in O(log n), and what was found for each frame is remembered. A change alters only frames
that contain it, and of them only those whose first row is not before its own.

Frames from the start of a partition, or to its end, contain one another: from a change on, the first row is carried from frame to frame,
until one has a first row before the change, or the same as it had. So O(log n + frames that change).

The words of strings of 24 bytes and more do not sort them: partitions in which such a key changes, or has a frame near a change, are
computed whole, as are all where many keys change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from deltic.circuit.framed import among, dense_ranks, exact_ranks, frame_leasts, least_of_each
from deltic.circuit.key_frames import EdgeKind, FrameLayout, KeyFrames, followed, long_keys, ranks_in_frames
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.operators.value_levels import ValueList
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.skip_list import LEAST, RATIO, differs, is_after
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import first, first_of_each, lookup
from deltic.trace.ranges import Cuts, first_before
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
ALL: Final = int(np.iinfo(np.int64).max)
MANY: Final = 64
"""All partitions that change are computed whole if one key in so many changes."""


class FrameFirsts(NamedTuple):
    """For each of n frames whether it has rows, as 0 or 1, and the words of the first one."""

    present: np.ndarray
    words: Words

    @staticmethod
    def of(n: int, numbers: np.ndarray, words: Sequence[np.ndarray], absent: Sequence[int]) -> FrameFirsts:
        """Those of the frames with these numbers. absent: the words of no row."""
        present, result = np.zeros(n, np.int64), tuple(np.full(n, word) for word in absent)
        present[numbers] = 1
        for target, word in zip(result, words, strict=True):
            target[numbers] = word
        return FrameFirsts(present, result)

    def take(self, rows: np.ndarray) -> FrameFirsts:
        return FrameFirsts(self.present[rows], tuple(word[rows] for word in self.words))

    @property
    def columns(self) -> Words:
        return (self.present, *self.words)


class FirstChanges(NamedTuple):
    """Keys whose first row changed, sorted as frames are passed, with the lesser of the two rows.

    partitions: of each key. places: the words by which frames are passed. words: the row. follows: whether the next change is in the same
    partition.
    """

    partitions: Words
    places: Words
    words: Words
    follows: np.ndarray


class RememberedFrames(NamedTuple):
    """Remembered frames: (the number of the change after which each was read, its words after those of the partition, its first row)."""

    run: np.ndarray
    rows: Words
    firsts: FrameFirsts

    def take(self, rows: np.ndarray) -> RememberedFrames:
        return RememberedFrames(self.run[rows], tuple(word[rows] for word in self.rows), self.firsts.take(rows))


@dataclass(frozen=True, slots=True)
class FrameExtremes:
    """(partition, key, first row of the key's frame); or, for all frames, the last `picked` words of it, NULL if it has no rows.

    levels: the arrangement of a skip list of first rows. frames: the arrangement of frames, of `frame_weights` weights. memory: the
    arrangement of frames with their first rows; frames that reach to the end of the partition have inverted words there, so that they are
    sorted backwards. key: the words of a partition; order: those of a key; width: those of a row. texts, row_texts: (position of a string
    id, whether it sorts descending) in keys and in rows. absent: the words of no row. Inputs: the changes of levels and frames.
    """

    levels: str
    frames: str
    memory: str
    key: int
    order: int
    width: int
    frame_weights: int
    start: EdgeKind
    end: EdgeKind
    texts: tuple[tuple[int, bool], ...]
    row_texts: tuple[tuple[int, bool], ...]
    absent: tuple[int, ...]
    picked: int | None = None

    @property
    def name(self) -> str:
        return "frame_extremes"

    @property
    def eager(self) -> bool:
        return False

    @property
    def layout(self) -> FrameLayout:
        return FrameLayout(self.key, self.order, self.start, self.end)

    @property
    def remembered(self) -> int:
        """The number of words of a remembered frame."""
        return self.layout.width + 1 + self.width

    @property
    def is_backward(self) -> bool:
        return self.end == "unbounded"

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta, changed = map(as_batch, inputs)
        if not len(delta) and not len(changed):
            return Rows.empty(self.key + self.order + (self.width if self.picked is None else self.picked), 1)
        spine = context.old(self.levels, self.key + 1 + self.order + self.width, 1).with_batch(delta)
        levels = ValueList(spine, spine, self.key, self.order)
        frames = context.old(self.frames, self.layout.width, self.frame_weights)
        now = frames.with_batch(changed)
        existed, exists = (lookup(each, changed.columns, context.counters)[0] > 0 for each in (frames, now))
        changes = self._changes(delta, context)
        whole = self._whole(changes, changed, (len(changes.follows) + int((existed != exists).sum())) * MANY >= now.rows, context)
        changes = self._outside(changes, whole)
        passed, firsts = self._passed(changes, levels, context)
        long = long_keys(self._frames(changes, passed).keys, self.texts, context.strings)
        if long.any():
            doubtful = [word[passed.run[long]] for word in changes.partitions]
            whole = distinct_rows([Rows(words, (np.ones(len(words[0]), np.int64),)) for words in (doubtful, whole)], self.key)
        rest = np.flatnonzero(~among(tuple(word[passed.run] for word in changes.partitions), whole))
        parts = [*self._moved(changes, passed.take(rest), firsts.take(rest), now, context), *self._all(whole, levels, now, context)]
        own, apart = self.layout.frames(changed.columns), ~among(changed.columns[: self.key], whole)
        new = own.take(np.flatnonzero(exists & ~existed & apart))
        parts += [
            self._rows(new, self._firsts(new, levels, context)),
            self._gone(own.take(np.flatnonzero(existed & ~exists & apart)), context),
        ]
        change = consolidate(Rows.concat(parts))
        context.append(self.memory, change)
        return self._shown(change)

    def _changes(self, delta: Batch, context: Context) -> FirstChanges:
        """The changes of level 0."""
        rows = np.flatnonzero(delta.columns[self.key] == 0) if len(delta) else np.zeros(0, np.int64)
        columns = tuple(word[rows] for word in delta.columns)
        partitions, keys, words = columns[: self.key], columns[self.key + 1 : -self.width], columns[-self.width :]
        (of,) = dense_ranks([(*partitions, *self._places(keys))])
        least = least_of_each(of, words, dict(self.row_texts), context.strings)
        partitions, keys, words = (tuple(word[least] for word in each) for each in (partitions, keys, words))
        return FirstChanges(partitions, self._places(keys), words, followed(partitions))

    def _places(self, keys: Words) -> Words:
        """Keys as frames are passed, and back."""
        return tuple(~word for word in keys) if self.is_backward else keys

    def _outside(self, changes: FirstChanges, whole: Words) -> FirstChanges:
        kept = np.flatnonzero(~among(changes.partitions, whole))
        partitions, places, words = (tuple(word[kept] for word in each) for each in changes[:3])
        return FirstChanges(partitions, places, words, followed(partitions))

    def _whole(self, changes: FirstChanges, changed: Batch, many: bool, context: Context) -> Words:
        """The partitions to compute whole."""
        long = long_keys(self._places(changes.places), self.texts, context.strings) | many
        new = long_keys(self.layout.frames(changed.columns).keys, self.texts, context.strings) | many
        parts = []
        for words, chosen in ((changes.partitions, long), (changed.columns[: self.key], new)):
            rows = np.flatnonzero(chosen)
            parts.append(Rows([word[rows] for word in words], (np.ones(len(rows), np.int64),)))
        return distinct_rows(parts, self.key)

    def _memory_words(self, frames: KeyFrames) -> Words:
        """The words of frames as they are remembered."""
        if not self.is_backward:
            return self.layout.rows(frames)
        starts = frames.lows or () if self.start == "limit" else ()
        return (*frames.partitions, *(~word for word in (*starts, *frames.keys)))

    def _frames(self, changes: FirstChanges, passed: RememberedFrames) -> KeyFrames:
        """The frames that were read."""
        partitions, rows = tuple(word[passed.run] for word in changes.partitions), passed.rows
        if not self.is_backward:
            return self.layout.frames((*partitions, *rows))
        words = tuple(~word for word in rows)
        keys = words[-self.order :]
        return KeyFrames(partitions, keys, words[: self.order], None)

    def _rows(self, frames: KeyFrames, firsts: FrameFirsts) -> Rows:
        """The remembered rows of frames."""
        return Rows((*self._memory_words(frames), *firsts.columns), (np.ones(len(firsts.present), np.int64),))

    def _gone(self, frames: KeyFrames, context: Context) -> Rows:
        """What is remembered of frames, to be removed."""
        memory = context.old(self.memory, self.remembered, 1)
        _, columns, weights = first(memory, self._memory_words(frames), None, 1, context.counters)
        return Rows(columns, (-weights[0],))

    def _all(self, partitions: Words, levels: ValueList, now: Spine, context: Context) -> list[Rows]:
        """The changes of all frames of partitions."""
        if not len(partitions[0]):
            return []
        numbers, frames = self.layout.present(now, partitions, context.counters)
        level = np.zeros(len(partitions[0]), np.int64)
        source, columns, _ = first(levels.heads, (*partitions, level), None, ALL, context.counters)
        keys, words = columns[self.key + 1 : -self.width], columns[-self.width :]
        of_rows, low, high = ranks_in_frames((source, *keys), frames, numbers, self.texts, context.strings)
        new = self._rows(frames, self._leasts(of_rows, words, low, high, context))
        memory = context.old(self.memory, self.remembered, 1)
        _, columns, weights = first(memory, partitions, None, ALL, context.counters)
        return [new, Rows(columns, (-weights[0],))]

    def _leasts(self, places: np.ndarray, words: Words, lows: np.ndarray, highs: np.ndarray, context: Context) -> FrameFirsts:
        """The least of the rows whose places are from low to high."""
        (ranks,) = exact_ranks([words], dict(self.row_texts), context.strings)
        least = frame_leasts(places, ranks, lows, highs)
        row = np.zeros(int(ranks.max(initial=-1)) + 1, np.int64)
        row[ranks] = np.arange(len(ranks))
        numbers = np.flatnonzero(least >= 0)
        return FrameFirsts.of(len(least), numbers, [word[row[least[numbers]]] for word in words], self.absent)

    def _firsts(self, frames: KeyFrames, levels: ValueList, context: Context) -> FrameFirsts:
        """The first rows of single frames, by nodes of the skip list."""
        n = len(frames.keys[0])
        parts = [Rows.empty(1 + self.width, 1)]
        for nodes in levels.cover(frames.partitions, frames.lows, frames.highs, context.counters) if n else ():
            of = tuple(word[nodes.range] for word in frames.partitions)
            node, words = levels.read(nodes.level, of, nodes.keys, context.counters)
            parts.append(Rows((nodes.range[node], *words), (np.ones(len(node), np.int64),)))
        columns = Rows.concat(parts).columns
        number, words = columns[0], columns[1:]
        least = least_of_each(number, words, dict(self.row_texts), context.strings)
        return FrameFirsts.of(n, number[least], [word[least] for word in words], self.absent)

    def _moved(self, changes: FirstChanges, passed: RememberedFrames, firsts: FrameFirsts, now: Spine, context: Context) -> list[Rows]:
        """The changes of the frames that were read and still are."""
        frames = self._frames(changes, passed)
        still = lookup(now, self.layout.rows(frames), context.counters)[0] > 0
        moved = np.flatnonzero(still & differs(firsts.columns, passed.firsts.columns))
        before, after = (self._rows(frames.take(moved), each.take(moved)) for each in (passed.firsts, firsts))
        return [after, Rows(before.columns, (-before.weights[0],))]

    def _passed(self, changes: FirstChanges, levels: ValueList, context: Context) -> tuple[RememberedFrames, FrameFirsts]:
        """The remembered frames that changes may alter, with their first rows now."""
        if "unbounded" in (self.start, self.end):
            return self._carried(changes, levels, context)
        memory = context.old(self.memory, self.remembered, 1)
        ends = self.layout.ends(changes.places, changes.follows, np.arange(len(changes.follows)))
        run, columns, _ = first_before(memory, changes.partitions, changes.places, ends, context.counters)
        passed = self._read(run, columns[self.key :])
        of, low, high = dense_ranks([(*changes.partitions, *changes.places), *self._frames(changes, passed).edges()])
        least = self._leasts(of, changes.words, low, high, context)
        passed = passed.take(np.flatnonzero(~self._precedes(passed.firsts, least, context)))
        return passed, self._firsts(self._frames(changes, passed), levels, context)

    def _read(self, run: np.ndarray, columns: Words) -> RememberedFrames:
        frame = self.layout.width - self.key
        return RememberedFrames(run, tuple(columns[:frame]), FrameFirsts(columns[frame], tuple(columns[frame + 1 :])))

    def _is_next(self, changes: FirstChanges, run: np.ndarray, columns: Words) -> np.ndarray:
        """Whether a frame is read for the next change."""
        following = np.minimum(run + 1, len(changes.follows) - 1)
        is_next: np.ndarray = changes.follows[run] & ~is_after([word[following] for word in changes.places], columns[: self.order])
        return is_next

    def _precedes(self, firsts: FrameFirsts, others: FrameFirsts, context: Context) -> np.ndarray:
        """Whether a first row is before another; before none, too."""
        before: np.ndarray = others.present == 0
        both = np.flatnonzero(~before & (firsts.present > 0))
        ranks = exact_ranks([firsts.take(both).words, others.take(both).words], dict(self.row_texts), context.strings)
        before[both] = ranks[0] < ranks[1]
        return before

    def _carried(self, changes: FirstChanges, levels: ValueList, context: Context) -> tuple[RememberedFrames, FrameFirsts]:
        """The frames after each change up to the first one that stays as it is, and all that follow stay; or up to the next change."""
        memory, least = context.old(self.memory, self.remembered, 1), self._least_so_far(changes, context)
        runs, limit = np.arange(len(changes.follows)), RATIO
        cursors = [np.array(word) for word in changes.places]
        cursors += [np.full(len(runs), LEAST) for _ in range(self.remembered - self.key - self.order)]
        anchors: RememberedFrames | None = None
        parts: list[tuple[RememberedFrames, FrameFirsts]] = []
        while True:
            prefixes, starts = ([word[runs] for word in words] for words in (changes.partitions, cursors))
            source, columns, _ = first(memory, prefixes, starts, limit, context.counters)
            run, rows = runs[source], columns[self.key :]
            lasts = np.flatnonzero(np.append(run[1:] != run[:-1], True)) if len(run) else run
            full = np.diff(np.append(-1, lasts)) >= limit
            ends = tuple(word[lasts[full]] for word in rows)
            fresh = np.ones(len(run), bool)
            if anchors is not None:  # the first row of each run is the last one read before
                fresh[first_of_each(run)] = False
            read = self._read(run, rows)
            stays = self._is_next(changes, run, rows) | self._precedes(read.firsts, least.take(run), context)
            read = read.take(np.flatnonzero(fresh & _before_first(stays & fresh, run)))
            firsts = self._folded(changes, read, anchors, levels, context)
            same = ~differs(firsts.columns, read.firsts.columns)
            kept = np.flatnonzero(_before_first(same, read.run))
            parts.append((read.take(kept), firsts.take(kept)))
            stopped = np.zeros(len(changes.follows), bool)
            stopped[run[stays & fresh]] = True
            stopped[read.run[same]] = True
            going = ~stopped[run[lasts[full]]]
            runs = run[lasts[full]][going]
            if not runs.size:
                break
            for cursor, word in zip(cursors, ends, strict=True):
                cursor[runs] = word[going]
            last = np.flatnonzero(np.append(read.run[1:] != read.run[:-1], True))
            last = last[np.isin(read.run[last], runs)]
            anchors, limit = read.take(last)._replace(firsts=firsts.take(last)), limit * RATIO
        return _joined(parts)

    def _least_so_far(self, changes: FirstChanges, context: Context) -> FrameFirsts:
        """For each change the least row of it and of those that are passed before it in its partition."""
        (places,) = dense_ranks([(*changes.partitions, *changes.places)])
        heads = np.append(True, ~changes.follows[:-1]) if len(places) else changes.follows
        begins = np.maximum.accumulate(np.where(heads, np.arange(len(places)), 0))
        return self._leasts(places, changes.words, places[begins], places, context)

    def _folded(
        self, changes: FirstChanges, read: RememberedFrames, anchors: RememberedFrames | None, levels: ValueList, context: Context
    ) -> FrameFirsts:
        """The first rows of frames of which each contains the one before: from the first one of each run, and the keys in between.

        anchors: the frame before the first one of each run, with its first row; None if this is the first one itself.
        """
        if not len(read.run):
            return read.firsts
        begins = first_of_each(read.run)
        last = np.append(begins[1:], len(read.run)) - 1
        if anchors is None:
            anchors = read.take(begins)
            anchors = anchors._replace(firsts=self._firsts(self._frames(changes, anchors), levels, context))
        anchors = anchors.take(np.flatnonzero(np.isin(anchors.run, read.run)))
        partitions = tuple(word[anchors.run] for word in changes.partitions)
        edges = [self._places(rows[: self.order]) for rows in (anchors.rows, tuple(word[last] for word in read.rows))]
        low, high = reversed(edges) if self.is_backward else edges
        level = np.zeros(len(anchors.run), np.int64)
        ends = [(self.key + 1, Cuts.after(high))]
        number, columns, _ = first_before(levels.heads, (*partitions, level), low, ends, context.counters)
        rows = columns[self.key + 1 :]
        has = np.flatnonzero(anchors.firsts.present)
        entries = (np.concatenate([number, has]), *(np.append(word, np.full(len(has), LEAST)) for word in self._places(rows[: self.order])))
        words = tuple(np.append(row, word[has]) for row, word in zip(rows[self.order :], anchors.firsts.words, strict=True))
        of = np.searchsorted(anchors.run, read.run)
        least = (of, *(np.full(len(of), LEAST) for _ in range(self.order)))
        places, lows, highs = dense_ranks([entries, least, (of, *read.rows[: self.order])])
        return self._leasts(places, words, lows, highs, context)

    def _shown(self, change: Batch) -> Rows:
        """(partition, key, first row) of the frames that have one; or what is picked of it, of all."""
        frames, rows = self.layout.width, np.arange(len(change))
        if self.picked is None:
            rows = np.flatnonzero(change.columns[frames] > 0)
        columns = tuple(word[rows] for word in change.columns)
        if self.is_backward:
            keys = tuple(~word for word in columns[frames - self.order : frames])
        else:
            keys = self.layout.frames(columns[:frames]).keys
        words = columns[len(columns) - (self.width if self.picked is None else self.picked) :]
        return Rows((*columns[: self.key], *keys, *words), (change.weights[0][rows],))


def _before_first(stops: np.ndarray, run: np.ndarray) -> np.ndarray:
    """Which rows are before the first of their run that stops; runs are next to one another."""
    passed = np.cumsum(stops)
    begins = first_of_each(run)
    before = np.repeat((passed - stops)[begins], np.diff(np.append(begins, len(run))))
    is_before: np.ndarray = passed == before
    return is_before


def _joined(parts: Sequence[tuple[RememberedFrames, FrameFirsts]]) -> tuple[RememberedFrames, FrameFirsts]:
    run = np.concatenate([part.run for part, _ in parts])
    rows = tuple(np.concatenate(words) for words in zip(*(part.rows for part, _ in parts), strict=True))

    def joined(firsts: Sequence[FrameFirsts]) -> FrameFirsts:
        words = tuple(np.concatenate(each) for each in zip(*(one.words for one in firsts), strict=True))
        return FrameFirsts(np.concatenate([one.present for one in firsts]), words)

    return RememberedFrames(run, rows, joined([part.firsts for part, _ in parts])), joined([firsts for _, firsts in parts])
