"""range_join in nested scopes: the lookups of `range_join.py`, at the times of `nested.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deltic.circuit.operator import Delta
from deltic.circuit.operators.nested import NestedBilinear, Words
from deltic.circuit.operators.range_join import RangeJoin
from deltic.circuit.scopes import ScopeContext, ScopedTrace
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine


@dataclass(frozen=True, slots=True)
class NestedRangeJoin(NestedBilinear):
    """`flat` at times in scopes."""

    flat: RangeJoin
    depths: tuple[int, int]

    @property
    def width(self) -> tuple[int, int]:
        return len(self.flat.output), 1

    def trace(self, side: int, scopes: ScopeContext) -> ScopedTrace:
        flat, depth = self.flat, self.depths[side]
        return scopes.trace((flat.left, flat.right)[side], flat.widths[side] + depth, 1, depth)

    def products(self, delta: Delta, side: int, spine: Spine, scopes: ScopeContext) -> Iterator[tuple[Rows, Words]]:
        width, depth = self.flat.widths[1 - side], self.depths[1 - side]
        change = Rows(delta.columns, delta.weights)
        return self.flat.matches(change, side, spine, scopes.counters, spine.share, range(width, width + depth))
