"""Circuits: nodes over streams, nested circuits, and their clocks.

A step of the root evaluates its nodes once, in a topological order that ignores feedback edges; a child runs to its fixed point.

    >>> circuit = ReferenceCircuit()
    >>> edges = circuit.source("edges")
    >>> scope = circuit.child("closure")
    >>> paths = scope.feedback("paths")
    >>> arrows = scope.import_stream(edges).index_with(lambda edge: edge[0])
    >>> step = paths.index_with(lambda path: path[1]).join(arrows, lambda key, path, edge: (path[0], edge[1]))
    >>> scope.connect(paths, scope.import_stream(edges).plus(step).distinct())
    >>> closure = circuit.sink("closure", scope.export(paths))
    >>> circuit.step(edges=ZSet.of([((0, 1), None, 1), ((1, 2), None, 1)]))
    >>> closure.value
    ZSet([((0, 1), None, 1), ((0, 2), None, 1), ((1, 2), None, 1)])
    >>> circuit.step(edges=ZSet.of([((1, 2), None, -1)]))
    >>> closure.value
    ZSet([((0, 2), None, -1), ((1, 2), None, -1)])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeVar

from deltic.dbsp.nodes import (
    ChildNode,
    FeedbackNode,
    ImportNode,
    OperatorNode,
    ReferenceNode,
    ReferenceStream,
    SinkNode,
    SourceNode,
    apply_node,
)
from deltic.dbsp.streams import Delay, Delayed, ReferenceOperator, Value
from deltic.dbsp.zset import IndexedZSet, ZSet, check_kind
from deltic.drawing import Vertex, graphviz, mermaid, text
from deltic.errors import CircuitError, ClosedError
from deltic.trace.time import Time

ITERATION_LIMIT: Final = 10_000
"""Iterations of a child that may change something."""

N = TypeVar("N", bound=ReferenceNode)


class ReferenceCircuit:
    """A circuit: first built, then run. A failed step is final: the next step raises an error caused by it.

    owner: the child node that runs it; None for the root. cells: the current values by (local id, output).
    """

    def __init__(self, owner: ChildNode | None = None) -> None:
        self.owner = owner
        self.nodes: list[ReferenceNode] = []
        self.cells: dict[tuple[int, int], Value] = {}
        self.epoch = 0
        self._imports: dict[tuple[ReferenceNode, int], ReferenceStream] = {}
        self._schedule: tuple[ReferenceNode, ...] | None = None
        self._failed: BaseException | None = None

    @property
    def path(self) -> tuple[int, ...]:
        """The global id of the child node that runs it; () for the root."""
        return () if self.owner is None else self.owner.path

    # Building.

    def source(self, name: str) -> ReferenceStream:
        """A source of the root; `step` supplies its values."""
        return ReferenceStream(self.source_node(name))

    def source_node(self, name: str) -> SourceNode:
        """The node of a source."""
        if any(isinstance(node, SourceNode) and node.name == name for node in self.nodes):
            raise CircuitError(f"source {name} already exists", remedy="choose another name")
        return self._add(SourceNode(self, name))

    def operator(self, operator: ReferenceOperator, *inputs: ReferenceStream) -> ReferenceStream:
        """A node of the operator, which no other node may use. Streams of enclosing circuits are imported."""
        if not isinstance(operator, ReferenceOperator):
            raise CircuitError(
                f"invalid operator {operator!r}", expected="a ReferenceOperator of deltic.dbsp.streams or deltic.dbsp.nested"
            )
        if any(node.operator is operator for node in self._everything() if isinstance(node, OperatorNode)):
            raise CircuitError(f"the operator {operator.name} already has a node", remedy="create another operator: operators are stateful")
        return ReferenceStream(self._add(OperatorNode(self, operator, self._local(inputs))))

    def apply(self, name: str, function: Callable[..., Value], *inputs: ReferenceStream) -> ReferenceStream:
        """A node that applies a function to the current values."""
        return ReferenceStream(self._add(apply_node(self, name, function, self._local(inputs))))

    def feedback(self, name: str, delayed: Delayed | None = None) -> ReferenceStream:
        """The stream passed to `connect`, one iteration later; empty at iteration 0. delayed: by default z⁻¹ of Z-sets."""
        return ReferenceStream(self._add(FeedbackNode(self, name, delayed or Delay(ZSet()))))

    def connect(self, feedback: ReferenceStream, stream: ReferenceStream) -> None:
        """Closes the cycle of a feedback."""
        if not isinstance(feedback.node, FeedbackNode):
            raise CircuitError(f"stream {feedback.id} is not a feedback", expected="a stream returned by feedback()")
        feedback.node.connect(stream)

    def child(self, name: str, limit: int = ITERATION_LIMIT) -> ReferenceCircuit:
        """A nested circuit. limit: the number of iterations after which it must have reached its fixed point."""
        node = self._add(ChildNode(self, name, limit))
        node.inner = ReferenceCircuit(node)
        return node.inner

    def import_stream(self, outer: ReferenceStream) -> ReferenceStream:
        """A stream of an enclosing circuit: its value at iteration 0, then empty. A stream of this circuit is returned unchanged."""
        if outer.circuit is self:
            return outer
        if self.owner is None:
            raise CircuitError(
                f"stream {outer.id} belongs neither to this circuit nor to an enclosing one", remedy="export it from its child first"
            )
        near = self.owner.circuit.import_stream(outer)
        key = (near.node, near.port)
        if key not in self._imports:
            self._imports[key] = ReferenceStream(self._add(ImportNode(self, near)))
            self.owner.circuit._schedule = None
        return self._imports[key]

    def export(self, stream: ReferenceStream) -> ReferenceStream:
        """A stream of the enclosing circuit: at each of its steps, the sum over this circuit's iterations. A feedback exports its input."""
        if self.owner is None or stream.circuit is not self:
            raise CircuitError(
                f"stream {stream.id} cannot be exported from here", expected="a stream of this circuit, and a circuit that is a child"
            )
        if isinstance(stream.node, FeedbackNode) and stream.node.inputs:
            stream = stream.node.inputs[0]
        self.owner.exports.append(stream)
        return ReferenceStream(self.owner, len(self.owner.exports) - 1)

    def sink(self, name: str, *inputs: ReferenceStream, callback: Callable[..., object] | None = None) -> SinkNode:
        """A node that keeps its inputs' values at each step, and passes them to the callback."""
        return self._add(SinkNode(self, name, self._local(inputs), callback))

    def _add(self, node: N) -> N:
        self.nodes.append(node)
        self._schedule = None
        return node

    def _everything(self) -> Iterator[ReferenceNode]:
        """All nodes of the root circuit and its descendants."""
        root = self
        while root.owner is not None:
            root = root.owner.circuit
        pending = [root]
        while pending:
            for node in pending.pop().nodes:
                yield node
                if isinstance(node, ChildNode):
                    pending.append(node.inner)

    def _local(self, inputs: tuple[ReferenceStream, ...]) -> tuple[ReferenceStream, ...]:
        return tuple(self.import_stream(stream) for stream in inputs)

    # Running.

    @property
    def schedule(self) -> tuple[ReferenceNode, ...]:
        """The nodes in topological order. Raises CircuitError for a cycle without feedback, or an unconnected feedback."""
        if self._schedule is None:
            self._schedule = self._sorted()
        return self._schedule

    def step(self, **changes: Value) -> None:
        """One epoch of the root. changes: by source name; other sources have empty changes."""
        assert self.owner is None, "only the root takes steps"
        if self._failed is not None:
            raise ClosedError("an earlier step of this circuit failed", remedy="build it again") from self._failed
        sources = {node.name: node for node in self.nodes if isinstance(node, SourceNode)}
        unknown = sorted(changes.keys() - sources.keys())
        if unknown:
            raise CircuitError(f"unknown source {unknown[0]}", expected=f"one of {', '.join(sources)}")
        for name, value in changes.items():
            check_kind(f"source {name}", value, ZSet, IndexedZSet)
        for name, node in sources.items():
            node.value = changes.get(name, ZSet())
        self._check()
        try:
            self.run((self.epoch,))
        except BaseException as error:
            self._failed = error
            raise
        self.epoch += 1

    def _check(self) -> None:
        """Schedules this circuit and those nested in it, so that errors are raised before anything runs."""
        for node in self.schedule:
            if isinstance(node, ChildNode):
                node.inner._check()

    def run(self, now: Time) -> None:
        """One tick of its clock, at the time `now`."""
        for node in self.nodes:
            node.clock_start(0)
        for node in self.schedule:
            for port, value in enumerate(node.evaluate(now)):
                self.cells[node.local, port] = value
        for node in self.nodes:
            node.clock_end(0)

    def _sorted(self) -> tuple[ReferenceNode, ...]:
        for node in self.nodes:
            if isinstance(node, FeedbackNode) and not node.inputs:
                raise CircuitError(f"feedback {node.id} {node.name} is not connected", remedy="connect(feedback, stream) closes its cycle")
        sorter = TopologicalSorter({node: [stream.node for stream in node.before()] for node in self.nodes})
        try:
            return tuple(sorter.static_order())
        except CycleError as error:
            cycle = " → ".join(f"{node.id} {node.name}" for node in error.args[1])
            raise CircuitError(f"a cycle without feedback: {cycle}", remedy="close the cycle with a feedback of its circuit") from error

    # Drawing.

    def vertices(self) -> Iterator[Vertex]:
        """Its nodes; each child is followed by the nodes of its circuit."""
        for node in self.nodes:
            feedback = isinstance(node, FeedbackNode)
            reads = [stream.id.partition(":")[0] for stream in (node.exports if isinstance(node, ChildNode) else node.inputs)]
            label = node.name if node.kind == "operator" else f"{node.kind} {node.name.removeprefix('import ')}"
            yield Vertex(node.id, label, () if feedback else tuple(reads), tuple(reads) if feedback else ())
            if isinstance(node, ChildNode):
                yield from node.inner.vertices()

    def text(self) -> str:
        """One line per node, with global ids."""
        return text(list(self.vertices()))

    def mermaid(self) -> str:
        """A Mermaid flowchart; children are subgraphs."""
        return mermaid(list(self.vertices()))

    def graphviz(self) -> str:
        """A Graphviz digraph; children are clusters."""
        return graphviz(list(self.vertices()))
