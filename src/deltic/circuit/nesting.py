"""Builds scopes: operators are given in their flat form, and become nodes in the form that is correct at nested times.

A node's state is named by the scope's seed, which must determine the program of the whole scope: in a cycle no node's hash can be computed
before the others. So a scope whose program changes is backfilled as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from deltic.circuit.builder import CircuitBuilder
from deltic.circuit.nodes import ArrangementSpec, Node, NodeKind, Shape
from deltic.circuit.operator import Operator
from deltic.circuit.operators.accumulate import AccumulateOperator
from deltic.circuit.operators.aggregate import AggregateOperator
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.child import ITERATION_LIMIT, Child
from deltic.circuit.operators.feedback import Feedback, Import
from deltic.circuit.operators.fold_groups import FoldSums
from deltic.circuit.operators.inspect import InspectOperator
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.linear import Exchange
from deltic.circuit.operators.multiset import MultisetOperator
from deltic.circuit.operators.multiway import MultiwayJoinOperator
from deltic.circuit.operators.neighbours import NeighboursOperator
from deltic.circuit.operators.nested_arrange import NestedArrange
from deltic.circuit.operators.nested_join import NestedJoin
from deltic.circuit.operators.nested_multiset import NestedMultiset
from deltic.circuit.operators.nested_multiway import NestedMultiwayJoin
from deltic.circuit.operators.nested_range_join import NestedRangeJoin
from deltic.circuit.operators.nested_reduce import NestedReduce
from deltic.circuit.operators.nested_reweigh import NestedReweigh
from deltic.circuit.operators.over_ticks import OverTicksOperator
from deltic.circuit.operators.positions import PositionsOperator
from deltic.circuit.operators.range_join import RangeJoin
from deltic.circuit.operators.reduce import ReduceOperator
from deltic.circuit.operators.reweigh import Reweigh
from deltic.circuit.operators.semijoin import SemiJoin
from deltic.circuit.operators.table import TableInput
from deltic.circuit.operators.top_k import TopKOperator
from deltic.circuit.operators.watermark import WatermarkOperator
from deltic.circuit.operators.weighted import WeightedOperator
from deltic.circuit.spreading import spread
from deltic.errors import Span
from deltic.schema import BIGINT, Field, Schema

NOWHERE = -1
"""The source of a feedback that is not yet connected."""


class ScopeBuilder(CircuitBuilder):
    """A scope within the circuit or scope that `parent` builds. `close` adds it there as a node."""

    def __init__(self, parent: CircuitBuilder, seed: str) -> None:
        super().__init__(several=parent.several)
        self.parent, self.depth, self.depths, self.contents = parent, parent.depth + 1, parent.depths, parent.contents
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
        relation: str | None = None,
        content: str | None = None,
        stands_for: str | None = None,
    ) -> int:
        """As CircuitBuilder.add, with the operator in its flat form. All nodes are on the home shard until `close` spreads the scope."""
        inner_form = nested(operator, self.depth, self.depths)
        owned = None if isinstance(inner_form, NestedReduce) else owns
        return super().add(inner_form, inputs, shape, (), kind=kind, owns=owned, relation=relation, content=content, stands_for=stands_for)

    def attach(self, stream: int, arrangement: str | None = None) -> int:
        """The parent's stream in this scope. arrangement: the one whose change the stream is; None: that of its node, if any."""
        node = self.parent.nodes[stream]
        if stream not in self._imports:
            self._imports.append(stream)
        operator = Import(self._imports.index(stream), arrangement or _arrangement(node))
        return super().add(operator, (), node.shape, (), kind=NodeKind.IMPORT, content=node.content)

    def imported(self, stream: int) -> int:
        """The parent's stream that an import of this scope reads."""
        operator = self.nodes[stream].operator
        assert isinstance(operator, Import)
        return self._imports[operator.position]

    def feedback(self, shape: Shape, relation: str = "", span: Span | None = None, *, is_set: bool = False) -> int:
        """A stream that repeats, one iteration later, the stream given to `connect`. span, is_set: of the relation, for errors."""
        number = sum(node.kind is NodeKind.FEEDBACK for node in self.nodes)
        return super().add(Feedback(NOWHERE - number, relation, span, is_set), (), shape, (), kind=NodeKind.FEEDBACK)

    def connect(self, feedback: int, source: int) -> None:
        """Sets the stream that a feedback delays."""
        operator = self.nodes[feedback].operator
        assert isinstance(operator, Feedback) and self.nodes[source].shape.kinds == self.nodes[feedback].shape.kinds
        self.nodes[feedback] = replace(self.nodes[feedback], operator=replace(operator, source=source))

    def specify(self, spec: ArrangementSpec) -> None:
        """Rows have the iterations of the scopes after their own words."""
        iterations = tuple(Field(f"_iteration{k}", BIGINT, False) for k in range(self.depth))
        shape = Shape(Schema(spec.shape.schema.fields + iterations), spec.shape.weights)
        super().specify(replace(spec, shape=shape))

    def close(
        self,
        export: int,
        limit: int = ITERATION_LIMIT,
        placed: Callable[[int], int] = lambda stream: stream,
        partition: tuple[int, ...] = (),
    ) -> int:
        """The id of the scope as a node of the parent, with the stream of node `export`. Nodes that nothing reads are left out.

        placed: moves a stream of the parent to the shards that read it. partition: the words by which the scope's only relation is spread
        over the shards; () keeps everything on the home shard.
        """
        nodes, export = self._live(export)
        if partition:
            nodes = spread(nodes, partition)
            where = {n.owns: n.partition for n in nodes}
            self.arrangements.update({name: replace(s, partition=where[name]) for name, s in self.arrangements.items() if name in where})
        used = sorted({n.operator.position for n in nodes if isinstance(n.operator, Import)})
        nodes = [_moved(n, used) for n in nodes]
        streams = [self._imports[position] for position in used]
        owned = {name for n in nodes for name in n.owned}
        self.parent.arrangements.update({name: spec for name, spec in self.arrangements.items() if name in owned})
        imported = (n.operator.arrangement for n in nodes if isinstance(n.operator, Import))
        reads = [name for name in dict.fromkeys(imported) if name is not None] if self.depth == 1 else []
        shape = nodes[export].shape
        operator = Child(tuple(nodes), export, limit)
        inputs = tuple(map(placed, streams))
        content = self.parent.digest("child", self.seed, sorted({self.parent.nodes[i].content for i in inputs}))
        return CircuitBuilder.add(self.parent, operator, inputs, shape, partition, kind=NodeKind.CHILD, reads=reads, content=content)

    def _live(self, export: int) -> tuple[list[Node], int]:
        """The nodes that the export, a feedback or an inspection depends on, renumbered, and the new number of the export."""
        feedback = [n for n in self.nodes if isinstance(n.operator, Feedback)]
        waiting = [export, *(n.id for n in feedback), *(n.id for n in self.nodes if isinstance(n.operator, InspectOperator))]
        live = set(waiting)
        while waiting:
            node = self.nodes[waiting.pop()]
            reads = {*node.inputs, *((node.operator.source,) if isinstance(node.operator, Feedback) else ())} - live
            live |= reads
            waiting += reads
        number = {old: new for new, old in enumerate(sorted(live))}
        nodes = []
        for old in sorted(live):
            node, operator = self.nodes[old], self.nodes[old].operator
            if isinstance(operator, Feedback):
                operator = replace(operator, source=number[operator.source])
            inputs = tuple(number[i] for i in node.inputs)
            nodes.append(replace(node, path=(number[old],), operator=operator, inputs=inputs))
        return nodes, number[export]


def _moved(node: Node, used: list[int]) -> Node:
    """An import with its position among the used imports; other nodes unchanged."""
    if not isinstance(node.operator, Import):
        return node
    return replace(node, operator=replace(node.operator, position=used.index(node.operator.position)))


def nested(operator: Operator, depth: int, depths: Mapping[str, int]) -> Operator:
    """The form of the operator that is correct at times in `depth` scopes; linear operators stay. depths: those of arrangements."""
    match operator:
        case Arrange():
            return NestedArrange(operator, depth)
        case JoinOperator():
            return NestedJoin(operator, (depths[operator.left], depths[operator.right]))
        case RangeJoin():
            return NestedRangeJoin(operator, (depths[operator.left], depths[operator.right]))
        case MultiwayJoinOperator():
            return NestedMultiwayJoin(operator, tuple(depths[name] for name in operator.sources))
        case Reweigh():
            return NestedReweigh(operator, depth)
        case MultisetOperator():
            return NestedMultiset(operator, depth)
        case TopKOperator():
            return NestedReduce(operator, depth, operator.key, ((operator.arrangement, operator.width, 1),), len(operator.output))
        case AggregateOperator():
            return _nested_aggregate(operator, depth)
        case (
            SemiJoin()
            | Exchange()
            | TableInput()
            | OverTicksOperator()
            | ReduceOperator()
            | PositionsOperator()
            | NeighboursOperator()
            | AccumulateOperator()
            | FoldSums()
            | WeightedOperator()
            | WatermarkOperator()
        ):
            raise AssertionError(f"{operator.name} has no form in scopes")
        case _:
            return operator


def _nested_aggregate(operator: AggregateOperator, depth: int) -> NestedReduce:
    key = operator.key
    arrangements = [(operator.sums, key, operator.weights)]
    arrangements += [] if operator.digits is None else [(operator.digits, key + 2, 1)]
    arrangements += [(extreme.arrangement, key + extreme.width, 1) for extreme in operator.extremes]
    width = key + sum(s.stop - s.start for s in operator.offsets)
    return NestedReduce(operator, depth, key, tuple(arrangements), width, operator.always)


def _arrangement(node: Node) -> str | None:
    """The arrangement whose change the node's stream is; None if there is none."""
    match node.operator:
        case Arrange():
            return node.operator.arrangement
        case NestedArrange():
            return node.operator.flat.arrangement
        case Import():
            return node.operator.arrangement
        case _:
            return None
