"""Scopes in scopes: a child circuit that runs to its fixed point within one step of its parent, with imports and feedback.

Within a step, iteration 0 sees the imported changes; feedback gives in iteration i + 1 what it was given in iteration i, and its
apparent cycle is none in the schedule, since it is read before it is written. The scope stops when no feedback holds anything for the
next iteration. The child's output is the sum over the iterations of this step.
Operators within a scope are linear so far: those keep nothing, so that they are right at every (epoch, iteration).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltic.circuit.clock import Clock
from deltic.circuit.nodes import Node, NodeKind
from deltic.circuit.operator import Context, Delta
from deltic.errors import EvaluationError
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows

ITERATION_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Import:
    """Attaches the parent's stream at `position` among the child's inputs: whole at iteration 0, empty afterwards."""

    position: int

    @property
    def name(self) -> str:
        return "import"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        return inputs[self.position]


@dataclass(frozen=True, slots=True)
class Feedback:
    """z⁻¹ in the innermost scope: what node `source` (a local id, perhaps a later one) gave in the previous iteration."""

    source: int

    @property
    def name(self) -> str:
        return "feedback"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Child:
    """A scope of `nodes`, whose node `export` is the output. limit: iterations after which it is held to diverge."""

    nodes: tuple[Node, ...]
    export: int
    limit: int = ITERATION_LIMIT

    @property
    def name(self) -> str:
        return "child"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        return self.run(inputs, context, Clock((context.tick.epoch,)))

    def run(self, inputs: Sequence[Delta], context: Context, clock: Clock) -> Delta:
        """Iterates to the fixed point. Raises EvaluationError after `limit` iterations."""
        depth = len(clock.time)
        held: dict[int, Delta] = {}
        exported: list[Rows] = []
        for iteration in range(self.limit):
            with clock.evaluation(iteration, depth):
                values = self._iterate(inputs if iteration == 0 else None, held, context, clock)
            exported.append(values[self.export])
            held = {n.id: values[n.operator.source] for n in self.nodes if isinstance(n.operator, Feedback)}
            if not any(len(consolidate(delta)) for delta in held.values()):
                return consolidate(Rows.concat(exported))
        raise EvaluationError(
            f"a recursion did not end after {self.limit} iterations",
            remedy="raise the limit, or look for a rule that always yields new rows",
        )

    def _iterate(self, imported: Sequence[Delta] | None, held: dict[int, Delta], context: Context, clock: Clock) -> dict[int, Delta]:
        values: dict[int, Delta] = {}
        for node in self.nodes:
            none = Rows.empty(node.shape.layout.width, node.shape.weights)
            match node.kind:
                case NodeKind.IMPORT:
                    values[node.id] = none if imported is None else node.operator.step(imported, context)
                case NodeKind.FEEDBACK:
                    values[node.id] = held.get(node.id, none)
                case NodeKind.CHILD:
                    assert isinstance(node.operator, Child)
                    given = [values[i] for i in node.inputs]
                    values[node.id] = node.operator.run(given, context, clock) if any(map(len, given)) else none
                case _:
                    given = [values[i] for i in node.inputs]
                    values[node.id] = node.operator.step(given, context) if any(map(len, given)) else none
        return values
