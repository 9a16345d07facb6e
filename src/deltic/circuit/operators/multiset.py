"""multiset: passes a change on, and fails if the weight of a row would fall below 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deltic.circuit.operator import Context, Delta
from deltic.errors import Span
from deltic.expr.failures import negative_weight
from deltic.schema import Schema
from deltic.trace.encoding import Layout, decode
from deltic.trace.probe import lookup
from deltic.trace.weights import add_checked
from deltic.types import frozen_list


@dataclass(frozen=True, slots=True)
class MultisetOperator:
    """Its input is the change of `arrangement`, which has rows of `schema`. place, reason: for the error, as in the plan."""

    arrangement: str
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)
    place: str = field(default="the view", compare=False, repr=False)
    reason: str = field(default="", compare=False, repr=False)

    @property
    def name(self) -> str:
        return "multiset"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = inputs[0]
        width = Layout.of(self.schema).width
        decreased = np.flatnonzero(delta.weights[0] < 0)
        if len(decreased):
            rows = delta.take(decreased)
            (old,) = lookup(context.old(self.arrangement, width, 1), rows.columns, context.counters)
            self.check(rows.columns, add_checked(old, rows.weights[0]), context)
        return delta

    def check(self, columns: Sequence[np.ndarray], weights: np.ndarray, context: Context) -> None:
        """Raises NegativeWeight for the first row whose weight is below 0."""
        if not (below := weights < 0).any():
            return
        first = int(below.argmax())
        words = [column[first : first + 1] for column in columns]
        fields = zip(self.schema, Layout.of(self.schema).slices, strict=True)
        row = [frozen_list(decode(words[part], f, context.strings))[0] for f, part in fields]
        raise negative_weight(row, int(weights[first]), self.place, self.span, self.reason)
