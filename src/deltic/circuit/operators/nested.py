"""What operators in nested scopes have in common: each stands for a flat one, and bilinear ones join every pair of changes once.

A change of one side is joined with all changes of the other side so far, later iterations of past epochs included. A product is due at the
greater of both iterations, in each scope; products that are due later wait in a queue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from deltic.circuit.due import split_by_time
from deltic.circuit.operator import Context, Delta, Operator
from deltic.circuit.scopes import ScopeContext, ScopedTrace, scope_context
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]


class Nested(ABC):
    """`flat` at times in scopes. It has the same name."""

    __slots__ = ()
    flat: Operator

    @property
    def name(self) -> str:
        return self.flat.name

    @property
    def eager(self) -> bool:
        return False


class NestedBilinear(Nested):
    """A join of two arrangements. depths: those of the scopes of the arrangements: this scope or one around it."""

    __slots__ = ()
    depths: tuple[int, int]

    @abstractmethod
    def trace(self, side: int, scopes: ScopeContext) -> ScopedTrace:
        """The arrangement of a side."""

    @abstractmethod
    def products(self, delta: Delta, side: int, spine: Spine, scopes: ScopeContext) -> Iterator[tuple[Rows, Words]]:
        """The products of `delta`, the change of `side`, with all rows of the other side; the iterations of the latter for each."""

    @property
    @abstractmethod
    def width(self) -> tuple[int, int]:
        """The number of words and of weights of a product."""

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        scopes = scope_context(context)
        left, right = inputs
        parts = scopes.awaited()
        if len(left):
            parts += self._due(left, 0, self.trace(1, scopes).now, scopes)
        if len(right):
            trace = self.trace(0, scopes)
            parts += self._due(right, 1, trace.before if len(left) else trace.now, scopes)
        parts = [part for part in parts if len(part)]
        return Rows.concat(parts) if parts else Rows.empty(*self.width)

    def _due(self, delta: Delta, side: int, spine: Spine, scopes: ScopeContext) -> Iterator[Rows]:
        """The products that are due now; the others are postponed. spine: the other side."""
        for rows, times in self.products(delta, side, spine, scopes):
            now, later = split_by_time(times, scopes.time)
            for time, positions in later:
                scopes.postpone(time, rows.take(positions))
            yield rows if now is None else rows.take(now)
