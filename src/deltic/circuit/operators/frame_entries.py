"""frame_entries: for each frame, a range of keys in their order, the entries of its keys, under changes, for aggregates that read them all.

A change is added to the frames that contain it, and the entries of a frame that comes or goes are read. So a change costs O(frames that
contain it), and a frame O(its entries + log n).

The words of strings of 24 bytes and more do not sort them: partitions in which such a key changes are read whole, as are all where many
keys are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.framed import dense_ranks, frame_entries
from deltic.circuit.key_frames import EdgeKind, FrameChange, FrameLayout, KeyFrames, long_keys, ranks_in_frames
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.skip_list import LEAST
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.probe import lookup, probe
from deltic.trace.ranges import Cuts, first_before
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class FrameEntries:
    """(partition, key, entry) → copies, for the entries of the frame of the key.

    entries: the arrangement (partition, key, entry) → copies. frames: the arrangement of frames, of `frame_weights` weights. key: the words
    of a partition; order: those of a key; more: those of an entry. texts: (position of a string id in a key, whether it sorts descending).
    Inputs: the changes of entries and frames.
    """

    entries: str
    frames: str
    key: int
    order: int
    more: int
    frame_weights: int
    start: EdgeKind
    end: EdgeKind
    texts: tuple[tuple[int, bool], ...]

    @property
    def name(self) -> str:
        return "frame_entries"

    @property
    def eager(self) -> bool:
        return False

    @property
    def layout(self) -> FrameLayout:
        return FrameLayout(self.key, self.order, self.start, self.end)

    @property
    def width(self) -> int:
        """The number of words of a row."""
        return self.key + self.order + self.more

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta, changed = map(as_batch, inputs)
        if not len(delta) and not len(changed):
            return Rows.empty(self.width, 1)
        old = context.old(self.entries, self.width, 1)
        frames = context.old(self.frames, self.layout.width, self.frame_weights)
        change = FrameChange(delta, changed, old, old.with_batch(delta), frames)
        return change.of(self, self.layout, context)

    def whole(self, delta: Batch, changed: Batch, many: bool, context: Context) -> Words:
        """The partitions to read whole."""
        long = long_keys(delta.columns[self.key :], self.texts, context.strings) | many
        new = long_keys(self.layout.frames(changed.columns).keys, self.texts, context.strings) | many
        return distinct_rows([rows.take(np.flatnonzero(chosen)) for rows, chosen in ((delta, long), (changed, new))], self.key)

    def all(self, partitions: Words, entries: Spine, frames: Spine, context: Context) -> Rows:
        """The entries of all frames of partitions."""
        numbers, own = self.layout.present(frames, partitions, context.counters)
        source, words, weights = probe(entries, partitions, range(self.key, self.width), context.counters)
        rows = consolidate(Rows((source, *words), weights))
        of_rows, low, high = ranks_in_frames(tuple(rows.columns[: 1 + self.order]), own, numbers, self.texts, context.strings)
        return self._of_frames(frame_entries(of_rows, rows.columns[1 + self.order :], rows.weights, low, high), own)

    def within(self, frames: KeyFrames, entries: Spine, context: Context) -> Rows:
        """The entries of single frames."""
        n, highs = len(frames.keys[0]), frames.highs
        lows = frames.lows or tuple(np.full(n, LEAST) for _ in range(self.order))
        ends = [] if highs is None else [(self.key, Cuts.after(highs))]
        run, columns, copies = first_before(entries, frames.partitions, lows, ends, context.counters)
        return self._of_frames(Rows((run, *columns[self.key + self.order :]), copies), frames)

    def moved(self, delta: Batch, frames: Spine, now: Spine, context: Context) -> Rows:
        """The changes of the frames that were there before and still are."""
        if not len(delta):
            return Rows.empty(self.width, 1)
        changes = distinct_rows([delta], self.key + self.order)
        rows = self.layout.reaching(now, changes, None, context.counters)
        still = np.flatnonzero(lookup(frames, rows, context.counters)[0] > 0)
        own = self.layout.frames(tuple(word[still] for word in rows))
        places, low, high = dense_ranks([delta.columns[: self.key + self.order], *own.edges()])
        return self._of_frames(frame_entries(places, delta.columns[self.key + self.order :], delta.weights, low, high), own)

    def _of_frames(self, entries: Rows, frames: KeyFrames) -> Rows:
        """The entries, whose first word is the number of a frame, by the keys of their frames."""
        number, *more = entries.columns
        return Rows((*(word[number] for word in (*frames.partitions, *frames.keys)), *more), entries.weights)
