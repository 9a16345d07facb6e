"""The protocol of an operator, and what it is given in one step.

An operator is frozen data with one function: from the changes of its inputs and the old versions of the arrangements that it
reads to the change of its output. It keeps nothing between steps. What it appends to its own arrangement it gives to the
context, and the runtime makes it real at the commit, so that a tick that fails leaves no trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from deltic.circuit.decoded_change import DecodedChange
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

HOME = 0
"""The shard of everything that is not partitioned by a key: global aggregates, top-k, cross joins."""

Delta = Rows | Batch
"""A change of a relation: rows with weights, consolidated (Batch) or as they came (Rows)."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What the driver decides for a tick, the same on every shard.

    epoch: its number. now_us: its time, microseconds since 1970 UTC, None without a clock. before_us: that of the tick before; the same in
    a backfill, and in the first tick that has a time.
    fresh: None in an ordinary tick. In a backfill, the arrangements to fill: tables give their whole content, every other
    arrangement is read as empty, and only those in `fresh` are appended to.
    """

    epoch: int
    now_us: int | None = None
    fresh: frozenset[str] | None = None
    before_us: int | None = None


@dataclass(slots=True)
class Context:
    """One shard's side of a step: its state as of the last commit, and where results go.

    counters: of the node that runs. inner: of nodes in its scopes, by name. decoded: by the `id` of a change that several operators read.
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

    @property
    def backfill(self) -> bool:
        return self.tick.fresh is not None

    def old(self, arrangement: str, columns: int, weights: int) -> Spine:
        """The arrangement as of the last commit; empty in a backfill."""
        return Spine(columns, weights) if self.tick.fresh is not None else self.state[arrangement]

    def append(self, arrangement: str, batch: Batch) -> None:
        """Makes `batch` part of the arrangement when the tick commits."""
        fresh = self.tick.fresh
        if len(batch) and (fresh is None or arrangement in fresh):
            assert arrangement not in self.appended
            self.appended[arrangement] = batch


def as_batch(delta: Delta) -> Batch:
    """The change sorted and consolidated; itself if it is so."""
    return delta if isinstance(delta, Batch) else consolidate(delta)


class Operator(Protocol):
    """A frozen dataclass; equal operators on equal inputs are one node."""

    @property
    def name(self) -> str:
        """The standard name, as `explain` shows it."""
        ...

    @property
    def eager(self) -> bool:
        """Whether it must step though all of its inputs are empty."""
        ...

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        """The change of the output."""
        ...
