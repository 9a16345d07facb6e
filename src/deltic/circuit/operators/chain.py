"""Consecutive linear operators, fused into one pass.

Each row of the change is touched once, however many steps there are. No word is written between steps, and no expression is evaluated
twice. A temporal filter may be the last step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from deltic.circuit.operator import Context, Delta, Operator
from deltic.circuit.operators.flat_map import FlatMapOperator
from deltic.circuit.operators.generate import GenerateOperator
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.selection_vector import SelectionVector
from deltic.circuit.operators.temporal_filter import TemporalFilterOperator
from deltic.schema import Schema
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout
from deltic.trace.rows import Rows

ARROW = " → "
Step = Map | FlatMapOperator | GenerateOperator


@dataclass(frozen=True, slots=True)
class Chain:
    """steps: each reads the result of the one before. last: the temporal filter after them. weights: the number of weights of a result."""

    steps: tuple[Step, ...]
    last: TemporalFilterOperator | None = None
    weights: int = 1
    fallible: bool = field(init=False, compare=False, repr=False)
    layout: Layout = field(init=False, compare=False, repr=False)
    _nothing: Rows = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fallible", any(step.fallible for step in self.steps))
        target = Layout.of(self.steps[-1].target)
        object.__setattr__(self, "layout", Layout.of(self.source))
        object.__setattr__(self, "_nothing", Rows.empty(target.width, self.weights))

    @property
    def name(self) -> str:
        return ARROW.join(step.name for step in (*self.steps, *((self.last,) if self.last else ())))

    @property
    def eager(self) -> bool:
        return self.last is not None

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = inputs[0]
        context.counters.touched += len(rows)
        rows = consolidate(rows) if self.fallible else rows
        if (passed := context.passed(self, rows)) is not None:
            return passed
        return self.applied([SelectionVector.of(rows, self.source, self.layout, context.decoded.get(id(rows)))], context)

    @property
    def source(self) -> Schema:
        return self.steps[0].source

    def applied(self, parts: Sequence[SelectionVector], context: Context) -> Rows:
        """The rows after all steps. parts: together one change; if a step can fail, they must be consolidated."""
        passed = [self._passed(part, context) for part in parts] or [self._none()]
        if self.last is not None:
            return self.last.filtered(passed, context)
        return passed[0].rows() if len(passed) == 1 else Rows.concat([part.rows() for part in passed])

    def _none(self) -> SelectionVector:
        target = self.steps[-1].target
        return SelectionVector.of(self._nothing, target, Layout.of(target))

    def _passed(self, rows: SelectionVector, context: Context) -> SelectionVector:
        for step in self.steps:
            if not rows.length:
                return self._none()
            rows = step.passed(rows, context)
        return rows


def temporal_filter(operator: Operator) -> TemporalFilterOperator | None:
    """The operator if it is a temporal filter, or the one that it ends with; else None."""
    chain = getattr(operator, "chain", operator)
    if isinstance(chain, Chain):
        return chain.last
    return operator if isinstance(operator, TemporalFilterOperator) else None
