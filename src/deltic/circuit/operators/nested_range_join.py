"""range_join in nested scopes: every pair of changes is joined once, and its product is due at the join of their times.

As `nested_join.py`, with the lookups of `range_join.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deltic.circuit.due import split_by_time
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.range_join import RangeJoin
from deltic.circuit.scopes import Nest, ScopedTrace, nest_of
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine


@dataclass(frozen=True, slots=True)
class NestedRangeJoin:
    """`flat` at times in scopes. depths: those of the scopes of the two arrangements: this scope or one around it."""

    flat: RangeJoin
    depths: tuple[int, int]

    @property
    def name(self) -> str:
        return self.flat.name

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        nest = nest_of(context)
        left, right = inputs
        parts = nest.awaited()
        if len(left):
            parts += self._match(left, 0, self._trace(1, nest).now, nest)
        if len(right):
            trace = self._trace(0, nest)
            parts += self._match(right, 1, trace.before if len(left) else trace.now, nest)
        parts = [part for part in parts if len(part)]
        return Rows.concat(parts) if parts else Rows.empty(len(self.flat.output), 1)

    def _trace(self, side: int, nest: Nest) -> ScopedTrace:
        flat, depth = self.flat, self.depths[side]
        return nest.trace((flat.left, flat.right)[side], flat.widths[side] + depth, 1, depth)

    def _match(self, delta: Delta, side: int, spine: Spine, nest: Nest) -> Iterator[Rows]:
        """The products of `delta`, the change of `side`, that are due now; the others are postponed. spine: the other side."""
        width, depth = self.flat.widths[1 - side], self.depths[1 - side]
        iterations = range(width, width + depth)
        change = Rows(delta.columns, delta.weights)
        for rows, times in self.flat.matches(change, side, spine, nest.counters, spine.share, iterations):
            now, later = split_by_time(times, nest.time)
            for time, positions in later:
                nest.postpone(time, rows.take(positions))
            yield rows if now is None else rows.take(now)
