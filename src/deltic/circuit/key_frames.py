"""Frames that are ranges of keys: how they are laid out as rows of an arrangement, sorted by their ends, and how their contents change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeVar
from typing import Literal as OneOf

import numpy as np

from deltic.circuit.framed import among, dense_ranks, exact_ranks
from deltic.circuit.operator import Context
from deltic.circuit.operators.linear import negated
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.skip_list import LEAST
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.probe import lookup, probe
from deltic.trace.ranges import BEFORE, LAST, Cuts, first_before
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

Words = tuple[np.ndarray, ...]
EdgeKind = OneOf["unbounded", "own", "limit"]
"""Where a frame starts or ends: with its partition, at its own key, or at a key of its own."""

GREATEST: Final = int(np.iinfo(np.int64).max)
MANY: Final = 64
"""All partitions that change are read whole if one key in so many is new or gone."""
Version = TypeVar("Version")
Read_contra = TypeVar("Read_contra", contravariant=True)


class KeyFrames(NamedTuple):
    """n frames: the partition and the key of each, and the keys of its edges; None is the partition's edge."""

    partitions: Words
    keys: Words
    lows: Words | None
    highs: Words | None

    def take(self, rows: np.ndarray) -> KeyFrames:
        return KeyFrames(*(None if words is None else tuple(word[rows] for word in words) for words in self))  # type: ignore[arg-type]

    def ranked(self, ranks: np.ndarray) -> KeyFrames:
        """The frames with the ranks of their keys in place of the keys; edges are no limits."""
        return KeyFrames(self.partitions, (ranks,), (ranks,) if self.lows else None, (ranks,) if self.highs else None)

    def edges(self) -> tuple[Words, Words]:
        """The partition and the least key of each frame, the partition and the greatest."""
        n = len(self.keys[0])
        lows = self.lows or tuple(np.full(n, LEAST) for _ in self.keys)
        highs = self.highs or tuple(np.full(n, GREATEST) for _ in self.keys)
        return (*self.partitions, *lows), (*self.partitions, *highs)


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """Rows (partition, end, key, start); an edge is stored if it is a limit. key: the words of a partition; order: those of a key."""

    key: int
    order: int
    start: EdgeKind
    end: EdgeKind

    @property
    def width(self) -> int:
        return self.key + self.order * (1 + (self.start == "limit") + (self.end == "limit"))

    def frames(self, columns: Sequence[np.ndarray]) -> KeyFrames:
        """The frames of rows."""
        ends = self.order if self.end == "limit" else 0
        columns = tuple(columns)
        partitions, limits, rest = columns[: self.key], columns[self.key : self.key + ends], columns[self.key + ends :]
        keys = rest[: self.order]
        lows = {"unbounded": None, "own": keys, "limit": rest[self.order :]}[self.start]
        highs = {"unbounded": None, "own": keys, "limit": limits}[self.end]
        return KeyFrames(partitions, keys, lows, highs)

    def rows(self, frames: KeyFrames) -> Words:
        """The rows of frames."""
        ends = frames.highs or () if self.end == "limit" else ()
        starts = frames.lows or () if self.start == "limit" else ()
        return (*frames.partitions, *ends, *frames.keys, *starts)

    def present(self, spine: Spine, partitions: Words, counters: Counters) -> tuple[np.ndarray, KeyFrames]:
        """All frames of partitions: (the number of the partition, ascending; the frames)."""
        source, words, weights = probe(spine, partitions, range(self.key, self.width), counters)
        copies = consolidate(Rows((source, *words), (weights[0],)))
        held = copies.take(np.flatnonzero(copies.weights[0] > 0))
        return held.columns[0], self.frames((*(word[held.columns[0]] for word in partitions), *held.columns[1:]))

    def ends(self, keys: Words, follows: np.ndarray, chosen: np.ndarray) -> list[tuple[int, Cuts]]:
        """Where the frames that contain each of the `chosen` changes end, those that end at it or after it, as `first_before` takes cuts:
        before one that starts after it, and before those of the next change. follows: which changes have one in their partition."""
        key = self.key + (self.order if self.end == "limit" else 0)
        cuts = []
        if self.start != "unbounded":
            cuts.append((key + (self.order if self.start == "limit" else 0), Cuts.after([word[chosen] for word in keys])))
        if self.end != "unbounded":
            following = np.minimum(chosen + 1, len(follows) - 1)
            cuts.append((self.key, Cuts(tuple(word[following] for word in keys), np.where(follows[chosen], BEFORE, LAST))))
        return cuts

    def reaching(self, frames: Spine, changes: Words, chosen: np.ndarray | None, counters: Counters) -> Words:
        """The rows of frames that contain a changed key. changes: sorted (partition, key). chosen: changes whose frames suffice; None: all.

        Frames are sorted by their ends. Those that a change is in begin with the first that ends at it or after it, and end where one
        starts after it, or where those of the next change begin.
        """
        partitions, keys = changes[: self.key], changes[self.key :]
        n, follows = len(keys[0]), followed(partitions)
        starts: Words = keys
        chosen = np.arange(n) if chosen is None else chosen
        if self.end == "unbounded":  # of each partition those that start at its last change or before it
            starts, chosen = tuple(np.full(n, LEAST) for _ in keys), np.flatnonzero(~follows)

        of, starts = (tuple(word[chosen] for word in words) for words in (partitions, starts))
        run, columns, _ = first_before(frames, of, starts, self.ends(keys, follows, chosen), counters)
        return columns if len(chosen) == 1 else distinct_rows([Rows(columns, (np.ones(len(run), np.int64),))], self.width)


class FrameContents(Protocol[Read_contra]):
    """What an operator makes of the entries in frames. Read_contra: how it reads entries as of one moment."""

    @property
    def texts(self) -> tuple[tuple[int, bool], ...]:
        """(position of a string id in a key, whether it sorts descending)."""

    def whole(self, delta: Batch, changed: Batch, many: bool, context: Context) -> Words:
        """The partitions to read whole: those with long strings in keys, or all if `many` keys are new or gone."""

    def all(self, partitions: Words, entries: Read_contra, frames: Spine, context: Context) -> Rows:
        """Of all frames of partitions."""

    def within(self, frames: KeyFrames, entries: Read_contra, context: Context) -> Rows:
        """Of single frames."""

    def moved(self, delta: Batch, frames: Spine, now: Spine, context: Context) -> Rows:
        """The changes in the frames that were there before and still are."""


@dataclass(frozen=True, slots=True)
class FrameChange(Generic[Version]):
    """A change of entries and one of frames, with the entries before and after, and the frames before."""

    delta: Batch
    frames: Batch
    old: Version
    new: Version
    before: Spine

    def of(self, contents: FrameContents[Version], layout: FrameLayout, context: Context) -> Batch:
        """The change of what the frames contain: read for those that come and go, moved by `delta` for the others."""
        delta, changed, key = self.delta, self.frames, layout.key
        now = self.before.with_batch(changed)
        existed, exists = (lookup(spine, changed.columns, context.counters)[0] > 0 for spine in (self.before, now))
        many = int((existed != exists).sum()) * MANY >= now.rows
        whole = contents.whole(delta, changed, many, context) if many or contents.texts else (np.zeros(0, np.int64),)
        parts = []
        if len(whole[0]):
            parts += [contents.all(whole, self.new, now, context), negated(contents.all(whole, self.old, self.before, context))]
            rest = ~among(changed.columns[:key], whole)
            changed, existed, exists = consolidate(changed.take(np.flatnonzero(rest))), existed[rest], exists[rest]
            delta = consolidate(delta.take(np.flatnonzero(~among(delta.columns[:key], whole))))
        own = layout.frames(changed.columns)
        for chosen, version in ((exists & ~existed, self.new), (existed & ~exists, self.old)):
            if chosen.any():
                rows = contents.within(own.take(np.flatnonzero(chosen)), version, context)
                parts.append(rows if version is self.new else negated(rows))
        parts.append(contents.moved(delta, self.before, now, context))
        return consolidate(Rows.concat(parts))


def followed(partitions: Words) -> np.ndarray:
    """For sorted rows whether the next one is in the same partition."""
    follows = np.zeros(len(partitions[0]), bool)
    follows[:-1] = True
    for word in partitions:
        follows[:-1] &= word[1:] == word[:-1]
    return follows


def ranks_in_frames(
    rows: Words, frames: KeyFrames, numbers: np.ndarray, texts: Sequence[tuple[int, bool]], strings: StringTable
) -> list[np.ndarray]:
    """The ranks of (partition, key) of the rows, and of the edges of frames: (of rows, of low edges, of high edges).

    rows: the number of the partition of each, and the words of its key. numbers: of the partitions of the frames.
    """
    ranked = frames._replace(partitions=(numbers,))
    if long_keys(frames.keys, texts, strings).any():
        descending = {1 + text: descends for text, descends in texts}
        place, of_frames = exact_ranks([rows, (numbers, *frames.keys)], descending, strings)
        rows, ranked = (rows[0], place), ranked.ranked(of_frames)
    return dense_ranks([rows, *ranked.edges()])


def long_keys(keys: Sequence[np.ndarray], texts: Sequence[tuple[int, bool]], strings: StringTable) -> np.ndarray:
    """Which keys have a string that their words may not sort. texts: (the word that is a string id, whether it descends)."""
    long = np.zeros(len(keys[0]), bool)
    for text, _ in texts:
        long |= strings.exceeds_prefix(keys[text])
    return long
