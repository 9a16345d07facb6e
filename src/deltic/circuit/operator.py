"""The protocol of an operator, and the context of one step.

An operator is frozen data with one function: it computes the change of its output from the changes of its inputs and the old versions
of the arrangements that it reads. It keeps nothing between steps. It hands the rows for its own arrangement to the context, and the
runtime appends them when the tick commits, so a failed tick has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

import numpy as np

from deltic.circuit.decoded_change import DecodedChange
from deltic.reentrant import ReentrantEvent
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable
from deltic.trace.workers import ALONE, Workers, WorkStopped

HOME = 0
"""The shard of all relations that are not partitioned by a key: global aggregates, top-k, cross joins."""

Delta = Rows | Batch
"""A change of a relation: rows with weights, consolidated (Batch) or not (Rows)."""

NO_WATERMARKS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType({})
BEGINNING: Final = int(np.iinfo(np.int64).min)
"""The watermark before the first row."""


class Tick(NamedTuple):
    """The parameters of a tick, the same on every shard.

    epoch: its number. now_us: its time in microseconds since 1970 UTC; None without a clock. before_us: the time of the tick before; equal
    to now_us in a backfill and in the first tick that has a time.
    watermarks: of tables with LATENESS, by name in lower case: in microseconds, after the tick before and after this one. Tables without
    rows so far are not in it.
    fresh: None in an ordinary tick. In a backfill, the arrangements to fill: tables emit their whole content, every other arrangement is
    read as empty, and only those in `fresh` are appended to.
    amends: whether it belongs to the tick before, whose time it changes: relations of other ticks stay those of the same ticks, and streams
    have no rows.
    since: the first epoch after the tick before; those up to its own were commits that are no ticks. None: its own.
    listed: if it fails since a table refuses rows, the most of them that its error lists.
    """

    epoch: int
    now_us: int | None = None
    fresh: frozenset[str] | None = None
    before_us: int | None = None
    watermarks: Mapping[str, tuple[int, int]] = NO_WATERMARKS
    amends: bool = False
    since: int | None = None
    listed: int = 0

    def reaches(self, size: int) -> bool:
        """Whether its epochs have a multiple of `size`."""
        since = self.epoch if self.since is None else self.since
        return self.epoch // size > (since - 1) // size


@dataclass(slots=True)
class Context:
    """One shard's part of a tick: its state as of the last commit, and the rows to append.

    counters: those of the running node. inner: those of nodes in scopes, by name. decoded: by the `id()` of a change with several readers.
    ephemeral: the arrangements of streams, which are empty between ticks. stop: set when the result is not needed any more.
    passes: how linear operators run on many rows; None: by their steps. workers: divide what turns out to be much work.
    """

    shard: int
    shards: int
    tick: Tick
    state: Mapping[str, Spine]
    strings: StringTable
    counters: Counters = field(default_factory=Counters)
    appended: dict[str, Batch] = field(default_factory=dict)
    inner: dict[str, Counters] = field(default_factory=dict)
    decoded: dict[int, DecodedChange] = field(default_factory=dict)
    ephemeral: frozenset[str] = frozenset()
    stop: ReentrantEvent | None = None
    passes: Passes | None = None
    workers: Workers = ALONE

    def check_needed(self) -> None:
        """Raises WorkStopped if the result is not needed any more."""
        if self.stop is not None and self.stop.is_set():
            raise WorkStopped

    @property
    def backfill(self) -> bool:
        return self.tick.fresh is not None

    def old(self, arrangement: str, columns: int, weights: int) -> Spine:
        """The arrangement as of the last commit; empty in a backfill."""
        return Spine(columns, weights) if self.starts_empty(arrangement) else self.state[arrangement]

    def starts_empty(self, arrangement: str) -> bool:
        """Whether the tick's rows are the whole content of the arrangement."""
        return self.tick.fresh is not None or arrangement in self.ephemeral

    def passed(self, operator: Operator, rows: Delta) -> Delta | None:
        """The result of a linear operator on many rows; None if its own step must compute it."""
        return None if self.passes is None else self.passes(operator, rows.length, rows.part, self)

    def append(self, arrangement: str, batch: Batch) -> None:
        """Appends `batch` to the arrangement when the tick commits."""
        fresh = self.tick.fresh
        if len(batch) and (fresh is None or arrangement in fresh):
            assert arrangement not in self.appended
            self.appended[arrangement] = batch


class Passes(Protocol):
    """Runs a linear operator on many rows (`programs/passes.py`)."""

    def __call__(self, operator: Operator, length: int, part: Callable[[int, int], Delta], context: Context) -> Delta | None:
        """The result; None if the operator's step must compute it. part: the rows from a position to another one."""
        ...


def as_batch(delta: Delta) -> Batch:
    """The change sorted and consolidated; itself if it is a batch."""
    return delta if isinstance(delta, Batch) else consolidate(delta)


class Operator(Protocol):
    """A frozen dataclass; equal operators on equal inputs are one node."""

    @property
    def name(self) -> str:
        """The operator's name in `explain`."""
        ...

    @property
    def eager(self) -> bool:
        """Whether it must step even if all of its inputs are empty."""
        ...

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        """The change of the output."""
        ...
