"""delay, integrate, delta0, stamp, current and batched at the root: a relation in other ticks, as changes. The plan node defines them.

Each keeps in its own arrangement what the next tick needs. A backfill is not a tick for those whose state exists: they emit what they hold.
For those that are being filled it is the first tick. Nor is a tick that amends the one before: its change of the input is one more part of
the change of that tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import assert_never

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.operators.arrange import check_sums
from deltic.circuit.operators.linear import negated
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows
from deltic.types import OMITTED

Function = OneOf["delay", "integrate", "delta0", "stamp", "current", "batched"]


@dataclass(frozen=True, slots=True)
class OverTicksOperator:
    """width: the number of words of an input row. arrangement: that of the input, for integrate and stamp of a relation.

    memory: for delay the last change of the input, or content if that is a stream; for batched the rows that wait; for the others what
    they denote now. size: of batched, which gives all rows that wait in ticks that reach a multiple of it (`Tick.reaches`).
    """

    function: Function
    memory: str
    width: int
    arrangement: str | None = None
    size: int = field(default=0, metadata={OMITTED: True})

    @property
    def name(self) -> str:
        return self.function

    @property
    def eager(self) -> bool:
        return True

    @property
    def columns(self) -> int:
        """The number of words of an output row."""
        return self.width + (self.function == "stamp")

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        fresh = context.tick.fresh
        if fresh is not None and self.memory not in fresh:
            return self._unchanged(inputs[0], context)
        if context.tick.amends and self.function != "stamp":
            return self._amended(inputs[0], context)
        if self.function == "batched" and not context.tick.reaches(self.size):
            self._append(inputs[0], context)
            return Rows.empty(self.columns, 1)
        if self.function == "integrate":
            return self._append(inputs[0] if self.arrangement is None else self._content(inputs[0], context), context)
        held = context.old(self.memory, self.columns, 1).scan(context.counters)
        match self.function:
            case "delay":
                self._append(Rows.concat([inputs[0], negated(held)]), context)
                return held
            case "delta0":
                return self._append(inputs[0] if fresh is not None else negated(held), context)
            case "current":
                return self._append(Rows.concat([inputs[0], negated(held)]), context)
            case "batched":
                context.append(self.memory, as_batch(negated(held)))
                return Rows.concat([inputs[0], held])
            case "stamp":
                now = self._content(inputs[0], context)
                stamps = np.full(len(now), context.tick.epoch, np.int64)
                return self._append(Rows.concat([Rows((*now.columns, stamps), now.weights), negated(held)]), context)
            case _:
                assert_never(self.function)

    def _amended(self, delta: Delta, context: Context) -> Delta:
        nothing = Rows.empty(self.columns, 1)
        match self.function:
            case "delay":
                self._append(as_batch(delta), context)
                return nothing
            case "integrate":
                return self._append(as_batch(delta), context)
            case _:
                return nothing

    def _content(self, delta: Delta, context: Context) -> Batch:
        """The content of the input now. O(content)."""
        assert self.arrangement is not None
        return context.old(self.arrangement, self.width, 1).with_batch(as_batch(delta)).scan(context.counters)

    def _append(self, rows: Delta, context: Context) -> Batch:
        batch = as_batch(rows)
        check_sums(batch, self.memory, context)
        context.append(self.memory, batch)
        return batch

    def _unchanged(self, whole: Delta, context: Context) -> Delta:
        """What it has denoted since the last tick. whole: what its input denotes."""
        held = context.state[self.memory].scan(context.counters)
        return Rows.concat([whole, negated(held)]) if self.function == "delay" else held


@dataclass(frozen=True, slots=True)
class PreviousTick:
    """A relation as of the previous tick, in a cycle: its change is the relation's last one. See KeepChange, which keeps it.

    content, change: the arrangements of the relation's content and of its last change. width: the number of words of a row.
    """

    content: str
    change: str
    width: int

    @property
    def name(self) -> str:
        return "delay"

    @property
    def eager(self) -> bool:
        return True

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        fresh = context.tick.fresh
        if context.tick.amends:
            return Rows.empty(self.width, 1)
        if fresh is None:
            return context.state[self.change].scan(context.counters)
        if self.change in fresh:
            return Rows.empty(self.width, 1)
        last = context.state[self.change].scan(context.counters)
        return Rows.concat([context.state[self.content].scan(context.counters), negated(last)])


@dataclass(frozen=True, slots=True)
class KeepChange:
    """Keeps the relation's change of this tick for PreviousTick in the next."""

    change: str
    width: int

    @property
    def name(self) -> str:
        return "feedback_over_ticks"

    @property
    def eager(self) -> bool:
        return True

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        held = Rows.empty(self.width, 1) if context.tick.amends else context.old(self.change, self.width, 1).scan(context.counters)
        context.append(self.change, consolidate(Rows.concat([inputs[0], negated(held)])))
        return inputs[0]
