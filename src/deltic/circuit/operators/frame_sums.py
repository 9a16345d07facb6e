"""frame_sums: for each key of a partition the sums over its frame, a range of keys in their order, under changes.

A change is added to the frames that contain it: those around its key, until a frame does not reach it. The frame of a new key is added up
from O(log n) nodes of a skip list, or from its entries if they are few, and so is that of a key that goes. So a change costs O(frames that
contain it), and O(log n) for a key.

The words of strings of 24 bytes and more do not sort them: partitions in which such a key changes are added up whole, as are all where
many keys are new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from deltic.circuit.framed import dense_ranks, exact_ranks, frame_sums
from deltic.circuit.key_frames import EdgeKind, FrameChange, FrameLayout, KeyFrames, followed, long_keys
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.skip_list import SkipList
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import lookup, probe
from deltic.trace.ranges import Cuts, probe_few
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
FEW: Final = 1_024
"""New frames with at most so many entries are added up from these: faster than the few nodes of a skip list."""


@dataclass(frozen=True, slots=True)
class FrameSums:
    """(partition, key, more) → sums over the frame of the key.

    entries, heads: the arrangements of a skip list, of `weights` weights. key: the words of a partition. order: those of a key. more: those
    of entries with sums of their own. frames: the arrangement (partition, end, key, start) → copies, of `frame_weights` weights; an edge is
    stored if it is a limit. texts: (position of a string id, whether it sorts descending), in order, after the words of the partition.
    counted: weight 0 of a key is 1; otherwise it is left out, and so are the entries by which keys are found, whose first word is -1.
    Inputs: the changes of entries, heads and frames.
    """

    entries: str
    heads: str
    frames: str
    key: int
    order: int
    more: int
    weights: int
    frame_weights: int
    start: EdgeKind
    end: EdgeKind
    texts: tuple[tuple[int, bool], ...]
    counted: bool

    @property
    def name(self) -> str:
        return "frame_sums"

    @property
    def eager(self) -> bool:
        return False

    @property
    def _width(self) -> int:
        return self.key + self.order

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta, heads, changed = map(as_batch, inputs)
        if not len(delta) and not len(changed):
            return self._shown(Rows.empty(self._width + self.more, self.weights))
        width = self._width + self.more
        entries, levels = context.old(self.entries, width, self.weights), context.old(self.heads, width + 1, self.weights)
        old = SkipList(entries, levels, self.key, self.order)
        new = SkipList(entries.with_batch(delta), levels.with_batch(heads), self.key, self.order)
        frames = context.old(self.frames, self._layout.width, self.frame_weights)
        return self._shown(FrameChange(delta, changed, old, new, frames).of(self, self._layout, context))

    @property
    def _layout(self) -> FrameLayout:
        return FrameLayout(self.key, self.order, self.start, self.end)

    def whole(self, delta: Batch, changed: Batch, many: bool, context: Context) -> Words:
        """The partitions to add up whole."""
        rows = [Rows(batch.columns[: self.key], batch.weights[:1]) for batch in (delta, changed)]
        if many:
            return distinct_rows(rows, self.key)
        long = long_keys(delta.columns[self.key :], self.texts, context.strings)
        return distinct_rows([rows[0].take(np.flatnonzero(long))], self.key)

    def all(self, partitions: Words, version: SkipList, spine: Spine, context: Context) -> Rows:
        """The sums of all frames of partitions."""
        numbers, frames = self._layout.present(spine, partitions, context.counters)
        source, words, weights = probe(version.entries, partitions, range(self.key, self._width + self.more), context.counters)
        entries = consolidate(Rows((source, *words), weights))
        words = tuple(word[entries.columns[0]] for word in partitions)
        if not long_keys(frames.keys, self.texts, context.strings).any():
            return self._held(Rows((*words, *entries.columns[1:]), entries.weights), frames)
        groups = (entries.columns[: 1 + self.order], (numbers, *frames.keys))
        keys, of_frames = exact_ranks(groups, {1 + text: descending for text, descending in self.texts}, context.strings)
        return self._held(Rows((*words, keys, *entries.columns[1 + self.order :]), entries.weights), frames.ranked(of_frames), frames.keys)

    def _held(self, entries: Rows, frames: KeyFrames, keys: Words | None = None) -> Rows:
        """The sums of frames from all entries that they hold, with the frames themselves. keys: of the result, if they are others."""
        width = self.key + len(frames.keys)
        places, low, high = dense_ranks([entries.columns[:width], *frames.edges()])
        sums = frame_sums(places, entries.columns[width:], entries.weights, low, high)
        return self._of_frames(sums, frames._replace(keys=keys or frames.keys), present=True)

    def _of_frames(self, sums: Rows, frames: KeyFrames, *, present: bool) -> Rows:
        """The sums by the keys of their frames. sums: (the number of a frame, more) → weights. present: the frames are added themselves."""
        frame, *more = sums.columns
        n = len(frames.keys[0])
        rows = Rows(
            (*(word[frame] for word in (*frames.partitions, *frames.keys)), *more), [np.zeros(len(sums), np.int64), *sums.weights[1:]]
        )
        if not (present and self.counted):
            return rows
        own = Rows((*frames.partitions, *frames.keys), [np.ones(n, np.int64), *[np.zeros(n, np.int64)] * (self.weights - 1)])
        return Rows.concat([rows, own])

    def within(self, frames: KeyFrames, version: SkipList, context: Context) -> Rows:
        """The sums of single frames, from their entries if these are few, else by nodes of the skip list."""
        parts = [Rows.empty(1 + self.more, self.weights)]
        if n := len(frames.keys[0]):
            lows = Cuts.first(self.order, n) if frames.lows is None else Cuts.before(frames.lows)
            highs = Cuts.last(self.order, n) if frames.highs is None else Cuts.after(frames.highs)
            more = range(self._width, self._width + self.more)
            few = probe_few(version.entries, frames.partitions, lows, highs, more, context.counters, FEW)
            if few is not None:
                parts.append(Rows((few[0], *few[1]), few[2]))
            else:
                parts += self._by_nodes(frames, version, context)
        return self._of_frames(consolidate(Rows.concat(parts)), frames, present=True)

    def _by_nodes(self, frames: KeyFrames, version: SkipList, context: Context) -> Iterator[Rows]:
        for nodes in version.cover(frames.partitions, frames.lows, frames.highs, context.counters):
            of = tuple(word[nodes.range] for word in frames.partitions)
            node, more, weights = version.values(nodes.level, of, nodes.keys, context.counters)
            yield Rows((nodes.range[node], *more), weights)

    def moved(self, delta: Batch, frames: Spine, now: Spine, context: Context) -> Rows:
        """The change of the frames that were there before and still are: what changes within them."""
        if not len(delta):
            return Rows.empty(self._width + self.more, self.weights)
        changes = distinct_rows([delta], self._width)
        chosen = self._effective(delta, followed(changes[: self.key]))
        rows = self._layout.reaching(now, changes, chosen, context.counters)
        still = np.flatnonzero(lookup(frames, rows, context.counters)[0] > 0)
        own = self._layout.frames(tuple(word[still] for word in rows))
        places, low, high = dense_ranks([delta.columns[: self._width], *own.edges()])
        return self._of_frames(frame_sums(places, delta.columns[self._width :], delta.weights, low, high), own, present=False)

    def _effective(self, delta: Batch, follows: np.ndarray) -> np.ndarray:
        """The changes after which sums differ: frames from the start of a partition have all changes up to their ends."""
        if self.start != "unbounded" or self.more:
            return np.arange(len(follows))
        heads = np.maximum.accumulate(np.where(np.append(True, ~follows[:-1]), np.arange(len(follows)), 0))
        differs = np.zeros(len(follows), bool)
        for weight in delta.weights[1:]:
            total = np.cumsum(weight)
            differs |= total != (total - weight)[heads]
        return np.flatnonzero(differs)

    def _shown(self, rows: Delta) -> Delta:
        """The rows as the aggregates read them."""
        if self.counted:
            return rows
        kept = np.flatnonzero(rows.columns[self._width] >= 0) if len(rows) else np.zeros(0, np.int64)
        return Rows([word[kept] for word in rows.columns], [word[kept] for word in rows.weights[1:]])
