"""Spine: one version of a trace, as a few immutable batches whose sum it is.

A spine is a value. `appended` returns the next version and does not change this one, so that a commit builds all its versions aside and
then replaces a reference; readers on other threads keep the version that they hold. `levels.py` says how batches are kept and merged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from threading import Lock
from typing import Final

import numpy as np

from deltic.kernels.memory import Words
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.table import address
from deltic.reentrant import free_after_fork
from deltic.trace.batch import Batch
from deltic.trace.counters import Counters
from deltic.trace.guard import Guard
from deltic.trace.levels import SMALL_BATCHES_UNSOUGHT, Levels
from deltic.trace.merge import Merge, merge
from deltic.trace.share import Share

View = tuple[tuple[Batch, ...], Words]
"""Batches, and their directory, through which kernels read them."""
_COUNTING: Final = free_after_fork(Lock())


class Spine:
    """A trace of rows of `columns` columns and `weights` weights."""

    __slots__ = ("_below", "_levels", "_located", "_room", "columns", "guards", "merges", "share", "sought", "view", "weights")

    _levels: Levels | None
    """None for a version that is only read."""
    _below: tuple[Batch, ...]
    """Batches below the levels, which appends do not merge."""
    view: View
    merges: Collection[Merge]
    """The running merges."""
    sought: list[int]
    """[how many keys readers have sought since the last append]; shared with versions that are only read."""
    guards: tuple[Guard, ...]
    """The guards of its mapped batches."""
    share: Share | None
    """For a shard's trace that may also hold rows of other shards: which are its own. Scans omit the others. A lookup of this shard's keys
    does not match them; a lookup of any other key must omit them itself."""

    def __init__(self, columns: int, weights: int) -> None:
        """A trace without rows."""
        self.columns, self.weights = columns, weights
        self._levels, self._below = Levels(), ()
        self.view = (), np.empty(0, np.int64)
        self.merges = ()
        self.sought = [0]
        self.guards = ()
        self.share = None
        self._located: tuple[int, int] | None = None
        self._room: _Room | None = None
        """Where its directory is, if the next one may follow it there."""

    @staticmethod
    def over(columns: int, weights: int, batches: Iterable[Batch], share: Share | None = None) -> Spine:
        """These batches, to be read only."""
        spine = Spine(columns, weights)
        spine._levels = None
        spine.share = share
        spine.view = _view(tuple(batch for batch in batches if batch.length))
        spine.guards = tuple(batch.guard for batch in spine.batches if batch.guard is not None)
        return spine

    @staticmethod
    def of(batch: Batch) -> Spine:
        """One batch, to be read only."""
        return Spine.over(len(batch.columns), len(batch.weights), (batch,))

    @property
    def batches(self) -> tuple[Batch, ...]:
        """All batches, the settled ones first; their sum is the trace."""
        return self.view[0]

    @property
    def located(self) -> tuple[int, int]:
        """(the address of its directory, how many batches it has), or (0, -1) if readers must verify pages: see `expect`."""
        if self.guards and not self.passes():
            return 0, -1
        if self._located is None:
            self._located = address(self.view[1]), len(self.view[0])
        return self._located

    def passes(self) -> bool:
        """Whether readers need not call `expect`; see Guard."""
        return not self.guards or all([guard.passes() for guard in self.guards])

    @property
    def rows(self) -> int:
        """Stored rows; a row that is in several batches counts once for each."""
        return sum(batch.length for batch in self.batches)

    @property
    def nbytes(self) -> int:
        """Bytes of all batches, indexes included."""
        return sum(batch.nbytes for batch in self.batches)

    @property
    def unverified(self) -> int:
        """Bytes of mapped batches that have not been verified entirely."""
        if not self.guards:
            return 0
        return sum(batch.nbytes for batch in self.batches if batch.guard is not None and not batch.guard.done)

    def with_batch(self, batch: Batch) -> Spine:
        """The trace and one more batch, to be read only; shares the batches."""
        if not batch.length:
            return self
        return self._read_only(((*self.batches, batch), np.concatenate((self.view[1], batch.entry))), self.guards)

    def beside(self, other: Spine) -> Spine:
        """The sum of both traces, to be read only; shares the batches."""
        view = (*self.batches, *other.batches), np.concatenate((self.view[1], other.view[1]))
        return self._read_only(view, (*self.guards, *other.guards))

    def above(self, stored: Spine) -> Spine:
        """The sum of this trace and one that changes seldom; shares the batches. What is appended to it merges with this trace alone."""
        view = (*stored.batches, *self.batches), np.concatenate((stored.view[1], self.view[1]))
        spine = self._version(self._levels, view, self.sought, stored.guards)
        spine._below, spine.share = stored.batches, stored.share
        return spine

    def _read_only(self, view: View, guards: tuple[Guard, ...]) -> Spine:
        """A version that is only read; keys that readers seek in it count as sought here."""
        return self._version(None, view, self.sought, guards)

    def _version(self, levels: Levels | None, view: View, sought: list[int], guards: tuple[Guard, ...]) -> Spine:
        spine = Spine.__new__(Spine)
        spine.columns, spine.weights, spine.share, spine._below = self.columns, self.weights, self.share, self._below
        spine._levels, spine.view, spine.sought, spine.guards, spine._located, spine._room = levels, view, sought, guards, None, None
        spine.merges = levels.merges.values() if levels is not None and levels.merges else ()
        return spine

    def expect(self, keys: Sequence[Words]) -> None:
        """Verifies the pages that a reader of these keys (see `trace/probe.py`) will access; costs nothing if all batches are in memory."""
        for guard in self.guards:
            if keys:
                guard.sought(keys)
            else:
                guard.everything()

    def scan(self, counters: Counters) -> Batch:
        """The whole trace as one batch. O(rows), all counted as touched."""
        batches = self.batches
        counters.touched += self.rows
        counters.batches += len(batches)
        if not batches:
            return Batch.empty(self.columns, self.weights)
        return merge(batches if self.share is None else [self.share.of_batch(batch) for batch in batches])

    def count_sought(self, keys: int) -> None:
        """Counts keys that a reader has sought; several threads may read one spine."""
        with _COUNTING:
            self.sought[0] += keys

    @staticmethod
    def count_all_sought(keys: Iterable[tuple[Spine | None, int]]) -> None:
        """The same for several spines; None is none."""
        with _COUNTING:
            for spine, count in keys:
                if spine is not None:
                    spine.sought[0] += count

    def appended(self, batch: Batch) -> Spine:
        """The next version: with the batch, and with the running merges continued in proportion to its rows.

        Raises WeightOverflow if the sum of all batches does. After any exception, at any line, this version is unchanged and can be
        appended to.
        """
        assert self._levels is not None, "a version that is only read cannot be appended to"
        (sought,) = self.sought
        levels = self._levels.with_small(batch, sought)
        if levels is not None:
            entry, (batches, directory), room = batch.entry, self.view, self._room
            assert len(entry) == DIRECTORY_HEADER + self.columns + self.weights  # without making the batch's arrays
            extended = None if room is None else room.extended(directory, entry)
            if room is None or extended is None:
                room = _Room(directory, len(entry))
                extended = room.extended(directory, entry)
                assert extended is not None
            spine = self._version(levels, ((*batches, batch), extended), [0], self.guards)
            spine._room, spine._located = room, (room.place, len(batches) + 1)
            return spine
        assert len(batch.columns) == self.columns and len(batch.weights) == self.weights
        levels = self._levels.appended(batch, sought)
        return self._version(levels, _view((*self._below, *levels.batches())), [0], self.guards)


class _Room:
    """Room in which the directories of successive versions are the beginnings of one array: each adds an entry after what is used.

    A version that is not the newest, such as one whose tick failed after it was appended to, gets a room of its own. One thread at a time
    appends to versions, that of the tick; others read what was there before.
    """

    __slots__ = ("_used", "_words", "place")

    def __init__(self, directory: Words, entry: int) -> None:
        """A copy of a directory, with room for some entries of `entry` words."""
        self._used = len(directory)
        self._words = np.empty(self._used + SMALL_BATCHES_UNSOUGHT * entry, np.int64)
        self._words[: self._used] = directory
        self.place = address(self._words)

    def extended(self, directory: Words, entry: Words) -> Words | None:
        """The directory with one more entry; None unless it is all that is used, and there is room."""
        used, words = self._used, self._words
        end = used + len(entry)
        if used != len(directory) or end > len(words):
            return None
        words[used:end] = entry
        self._used = end
        return words[:end]


def _view(batches: tuple[Batch, ...]) -> View:
    return batches, np.concatenate([batch.entry for batch in batches]) if batches else np.empty(0, np.int64)
