"""Puts scopes together: operators are given in their flat form, and become nodes in the form that is right at nested times.

A node's state is named by the scope's seed, which has to determine the program of the whole scope: its cycles leave no order in which
one node's hash could rest on another's. So a scope whose program changes is filled anew as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from deltic.circuit.builder import CircuitBuilder
from deltic.circuit.nodes import ArrangementSpec, Node, NodeKind, Shape
from deltic.circuit.operator import Operator
from deltic.circuit.operators.aggregate import Aggregate
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.child import ITERATION_LIMIT, Child, Feedback, Import
from deltic.circuit.operators.join import Join
from deltic.circuit.operators.linear import Exchange
from deltic.circuit.operators.nested_arrange import NestedArrange
from deltic.circuit.operators.nested_join import NestedJoin
from deltic.circuit.operators.nested_reduce import NestedReduce
from deltic.circuit.operators.nested_reweigh import NestedReweigh
from deltic.circuit.operators.reweigh import Reweigh
from deltic.circuit.operators.semijoin import SemiJoin
from deltic.circuit.operators.table import TableInput
from deltic.circuit.operators.top_k import TopK
from deltic.schema import BIGINT, Field, Schema

NOWHERE = -1
"""The source of a feedback that is not connected yet."""


class ScopeBuilder(CircuitBuilder):
    """A scope within the circuit, or scope, that `parent` puts together. `close` makes it a node there."""

    def __init__(self, parent: CircuitBuilder, seed: str) -> None:
        super().__init__()
        self.parent, self.depth, self.depths = parent, parent.depth + 1, parent.depths
        self.seed = parent.digest("scope", seed)
        self._imports: list[int] = []

    def digest(self, *parts: object) -> str:
        return super().digest(self.seed, *parts)

    def add(
        self,
        operator: Operator,
        inputs: tuple[int, ...],
        shape: Shape,
        partition: tuple[int, ...] | None = (),
        *,
        kind: NodeKind = NodeKind.OPERATOR,
        owns: str | None = None,
        reads: Iterable[str] = (),
    ) -> int:
        """As in a circuit; the operator in its flat form. Every node is on the home shard."""
        inside = nested(operator, self.depth, self.depths)
        return super().add(inside, inputs, shape, (), kind=kind, owns=None if isinstance(inside, NestedReduce) else owns)

    def attach(self, stream: int) -> int:
        """The parent's stream, which has to be on the home shard, in this scope."""
        node = self.parent.nodes[stream]
        if stream not in self._imports:
            self._imports.append(stream)
        operator = Import(self._imports.index(stream), _arrangement(node))
        return super().add(operator, (), node.shape, (), kind=NodeKind.IMPORT)

    def imported(self, stream: int) -> int:
        """The parent's stream that an import of this scope attaches."""
        operator = self.nodes[stream].operator
        assert isinstance(operator, Import)
        return self._imports[operator.position]

    def feedback(self, shape: Shape, relation: str = "") -> int:
        """The stream that `connect` will say, one iteration later."""
        number = sum(node.kind is NodeKind.FEEDBACK for node in self.nodes)
        return super().add(Feedback(NOWHERE - number, relation), (), shape, (), kind=NodeKind.FEEDBACK)

    def connect(self, feedback: int, source: int) -> None:
        """Says what a feedback delays."""
        operator = self.nodes[feedback].operator
        assert isinstance(operator, Feedback) and self.nodes[source].shape == self.nodes[feedback].shape
        self.nodes[feedback] = replace(self.nodes[feedback], operator=replace(operator, source=source))

    def specify(self, spec: ArrangementSpec) -> None:
        """Rows have the iterations of the scopes behind their own words. What an operator has no need for in scopes is left out."""
        if any(node.owns == spec.id for node in self.nodes):
            iterations = tuple(Field(f"_iteration{k}", BIGINT, False) for k in range(self.depth))
            shape = Shape(Schema(spec.shape.schema.fields + iterations), spec.shape.weights)
            super().specify(replace(spec, shape=shape))

    def close(self, export: int, limit: int = ITERATION_LIMIT) -> int:
        """The scope as a node of the parent, whose stream is that of node `export`."""
        operator = Child(tuple(self.nodes), export, limit)
        self.parent.arrangements.update(self.arrangements)
        reads = [_arrangement(self.parent.nodes[i]) for i in self._imports]
        shape = self.nodes[export].shape
        return CircuitBuilder.add(
            self.parent,
            operator,
            tuple(self._imports),
            shape,
            (),
            kind=NodeKind.CHILD,
            reads=[name for name in reads if name is not None] if self.depth == 1 else (),
        )


def nested(operator: Operator, depth: int, depths: Mapping[str, int]) -> Operator:
    """The operator as it is right at times in `depth` scopes; linear ones are as they are. depths: those of arrangements."""
    match operator:
        case Arrange():
            return NestedArrange(operator, depth)
        case Join():
            return NestedJoin(operator, (depths[operator.left], depths[operator.right]))
        case Reweigh():
            return NestedReweigh(operator, depth)
        case TopK():
            return NestedReduce(operator, depth, 1, ((operator.arrangement, operator.width, 1),), len(operator.output))
        case Aggregate():
            return _nested_aggregate(operator, depth)
        case SemiJoin() | Exchange() | TableInput():
            raise AssertionError(f"{operator.name} has no form in scopes")
        case _:
            return operator


def _nested_aggregate(operator: Aggregate, depth: int) -> NestedReduce:
    key = operator.key
    arrangements = [(operator.sums, key, operator.weights)]
    arrangements += [] if operator.floats is None else [(operator.floats, key + 2, 1)]
    arrangements += [(extreme.arrangement, key + extreme.width, 1) for extreme in operator.extremes]
    width = key + sum(s.stop - s.start for s in operator.offsets)
    return NestedReduce(operator, depth, key, tuple(arrangements), width, operator.always)


def _arrangement(node: Node) -> str | None:
    """The arrangement whose change the node's stream is."""
    match node.operator:
        case Arrange():
            return node.operator.arrangement
        case NestedArrange():
            return node.operator.flat.arrangement
        case Import():
            return node.operator.arrangement
        case _:
            return None
