"""Rows of windows, by the watermark of a table: while their window is open, or once it closes. Linear, with a queue.

Costs O(rows of the tick + rows whose window it closes). The state is the rows of open windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from deltic.circuit.operator import BEGINNING, Context, Delta, as_batch
from deltic.circuit.operators.arrange import check_sums
from deltic.circuit.operators.linear import negated
from deltic.schema import TableSchema
from deltic.trace.batch import Batch
from deltic.trace.between import between
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import MARKER
from deltic.trace.rows import Rows

Phase = Literal["open", "closed", "joinable"]
_NEVER: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class WatermarkOperator:
    """Its input has `width` words of a row and one of the window's end, less `offset`: microseconds, or a whole number, as the table's
    column with LATENESS has. The window never closes if it is NULL, which a `nullable` end may be, or if the sum leaves 64 bits.

    table: that of the watermark. queue: the arrangement (end, words of the row) of the rows of open windows.
    phase: the output is the rows of windows that the tick closes, a stream, or the change of the rows of open windows, also of those with
    which later rows of the table can be joined. A watermark
    that begins with the rows that a table has had closes windows in a tick that amends the one before: nobody gets these.
    """

    table: TableSchema
    queue: str
    width: int
    offset: int
    phase: Phase
    nullable: bool = True

    @property
    def name(self) -> str:
        return "joinable_rows" if self.phase == "joinable" else f"{self.phase}_windows"

    @property
    def closed(self) -> bool:
        """Whether the output is a stream."""
        return self.phase == "closed"

    @property
    def key(self) -> str:
        """The name of the watermark."""
        return self.table.name.lower()

    @property
    def eager(self) -> bool:
        return True

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        before, now = context.tick.watermarks.get(self.key, (BEGINNING, BEGINNING))
        fresh = context.tick.fresh
        if fresh is not None and self.queue not in fresh:
            return self._nothing() if self.closed else self._rows(context.state[self.queue].scan(context.counters))
        delta = as_batch(inputs[0])
        context.counters.touched += len(delta)
        waiting, passed = self._parted(delta, before, now)
        due = self._due(before, now, context)
        change = consolidate(Rows.concat([waiting, negated(due)]))
        check_sums(change, self.queue, context)
        context.append(self.queue, change)
        if not self.closed:
            return self._rows(change)
        return self._nothing() if fresh is not None or context.tick.amends else Rows.concat([self._rows(passed), self._rows(due)])

    def _parted(self, delta: Batch, before: int, now: int) -> tuple[Rows, Rows]:
        """(rows of windows that are open after the tick, rows of windows that it closes), each after its end."""
        ends = delta.columns[self.width]
        finite = ends <= _NEVER - max(self.offset, 0)
        if self.nullable:
            finite &= ends != MARKER
        ends = np.where(finite, np.maximum(ends, BEGINNING - min(self.offset, 0)) + self.offset, _NEVER)
        rows = Rows((ends, *delta.columns[: self.width]), delta.weights)
        return rows.take((ends > now).nonzero()[0]), rows.take(((ends > before) & (ends <= now)).nonzero()[0])

    def _due(self, before: int, now: int, context: Context) -> Batch:
        """The queued rows whose window the tick closes."""
        queue = context.old(self.queue, self.width + 1, 1)
        return between(queue, before, now, context.counters) if before < now else Batch.empty(self.width + 1, 1)

    def _rows(self, queued: Rows | Batch) -> Rows:
        """Without their ends."""
        return Rows(queued.columns[1:], queued.weights)

    def _nothing(self) -> Rows:
        return Rows.empty(self.width, 1)
